"""``status.commitCallback`` and condition ``CallbackDelivered``.

The progress of the delivery of commits, as reported by the agent.

The agent delivers on its own; nothing is decided here.
"""

from __future__ import annotations

from hudi_contract.keys import CALLBACK
from hudi_contract.reports import CallbackReport
from hudi_operator.model import conditions
from hudi_operator.model.conditions import Condition, condition
from hudi_operator.model.status import CallbackStatus
from hudi_operator.plan.core.view import View

CONDITION = "CallbackDelivered"


def _report(view: View) -> CallbackReport | None:
    """The agent's last report; None without a callback, and before the first report."""
    stored = view.etcd.reports.get(CALLBACK)
    return (
        stored.read(CallbackReport) if stored is not None and stored.value and view.table.callback is not None else None
    )


def status(view: View) -> CallbackStatus | None:
    """``status.commitCallback``; None when no callback is known."""
    report = _report(view)
    if report is None:
        return None
    return CallbackStatus(
        delivered=report.delivered,
        undelivered=report.undelivered,
        undelivered_since=conditions.hudi_time(report.oldest),
        failures=report.failures,
        archived_undelivered=report.lost,
        last_instant=report.instant,
        last_completion_time=report.completion_time if report.instant else "",
        last_delivery_time=conditions.rfc3339(report.at_ms) if report.at_ms else "",
        message=report.message[:512],
    )


def delivered(view: View) -> list[Condition]:
    """Condition ``CallbackDelivered``; none without a callback."""
    if view.table.callback is None:
        return []
    report, shown = _report(view), status(view)
    if report is None or shown is None:
        return [Condition(CONDITION, "Unknown", "NotReported", "the agent has not begun yet")]
    since = f" since {shown.undelivered_since}" if shown.undelivered_since else ""
    waiting = f"{shown.undelivered} commits wait{since}"
    if shown.message:
        known = conditions.reported(report.reason, otherwise="NotDelivered")
        return [condition(CONDITION, False, known, f"{shown.message} ({shown.failures} failures in a row); {waiting}")]
    lost = (
        f"; {shown.archived_undelivered} were archived before delivery and reported as lost"
        if shown.archived_undelivered
        else ""
    )
    return [condition(CONDITION, True, "Delivered", f"{shown.delivered} delivered{lost}")]
