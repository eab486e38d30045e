"""A run: one look, or one after the other until it is asked to stop.

Never an empty commit, never a success without an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.outcomes import FailureClass
from hudi_runtime.process.errors import PositionLost, RuntimeFailure
from hudi_runtime.process.etcd import Entry
from hudi_runtime.process.result import Tally
from hudi_runtime.read.progress import Progress
from hudi_runtime.writer import run as under_test
from hudi_runtime.writer.gate import closed_for
from hudi_runtime.writer.run import Run


class Stop:
    """Asks to stop after so many seconds; time passes only in its waits."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.waited, self.requested = seconds, 0.0, False

    def wait(self, seconds: float) -> bool:
        self.waited += seconds
        self.requested = self.waited >= self.seconds
        return self.requested


class Source:
    """Numbers that are there at each look; an exception instead of a look raises it.

    `done.count` is how many were committed.
    """

    def __init__(self, *looks: list[int] | Exception) -> None:
        self.looks = list(looks)
        self.asked: list[int] = []

    def look(self, done: Progress) -> Iterator[Any]:
        self.asked.append(done.count)
        found = self.looks.pop(0) if self.looks else []
        if isinstance(found, Exception):
            raise found
        for number, item in enumerate(found):
            yield SimpleNamespace(
                item=item, done=Progress(count=done.count + number + 1), waiting=len(found) - number - 1
            )


def started(
    source: Source,
    stop: Stop,
    *,
    interval: int | None,
    ends: float = 1e9,
    closed: Callable[[], str] = str,
    unheard: int = 0,
) -> tuple[Callable[[], None], list[tuple[int, str]], Tally, list[str]]:
    commits: list[tuple[int, str]] = []
    tally, stages = Tally(), []

    def report(stage: str) -> bool:
        stages.append(stage)
        return stages.count(stage) > unheard

    def commit(batch: Any, base: str) -> str:
        commits.append((batch.item, base))
        return str(int(base) + 1)

    alive = lambda: stop.waited < ends  # noqa: E731
    made = Run(
        source.look, commit, stop=stop, tally=tally, report=report, alive=alive, closed=closed, interval=interval
    )  # type: ignore[arg-type]
    return lambda: made.run(Progress(), "0"), commits, tally, stages


def test_a_run_ends_with_its_source() -> None:
    source = Source([1, 2])
    run, commits, tally, _ = started(source, Stop(99), interval=None)
    run()
    assert commits == [(1, "0"), (2, "1")]
    assert source.asked == [0]
    assert not tally.caught_up


def test_a_streaming_run_looks_again_and_goes_on_from_its_last_commit() -> None:
    source = Source([1, 2], [], [], [3])
    stop = Stop(35)
    run, commits, tally, stages = started(source, stop, interval=7)
    with pytest.raises(RuntimeFailure, match="asked to stop") as ended:
        run()
    assert ended.value.failure is FailureClass.INFRASTRUCTURE, "never a success: a suspended writer goes on later"
    assert commits == [(1, "0"), (2, "1"), (3, "2")]
    assert source.asked == [0, 2, 2, 2, 3]
    assert stop.waited == 35
    assert (tally.caught_up, tally.waiting) == (True, 0)
    assert stages == ["Reading", "Reading", "Waiting", "Reading", "Waiting"], (
        "nothing is reported while nothing happens"
    )


def test_that_it_waits_for_input_is_told_until_somebody_has_heard_it() -> None:
    """A report may be lost, and a run that waits is not late."""
    source = Source([1], [], [], [])
    stop = Stop(35)
    run, _, _, stages = started(source, stop, interval=7, unheard=2)
    with pytest.raises(RuntimeFailure, match="asked to stop"):
        run()
    assert stages == ["Reading", "Waiting", "Waiting", "Waiting"]


def test_it_stops_between_two_commits() -> None:
    source = Source([1, 2, 3])
    stop = Stop(99)
    run, commits, tally, _ = started(source, stop, interval=7)
    stop.requested = False
    look = source.look

    def stopping(done: Progress) -> Iterator[Any]:
        for batch in look(done):
            stop.requested = batch.item == 2
            yield batch

    source.look = stopping  # type: ignore[method-assign]
    run, commits, tally, _ = started(source, stop, interval=7)
    with pytest.raises(RuntimeFailure, match="with input left"):
        run()
    assert commits == [(1, "0")]
    assert tally.waiting == 2


def unreachable() -> RuntimeFailure:
    return RuntimeFailure(FailureClass.INFRASTRUCTURE, "no answer")


def test_a_streaming_run_waits_for_a_source_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    source, stop = Source(unreachable(), unreachable(), [1], unreachable()), Stop(2000)
    monkeypatch.setattr(under_test, "time", SimpleNamespace(monotonic=lambda: stop.waited))
    run, commits, tally, _ = started(source, stop, interval=400)
    with pytest.raises(RuntimeFailure, match="asked to stop"):
        run()
    assert commits == [(1, "0")]
    assert tally.caught_up


def test_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    source, stop = Source(*(unreachable() for _ in range(9))), Stop(9999)
    monkeypatch.setattr(under_test, "time", SimpleNamespace(monotonic=lambda: stop.waited))
    run, commits, tally, _ = started(source, stop, interval=200)
    with pytest.raises(RuntimeFailure, match="no answer"):
        run()
    assert stop.waited == 800
    assert (commits, tally.caught_up) == ([], False)


@pytest.mark.parametrize(
    ("error", "interval"),
    [(PositionLost("gone"), 5), (unreachable(), None), (ValueError("x"), 5), (ConnectionError("x"), 5)],
)
def test_what_does_not_pass_ends_it(error: Exception, interval: int | None) -> None:
    run, commits, _, _ = started(Source(error), Stop(99), interval=interval)
    with pytest.raises(type(error)):
        run()
    assert commits == []


def test_a_jvm_that_halts_while_the_run_waits_ends_it() -> None:
    """Fenced, or out of memory: nobody would notice before the next look, which may be
    a day away.
    """
    stop = Stop(1e9)
    run, _, _, _ = started(Source(), stop, interval=86400, ends=10)
    with pytest.raises(RuntimeFailure, match="JVM has ended"):
        run()
    assert stop.waited == 10
    run, _, _, _ = started(Source(unreachable()), Stop(1e9), interval=5, ends=0)
    with pytest.raises(RuntimeFailure, match="no answer"):
        run()


def test_a_failed_commit_ends_it() -> None:
    source = Source([1])
    tally = Tally()

    def commit(*_: object) -> str:
        raise unreachable()

    made = Run(
        source.look,
        commit,
        stop=Stop(99),
        tally=tally,
        report=lambda _: True,
        alive=lambda: True,
        closed=str,
        interval=5,
    )  # type: ignore[arg-type]
    with pytest.raises(RuntimeFailure, match="no answer"):
        made.run(Progress(), "0")
    assert not tally.caught_up


@pytest.mark.parametrize("interval", [None, 7])
def test_a_closed_gate_ends_it_between_two_commits(interval: int | None) -> None:
    """F44: once, by the clock or without end."""
    source = Source([1, 2, 3])
    run, commits, tally, _ = started(
        source, Stop(99), interval=interval, closed=lambda: "savepoint x" if len(commits) == 2 else ""
    )
    with pytest.raises(RuntimeFailure, match="closed for savepoint x") as ended:
        run()
    assert ended.value.failure is FailureClass.ENDED_FOR_CHANGE
    assert commits == [(1, "0"), (2, "1")]
    assert tally.waiting == 1


def test_what_was_committed_last_is_a_success() -> None:
    source = Source([1, 2])
    run, commits, _, _ = started(
        source, Stop(99), interval=None, closed=lambda: "savepoint x" if len(commits) == 2 else ""
    )
    run()
    assert commits == [(1, "0"), (2, "1")]


def test_a_closed_gate_ends_it_while_it_waits() -> None:
    """The next look may be a day away."""
    stop = Stop(1e9)
    run, _, _, _ = started(Source([1]), stop, interval=86400, closed=lambda: "a restore" if stop.waited >= 100 else "")
    with pytest.raises(RuntimeFailure, match="closed for a restore"):
        run()
    assert stop.waited == 100


def test_a_closed_gate_is_seen_before_the_source_is_read() -> None:
    source = Source([1])
    run, commits, _, _ = started(source, Stop(99), interval=None, closed=lambda: "a restore")
    with pytest.raises(RuntimeFailure, match="closed for a restore"):
        run()
    assert (source.asked, commits) == ([], [])


class Etcd:
    """A gate, or an exception instead."""

    prefix = "/hudi"

    def __init__(self, gate: dict[str, str] | Exception | None) -> None:
        self.gate, self.key = gate, ""

    def get(self, key: str) -> Any:
        self.key = key
        if isinstance(self.gate, Exception):
            raise self.gate
        return None if self.gate is None else Entry(key, self.gate, 1)


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ({"state": "closed", "closedFor": "savepoint x"}, "savepoint x"),
        ({"state": "closed"}, ""),  # for a moment, or for the end of the table
        ({"state": "open", "closedFor": "savepoint x"}, ""),
        ({"state": "frozen"}, ""),
        (None, ""),
        (ConnectionError("etcd is silent"), ""),
    ],
)
def test_what_a_gate_says(gate: dict[str, str] | Exception | None, said: str) -> None:
    etcd = Etcd(gate)
    assert closed_for(SimpleNamespace(etcd=etcd, table_id="t1")) == said  # type: ignore[arg-type]
    assert etcd.key == "/hudi/control/t1/gate"
