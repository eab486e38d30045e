"""When an agent goes on, and when it ends so that another one is made."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from hudi_runtime import agent as module
from hudi_runtime.agent import Agent


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
        Failing(RuntimeError("o.a.h.HoodieException: [HUDIOP-ETCD-SET-BACK] etcd's revision went back from 9 to 5"), stop).run()
    assert stop.waited == []
