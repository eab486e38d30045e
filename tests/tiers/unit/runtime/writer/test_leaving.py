"""How a driver leaves: by a clean exit, or so that the operator settles it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.process import spark as sp
from hudi_runtime.writer import attempt as writer
from hudi_runtime.writer.attempt import Attempt


@pytest.mark.parametrize(
    ("gave_up", "lost", "closed"),
    [
        pytest.param(False, False, True, id="nothing went wrong"),
        pytest.param(True, False, True, id="an instant was given up, every executor is there"),
        pytest.param(False, True, True, id="an executor was lost, nothing was given up"),
        pytest.param(True, True, False, id="both: a lost executor may still write files of that instant"),
    ],
)
def test_a_clean_exit_needs_every_executor_when_an_instant_was_given_up(
    monkeypatch: Any, *, gave_up: bool, lost: bool, closed: bool
) -> None:
    monkeypatch.setattr(sp, "lost_executors", lambda _spark: lost)
    said: list[str] = []
    attempt: Any = Attempt.__new__(Attempt)
    attempt._spark = None
    attempt._reporter = SimpleNamespace(stage=said.append)
    attempt._session = SimpleNamespace(close=lambda: said.append("closed"), gave_up=lambda: gave_up)
    attempt._leave()
    assert getattr(attempt, "must_be_proven_dead", False) != closed
    assert said == (["Finished", "closed"] if closed else ["Finished"])


@pytest.mark.parametrize("proven", [False, True])
def test_the_plugin_does_not_end_the_registration_of_who_must_be_proven_dead(monkeypatch: Any, *, proven: bool) -> None:
    """F4: Spark's end is the session's, too."""
    stopped: list[float] = []
    monkeypatch.setattr(sp, "start", lambda _name, *, program, brought: None)
    monkeypatch.setattr(sp, "stop", lambda *, wait_seconds: stopped.append(wait_seconds))
    monkeypatch.setattr(
        writer.job_file,
        "load",
        lambda: SimpleNamespace(options={}, writer="ns/w", number=1, application=None, deps=None, runs_user_code=False),
    )
    monkeypatch.setattr(writer, "Attempt", lambda *_: SimpleNamespace(run=lambda: None, must_be_proven_dead=proven))
    monkeypatch.setattr(writer, "write_termination", lambda _tally, _failure: None)
    assert writer.main() == 0
    assert bool(stopped) != proven
