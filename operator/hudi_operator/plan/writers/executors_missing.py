"""Executors that do not come: since when, why, and the condition that says so (F301).

Spark makes them from within the driver. A refusal of the API server there is only in the driver's
log, and the attempt waits. So the operator asks with a pod like theirs. Nothing else follows: no
attempt ends for it, and no retry is used up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_contract import naming
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_operator.model import conditions
from hudi_operator.model.conditions import Condition
from hudi_operator.model.containers import TERMINAL
from hudi_operator.model.facts import PodFacts
from hudi_operator.plan.core.actions import Action, AskExecutors, StartTimer, StopTimer
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import Attempt, View, WriterView
from hudi_operator.plan.writers import attempts

JsonDict = dict[str, Any]

CONDITION = "ExecutorsMissing"
MISSING_SECONDS = 20.0
"""Time that executors have to run before their absence is reported: Spark asks for them within
seconds, and a node that has the image starts them within some more.
"""
TIMER = "executors/"


@dataclass(frozen=True)
class Missing:
    """Executors that an attempt wants and does not have."""

    attempt: Attempt
    wanted: int
    made: int
    """Pods that have not ended."""
    running: int
    why: str
    """Why the first pod that does not run does not; empty: every pod runs."""


def timer(attempt: str) -> str:
    """Name of the timer that runs while executors of an attempt are missing."""
    return TIMER + attempt


def reports(pod: PodFacts, timers: Mapping[str, float]) -> bool:
    """Whether missing executors of a driver may be reported by the time this look has ended.

    ``timers``: ages of the table's timers when the look began, in seconds. Half of MISSING_SECONDS
    is early enough: no look takes as long as the other half.
    """
    age = timers.get(timer(naming.attempt_id(pod.namespace, pod.name)))
    return age is not None and age >= MISSING_SECONDS / 2


def find(view: View, writer: WriterView) -> Missing | None:
    """Executors that the running attempt lacks; None: it lacks none, or nobody waits for them."""
    active = writer.active
    if active is None or active.pod is None or active.pod.deleting or writer.spec is None:
        return None
    # A registered attempt has a session, which asks for executors.
    registered = any(i.registration is not None and i.record is None and not i.fenced for i in active.incs)
    if not registered or attempts.stopping(view, writer.spec):
        return None
    pods = [p for p in view.executors(active.pod.name) if not p.deleting and p.phase not in TERMINAL]
    running = [p for p in pods if p.phase == "Running"]
    if len(running) >= active.entry.executors:
        return None
    waits = next((p for p in pods if p.phase != "Running"), None)
    why = "" if waits is None else f"pod {waits.name}: {waits.waiting or waits.unschedulable or waits.phase}"
    return Missing(active, active.entry.executors, len(pods), len(running), why)


def plan(view: View, writer: WriterView) -> PartialPlan:
    """Timers, and the question to the API server while pods are missing and it may be asked."""
    missing = find(view, writer)
    mine = None if missing is None else timer(missing.attempt.id)
    old = (timer(a.id) for a in writer.attempts)
    stop = tuple(StopTimer(name) for name in old if name != mine and view.timer(name) is not None)
    if missing is None or mine is None:
        return PartialPlan(stop)
    age = view.timer(mine)
    if age is None or age < MISSING_SECONDS:
        start: tuple[Action, ...] = (StartTimer(mine),) if age is None else ()
        left = max(1.0, min(MISSING_SECONDS - (age or 0.0), LONGEST_PAUSE_SECONDS))
        return PartialPlan((*stop, *start), requeue=left)
    answer, again = view.observed.executor_answers.get(missing.attempt.id), LONGEST_PAUSE_SECONDS
    if answer is not None and answer.seconds > 0:
        # An attempt that may be asked about now may have to wait for others: no look more often.
        again = min(max(answer.seconds, 1.0), LONGEST_PAUSE_SECONDS)
    summary = f"{writer.name} has {missing.running} of {missing.wanted} executors"
    return PartialPlan(stop, (summary,), again, late=_ask(view, missing))


def _ask(view: View, missing: Missing) -> tuple[Action, ...]:
    answer, pod = view.observed.executor_answers.get(missing.attempt.id), missing.attempt.pod
    if pod is None or missing.made >= missing.wanted or (answer is not None and answer.seconds > 0):
        return ()
    return (AskExecutors(missing.attempt.id, pod.namespace, pod.name, pod.uid),)


def condition(view: View, writer: WriterView) -> Condition:
    """``ExecutorsMissing`` as the facts have it now."""
    missing, old = find(view, writer), conditions.find(writer.status, CONDITION)
    if missing is None:
        return conditions.condition(CONDITION, False, "NotMissing")
    known = old.get("status") == "True"
    if not view.elapsed(timer(missing.attempt.id), MISSING_SECONDS):
        # Another process may have begun to count.
        return _kept(old) if known else conditions.condition(CONDITION, False, "NotMissing")
    answer = view.observed.executor_answers.get(missing.attempt.id)
    told = f"{missing.running} of {missing.wanted} executors run; "
    if missing.made >= missing.wanted:
        return conditions.condition(CONDITION, True, "Pending", told + missing.why)
    if answer is None:
        return _kept(old) if known else conditions.condition(CONDITION, True, "Pending", f"{told}the cause is unknown")
    if answer.reason:
        said = f"the API server makes no more of them: {answer.reason}: {answer.message}"
        return conditions.condition(CONDITION, True, "Refused", told + said)
    said = (
        f"the API server cannot be asked why: {answer.message}"
        if answer.message
        else "the API server would accept another one, but Spark has not created it: see the driver's log"
    )
    return conditions.condition(CONDITION, True, "Pending", told + "; ".join(filter(None, (missing.why, said))))


def _kept(old: JsonDict) -> Condition:
    return Condition(CONDITION, "True", str(old.get("reason") or "Pending"), str(old.get("message") or ""))


def newly_refused(old: JsonDict, new: JsonDict) -> str:
    """Message for an event when a status says for the first time that executors are refused.

    ``old``, ``new``: statuses of a HudiWriter. Empty: nothing new.
    """
    before, after = conditions.find(old, CONDITION), conditions.find(new, CONDITION)
    refused = ("True", "Refused")
    if (after.get("status"), after.get("reason")) != refused or (before.get("status"), before.get("reason")) == refused:
        return ""
    return str(after.get("message") or "")
