"""A batch gives way to more important writers a bounded number of times, and that is no retry."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.writer.fairness import MAX_YIELDS
from tests.support.world.played_committer import Play


def test_giving_way_is_no_retry_and_has_an_end(monkeypatch: Any) -> None:
    play = Play(monkeypatch, ["yielded"] * MAX_YIELDS + ["done"], retries=0)
    batch: Any = SimpleNamespace(base=None)
    assert play.commit(batch, base="") == "later"
    assert play.allowed == [3, 2, 1, 0], "the last write takes part in the race like everybody's"
    assert play.waits == 1, "the second look found the other one's instant completed"


def test_lost_races_are_counted_apart(monkeypatch: Any) -> None:
    play = Play(monkeypatch, ["lost", "yielded", "lost"], retries=1)
    batch: Any = SimpleNamespace(base=None)
    with pytest.raises(RuntimeFailure, match=r"all retries in this process \(1\)"):
        play.commit(batch, base="")
    assert play.allowed == [3, 3, 2]


def test_who_is_asked_to_stop_does_not_wait(monkeypatch: Any) -> None:
    play = Play(monkeypatch, ["yielded", "done"], retries=3, stop=True)
    batch: Any = SimpleNamespace(base=None)
    with pytest.raises(RuntimeFailure):
        play.commit(batch, base="")
    assert play.waits == 1
