"""Words of the contract that a CRD repeats."""

from __future__ import annotations

import re

from hudi_contract.settle import Phase
from hudi_contract.words import HoldOutcome, WriterState
from tests.support import crds


def choices(plural: str, *path: str) -> list[str]:
    found = crds.schema(plural, "status")
    for name in path:
        found = found["items"] if name == "[]" else found["properties"][name]
    return list(found["enum"])


def test_the_states_of_a_writer_are_those_of_the_crd() -> None:
    assert choices("hudiwriters", "state") == [state.value for state in WriterState]


def test_the_phases_of_settling_are_those_of_the_crd() -> None:
    assert choices("huditables", "settling", "[]", "phase") == [phase.name for phase in Phase]


def test_the_crd_describes_each_outcome_of_a_hold() -> None:
    described = crds.schema("huditables", "status")["properties"]["holds"]["items"]["properties"]["outcome"]
    found = re.findall(r"(?:^|, | or )([A-Z][a-z]+)", described["description"])
    assert found == [outcome.value for outcome in HoldOutcome]
