"""An attempt reads its progress when no earlier one of its writer owns the lock (F5)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.outcomes import FailureClass
from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.process.etcd import Entry
from hudi_runtime.process.stopping import Stop
from hudi_runtime.writer import attempt as writer
from hudi_runtime.writer import predecessor
from hudi_runtime.writer.attempt import Attempt

MINE = "lake.load-0a1b2c3d-2"


def lock(attempt: object) -> Entry:
    return Entry("lock", {"inc": "i", "attempt": attempt}, 1)


@pytest.mark.timeout(20)  # shorter than the limit of make mutations, which does not say what hangs
@pytest.mark.parametrize(
    ("held", "owner"),
    [
        pytest.param(None, "", id="free"),
        pytest.param(lock("lake.load-0a1b2c3d-1"), "lake.load-0a1b2c3d-1", id="the attempt before"),
        pytest.param(lock("lake.load-0a1b2c3d-11"), "lake.load-0a1b2c3d-11", id="another attempt of the writer"),
        pytest.param(lock(MINE), "", id="this attempt"),
        pytest.param(lock("lake.load-ffffffff-1"), "", id="a writer of that name that was made again"),
        pytest.param(lock("lake.other-0a1b2c3d-1"), "", id="another writer"),
        pytest.param(lock("pond.load-0a1b2c3d-1"), "", id="another namespace"),
        pytest.param(lock("lake.hudi-agent-x-1"), "", id="the agent"),
        pytest.param(lock(""), predecessor.UNKNOWN, id="nobody knows"),
        pytest.param(lock(7), predecessor.UNKNOWN, id="unreadable"),
    ],
)
def test_who_is_waited_for(held: Entry | None, owner: str) -> None:
    assert predecessor.owner_before(held, MINE) == owner


class Etcd:
    """Answers with each of these in turn, and then with the last one."""

    def __init__(self, *answers: Entry | Exception | None) -> None:
        self.answers, self.asked = list(answers), 0

    def get(self, key: str) -> Entry | None:
        assert key == "lock"
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


HELD = lock("lake.load-0a1b2c3d-1")


def wait(
    etcd: Etcd,
    *,
    stop: Any = None,
    closed: Callable[[], str] = str,
    alive: bool = True,
    rehearse: Callable[[], None] = lambda: None,
    seconds: float = 60,
) -> float:
    session: Any = SimpleNamespace(etcd=etcd, attempt=MINE)
    return predecessor.await_lock(
        session,
        stop=stop or Stop(lambda: None),
        closed=closed,
        alive=lambda: alive,
        rehearse=rehearse,
        seconds=seconds,
    )


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predecessor, "POLL_SECONDS", 0.001)


def test_whoever_follows_nobody_does_not_wait_and_rehearses_nothing() -> None:
    rehearsed: list[int] = []
    etcd = Etcd(lock("lake.other-0a1b2c3d-1"))
    assert wait(etcd, rehearse=lambda: rehearsed.append(1)) == 0
    assert (etcd.asked, rehearsed) == (1, [])


def test_it_waits_until_the_lock_is_another_ones() -> None:
    etcd = Etcd(HELD, HELD, HELD, lock("lake.other-0a1b2c3d-1"))
    assert wait(etcd) > 0
    assert etcd.asked == 4


def test_without_an_answer_it_goes_on_waiting() -> None:
    """Unknown is not free, from the first look on."""
    silent = RuntimeError("UNAVAILABLE")
    etcd = Etcd(silent, HELD, silent, silent, None)
    wait(etcd)
    assert etcd.asked == 5


def test_it_rehearses_meanwhile_once_and_waits_for_no_rehearsal() -> None:
    began, never = threading.Event(), threading.Event()

    def rehearse() -> None:
        assert not began.is_set()
        began.set()
        never.wait(30)

    wait(Etcd(*[HELD] * 20, None), rehearse=rehearse)
    assert began.wait(30)
    never.set()


def test_a_rehearsal_that_fails_says_nothing_about_the_run() -> None:
    def rehearse() -> None:
        raise ValueError("no such folder")

    wait(Etcd(HELD, HELD, None), rehearse=rehearse)


@pytest.mark.parametrize(
    ("how", "kind", "said"),
    [
        ({"closed": lambda: "a change of drainSeconds"}, FailureClass.ENDED_FOR_CHANGE, "a change of drainSeconds"),
        ({"alive": False}, FailureClass.INFRASTRUCTURE, "JVM has ended"),
        ({"seconds": 0.01}, FailureClass.INFRASTRUCTURE, "lake.load-0a1b2c3d-1 was not free within"),
        ({"stop": SimpleNamespace(wait=lambda _: True)}, FailureClass.INFRASTRUCTURE, "stopped while waiting"),
    ],
    ids=["the gate is closed", "the JVM is gone", "too long", "stop"],
)
def test_it_does_not_wait_for_ever(how: dict[str, Any], kind: FailureClass, said: str) -> None:
    with pytest.raises(RuntimeFailure, match=said) as failed:
        wait(Etcd(*[HELD] * 200, None), **how)
    assert failed.value.failure == kind


@pytest.mark.parametrize("application", [None, "main.py"])
def test_nothing_is_read_and_no_program_runs_before_the_lock_is_free(
    monkeypatch: pytest.MonkeyPatch, application: str | None
) -> None:
    done: list[str] = []
    monkeypatch.setattr(writer.merging, "require", lambda *_: None)
    attempt: Any = Attempt.__new__(Attempt)
    attempt._session = SimpleNamespace(etcd=Etcd(HELD, HELD, None), attempt=MINE)
    attempt._spark = SimpleNamespace(sparkContext=SimpleNamespace(_jvm=None))
    attempt._job = SimpleNamespace(application=application, table=SimpleNamespace(merge=None), predecessor_seconds=60)
    attempt._reporter, attempt._stop = SimpleNamespace(stage=lambda _: None), Stop(lambda: None)
    monkeypatch.setattr(writer.gate, "closed_for", lambda _: "")
    attempt._rehearse = lambda: None
    attempt._batches = attempt._application = lambda *_: done.append(f"looks: {attempt._session.etcd.asked}")
    attempt._leave = lambda: None
    attempt.run()
    assert done == ["looks: 3"]


def test_it_waits_as_long_as_its_job_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """F438."""
    told: list[float] = []
    monkeypatch.setattr(predecessor, "await_lock", lambda _, *, seconds, **__: told.append(seconds) or 0.0)
    attempt: Any = Attempt.__new__(Attempt)
    attempt._session, attempt._stop = SimpleNamespace(), Stop(lambda: None)
    attempt._job = SimpleNamespace(predecessor_seconds=3900)
    attempt._await_predecessor()
    assert told == [3900]
