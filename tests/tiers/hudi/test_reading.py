"""The blocks of docs/use/readers.md read what was committed, on tables of both types."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.harness.in_its_write import done
from tests.support.harness.local import AGENT, Process, World, rows

PAGE = ROOT / "docs/use/readers.md"


def blocks() -> list[str]:
    """The Python of the page."""
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", PAGE.read_text(), re.MULTILINE)
    texts = [re.sub("^    ", "", block, flags=re.MULTILINE).strip() for block in found]
    return [text for text in texts if not text.startswith("kubectl ")]


def test_the_page_has_python_alone() -> None:
    assert len(blocks()) == 6
    for block in blocks():
        ast.parse(block)


@pytest.mark.parametrize("kind", [pytest.param("CopyOnWrite", marks=pytest.mark.extra), "MergeOnRead"])
def test_the_page_reads_what_was_committed(world: World, agent: Process, kind: str) -> None:
    table = world.table(f"reading-{kind.lower()}", type=kind)
    world.create(table, agent=AGENT, process=agent)
    first, second = rows([1, 2, 3], "a", "open", 1), rows([2, 4], "a", "paid", 2)
    done(table.writer("first", python={"batches": [{"rows": first}]}))
    (commit,) = table.timeline().completed
    done(table.writer("second", python={"batches": [{"rows": second}]}))
    names: dict[str, Any] = {"spark": world.spark()}
    for block in blocks():
        time = commit.completion if "incremental" in block else commit.requested
        text = block.replace('{"aws_region": "eu-central-1"}', repr(world.s3_reader_options()))
        text = text.replace("s3://lake/orders", table.path.replace("s3a://", "s3://"))
        text = text.replace("s3a://lake/orders", table.path).replace("20260101120000000", time)
        text = re.sub(r"\bstatus\b", "v", text)
        exec(compile(text, str(PAGE), "exec"), names)
    now = {1: "open", 2: "paid", 3: "open", 4: "paid"}
    assert {row.id: row.v for row in names["snapshot"].collect()} == now
    assert {row.id: row.v for row in names["earlier"].collect()} == dict.fromkeys((1, 2, 3), "open")
    assert {row.id: row.v for row in names["changes"].collect()} == {2: "paid", 4: "paid"}
    frame = names["frame"]
    assert dict(zip(frame["id"], frame["v"], strict=True)) == now
    assert {(one["id"], one["v"]) for one in names["before"].to_pylist()} == {(n, "open") for n in (1, 2, 3)}
    assert names["by_status"].fetchall() == [("open", 2), ("paid", 2)]
