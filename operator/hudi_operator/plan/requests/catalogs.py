"""``status.catalog`` and condition ``CatalogSynced``, as reported by the agent.

The agent synchronizes on its own. Decided here is only how long the deletion of a HudiTable waits
for the agent to drop its entries (``spec.catalog.onDelete: Drop``): never without bound.
"""

from __future__ import annotations

from hudi_contract import naming
from hudi_contract.assignment import CatalogOrder
from hudi_contract.keys import CATALOG
from hudi_contract.reports import CatalogReport
from hudi_operator.api.spec import TableSpec
from hudi_operator.model import conditions
from hudi_operator.model.conditions import Condition, condition
from hudi_operator.model.status import CatalogStatus
from hudi_operator.plan.core.actions import EVENT_LIMIT, EmitEvent, StartTimer
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

CONDITION = "CatalogSynced"
DROPPED, KEPT = "CatalogEntryDropped", "CatalogEntryKept"
"""Events of a HudiTable that is being deleted."""
DROP_TIMER = "drop/"
"""Followed by the uid of the HudiTable: its successor of the same name has its own time (F607)."""
_START_SECONDS = 60.0
"""For an agent that does not run when the deletion begins."""


def _order(view: View) -> CatalogOrder | None:
    wanted = view.table.catalog
    return None if wanted is None else wanted.order(view.table.table_name, view.table.ref.uid)


def may_need_agent(table: TableSpec) -> bool:
    """Whether this HudiTable may wait for its agent to drop its entries.

    For the other HudiTables of its namespace, which would end an agent that no table uses.
    """
    drops = table.catalog is not None and table.catalog.drops
    return drops and table.ref.deleting and naming.SETTLE_FINALIZER in table.ref.finalizers


def dropping(view: View) -> bool:
    """Whether the deletion waits for the agent to drop its entries in the catalog.

    It does so for two tries and the start of an agent, by this process's clock, and no longer: a
    catalog that cannot be reached keeps no HudiTable. In a namespace that is being deleted no
    agent starts, so nothing is awaited.
    """
    order = _order(view)
    report = _report(view, order) if order is not None else None
    if order is None or report is None or not may_need_agent(view.table):
        return False
    mine = view.gate.table_uid == view.table.ref.uid
    if view.unreadable or view.observed.namespace_terminating or not mine:
        return False
    made = bool(report.instant or report.failures or report.begun)
    return made and not report.dropped and not view.elapsed(_drop_timer(view), drop_seconds(view.table))


def _drop_timer(view: View) -> str:
    return f"{DROP_TIMER}{view.table.ref.uid}"


def drop_seconds(table: TableSpec) -> float:
    """Maximum time that the deletion of a HudiTable waits for its entries to be dropped."""
    return _START_SECONDS + 2 * (table.catalog.timeout_seconds if table.catalog is not None else 0)


def await_drop(view: View) -> PartialPlan:
    """Wait.

    The time begins with the first look after the deletion; another operator restarts it.
    """
    name = _drop_timer(view)
    timer = [StartTimer(name)] if view.timer(name) is None else []
    text = f"deletion waits up to {drop_seconds(view.table):.0f} s for the entry in the catalog"
    return PartialPlan(tuple(timer), (text,), 2.0)


def drop_told(view: View) -> PartialPlan:
    """The event about the outcome of dropping the entries; none when there are none to drop."""
    order = _order(view)
    if order is None or not may_need_agent(view.table) or view.observed.namespace_terminating:
        return PartialPlan()
    report = _report(view, order)
    if report is None or not (report.instant or report.failures or report.begun or report.dropped):
        return PartialPlan()
    where = _where(order)
    if report.dropped and not report.message:
        return PartialPlan((_event(view, "Normal", DROPPED, f"{where} is dropped; the data stays"),))
    if report.dropped:
        return PartialPlan((_event(view, "Warning", KEPT, f"{where}: {report.message}"),))
    why = report.message or "its agent did not answer"
    text = f"{where} is not dropped within {drop_seconds(view.table):.0f} s and stays: {why}. Drop it there"
    return PartialPlan((_event(view, "Warning", KEPT, text),))


def _event(view: View, kind: str, reason: str, message: str) -> EmitEvent:
    ref = view.table.ref
    return EmitEvent(naming.TABLE_KIND, ref.namespace, ref.name, ref.uid, kind, reason, message[:EVENT_LIMIT])


def _where(order: CatalogOrder) -> str:
    if order.uris:
        return f"{order.database}.{order.table} in the Hive Metastore at {', '.join(order.uris)}"
    account = f" of account {order.account}" if order.account else ""
    return f"{order.database}.{order.table} in AWS Glue{account} in {order.region}"


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
        "partitions are left out because their paths do not have one value for each partition column, for example "
        f"{', '.join(report.left_out)}"
    )


def synced(view: View) -> list[Condition]:
    """Condition ``CatalogSynced``; none without a catalog."""
    order = _order(view)
    if order is None:
        return []
    report = _report(view, order)
    where = _where(order)
    if dropping(view):
        why = f": {_message(report)}" if report is not None and report.failures else ""
        return [Condition(CONDITION, "Unknown", "Dropping", f"the HudiTable is being deleted: {where} is dropped{why}")]
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
