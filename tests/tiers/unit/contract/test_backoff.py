"""One rule for whoever repeats something."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract.backoff import exponential
from hudi_operator.adapters.etcd_watch import PrefixWatch
from hudi_operator.control.queue import WorkQueue
from hudi_operator.model.ports import Retryable
from hudi_runtime.services import triggers
from hudi_runtime.settle import settle
from hudi_runtime.writer import commit


def test_twice_as_long_each_time_up_to_a_limit() -> None:
    assert [exponential(n, first=0.5, longest=10) for n in range(8)] == [0, 0.5, 1, 2, 4, 8, 10, 10]


def test_the_first_wait_is_no_longer_than_the_limit() -> None:
    assert exponential(1, first=30, longest=10) == 10


@pytest.mark.parametrize("failures", [1100, 10**9])
def test_what_fails_for_days_is_still_repeated(failures: int) -> None:
    """Two to the power of 1024 is no float: whoever counted on, ended."""
    assert exponential(failures, first=0.4, longest=5) == 5
    assert settle.backoff(failures) == settle.MAX_BACKOFF_SECONDS
    assert triggers.backoff_ms(failures) == triggers.MAX_BACKOFF_MS


def test_two_writers_in_conflict_do_not_wait_equally_long() -> None:
    waits = [commit._backoff(3) for _ in range(20)]
    longest = exponential(4, first=commit.FIRST_BACKOFF_SECONDS, longest=commit.LONGEST_PAUSE_SECONDS)
    assert len(set(waits)) > 1
    assert all(0.1 <= wait <= longest for wait in waits)


def test_a_table_that_fails_for_days_is_looked_at_again() -> None:
    queue = WorkQueue()
    assert all(queue.failed(("lake", "t")) < 100 for _ in range(1200))


def test_a_watch_outlasts_an_etcd_that_is_away_for_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    connection: Any = None
    watch = PrefixWatch(connection, "/hudi/", on_changes=lambda changes: None, on_lost=lambda: None)
    tries = []

    def follow() -> None:
        tries.append(1)
        if len(tries) == 1200:
            watch._closed.set()
        raise Retryable("etcd: not there")

    monkeypatch.setattr(watch, "_follow", follow)
    monkeypatch.setattr(watch._closed, "wait", lambda seconds: seconds <= 5)
    watch._run()
    assert len(tries) == 1200
