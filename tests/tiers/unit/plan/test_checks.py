"""A chain of checks: order is precedence."""

from __future__ import annotations

import pytest

from hudi_operator.plan import table_status
from hudi_operator.plan.core.checks import Chain
from hudi_operator.plan.gate import gate, stalled
from hudi_operator.plan.writers import admission

CHAINS = {
    "admission.OWN_STATE": admission.OWN_STATE,
    "admission.REFUSED": admission.REFUSED,
    "admission.NEEDS_A_PERSON": admission.NEEDS_A_PERSON,
    "admission.MAY_START": admission.MAY_START,
    "admission.WHY_NOT_OPEN": admission.WHY_NOT_OPEN,
    "gate.STEPS": gate.STEPS,
    "stalled.OBJECT": stalled.OBJECT,
    "stalled.UNUSABLE": stalled.UNUSABLE,
    "stalled.STALLED": stalled.STALLED,
    "table_status.NOT_READY": table_status.NOT_READY,
}


def test_the_first_finding_decides_and_no_check_behind_it_is_asked() -> None:
    asked: list[str] = []

    def silent(facts: int) -> str | None:
        asked.append("silent")
        return None

    def large(facts: int) -> str | None:
        asked.append("large")
        return f"{facts} is large" if facts > 10 else None

    def odd(facts: int) -> str | None:
        asked.append("odd")
        return f"{facts} is odd" if facts % 2 else None

    chain: Chain[int, str] = Chain(silent, large, odd)
    assert (chain(11), asked) == ("11 is large", ["silent", "large"])
    assert (chain(3), chain(4)) == ("3 is odd", None)


def test_an_empty_finding_is_a_finding() -> None:
    chain: Chain[int, str] = Chain(lambda facts: "", lambda facts: "never")
    assert chain(1) == ""


def test_a_chain_may_stand_within_a_chain() -> None:
    inner: Chain[int, str] = Chain(lambda facts: "two" if facts == 2 else None)
    outer: Chain[int, str] = Chain(inner, lambda facts: "other")
    assert (outer(2), outer(3)) == ("two", "other")


@pytest.mark.parametrize("name", CHAINS)
def test_checks_of_the_planners_are_named_and_stand_once(name: str) -> None:
    names = [getattr(check, "__name__", "chain") for check in CHAINS[name].checks]
    assert "<lambda>" not in names
    assert len(names) == len(set(names))
