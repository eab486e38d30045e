"""Wait for a lock and its hold, by what etcd's watch tells."""

from __future__ import annotations

from hudi_contract import naming
from hudi_operator.adapters.etcd_watch import Change
from hudi_operator.metrics import lock_times
from hudi_operator.metrics.lock_times import LockTimes

T, OTHER = (naming.table_id(f"s3a://lake/{name}") for name in ("flights", "other"))


class Watched:
    """Lock times with a clock that the test moves."""

    def __init__(self) -> None:
        self.now, self.revision = 100.0, 1
        self.waits: list[tuple[str, float]] = []
        self.holds: list[tuple[str, float]] = []
        self.times = LockTimes(
            "/hudi",
            waited=lambda table, seconds: self.waits.append((table, seconds)),
            held=lambda table, seconds: self.holds.append((table, seconds)),
            clock=lambda: self.now,
        )

    def transaction(self, *changes: str, table: str = T) -> None:
        """``+key`` is a put, ``-key`` a deletion."""
        self.revision += 1
        self.times.take([Change(f"/hudi/tables/{table}/{c[1:]}", c[0] == "-", self.revision) for c in changes])


def test_an_acquire_without_a_queue_waited_0_and_the_hold_ends_with_the_release() -> None:
    watched = Watched()
    watched.transaction("+lock")
    watched.now += 2
    watched.transaction("-lock")
    assert (watched.waits, watched.holds) == ([(T, 0.0)], [(T, 2.0)])


def test_a_ticket_counts_from_its_first_put_and_only_when_it_gets_the_lock() -> None:
    watched = Watched()
    watched.transaction("+lock")
    watched.transaction("+queue/a-1")
    watched.now += 1
    watched.transaction("+queue/a-1")
    watched.transaction("+queue/b-1")
    watched.transaction("+queue/a-1", table=OTHER)
    watched.now += 2
    watched.transaction("-queue/b-1")  # gave up
    watched.transaction("-lock")
    watched.transaction("+lock", "-queue/a-1")
    assert watched.waits == [(T, 0.0), (T, 3.0)]
    assert watched.holds == [(T, 3.0)]


def test_the_order_within_a_transaction_does_not_matter() -> None:
    watched = Watched()
    watched.transaction("+queue/a-1")
    watched.now += 4
    watched.transaction("-queue/a-1", "+lock")
    assert watched.waits == [(T, 4.0)]


def test_what_was_under_way_when_changes_were_missed_is_not_counted() -> None:
    watched = Watched()
    watched.transaction("+lock")
    watched.transaction("+queue/a-1")
    watched.waits.clear()
    watched.times.lost()
    watched.transaction("-lock")
    watched.transaction("+lock", "-queue/a-1")
    assert (watched.waits, watched.holds) == ([], [])


def test_changes_that_come_late_after_a_break_do_not_count() -> None:
    watched = Watched()
    watched.transaction("+lock")
    watched.times.resumed(revision=watched.revision + 2)
    watched.waits.clear()
    watched.transaction("-lock")
    watched.transaction("+lock")
    assert (watched.waits, watched.holds) == ([], [])
    watched.now += 1
    watched.transaction("-lock")
    watched.transaction("+lock")
    watched.now += 5
    watched.transaction("-lock")
    assert watched.holds == [(T, 5.0)], "the first of these began in the gap"


def test_other_keys_and_prefixes_are_left_alone() -> None:
    watched = Watched()
    watched.times.take([Change(f"/other/tables/{T}/lock", False, 2), Change(f"/hudi/control/{T}/gate", False, 3)])
    watched.transaction("+locket", "+instant/1")
    assert watched.waits == []


def test_tenants_do_not_fill_the_memory() -> None:
    watched = Watched()
    for number in range(lock_times.MOST_TICKETS + 5):
        watched.transaction(f"+queue/{number}")
    assert len(watched.times._tickets[T]) == lock_times.MOST_TICKETS


def test_what_waits_for_one_table_hides_no_other_one() -> None:
    """F539: with one bound for all of them, places of one table kept all others out."""
    watched = Watched()
    for number in range(10 * lock_times.MOST_TICKETS + 5):
        watched.transaction(f"+queue/{number}")
    watched.transaction("+queue/a", table=OTHER)
    watched.now += 120
    watched.transaction("+lock", "-queue/a", table=OTHER)
    assert watched.waits == [(OTHER, 120.0)]
    for number in range(10 * lock_times.MOST_TICKETS + 5):
        watched.transaction(f"-queue/{number}")
    assert not watched.times._tickets
