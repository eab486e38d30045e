"""When an agent goes on, and when it ends so that another one is made."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.outcomes import FailureClass
from hudi_contract.shape import ShapeError
from hudi_runtime.agent import agent as module
from hudi_runtime.agent.agent import Agent, ClockRefused, MustEnd
from hudi_runtime.process.errors import classify
from hudi_runtime.process.etcd import Entry


@dataclass
class Stop:
    """Asked to stop after so many ticks."""

    ticks: int
    waited: list[float] = field(default_factory=list)

    @property
    def requested(self) -> bool:
        return len(self.waited) >= self.ticks

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)


class Failing(Agent):
    """An agent without Spark whose every look at etcd fails."""

    def __init__(self, error: Exception, stop: Stop) -> None:
        self._name, self._stop, self._error, self.closed = "agent-x", stop, error, False  # type: ignore[assignment]
        self._handing_over, self._assignments, self._left = threading.Event(), {}, []

    def _tick(self) -> None:
        raise self._error

    def _close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def living_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sp, "jvm_exit_code", lambda: None)


def test_a_silent_etcd_is_waited_for() -> None:
    agent = Failing(RuntimeError("[HUDIOP-ETCD-SILENT] no answer"), Stop(3))
    agent.run()
    assert agent.closed


def test_an_etcd_that_was_set_back_is_left_at_once() -> None:
    stop = Stop(3)
    with pytest.raises(RuntimeError, match="SET-BACK"):
        Failing(
            RuntimeError("o.a.h.HoodieException: [HUDIOP-ETCD-SET-BACK] etcd's revision went back from 9 to 5"), stop
        ).run()
    assert stop.waited == []


def test_an_agent_that_may_have_left_an_executor_at_work_is_left_at_once() -> None:
    """I12: the next one goes on with what is pending, after the proof.

    This one neither waits nor leaves in order.
    """
    stop: Any = Stop(3)
    agent = Failing(AssertionError("a tick of its own"), stop)
    agent._tick = lambda: Agent._tick(agent)  # type: ignore[method-assign]
    agent._assignments = {"t1": SimpleNamespace(must_end=False), "t2": SimpleNamespace(must_end=True)}  # type: ignore[dict-item]
    with pytest.raises(MustEnd, match="after an executor was lost"):
        agent.run()
    assert stop.waited == []


def test_an_agent_whose_times_nobody_accepts_is_left_at_once() -> None:
    """F414: whatever has met the refusal, a rollback or a service, at whichever table."""
    stop: Any = Stop(3)
    agent = Failing(AssertionError("a tick of its own"), stop)
    agent._tick = lambda: Agent._tick(agent)  # type: ignore[method-assign]
    good = SimpleNamespace(must_end=False, clock_refused="", fenced=False)
    agent._assignments = {"t1": good, "t2": SimpleNamespace(must_end=False, clock_refused="host h is ahead")}  # type: ignore[dict-item]
    with pytest.raises(ClockRefused, match="host h is ahead") as ended:
        agent.run()
    assert stop.waited == []
    failure = classify(ended.value)
    assert (failure.kind, failure.message) == (FailureClass.CLOCK_SKEW, "host h is ahead")


class Assigned:
    """An assignment whose work goes on until it is asked to end."""

    def __init__(self, spark: object, value: dict[str, object], **more: object) -> None:
        self.value, self.idle, self.reachable, self.must_end, self.said = value, False, True, False, []  # type: ignore[var-annotated]
        self.fenced, self.clock_refused = False, ""

    def step(self) -> None:
        pass

    def retire(self, *, gone: bool) -> None:
        self.said.append("gone" if gone else "changed")

    def fence_stands(self) -> bool:
        return self.fenced

    def cease(self) -> None:
        self.said.append("ceased")

    def close(self) -> bool:
        self.said.append("closed")
        return True


def test_what_is_no_table_of_its_own_any_more_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bootstrap of hours goes on when the spec has changed, and keeps no
    deleted HudiTable waiting.
    """
    wanted = {"t1": {"n": 1}, "t2": {"n": 1}}
    etcd = SimpleNamespace(range=lambda prefix: [Entry(f"{prefix}{name}", value, 1) for name, value in wanted.items()])
    monkeypatch.setattr(module, "unbound", lambda spark: etcd)
    monkeypatch.setattr(module, "Assignment", Assigned)
    spark: Any = None
    stop: Any = Stop(1)
    agent = Agent(spark, "agent-x", stop=stop, handing_over=threading.Event())
    agent._tick()
    made: dict[str, Any] = dict(agent._assignments)
    wanted["t1"] = {"n": 2}
    del wanted["t2"]
    agent._tick()
    assert (made["t1"].said, made["t2"].said) == (["changed"], ["gone"])
    assert agent._assignments.keys() == {"t1", "t2"}, "both are waited for"
    for assigned in made.values():
        assigned.idle = True
    for future, _ in agent._running.values():
        future.result()
    agent._tick()
    assert made["t2"].said[-1] == "closed"
    assert agent._assignments.keys() == {"t1"}


def test_an_assignment_that_is_no_json_any_more_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """F417: its bootstrap of hours goes on."""
    found = [Entry("agents/agent-x/t1", {"n": 1}, 1)]
    monkeypatch.setattr(module, "unbound", lambda spark: SimpleNamespace(range=lambda prefix: list(found)))
    monkeypatch.setattr(module, "Assignment", Assigned)
    spark: Any = None
    stop: Any = Stop(1)
    agent = Agent(spark, "agent-x", stop=stop, handing_over=threading.Event())
    agent._tick()
    made: Any = agent._assignments["t1"]
    found[0] = Entry("agents/agent-x/t1", {}, 2, "is not JSON")
    agent._tick()
    assert agent._assignments == {"t1": made}
    assert made.said == []


def test_an_assignment_that_cannot_be_read_keeps_no_other_table_from_being_served(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Reading(Assigned):
        def __init__(self, spark: Any, value: Any, **more: Any) -> None:
            super().__init__(spark, value, **more)
            if value["n"] == "many":
                raise ShapeError("AssignmentRecord.n is not a number")

    wanted: dict[str, Any] = {"t1": {"n": "many"}, "t2": {"n": 1}}
    etcd = SimpleNamespace(range=lambda prefix: [Entry(f"{prefix}{name}", value, 1) for name, value in wanted.items()])
    monkeypatch.setattr(module, "unbound", lambda spark: etcd)
    monkeypatch.setattr(module, "Assignment", Reading)
    spark: Any = None
    stop: Any = Stop(1)
    agent = Agent(spark, "agent-x", stop=stop, handing_over=threading.Event())
    agent._tick()
    agent._tick()
    assert agent._assignments.keys() == {"t2"}
    assert capsys.readouterr().err.count("table t1 is not served: AssignmentRecord.n is not a number") == 1, "said once"
    wanted["t1"] = {"n": 2}
    agent._tick()
    assert agent._assignments.keys() == {"t1", "t2"}


def test_the_fence_of_one_table_lets_the_others_end_what_they_are_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """F48: nothing more is done at the fenced table, and it is left by nobody's word.

    The process ends when the others have left.
    """
    etcd = SimpleNamespace(range=lambda prefix: [Entry(f"{prefix}{name}", {"n": 1}, 1) for name in ("t1", "t2")])
    monkeypatch.setattr(module, "unbound", lambda spark: etcd)
    monkeypatch.setattr(module, "Assignment", Assigned)
    monkeypatch.setattr(module, "TICK_SECONDS", 0.01)
    # The last resort of a hand-over ends its whole process: a real one would end this run of tests
    # two minutes later, with code 0.
    last_resorts: list[float] = []
    monkeypatch.setattr(
        module.threading, "Timer", lambda seconds, end: SimpleNamespace(start=lambda: last_resorts.append(seconds))
    )
    spark: Any = None
    stop: Any = SimpleNamespace(requested=False, wait=lambda seconds: None)
    agent = Agent(spark, "agent-x", stop=stop, handing_over=threading.Event())
    agent._tick()
    made: dict[str, Any] = dict(agent._assignments)
    made["t1"].fenced = True
    run = threading.Thread(target=agent.run, daemon=True)
    run.start()
    run.join(0.5)
    assert run.is_alive(), "the other table is cut off"
    assert made["t1"].said == ["ceased"]
    assert made["t2"].said == []
    assert last_resorts == [module.HAND_OVER_SECONDS + module.HAND_OVER_CLOSE_SECONDS]
    made["t2"].idle = True
    run.join(10)
    assert not run.is_alive()
    assert (made["t1"].said, made["t2"].said) == (["ceased"], ["closed"])
