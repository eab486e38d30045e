"""What the demo and the e2e tier take for the truth about the lock: who held it, from when to when
(F1, I1).
"""

from __future__ import annotations

from typing import Any

from demo.protocol import Change, intervals, settlings

from hudi_contract.keys import PREFIX, Kind, TableKeys
from hudi_contract.settle import Phase, SettledInstant, SettleRecord
from hudi_contract.table_keys import InstantRecord, Registration
from hudi_contract.words import InstantState, Outcome

KEYS = TableKeys(PREFIX, "t")


def change(at: float, value: dict[str, Any] | None) -> Change:
    return Change(at, int(at), KEYS.of(Kind.LOCK), value)


def held(*changes: Change) -> list[tuple[str, float, float]]:
    return [(one.attempt, one.start, one.end) for one in intervals(list(changes), Kind.LOCK)]


def test_one_after_another() -> None:
    assert held(change(1, {"inc": "a"}), change(2, None), change(3, {"inc": "b"})) == [("a", 1, 2), ("b", 3, 0)]


def test_a_value_that_its_holder_writes_anew_is_one_interval() -> None:
    assert held(change(1, {"inc": "a"}), change(2, {"inc": "a", "more": 1}), change(3, None)) == [("a", 1, 3)]


def test_a_lock_that_is_taken_from_its_holder_shows_both() -> None:
    assert held(change(1, {"inc": "a"}), change(2, {"inc": "b"}), change(3, None)) == [("a", 1, 2), ("b", 2, 3)]


def test_an_instant_is_its_owners_from_the_record_until_the_deletion() -> None:
    registered = Registration(inc="a", attempt="team.load-1").to_json()
    record = InstantRecord(inc="a", state=InstantState.ABANDONED).to_json()
    seen = [
        Change(1, 1, KEYS.of(Kind.WRITER, "a"), registered),
        Change(2, 2, KEYS.of(Kind.INSTANT, "1"), record),
        Change(3, 3, KEYS.of(Kind.WRITER, "a"), None),
        Change(4, 4, KEYS.of(Kind.INSTANT, "1"), None),
    ]
    (one,) = intervals(seen, Kind.INSTANT)
    assert (one.what, one.attempt, one.start, one.end, one.how) == ("1", "team.load-1", 2, 4, "Abandoned")
    assert intervals(seen, Kind.LOCK) == []


def test_a_settling_has_the_times_of_its_phases_and_of_its_rollbacks() -> None:
    begun = SettleRecord(inc="a", attempt="team.load-1", phase=Phase.RollingBack, instants={"1": SettledInstant()})
    done = begun.but(phase=Phase.Swept, instants={"1": SettledInstant(outcome=Outcome.ROLLED_BACK)})
    key = KEYS.of(Kind.SETTLE, "a")
    seen = [Change(1, 1, key, begun.to_json()), Change(2, 2, key, done.to_json()), Change(3, 3, key, None)]
    (one,) = settlings(seen)
    assert (one.inc, one.attempt, one.phases) == ("a", "team.load-1", {"RollingBack": 1, "Swept": 2})
    assert (one.outcomes, one.rolled_back) == ({"1": "RolledBack"}, {"1": 2})
