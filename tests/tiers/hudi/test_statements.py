"""Every statement, procedure and way to save of a program beside other writers: it works, is
refused, or changes nothing; no row is lost.

What was seen is kept in build/statements, from which `python -m tests.campaigns.statements.page`
makes docs/use/what-user-code-may-do.md.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.statements.page import LIST, SEEN
from tests.support import ROOT
from tests.support.harness.executors import EXECUTORS
from tests.support.harness.in_its_write import done
from tests.support.harness.local import AGENT, Process, World, rows, until

APP = Path(__file__).with_name("apps") / "statements_app.py"
CODE = Path(__file__).with_name("apps") / "update_code.py"
FILES = (
    "df.write.parquet below the table",
    "rdd.saveAsTextFile below the table",
    "spark.read.parquet of the table's files",
    "spark.read.orc of the table's files, data source V2",
    "df.write.json below the table, data source V2",
    "df.writeStream of the table",
)
"""What is no statement, and would read or write the table's files (F78, F79, F89)."""
RACING = (*range(1, 9), 10, 11, 12)
"""Records that the program has read before another writer changes them, one for each way."""
SECONDS = 1500
"""The program runs a hundred statements; on a busy machine of 2 cores it takes many minutes."""


def listed() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(LIST.read_text(encoding="utf-8"))
    return data


@pytest.mark.extra
@pytest.mark.timeout(SECONDS + 400)
@pytest.mark.parametrize("mode", ["local", "executors"])
def test_no_statement_loses_a_row(world: World, agent: Process, mode: str) -> None:
    """F33, F40, F59: the rows that are due are there, whatever the program tried, and what it was
    refused left nothing behind.
    """
    commit, table = commit_of_the_run(), world.table(f"statements-{mode}")
    world.create(table, agent=AGENT, process=agent)
    first = [*rows([*range(1, 11), 12], "a", "0", 1), *rows([11], "r", "0", 1), *rows([60], "y", "seed", 1)]
    seed = table.writer("seed", python={"batches": [{"rows": first}]})
    assert seed.wait() == 0, seed.log()[-4000:]
    elsewhere = world.table(f"elsewhere-{mode}")
    world.create(elsewhere, agent=AGENT, process=agent)
    others = rows([1], "a", "theirs", 1)
    done(elsewhere.writer("theirs", python={"batches": [{"rows": others}]}))
    folder = world.folder / f"statements-{mode}"
    folder.mkdir()
    living = table.writer(
        "living", python={"batches": [{"rows": rows([70], "b", "living", 1), "gate": str(folder / "living")}]}
    )
    until("a living writer is in its write", (folder / "living.reached").exists, alive=living)
    code = world.folder / f"code-statements-{mode}"
    code.mkdir()
    shutil.copy(APP, code)
    results = folder / "results.json"
    arguments = [str(results), str(folder), str(LIST), elsewhere.path]
    program = table.writer(
        "program",
        application={"mainFile": str(code / APP.name), "arguments": arguments},
        spark=EXECUTORS if mode == "executors" else {},
    )
    until("all have read", (folder / "raced.reached").exists, alive=program, timeout=900)
    other = table.writer("other", file=CODE, function="updates", python={"batches": [{"ids": list(RACING)}]})
    assert other.wait() == 0, other.log()[-4000:]
    (folder / "raced").touch()
    assert program.wait(timeout=SECONDS) == 0, program.log()[-8000:]
    (folder / "living").touch()
    assert living.wait() == 0, living.log()[-4000:]
    found = json.loads(results.read_text())
    keep(mode, found, commit)
    until("nothing is left pending", lambda: not table.pending(), alive=agent)

    wrong, due = judged(found), []
    for number, name in zip(RACING, found, strict=False):
        assert found[name]["failed"], (name, found[name])
        assert "onflict" in found[name]["message"], (name, found[name])
        due.append((number, "r" if number == 11 else "a", "1", 2))
    added = found["two threads, UPDATE"]["added"]
    due += [
        (9, "a", str(added), 1 + added),
        (22, "w", "updated", 2),
        (23, "w", "merged", 2),
        (24, "w", "new", 1),
        (33, "x", "over", 1),
        (61, "z", "new", 1),
        *((number, "s", "batch 1", 1) for number in (80, 81)),
        (70, "b", "living", 1),
    ]
    table.audited(due, only=("rows", "origin", "hudi-rs", "files", "owners", "metadata", "late", "overlap"))
    assert added > 0
    assert not found["two streaming queries with foreachBatch"]["failed"], found
    for name in ("df.write of another HudiTable", "INSERT INTO another HudiTable"):
        assert "[HUDIOP-NOT-OWNER]" in found[name].get("message", ""), (name, found[name])
    elsewhere.audited(others)
    assert not (table.folder / "a" / "lines").exists(), "a refused job left its folder (F214)"
    for name in FILES:
        assert "[HUDIOP-STATEMENT]" in found[name].get("message", ""), (name, found[name])
    assert not wrong, wrong


def judged(found: dict[str, Any]) -> dict[str, Any]:
    """What differs from the list: works and harmless do not fail, refused does, by the list."""
    wrong = {}
    data = listed()
    for name, verdict in [(f"CALL {n}", e["verdict"]) for n, e in data["procedures"].items()] + [
        (n, e["verdict"]) for kind in ("statements", "saves") for n, e in data[kind].items()
    ]:
        seen = found.get(name)
        if seen is None:
            assert verdict == "refused", f"{name} is allowed and was not run"
            continue
        by_the_list = "[HUDIOP-STATEMENT]" in seen.get("message", "")
        if by_the_list is not (verdict == "refused") or (verdict == "works" and seen["failed"]):
            wrong[name] = seen
    return wrong


def commit_of_the_run() -> str:
    """Asked when the run begins: files may change while it lasts."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    return os.environ.get("STATEMENTS_COMMIT", found)


def keep(mode: str, found: dict[str, Any], commit: str) -> None:
    SEEN.mkdir(parents=True, exist_ok=True)
    what = {"mode": mode, "commit": commit, "date": time.strftime("%Y-%m-%d"), "found": found}
    (SEEN / f"{mode}.json").write_text(json.dumps(what, indent=1), encoding="utf-8")
