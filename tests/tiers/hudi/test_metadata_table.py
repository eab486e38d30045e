"""Hudi's metadata table: off, on, and made anew beside nobody.

What a dead writer and a dead agent have half done leaves it as the listing (R16).
"""

from __future__ import annotations

import signal
from typing import Any

import pytest

from hudi_operator.api.fields import read
from hudi_operator.api.metadata_table import MetadataTable
from hudi_operator.plan.requests import metadata_table
from hudi_runtime.table import timeline as tl
from tests.support.harness.local import Process, Table, World, rows, until
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra
TRIES = 6
"""Batches: what lies between the two commits takes milliseconds."""
WAIT = 600.0
"""Seconds; a bound for a machine with much else to do, nothing is measured."""
OFF: dict[str, Any] = {"enabled": False}
BARE: dict[str, Any] = {"indexes": []}
STATS: dict[str, Any] = {"indexes": ["ColumnStats"]}


def partitions(table: Table) -> set[str]:
    """Folders of the metadata table; nothing when there is none."""
    folder = table.folder / ".hoodie" / "metadata"
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")} if folder.is_dir() else set()


def named(table: Table) -> set[str]:
    """Partitions as the table's configuration names them."""
    lines = (table.folder / ".hoodie" / "hoodie.properties").read_text().splitlines()
    found = next((line.partition("=")[2] for line in lines if line.startswith("hoodie.table.metadata.partitions=")), "")
    return set(found.split(",")) - {""}


def ask(table: Table, raw: dict[str, Any]) -> str:
    """The operator's part: behind the closed gate, nobody of the writers left.

    Returns the word that the agent must have served.
    """
    wanted = read(MetadataTable, raw, "spec.metadataTable")
    table.gate("closed")
    table.ask(metadata_table.request(wanted).to_json())
    return wanted.nonce


def served(table: Table, word: str, agent: Process) -> None:
    def done() -> bool:
        record = table.get("done/metadata") or {}
        assert record.get("result") != "Failed", record
        return (record.get("nonce"), record.get("result")) == (word, "Completed")

    until(f"the metadata table is {word}", done, alive=agent, timeout=WAIT)
    table.gate("open")


def commits(table: Table, first: int, p: str, *values: str, ts: int = 1) -> None:
    """A writer of ten rows, one commit a value."""
    batches = [{"rows": rows(range(first, first + 10), p, v, at)} for at, v in enumerate(values, ts)]
    writer = table.writer(f"of-{first}-{ts}", python={"batches": batches})
    assert writer.wait(WAIT) == 0, writer.log()[-4000:]


def answers(table: Table, where: str) -> set[int]:
    """Ids that a query finds that may skip files."""
    reader = (
        table.world.spark()
        .read.format("hudi")
        .option("hoodie.metadata.enable", "true")
        .option("hoodie.enable.data.skipping", "true")
    )
    return {row.id for row in reader.load(table.path).where(where).select("id").collect()}


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.timeout(6 * WAIT)
def test_off_and_on_and_killed_in_the_middle(world: World, kind: str) -> None:
    """Writers commit without it.

    Made anew it is the listing, with the indexes that are wanted, whatever agent dies in it;
    writers keep it up.
    """
    name, agent_name = f"listed-{kind.lower()}", f"agent-listed-{kind.lower()}"
    table = world.table(name, type=kind)
    first = world.agent(agent_name, pod=f"{agent_name}-1")
    world.create(table, agent=agent_name, process=first, pod=f"{agent_name}-1")
    commits(table, 0, "b", "v1", "v2")
    expected = rows(range(10), "b", "v2", 2)
    table.audited(expected, without=not_seen("origin", "hudi-rs", "stray", "owners", "incremental", "late", "overlap"))
    assert partitions(table) == named(table) == {"files"}, "the default"

    off = world.table(name, type=kind, metadataTable=OFF)
    off.assign(agent_name)
    served(off, ask(off, OFF), first)
    assert partitions(table) == named(table) == set()
    commits(off, 10, "a", "w1", "w2", "w3")
    expected += rows(range(10, 20), "a", "w3", 3)
    assert partitions(table) == set(), "no writer makes it again"
    table.audited(expected, without=not_seen("hudi-rs", "late", "overlap"))

    stats = world.table(name, type=kind, metadataTable=STATS)
    stats.assign(agent_name)
    word = ask(stats, STATS)
    until("it is being made", lambda: partitions(table), alive=first, every=0.002, timeout=WAIT)
    assert (table.get("done/metadata") or {})["result"] == "Running"
    dead = str((table.get("lock") or {})["inc"])
    first.kill()
    assert table.get("lock") is not None, "it has died in the middle, with the lock"
    second = world.agent(agent_name, pod=f"{agent_name}-2")
    world.admit_agent(stats, agent_name, pod=f"{agent_name}-2")
    table.fence(first, inc=dead)
    served(stats, word, second)
    assert partitions(table) == named(table) == {"files", "column_stats", "partition_stats"}
    table.audited(expected, without=not_seen("origin", "hudi-rs", "stray", "owners", "incremental", "late", "overlap"))
    commits(stats, 20, "a", "x1", "x2")
    commits(stats, 0, "b", "v3", ts=3)
    expected = rows(range(10), "b", "v3", 3) + rows(range(10, 20), "a", "w3", 3) + rows(range(20, 30), "a", "x2", 2)
    table.audited(expected, without=not_seen("hudi-rs", "owners", "overlap"))
    assert partitions(table) == named(table) == {"files", "column_stats", "partition_stats"}
    assert answers(table, "v = 'x2'") == set(range(20, 30))
    assert answers(table, "v = 'w3' and id < 15") == set(range(10, 15))
    assert answers(table, "ts = 3") == set(range(20))
    assert answers(table, "v = 'w1'") == set()

    bare = world.table(name, type=kind, metadataTable=BARE)
    bare.assign(agent_name)
    served(bare, ask(bare, BARE), second)
    assert partitions(table) == named(table) == {"files"}
    commits(bare, 20, "a", "y", ts=4)
    expected[20:] = rows(range(20, 30), "a", "y", 4)
    table.audited(expected, without=not_seen("origin", "hudi-rs", "owners", "incremental", "late", "overlap"))
    assert partitions(table) == named(table) == {"files"}, "no writer makes what is not wanted"
    second.terminate()
    assert second.wait(WAIT) == 0, second.log()[-3000:]


def metadata_timeline(table: Table) -> tl.Timeline:
    folder = table.folder / ".hoodie" / "metadata" / ".hoodie" / "timeline"
    return tl.parse(path.name for path in folder.iterdir())


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.timeout(6 * WAIT)
def test_what_is_half_done_is_done_again(world: World, kind: str) -> None:
    """A writer that dies between its commit to the metadata table and its own.

    An agent that dies in the rollback of that; then the same rows again.
    """
    name, agent_name = f"half-{kind.lower()}", f"agent-half-{kind.lower()}"
    table = world.table(name, type=kind)
    first = world.agent(agent_name, pod=f"{agent_name}-1")
    world.create(table, agent=agent_name, process=first, pod=f"{agent_name}-1")
    batches = [{"rows": rows(range(10 + n), "a", f"v{n}", n)} for n in range(TRIES)]
    victim = table.writer("victim", python={"batches": batches})
    until("the first commit is done", lambda: table.timeline().completed, alive=victim, timeout=WAIT)

    def half_committed() -> str:
        pending = table.timeline().pending
        listed = metadata_timeline(table).get(pending[0].requested) if pending else None
        if listed is None or listed.pending:
            return ""
        victim.signal(signal.SIGSTOP)
        if listed.requested in table.pending():
            return listed.requested
        victim.signal(signal.SIGCONT)
        return ""

    half = until(
        "the metadata table has a commit that the table has not",
        half_committed,
        alive=victim,
        every=0.0005,
        timeout=WAIT,
    )
    victim.kill()
    assert table.pending() == {half}
    done = len(table.timeline().completed)

    inc = table.fence(victim)

    def rolling_back() -> list[tl.Instant]:
        return [i for i in table.timeline().pending if i.action == "rollback"]

    rollback = until("the rollback is under way", rolling_back, alive=first, every=0.002, timeout=WAIT)
    dead = first.inc
    first.kill()
    assert rollback[0].requested in table.pending(), "it has died in the middle"
    second = world.agent(agent_name, pod=f"{agent_name}-2")
    world.admit_agent(table, agent_name, pod=f"{agent_name}-2")
    table.fence(first, inc=dead)
    until("both are settled", lambda: table.outcomes(inc) and table.outcomes(dead), alive=second, timeout=WAIT)
    assert table.pending() == set()
    table.audited(
        rows(range(10 + done - 1), "a", f"v{done - 1}", done - 1),
        without=not_seen("origin", "hudi-rs", "owners", "incremental", "overlap"),
    )
    table.settled(inc)
    table.settled(dead)

    again = table.writer("victim", python={"batches": batches})
    assert again.wait(WAIT) == 0, again.log()[-4000:]
    assert again.termination()["commits"] == TRIES - done, "what was committed is not repeated"
    table.audited(
        rows(range(10 + TRIES - 1), "a", f"v{TRIES - 1}", TRIES - 1), without=not_seen("hudi-rs", "owners", "overlap")
    )
    second.terminate()
    assert second.wait(WAIT) == 0, second.log()[-3000:]
