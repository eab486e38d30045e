"""The tasks of one table, created when its session is open, and their order in a pass."""

from __future__ import annotations

from collections.abc import Callable

from hudi_contract.assignment import AssignmentRecord
from hudi_contract.reports import ReadCost
from hudi_contract.table_keys import Durations
from hudi_contract.words import TableType
from hudi_runtime.agent.bootstrap import Bootstrap
from hudi_runtime.agent.context import AgentContext
from hudi_runtime.agent.holds import Holds
from hudi_runtime.agent.metadata_table import MetadataTable
from hudi_runtime.agent.read_cost import Gauge
from hudi_runtime.agent.restores import Restores
from hudi_runtime.agent.savepoints import Savepoints
from hudi_runtime.callback import callback
from hudi_runtime.callback.callback import CallbackSender
from hudi_runtime.callback.callback_plan import Source
from hudi_runtime.catalog import catalog
from hudi_runtime.catalog.catalog import CatalogSyncer
from hudi_runtime.process import spark as sp
from hudi_runtime.services import triggers
from hudi_runtime.services.service_actions import Actions
from hudi_runtime.services.services import Services
from hudi_runtime.services.tasks import Observation, TableTask
from hudi_runtime.settle.settle import Records, Settler
from hudi_runtime.table import timeline as tl


class Tasks:
    """All tasks of an agent at one table."""

    def __init__(self, context: AgentContext, order: AssignmentRecord) -> None:
        self._context = context
        self._settler = _settler(context, order)
        actions = _actions(context)
        self.services = _services(context, order, actions)
        self._restores = Restores(context)
        self._bootstrap = Bootstrap(context)
        self._metadata_table = MetadataTable(context, known=order.metadata_table)
        savepoints = Savepoints(context, after=self.services)
        # CopyOnWrite tables have no log files.
        self._gauge = Gauge(context.table, context.slot) if context.spec.type == TableType.MERGE_ON_READ else None
        gauge = [self._gauge] if self._gauge is not None else []
        self._in_order: tuple[TableTask, ...] = (
            self._bootstrap,
            self._metadata_table,
            Holds(context, actions),
            savepoints,
            self.services,
            *gauge,
        )
        self._callback_sender = _callback_sender(context, order)
        self._catalog_syncer = _catalog_syncer(context, order)

    @property
    def unproven(self) -> bool:
        """Whether an executor that was lost may still write for the instant of a task (I12)."""
        return any(task.unproven for task in (self.services, self._restores, self._bootstrap, self._metadata_table))

    # -- a pass: settle, restore, list, all others -------------------------------------------------

    def settle(self, records: Records, *, stopping: Callable[[], bool]) -> bool:
        """Settle incarnations that are proven dead and roll back abandoned instants.

        Returns whether an instant got its outcome. Not while the metadata table is changed: the
        client of a rollback would have the options of the former one (F434).
        """
        if not self._metadata_table.idle:
            return False
        return records.work_for_the_settler() and bool(self._settler.run(records, stopping=stopping))

    def settle_all(self, records: Records, *, stopping: Callable[[], bool]) -> None:
        """Settle unconditionally, without checking the records first."""
        self._settler.run(records, stopping=stopping)

    def restore(self, look: Observation) -> None:
        """Begin or continue a restore.

        It runs before the timeline is listed, and before all other tasks.
        """
        self._restores.consider(look)

    @property
    def restoring(self) -> bool:
        """Whether a restore is running here: then nothing else is done, and nothing is listed."""
        return not self._restores.idle

    def between(self, records: Records) -> bool:
        """Whether a restore of any agent is incomplete."""
        return self._restores.between(records)

    def timeline(self) -> tl.Timeline:
        """The active timeline, listed now, and passed to the callback sender and the catalog."""
        listed = (
            self._context.table.timeline()
            if self._callback_sender is None
            else self._callback_sender.look(self._context.table.timeline)
        )
        if self._catalog_syncer is not None:
            self._catalog_syncer.consider(listed)
        return listed

    def consider(self, look: Observation) -> None:
        """Run all tasks except restores, in order.

        Stop after an exclusive task that is not idle.
        """
        for task in self._in_order:
            task.consider(look)
            if task.exclusive and not task.idle:
                return

    @property
    def read_cost(self) -> ReadCost | None:
        """The last count, for the report; None when there is none."""
        return self._gauge.latest if self._gauge is not None else None

    # -- the end -----------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether no task is running."""
        return not self.restoring and all(task.idle for task in self._in_order)

    def stop_telling(self) -> None:
        """Stop sending callbacks and synchronizing a catalog: the next agent does both."""
        if self._callback_sender is not None:
            self._callback_sender.stop()
        if self._catalog_syncer is not None:
            self._catalog_syncer.stop()

    def cancel_bootstrap(self) -> None:
        """Cancel the bootstrap: its result is no longer wanted."""
        self._bootstrap.cancel()

    def cancel(self) -> None:
        """Ask all running tasks to end."""
        for task in (*self._in_order, self._restores):
            task.cancel()

    def give_back(self) -> bool:
        """Release claims.

        False when this incarnation has left an instant that may still be written, so that it must
        be proven dead (F4).
        """
        self._settler.release_claims()
        return not self._settler.must_be_proven_dead()


def _settler(context: AgentContext, order: AssignmentRecord) -> Settler:
    drain = float((order.lock or Durations()).drain)
    spark = context.spark
    return Settler(
        context.table,
        context.session,
        context.name,
        context.options,
        context.ended,
        lost=lambda: sp.lost_executors(spark),
        drain=drain,
        gate_drain=lambda: float((context.gate().lock or Durations()).drain),
        alone=lambda: context.options(alone=True),
    )


def _actions(context: AgentContext) -> Actions:
    def withdrawn(instant: str) -> None:
        context.ended.add(instant)
        context.session.forget(instant)

    def lost(instant: str) -> None:
        context.session.forget(instant)

    return Actions(context.table, context.name, context.options, context.records, withdrawn, lost, context.spec.merge)


def _services(context: AgentContext, order: AssignmentRecord, actions: Actions) -> Services:
    wanted, merge_on_read = triggers.orders(order.services), context.spec.type == TableType.MERGE_ON_READ
    return Services(
        context.spark,
        actions,
        context.session,
        wanted=wanted,
        merge_on_read=merge_on_read,
        label=context.label,
        slot=context.slot,
        gate=context.gate,
    )


def _callback_sender(context: AgentContext, order: AssignmentRecord) -> CallbackSender | None:
    namespace, _, name = context.label.partition("/")
    source = Source(namespace, name, context.spec.id, context.spec.path)
    made = callback.from_order(order.callback, source, context.table, context.session.etcd, inc=context.session.inc)
    if made is None:
        callback.forget(context.session.etcd)
    return made


def _catalog_syncer(context: AgentContext, order: AssignmentRecord) -> CatalogSyncer | None:
    inc = context.session.inc
    made = catalog.from_order(
        context.spark, order, context.session.etcd, inc=inc, fenced=lambda: context.keys.fenced(inc)
    )
    if made is None:
        catalog.forget(context.session.etcd)
    return made
