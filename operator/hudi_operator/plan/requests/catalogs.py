"""``status.catalog`` and condition ``CatalogSynced``, as reported by the agent.

The agent synchronizes on its own; nothing is decided here.
"""

from __future__ import annotations

from hudi_contract.assignment import CatalogOrder
from hudi_contract.keys import CATALOG
from hudi_contract.reports import CatalogReport
from hudi_operator.model import conditions
from hudi_operator.model.conditions import Condition, condition
from hudi_operator.model.status import CatalogStatus
from hudi_operator.plan.core.view import View

CONDITION = "CatalogSynced"


def _order(view: View) -> CatalogOrder | None:
    wanted = view.table.catalog
    return None if wanted is None else wanted.order(view.table.table_name, view.table.ref.uid)


def _report(view: View, order: CatalogOrder) -> CatalogReport | None:
    """The agent's last report of this catalog; None before the first one."""
    stored = view.etcd.reports.get(CATALOG)
    report = stored.read(CatalogReport) if stored is not None and stored.value else None
    return report if report is not None and report.target == order.target else None


def status(view: View) -> CatalogStatus | None:
    """``status.catalog``; None when no catalog is known."""
    order = _order(view)
    report = _report(view, order) if order is not None else None
    if order is None or report is None:
        return None
    return CatalogStatus(
        database=order.database,
        table=order.table,
        last_instant=report.instant,
        last_completion_time=report.completion_time,
        last_sync_time=conditions.rfc3339(report.at_ms) if report.at_ms else "",
        failures=report.failures,
        message=_message(report),
    )


def _message(report: CatalogReport) -> str:
    return (report.message or _left_out(report))[:512]


def _left_out(report: CatalogReport) -> str:
    if not report.left_out:
        return ""
    return (
        f"partitions are left out whose path has not one value for each partition column, among them "
        f"{', '.join(report.left_out)}"
    )


def synced(view: View) -> list[Condition]:
    """Condition ``CatalogSynced``; none without a catalog."""
    order = _order(view)
    if order is None:
        return []
    report = _report(view, order)
    where = f"{order.database}.{order.table} in the Hive Metastore at {', '.join(order.uris)}"
    if report is None:
        return [Condition(CONDITION, "Unknown", "NotReported", f"the agent has not begun yet: {where}")]
    if report.failures:
        after = f"; it shows the table as of instant {report.instant}" if report.instant else ""
        text = f"{where}: {_message(report)} ({report.failures} failures in a row){after}"
        return [condition(CONDITION, False, conditions.reported(report.reason, otherwise="SyncFailed"), text)]
    if report.begun and not report.instant:
        return [Condition(CONDITION, "Unknown", "Synchronizing", f"the first try has begun: {where}")]
    if not report.instant:
        return [Condition(CONDITION, "Unknown", "NothingCommitted", f"the table has no commit yet: {where}")]
    if report.left_out:
        text = f"{where} shows the table as of instant {report.instant}, but {_left_out(report)}"
        return [condition(CONDITION, False, "PartitionsLeftOut", text)]
    return [condition(CONDITION, True, "Synced", f"{where} shows the table as of instant {report.instant}")]
