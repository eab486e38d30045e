"""The HudiWriters of docs/use/statements.md do what their SQL statements say, also when another
writer changes the same rows before they commit.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from hudi_operator.api.spec import WriterSpec
from hudi_operator.manifests import configmaps
from tests.support import ROOT
from tests.support.harness.in_its_write import done, stopped_in_its_write
from tests.support.harness.local import AGENT, ROW_SCHEMA, Process, Row, Table, World, rows

PAGE = ROOT / "docs/use/statements.md"
COLUMN_OF = {"day": "p", "status": "v", "updated": "ts"}
"""Columns of the page's table and of the tests' tables."""
SEED: list[Row] = [
    (1, "a", "test", 1),
    (2, "a", "paid", 1),
    (3, "a", "open", 1),
    (4, "b", "test", 1),
    (5, "b", "paid", 1),
]
RIVAL: list[Row] = [(1, "a", "open", 2), (2, "a", "open", 2), (3, "a", "test", 2)]
CHANGES: list[Row] = [(2, "a", "cancelled", 5), (5, "b", "shipped", 5), (8, "b", "cancelled", 5), (9, "b", "new", 5)]


@dataclass(frozen=True)
class Statement:
    """``left``: the rows behind the rival's commit and the statement, in this order."""

    left: list[Row]
    rival: list[Row]


STATEMENTS = {
    "delete-tests": Statement([*RIVAL[:2], (5, "b", "paid", 1)], RIVAL),
    "close-paid": Statement([*RIVAL, (4, "b", "test", 1), (5, "b", "closed", 2)], RIVAL),
    "merge-changes": Statement(
        [RIVAL[0], RIVAL[2], (4, "b", "test", 1), (5, "b", "shipped", 5), (9, "b", "new", 5)], RIVAL
    ),
    "insert-new": Statement([*SEED, (8, "b", "cancelled", 5), (9, "b", "rival", 9)], [(9, "b", "rival", 9)]),
    "truncate": Statement([], RIVAL),
}


def objects() -> dict[str, dict[str, Any]]:
    """The page's HudiWriters, by name."""
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", PAGE.read_text(), re.MULTILINE)
    found = [yaml.safe_load(re.sub("^    ", "", block, flags=re.MULTILINE)) for block in blocks]
    return {one["metadata"]["name"]: one for one in found}


def test_every_statement_of_the_page_is_run() -> None:
    assert objects().keys() == STATEMENTS.keys()


def job(table: Table, name: str, changes: str) -> dict[str, Any]:
    """The job that the operator makes of it, with the table and the folder of the test."""
    text = yaml.safe_dump(objects()[name])
    for column, here in COLUMN_OF.items():
        text = re.sub(rf"\b{column}\b", here, text)
    spec = yaml.safe_load(text.replace("s3a://landing/changes/", changes))
    for view in spec["spec"]["source"]["sql"]["views"]:
        if "hudi" in view:
            view["hudi"] = {"path": table.path}
    writer = WriterSpec.from_object(spec)
    made = configmaps.job(table.spec, writer, 1, run=1).to_json()
    return {
        "sql": made["source"]["sql"],
        "operation": made["operation"],
        "duplicates": made["duplicates"],
        "may_truncate": made["mayTruncate"],
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=() if (name, kind) == ("merge-changes", "MergeOnRead") else pytest.mark.extra)
        for name in STATEMENTS
        for kind in ("CopyOnWrite", "MergeOnRead")
    ],
)
def test_a_statement_never_acts_on_an_old_row(world: World, agent: Process, name: str, kind: str) -> None:
    table = world.table(f"{name}-{kind.lower()}", type=kind)
    world.create(table, agent=AGENT, process=agent)
    done(table.writer("seed", python={"batches": [{"rows": SEED}]}))
    folder = world.url(world.lake / "landing" / table.spec.ref.name)
    world.spark().createDataFrame(CHANGES, ROW_SCHEMA).write.parquet(folder)
    wanted = STATEMENTS[name]
    writer = table.writer(name, retries=5, **job(table, name, folder))
    stopped_in_its_write(table, writer)
    done(table.writer("rival", python={"batches": [{"rows": wanted.rival}]}))
    writer.signal(signal.SIGCONT)
    assert writer.wait() == 0, writer.log()[-4000:]
    told = writer.termination()
    # The second try has read what the first one had not (F597).
    assert (told["commits"], told["conflicts"]) == (1, 1), writer.log()[-4000:]
    table.audited(wanted.left)
    done(table.writer("later", python={"batches": [{"rows": rows([7], "a", "later", 1)}]}))
    table.audited([*wanted.left, (7, "a", "later", 1)])
