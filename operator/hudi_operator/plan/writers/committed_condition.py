"""The outcome of a writer's last write: the condition ``Committed`` of a HudiWriter.

True: Committed. False: Conflict (it lost a race, or yielded, and is repeated with a new instant
while there are retries) or Aborted (nothing of it is in the table). Unknown: its process ended
without a report; the timeline resolves that, by the attempt's id in the commits' metadata. Sources,
in order of precedence: the attempt's report, the agent's findings when it settles the attempt.
"""

from __future__ import annotations

from typing import Any

from hudi_contract.outcomes import FailureClass
from hudi_contract.reports import AttemptReport
from hudi_contract.words import Outcome
from hudi_operator.model import classify, conditions
from hudi_operator.model.conditions import Condition
from hudi_operator.model.status import AttemptEntry
from hudi_operator.plan.core.view import Attempt

JsonDict = dict[str, Any]

KIND = "Committed"


def committed(attempt: Attempt | None, entry: AttemptEntry | None, report: AttemptReport, old: JsonDict) -> Condition:
    """The condition.

    ``entry``: the newest attempt's status entry, None before the first attempt; ``report``: its own
    report, and commits that the agent found by its id.
    """
    if entry is None:
        return Condition(KIND, "False", "NothingWritten")
    about = f"attempt {entry.number}: "
    known = conditions.find(old, KIND)
    kind = entry.class_
    if kind and known.get("status") in ("True", "False") and str(known.get("message")).startswith(about + "ended: "):
        # final: the facts behind it may have been collected since
        return Condition(KIND, known["status"], known["reason"], known["message"])
    if not kind:
        return _under_way(about, report, known)
    return _ended(about + "ended: ", kind, attempt, report)


def _under_way(about: str, report: AttemptReport, known: JsonDict) -> Condition:
    last = next(reversed(report.conflicts), None)
    if last is not None and not last.retried_as:
        how = "gave way to" if last.yielded else "lost to"
        return Condition(
            KIND, "False", "Conflict", f"{about}instant {last.instant} {how} {last.with_ or 'another one'}"
        )
    if report.last_instant:
        return Condition(KIND, "True", "Committed", f"{about}instant {report.last_instant}")
    if known.get("status"):
        return Condition(KIND, known["status"], known["reason"], known.get("message", ""))  # of the attempt before
    return Condition(KIND, "False", "NothingWritten")


def _ended(about: str, kind: str, attempt: Attempt | None, report: AttemptReport) -> Condition:
    last = f"instant {report.last_instant}" if report.last_instant else ""
    if kind == classify.SUCCEEDED:
        return Condition(
            KIND,
            "True" if last else "False",
            "Committed" if last else "NothingWritten",
            about + (last or "there was nothing to write"),
        )
    if kind == FailureClass.WRITE_CONFLICT:
        return Condition(KIND, "False", "Conflict", f"{about}{kind}")
    incs = attempt.incs if attempt is not None else ()
    if any(not inc.settled for inc in incs):
        return Condition(
            KIND,
            "Unknown",
            "OutcomeUnknown",
            f"{about}{kind}; the timeline shows the outcome of its write when its process is settled",
        )
    found = {t: item.outcome for inc in incs for t, item in inc.settling.instants.items()}
    completed = max((t for t, outcome in found.items() if outcome is Outcome.COMPLETED), default="")
    if completed:
        return Condition(KIND, "True", "Committed", f"{about}{kind}, but instant {completed} is completed")
    if last and not found and any(inc.record is not None for inc in incs):
        return Condition(KIND, "True", "Committed", f"{about}{kind}; its last commit is {last}, with no other instant")
    return Condition(KIND, "False", "Aborted", f"{about}{kind}{f'; its last commit is {last}' if last else ''}")
