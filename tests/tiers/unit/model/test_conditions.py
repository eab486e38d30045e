from hudi_operator.model import conditions
from hudi_operator.model.conditions import condition


def test_transition_time_moves_only_with_the_status() -> None:
    first = conditions.merge([], [condition("Ready", False, "Creating", "a")], generation=1, now_ms=1_000)
    assert first[0]["lastTransitionTime"] == "1970-01-01T00:00:01Z"
    second = conditions.merge(first, [condition("Ready", False, "Waiting", "b")], generation=2, now_ms=9_000)
    assert second[0]["lastTransitionTime"] == "1970-01-01T00:00:01Z"
    assert (second[0]["reason"], second[0]["observedGeneration"]) == ("Waiting", 2)
    third = conditions.merge(second, [condition("Ready", True, "Ready")], generation=2, now_ms=9_000)
    assert third[0]["lastTransitionTime"] == "1970-01-01T00:00:09Z"


def test_messages_are_bounded() -> None:
    assert (
        len(conditions.merge([], [condition("X", True, "R", "m" * 10_000)], generation=1, now_ms=0)[0]["message"])
        == conditions.MESSAGE_LIMIT
    )


def test_times() -> None:
    assert conditions.from_rfc3339("1970-01-01T00:00:09Z") == 9_000
    assert conditions.from_rfc3339("") is None
    assert conditions.hudi_time("20260102030405678") == "2026-01-02T03:04:05Z"
    assert conditions.hudi_time("0") == ""
    assert conditions.find({}, "Ready") == {}
