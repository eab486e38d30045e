"""What the demo and the e2e tier take for the truth about the lock: who held it, from when to when
(F1, I1).
"""

from __future__ import annotations

from typing import Any

from demo.protocol import Change, intervals

LOCK = "/hudi/tables/t/lock"


def change(at: float, value: dict[str, Any] | None) -> Change:
    return Change(at, int(at), LOCK, value)


def held(*changes: Change) -> list[tuple[str, float, float]]:
    return [(one.attempt, one.start, one.end) for one in intervals(list(changes), "/lock")]


def test_one_after_another() -> None:
    assert held(change(1, {"inc": "a"}), change(2, None), change(3, {"inc": "b"})) == [("a", 1, 2), ("b", 3, 0)]


def test_a_value_that_its_holder_writes_anew_is_one_interval() -> None:
    assert held(change(1, {"inc": "a"}), change(2, {"inc": "a", "more": 1}), change(3, None)) == [("a", 1, 3)]


def test_a_lock_that_is_taken_from_its_holder_shows_both() -> None:
    assert held(change(1, {"inc": "a"}), change(2, {"inc": "b"}), change(3, None)) == [("a", 1, 2), ("b", 2, 3)]
