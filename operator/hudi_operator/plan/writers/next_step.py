"""``status.plan``: what happens next with a HudiWriter, before it happens.

The same as `kubectl hudi plan` says of its file, here by the operator: with its settings, Secrets
and etcd, which a user cannot read. A writer that is suspended, rests or runs learns here what will
refuse its next attempt.
"""

from __future__ import annotations

from enum import StrEnum

from hudi_operator.model.status import PlanStatus
from hudi_operator.plan.core.view import View, WriterView
from hudi_operator.plan.writers import admission
from hudi_operator.plan.writers.admission import Decision, Kind
from hudi_operator.plan.writers.runs import Progress


class Verdict(StrEnum):
    """What happens next; the CRD explains each."""

    STARTS = "Starts"
    WAITS = "Waits"
    STALLS = "Stalls"
    GOES_ON = "GoesOn"
    RESTS = "Rests"


VERDICTS = {
    Kind.ACTIVE: Verdict.GOES_ON,
    Kind.START: Verdict.STARTS,
    Kind.WAIT: Verdict.WAITS,
    Kind.FINISHED: Verdict.RESTS,
    Kind.SCHEDULED: Verdict.RESTS,
    Kind.SUSPENDED: Verdict.RESTS,
    Kind.DELETING: Verdict.WAITS,
    Kind.STALLED: Verdict.STALLS,
}
_UNTIL = {
    Verdict.GOES_ON: "what runs goes on until then",
    Verdict.WAITS: "it waits until then",
    Verdict.RESTS: "nothing is due until then",
}


def of(view: View, writer: WriterView, progress: Progress, decision: Decision) -> PlanStatus:
    """The plan for a writer about which this was decided."""
    verdict = VERDICTS[decision.kind]
    if verdict in (Verdict.STALLS, Verdict.STARTS) or decision.kind is Kind.DELETING:
        return _told(verdict, decision.reason, decision.message)
    stalls = admission.stalls_next(view, writer, progress)
    if stalls is None:
        return _told(verdict, decision.reason, decision.message)
    return _told(Verdict.STALLS, stalls.reason, f"{stalls.message}; {_UNTIL[verdict]}")


def undecided(message: str) -> PlanStatus:
    """The plan for a writer for which nothing can be planned."""
    return _told(Verdict.STALLS, admission.PLANNING_FAILED, message)


def _told(verdict: Verdict, reason: str, message: str) -> PlanStatus:
    return PlanStatus(verdict=verdict.value, reason=reason, message=message)
