"""``status.commitCallback`` and condition ``CallbackDelivered``: how far the receiver of commits has been told, as the agent reports it.

The agent delivers by itself; nothing here decides anything.
"""

from __future__ import annotations

from typing import Any

from hudi_operator.model import conditions
from hudi_operator.model.conditions import Condition, condition
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

CONDITION = "CallbackDelivered"
REPORT = "callback"
_NUMBERS = ("delivered", "undelivered", "failures")


def _report(view: View) -> JsonDict:
    """The agent's last word; empty without a callback, and before there is one."""
    report = view.etcd.reports.get(REPORT)
    return dict(report.value) if report is not None and view.table.callback is not None else {}


def status(view: View) -> JsonDict:
    """``status.commitCallback``; empty when nothing is known of one."""
    report = _report(view)
    if not report:
        return {}
    shown: JsonDict = {name: max(0, int(report.get(name) or 0)) for name in _NUMBERS}
    shown["archivedUndelivered"] = max(0, int(report.get("lost") or 0))
    for field, key in (("lastInstant", "instant"), ("lastCompletionTime", "completionTime")):
        if report.get(key) and report.get("instant"):
            shown[field] = str(report[key])[:32]
    if isinstance(report.get("atMs"), int) and report["atMs"]:
        shown["lastDeliveryTime"] = conditions.rfc3339(report["atMs"])
    since = conditions.hudi_time(str(report.get("oldest") or ""))
    if since:
        shown["undeliveredSince"] = since
    if report.get("message"):
        shown["message"] = str(report["message"])[:512]
    return shown


def delivered(view: View) -> list[Condition]:
    """Condition ``CallbackDelivered``; none without a callback."""
    if view.table.callback is None:
        return []
    report, shown = _report(view), status(view)
    if not report:
        return [Condition(CONDITION, "Unknown", "NotReported", "the agent has not begun yet")]
    waiting = f"{shown['undelivered']} commits wait" + (f" since {shown['undeliveredSince']}" if shown.get("undeliveredSince") else "")
    if shown.get("message"):
        reason = str(report.get("reason") or "")
        known = reason if reason.isalnum() and len(reason) <= 64 and reason[0].isalpha() else "NotDelivered"
        return [condition(CONDITION, False, known, f"{shown['message']} ({shown['failures']} failures in a row); {waiting}")]
    lost = f"; {shown['archivedUndelivered']} were archived before that, and told as lost" if shown["archivedUndelivered"] else ""
    return [condition(CONDITION, True, "Delivered", f"{shown['delivered']} delivered{lost}")]
