"""Cleaning beside long writers and long readers (RFC-22 R51): what a write that is under way has
read stays, and `retainSeconds` is what a reader has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.local import Process, Table, World, rows, until

pytestmark = pytest.mark.extra
WAIT = 600.0
"""Seconds; a bound for a machine with much else to do, nothing is measured."""
EAGER = {kind: {"enabled": False} for kind in ("compaction", "archive")} | {
    "clean": {"afterCommits": 1, "retainCommits": 1}
}
PATIENT = EAGER | {"clean": {"afterCommits": 1, "retainSeconds": 3600}}


def cleaned(table: Table, agent: Process, *, result: str, beyond: str = "") -> dict[str, Any]:
    """The first clean with that result that has seen a commit which completed after `beyond`."""

    def last() -> dict[str, Any] | None:
        record = table.get("done/service-clean") or {}
        return record if record.get("result") == result and str(record["upTo"]) > beyond else None

    return until(f"cleaning has ended with {result}", last, alive=agent, timeout=WAIT)


def as_of(table: Table, instant: str) -> set[str]:
    frame = table.world.spark().read.format("hudi").option("as.of.instant", instant).load(table.path)
    return {row.v for row in frame.select("v").distinct().collect()}


def planned(table: Table) -> Any:
    """A snapshot query that has listed its files and has read none of them yet."""
    frame = (
        table.world.spark()
        .read.format("hudi")
        .option("hoodie.enable.data.skipping", "false")
        .load(table.path)
        .select("v")
    )
    assert frame.inputFiles()
    return frame


@pytest.mark.timeout(6 * WAIT)
def test_what_long_writers_and_readers_need_stays(world: World) -> None:
    name, agent_name = "retained", "agent-retained"
    table = world.table(name)
    agent = world.agent(agent_name, pod=f"{agent_name}-1", storage=table)
    world.create(table, agent=agent_name, process=agent, pod=f"{agent_name}-1")
    seed = table.writer("seed", python={"batches": [{"rows": rows(range(10), "a", "seed", 0)}]})
    assert seed.wait(WAIT) == 0, seed.log()[-4000:]
    begin = table.timeline().completed[-1]
    (first,) = table.data_files(begin.requested)
    in_time, too_long = planned(table), planned(table)

    gate = world.folder / "gate-retained"
    long = table.writer(
        "long", python={"batches": [{"rows": rows(range(20, 30), "b", "long", 9), "gate": str(gate)}]}, retries=0
    )
    until("the long write is under way", Path(f"{gate}.reached").exists, alive=long, timeout=WAIT)
    quick = table.writer("quick", python={"batches": [{"rows": rows(range(10), "a", f"v{n}", n)} for n in range(1, 5)]})
    assert quick.wait(WAIT) == 0, quick.log()[-4000:]
    last = table.timeline().last_completed
    assert last is not None

    world.table(name, services=PATIENT).assign(agent_name)
    cleaned(table, agent, result="NothingToDo", beyond=begin.completion)
    assert len(table.data_files()) == 5, "a reader that began less than an hour ago finds its files"
    assert as_of(table, begin.requested) == {"seed"}
    assert {row.v for row in in_time.collect()} == {"seed"}, "a reader that began before the clean, and reads after it"
    with pytest.raises(Exception, match="must be earlier than the first incomplete commit"):
        as_of(table, last.requested)
    assert {row.v for row in planned(table).collect()} == {"v4"}

    world.etcd.delete(table.key("done/service-clean"))
    world.table(name, services=EAGER).assign(agent_name)
    cleaned(table, agent, result="NothingToDo", beyond=begin.completion)
    assert first in table.data_files(), "the newest one when the pending write began: it may still read it"
    gate.touch()
    assert long.wait(WAIT) == 0, long.log()[-4000:]
    cleaned(table, agent, result="Completed", beyond=last.completion)
    assert first not in table.data_files()
    assert len(table.data_files()) < 5, "nothing holds the old files any more"
    with pytest.raises(Exception, match=r"FileNotFoundException|does not exist|No such file"):
        too_long.collect()
    assert as_of(table, last.requested) == {"v4", "long"}, (
        "it goes by requested time: a writer that began earlier and has ended since is in it, too"
    )
    table.audited(rows(range(10), "a", "v4", 4) + rows(range(20, 30), "b", "long", 9))
    agent.terminate()
    assert agent.wait(WAIT) == 0, agent.log()[-3000:]


@pytest.mark.timeout(6 * WAIT)
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_a_clean_that_deletes_leaves_what_a_reader_has_listed(world: World, kind: str) -> None:
    """A reader has listed its files; then others commit, and a clean deletes older versions."""
    name, agent_name = f"reading-{kind.lower()}", f"agent-reading-{kind.lower()}"
    quiet = {each: {"enabled": False} for each in ("clean", "archive", "compaction")}
    compacting = quiet | ({"compaction": {"afterCommits": 2}} if kind == "MergeOnRead" else {})
    table = world.table(name, type=kind, services=compacting)
    agent = world.agent(agent_name, pod=f"{agent_name}-1", storage=table)
    world.create(table, agent=agent_name, process=agent, pod=f"{agent_name}-1")

    def next_version(number: int) -> list[Any]:
        """The only file group's next base file, of a commit or a compaction; returns its rows."""
        commits = 2 if kind == "MergeOnRead" else 1
        batches = [{"rows": rows(range(10), "a", f"v{number}.{n}", 2 * number + n)} for n in range(commits)]
        writer = table.writer(f"w{number}", python={"batches": batches})
        assert writer.wait(WAIT) == 0, writer.log()[-4000:]
        wanted = number + commits - 1  # the first one of a MergeOnRead table is no compaction's
        until(
            "a new base file is committed",
            lambda: len(base_files()) == wanted and not table.pending(),
            alive=agent,
            timeout=WAIT,
        )
        return list(batches[-1]["rows"])

    def base_files() -> set[str]:
        return {name for name in table.data_files() if name.endswith(".parquet")}

    next_version(1)
    next_version(2)
    seen = next_version(3)
    reader = planned(table)
    due = next_version(4)
    before = base_files()
    services = compacting | {"clean": {"afterCommits": 1, "retainFileVersions": 2}}
    world.table(name, type=kind, services=services).assign(agent_name)
    cleaned(table, agent, result="Completed")
    assert before - base_files(), "the clean has deleted nothing, so this test shows nothing"
    assert {row.v for row in reader.collect()} == {one[2] for one in seen}
    assert {row.v for row in planned(table).collect()} == {one[2] for one in due}
    table.audited(due)
    agent.terminate()
    assert agent.wait(WAIT) == 0, agent.log()[-3000:]
