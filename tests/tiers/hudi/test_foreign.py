"""A process that writes without this lock, as a stock single writer does: seen soon, shown, and
never touched (I7).
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.local import AGENT, Process, Table, World, rows, until
from tests.support.harness.stock import PROVIDER, ZooKeeper
from tests.support.harness.stock_tables import StockTable
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra
WITHIN = 60.0
"""Seconds from a foreign writer's first file on the timeline to its being shown."""


def files_of(table: Table, instant: str) -> dict[str, bytes]:
    """What stands on the timeline of an instant."""
    folder = table.folder / ".hoodie" / "timeline"
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name.startswith(instant)}


def foreign(table: Table) -> dict[str, Any]:
    return {item["instant"]: item for item in table.report().get("foreign") or []}


def new_instant(table: Table, known: set[str], process: Process) -> tuple[str, float]:
    """The next commit that begins, and when it was seen to (monotonic)."""

    def begun() -> str:
        return min(
            (i.requested for i in table.timeline().pending if i.requested not in known and i.action == "commit"),
            default="",
        )

    return until("the foreign writer begins", begun, alive=process, every=0.002), time.monotonic()


def test_the_first_instant_of_a_foreign_writer_is_shown(world: World, agent: Process) -> None:
    """On an idle table, while it is pending and when it is completed.

    Its files stay as they are.
    """
    table = world.table("foreign")
    world.create(table, agent=AGENT, process=agent)
    ours = table.writer("ours", python={"batches": [{"rows": rows(range(5), "a", "ours", 1)}]})
    assert ours.wait() == 0, ours.log()[-4000:]
    time.sleep(3)  # idle: nothing of ours makes the agent look
    stranger = StockTable(world, table).writer(rows(range(10, 15), "b", "foreign", 1))
    instant, begun = new_instant(table, set(), stranger)
    stranger.signal(signal.SIGSTOP)
    before = files_of(table, instant)
    assert before, "it stands still in its write"
    until("it is shown while it is pending", lambda: instant in foreign(table), timeout=WITHIN, alive=agent)
    pending_after = time.monotonic() - begun
    assert "completionTime" not in foreign(table)[instant]
    time.sleep(20)  # the agent looks again and again, and touches nothing
    assert files_of(table, instant) == before
    stranger.signal(signal.SIGCONT)
    assert stranger.wait() == 0, stranger.log()[-4000:]
    completed = time.monotonic()
    until(
        "it is shown when it is completed",
        lambda: foreign(table).get(instant, {}).get("completionTime"),
        timeout=WITHIN,
        alive=agent,
    )
    print(f"foreign instant shown after {pending_after:.1f} s pending, {time.monotonic() - completed:.1f} s completed")
    assert instant not in table.names("instant/")
    table.audited([*rows(range(5), "a", "ours", 1), *rows(range(10, 15), "b", "foreign", 1)])


def test_a_foreign_writer_rolls_back_what_a_living_one_has_pending(world: World, agent: Process) -> None:
    """EAGER, Hudi's default for a single writer, takes every pending instant for a dead one's.

    Ours fails then and is repeated: no row is lost.
    """
    table = world.table("foreign-eager")
    world.create(table, agent=AGENT, process=agent)
    gate = world.folder / "gate-foreign"
    batches = [{"rows": rows(range(5), "a", "seed", 1)}, {"rows": rows(range(5), "a", "ours", 2), "gate": str(gate)}]
    ours = table.writer("ours", python={"batches": batches})
    until("our write is under way", Path(f"{gate}.reached").exists, alive=ours)
    (mine,) = table.pending()
    stranger = StockTable(world, table).writer(rows(range(10, 15), "b", "foreign", 1))
    instant, begun = new_instant(table, {mine}, stranger)
    until("it is shown", lambda: instant in foreign(table), timeout=WITHIN, alive=agent)
    print(
        f"foreign instant shown after {time.monotonic() - begun:.1f} s; ours was "
        f"{'rolled back' if mine not in table.pending() else 'left alone'}"
    )
    assert stranger.wait() == 0, stranger.log()[-4000:]
    assert mine not in table.pending(), (
        "it has rolled back the living writer's instant: no lock of ours can forbid that"
    )
    gate.touch()
    code = ours.wait()
    print(f"ours ended with {code}: {ours.termination()['class']}: {ours.termination()['message'][:200]}")
    assert code != 0, "a commit whose files are gone must not succeed"
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    again = table.writer("ours", python={"batches": batches})
    assert again.wait() == 0, again.log()[-4000:]
    table.audited(
        [*rows(range(5), "a", "ours", 2), *rows(range(10, 15), "b", "foreign", 1)],
        without=not_seen("hudi-rs", "stray", "owners", "incremental", "late", "overlap"),
    )


def test_several_foreign_writers_with_a_lock_of_their_own(world: World, agent: Process, tmp_path: Path) -> None:
    """Two at once, with Hudi's lock in ZooKeeper, while one of ours stands in its write: all three
    commit, theirs are shown, nothing is rolled back.
    """
    table = world.table("foreign-several")
    world.create(table, agent=AGENT, process=agent)
    gate = world.folder / "gate-foreign-several"
    ours = table.writer(
        "ours",
        python={
            "batches": [
                {"rows": rows(range(5), "a", "seed", 1)},
                {"rows": rows(range(5), "a", "ours", 2), "gate": str(gate)},
            ]
        },
    )
    until("our write is under way", Path(f"{gate}.reached").exists, alive=ours)
    (mine,) = table.pending()
    known = {i.requested for i in table.timeline().instants}
    zookeeper = ZooKeeper(tmp_path / "zookeeper")
    try:
        stock = StockTable(world, table, locked_by(zookeeper, "foreign-several"))
        strangers = [
            stock.writer(rows(range(10 * number, 10 * number + 5), f"s{number}", "foreign", 1)) for number in (1, 2)
        ]
        for stranger in strangers:
            assert stranger.wait() == 0, stranger.log()[-4000:]
            assert stranger.acknowledged
    finally:
        zookeeper.stop()
    theirs = {i.requested for i in table.timeline().completed} - known
    assert len(theirs) == 2, theirs
    until(
        "both are shown",
        lambda: all(foreign(table).get(instant, {}).get("completionTime") for instant in theirs),
        timeout=WITHIN,
        alive=agent,
    )
    before = {instant: files_of(table, instant) for instant in theirs}
    gate.touch()
    assert ours.wait() == 0, ours.log()[-4000:]
    assert mine in {i.requested for i in table.timeline().completed}, "it was not left alone"
    assert {instant: files_of(table, instant) for instant in theirs} == before
    assert not [i for i in table.timeline().instants if i.action == "rollback"]
    assert not theirs & table.names("instant/")
    expected = [
        *rows(range(5), "a", "ours", 2),
        *rows(range(10, 15), "s1", "foreign", 1),
        *rows(range(20, 25), "s2", "foreign", 1),
    ]
    table.audited(expected, without=not_seen("hudi-rs", "stray", "owners", "incremental", "late", "overlap"))


def locked_by(zookeeper: ZooKeeper, key: str) -> dict[str, str]:
    """Hudi's options for several writers, as its documentation has them: optimistic, LAZY, and a
    lock that ours do not ask.
    """
    host, port = zookeeper.address.split(":")
    return {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.table.services.enabled": "false",
        "hoodie.write.lock.provider": PROVIDER,
        "hoodie.write.lock.zookeeper.url": f"{host}:{port}",
        "hoodie.write.lock.zookeeper.port": port,
        "hoodie.write.lock.zookeeper.base_path": "/hudi",
        "hoodie.write.lock.zookeeper.lock_key": key,
    }
