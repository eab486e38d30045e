"""How a writer's last write ended: the condition ``Committed`` of a HudiWriter.

True: Committed. False: Conflict (it lost a race, or gave way, and is repeated with a new instant while there are retries) or Aborted (nothing of
it is in the table). Unknown: its process is gone without a word; what the timeline says, by the attempt's id in the commits' metadata, ends that.
Sources, in order of precedence: what the attempt reports, what the agent finds when it settles the attempt.
"""

from __future__ import annotations

from typing import Any

from hudi_operator.model import classify, conditions
from hudi_operator.model.conditions import Condition
from hudi_operator.plan.core.view import Attempt

JsonDict = dict[str, Any]

KIND = "Committed"
COMPLETED = "Completed"


def committed(attempt: Attempt | None, entry: JsonDict, report: JsonDict, old: JsonDict) -> Condition:
    """The condition. ``entry``: the newest attempt's in status; ``report``: its own word, and commits that the agent has found by its id."""
    number = entry.get("number")
    if number is None:
        return Condition(KIND, "False", "NothingWritten")
    about = f"attempt {number}: "
    known = conditions.find(old, KIND)
    kind = entry.get("class")
    if kind and known.get("status") in ("True", "False") and str(known.get("message")).startswith(about + "ended: "):
        return Condition(KIND, known["status"], known["reason"], known["message"])  # final: what it rests on may have been collected since
    if not kind:
        return _under_way(about, report, known)
    return _ended(about + "ended: ", str(kind), attempt, report)


def _under_way(about: str, report: JsonDict, known: JsonDict) -> Condition:
    conflicts = report.get("conflicts")
    last = conflicts[-1] if isinstance(conflicts, list) and conflicts else {}
    if last and not last.get("retriedAs"):
        how = "gave way to" if last.get("yielded") else "lost to"
        return Condition(KIND, "False", "Conflict", f"{about}instant {last.get('instant')} {how} {last.get('with') or 'another one'}")
    if report.get("lastInstant"):
        return Condition(KIND, "True", "Committed", f"{about}instant {report['lastInstant']}")
    if known.get("status"):
        return Condition(KIND, known["status"], known["reason"], known.get("message", ""))  # of the attempt before
    return Condition(KIND, "False", "NothingWritten")


def _ended(about: str, kind: str, attempt: Attempt | None, report: JsonDict) -> Condition:
    last = f"instant {report['lastInstant']}" if report.get("lastInstant") else ""
    if kind == classify.SUCCEEDED:
        return Condition(KIND, "True" if last else "False", "Committed" if last else "NothingWritten", about + (last or "there was nothing to write"))
    if kind == classify.WRITE_CONFLICT:
        return Condition(KIND, "False", "Conflict", f"{about}{kind}")
    incs = attempt.incs if attempt is not None else ()
    if any(not inc.settled for inc in incs):
        return Condition(KIND, "Unknown", "OutcomeUnknown", f"{about}{kind}; when its process is settled, the timeline says what became of its write")
    found = {t: str(item.get("outcome")) for inc in incs if inc.record is not None for t, item in (inc.record.value.get("instants") or {}).items()}
    completed = max((t for t, outcome in found.items() if outcome == COMPLETED), default="")
    if completed:
        return Condition(KIND, "True", "Committed", f"{about}{kind}, but instant {completed} is completed")
    if last and not found and any(inc.record is not None for inc in incs):
        return Condition(KIND, "True", "Committed", f"{about}{kind}, after {last} and with nothing under way")
    return Condition(KIND, "False", "Aborted", f"{about}{kind}{f'; its last commit is {last}' if last else ''}")
