"""Every statement, procedure and way to save of a program beside other writers: it works, is
refused, or changes nothing; no row is lost.

What a run that passes has seen is kept in build/statements, from which
`python -m tests.campaigns.statements.page` makes docs/use/what-user-code-may-do.md.
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

from tests.campaigns.statements import rows as named
from tests.campaigns.statements.page import LIST, SEEN, names
from tests.support import ROOT
from tests.support.harness.compactions import OFF
from tests.support.harness.executors import EXECUTORS
from tests.support.harness.in_its_write import done
from tests.support.harness.local import AGENT, REFUSED_WRITES, Process, Table, World, rows, until
from tests.support.oracle import not_seen

APP = Path(__file__).with_name("apps") / "statements_app.py"
CODE = Path(__file__).with_name("apps") / "update_code.py"
FAIL = {
    "errorifexists/": "already exists",
    "ignore/": "Failed to write to Hudi",
    "CALL show_bootstrap_mapping": "not a bootstrapped Hudi table",
    "CALL show_bootstrap_partitions": "not a bootstrapped Hudi table",
    "df.write.saveAsTable, mode errorifexists": "already exists",
    "df.writeTo(…).append()": "Cannot write into v1 table",
    "df.writeTo(…).overwrite(…)": "Cannot write into v1 table",
    "df.writeTo(…).overwritePartitions()": "Cannot write into v1 table",
    "df.writeTo(…).overwritePartitions(), with schema evolution": "does not support dynamic overwrite",
    "df.writeTo(…).using(hudi).replace()": "does not support REPLACE TABLE AS SELECT",
    "df.writeTo(…).using(hudi).createOrReplace()": "does not support REPLACE TABLE AS SELECT",
}
"""Rows that end with an error of Hudi or Spark themselves, and a part of it."""
TABLE = (
    "df.write.saveAsTable, mode append",
    "df.write.saveAsTable, mode overwrite",
    "df.writeTo(…).using(hudi).create()",
)
"""Ways that are another name of a statement that is refused (F381 is about those that were not)."""
RACING = (*range(1, 9), 10, 11, 12)
"""Records that the program has read before another writer changes them, one for each way."""
SECONDS = 2100
"""The program runs more than a hundred statements: on a busy machine of 2 cores, many minutes."""


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
    first = [
        *rows([*range(1, 11), 12, 13, 14], "a", "0", 1),
        *rows([11], "r", "0", 1),
        *rows([60], "y", "seed", 1),
        *rows(range(120, 126), "d", "seed", 1),
    ]
    seed = table.writer("seed", python={"batches": [{"rows": first}]})
    assert seed.wait() == 0, seed.log()[-4000:]
    elsewhere = world.table(f"elsewhere-{mode}")
    world.create(elsewhere, agent=AGENT, process=agent)
    others = rows([1], "a", "theirs", 1)
    done(elsewhere.writer("theirs", python={"batches": [{"rows": others}]}))
    folder = world.folder / f"statements-{mode}"
    folder.mkdir()
    logged = with_logs(world, agent, f"logged-{mode}", folder)
    living = table.writer(
        "living", python={"batches": [{"rows": rows([70], "b", "living", 1), "gate": str(folder / "living")}]}
    )
    until("a living writer is in its write", (folder / "living.reached").exists, alive=living)
    code = world.folder / f"code-statements-{mode}"
    code.mkdir()
    shutil.copy(APP, code)
    results = folder / "results.json"
    arguments = [str(results), str(folder), str(LIST), elsewhere.path, logged.path]
    program = table.writer(
        "program",
        application={"mainFile": str(code / APP.name), "arguments": arguments},
        duplicates="Allow",
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
    until("nothing is left pending", lambda: not table.pending(), alive=agent)

    assert set(found) <= names(), "the page has a row for each name"
    assert set(found) >= set(named.EVERY)
    wrong, due = judged(found), []
    for number, name in zip(RACING, found, strict=False):
        assert name in named.RACES
        assert found[name]["failed"], (name, found[name])
        assert "onflict" in found[name]["message"], (name, found[name])
        due.append((number, "r" if number == 11 else "a", "1", 2))
    updated, deleted, merged, inserted, saved = (found[name]["added"] for name in named.THREADS)
    assert min(updated, deleted, merged, inserted, saved) > 0, found
    due += [
        *((number, "a", str(added), 1 + added) for number, added in ((9, updated), (13, merged), (14, saved))),
        *rows(range(120 + deleted, 126), "d", "seed", 1),
        *rows(range(100, 100 + inserted), "q", "more", 1),
        (22, "w", "updated", 2),
        (23, "w", "merged", 2),
        *((number, "w", "new", 1) for number in (24, 25, 26)),
        (33, "x", "over", 1),
        (61, "z", "new", 1),
        *((number, "s", "batch 1", 1) for number in (80, 81)),
        (70, "b", "living", 1),
    ]
    table.audited(due, without=REFUSED_WRITES | not_seen("incremental"))
    assert not found[named.STREAMS]["failed"], found
    for name in ("df.write of another HudiTable", "INSERT INTO another HudiTable"):
        assert "[HUDIOP-NOT-OWNER]" in found[name].get("message", ""), (name, found[name])
    elsewhere.audited(others)
    assert not (table.folder / "a" / "lines").exists(), "a refused job left its folder (F214)"
    logged.audited(LOGGED, without=not_seen("hudi-rs", "incremental", "overlap"))
    for name in named.REFUSED:
        assert "[HUDIOP-" in found[name].get("message", ""), (name, found[name])
    for name in TABLE:
        assert "CREATE TABLE … AS SELECT is refused" in found[name].get("message", ""), (name, found[name])
    for name, message in FAIL.items():
        assert message in found[name].get("message", ""), (name, found[name])
    for name in set(named.WAYS).difference(TABLE, FAIL):
        assert not found[name]["failed"], (name, found[name])
    for name in named.SHOWN:
        assert found[name].get("rows", 0) > 0, (name, found[name])
    assert not wrong, wrong
    keep(mode, found, commit)


LOGGED = rows([1, 2], "a", "v3", 3)


def with_logs(world: World, agent: Process, name: str, folder: Path) -> Table:
    """A MergeOnRead table with log files, a compaction, statistics of columns, and the rollback of
    a writer that was killed.
    """
    services = OFF | {"compaction": {"afterCommits": 2}}
    table = world.table(name, type="MergeOnRead", services=services, metadataTable={"indexes": ["ColumnStats"]})
    world.create(table, agent=AGENT, process=agent)
    gate = folder / name
    batches = [{"rows": rows([1, 2], "a", f"v{number}", number)} for number in range(1, 4)]
    killed = {"rows": rows([1, 2], "a", "killed", 9), "gate": str(gate)}
    writer = table.writer("killed", python={"batches": [*batches, killed]})
    until("it is in its last write", Path(f"{gate}.reached").exists, alive=writer)
    writer.kill()
    inc = table.fence(writer)
    until("its write is rolled back", lambda: table.outcomes(inc), alive=agent)
    table.settled(inc)
    return table


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
