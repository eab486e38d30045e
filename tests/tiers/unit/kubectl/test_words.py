"""Words and numbers of the API that `kubectl hudi` repeats: it runs on Python 3.9, and cannot
import the enums of the contract.
"""

from __future__ import annotations

from hudi_contract.settle import Phase
from hudi_contract.words import AgentError, HoldOutcome, Result
from hudi_kubectl import lanes, objects, verbs
from hudi_operator.plan.agent import table_services
from tests.campaigns.pages import conditions
from tests.support import crds


def test_phases_of_settling() -> None:
    assert [*lanes.PHASES] == [phase.name for phase in Phase if phase < Phase.Unlocked]
    assert [*verbs.UNPROVEN] == [phase.name for phase in Phase if phase < Phase.Draining]


def test_outcomes_of_requests() -> None:
    known = {objects.RUNNING, objects.FAILED, verbs.COMPLETED, verbs.PENDING, verbs.DELETED}
    assert known | {Result.NOTHING_TO_DO, Result.POSTPONED} == set(Result)
    assert {verbs.PENDING, verbs.GRANTED, *verbs.NOTHING_HELD} == set(HoldOutcome)
    assert lanes.BAD == (Result.FAILED, table_services.INTERRUPTED)


def test_reasons_of_stalled() -> None:
    known = {*verbs.FROZEN, verbs.PENDING_INSTANTS, verbs.TABLE_EXISTS, verbs.DUPLICATE_PATH}
    assert known - set(AgentError) == {"Frozen", "DuplicatePath"}
    assert known <= conditions.conditions()[conditions.TABLE]["Stalled"]


def test_reasons_of_events() -> None:
    told = {reason for _, reason in conditions.events()[conditions.TABLE]}
    assert {lanes.IS_FENCED, lanes.IS_UNLOCKED, lanes.ROLLS_BACK} <= told


def test_limits() -> None:
    fields = crds.schema("huditables", "spec")["properties"]
    assert fields["savepoints"]["maxItems"] == verbs.MOST_SAVEPOINTS
    assert fields["holds"]["maxItems"] == verbs.MOST_HOLDS
    assert fields["holds"]["items"]["properties"]["durationSeconds"]["maximum"] == verbs.LONGEST_HOLD
