"""The tasks of one table, made once its session is open, and their order in a pass."""

from __future__ import annotations

from collections.abc import Callable

from hudi_contract.assignment import AssignmentRecord
from hudi_contract.reports import ReadCost
from hudi_contract.table_keys import Durations
from hudi_contract.words import TableType
from hudi_runtime.agent.bootstrap import Bootstrap
from hudi_runtime.agent.context import AgentContext
from hudi_runtime.agent.metadata_table import MetadataTable
from hudi_runtime.agent.read_cost import Gauge
from hudi_runtime.agent.restores import Restores
from hudi_runtime.agent.savepoints import Savepoints
from hudi_runtime.callback import callback
from hudi_runtime.callback.callback import CallbackSender
from hudi_runtime.callback.callback_plan import Source
from hudi_runtime.process import spark as sp
from hudi_runtime.services import triggers
from hudi_runtime.services.service_actions import Actions
from hudi_runtime.services.services import Services
from hudi_runtime.services.tasks import Look, TableTask
from hudi_runtime.settle.settle import Records, Settler
from hudi_runtime.table import timeline as tl


class Tasks:
    """Everything that an agent does at one table."""

    def __init__(self, context: AgentContext, order: AssignmentRecord) -> None:
        self._context = context
        self._settler = _settler(context, order)
        self.services = _services(context, order)
        self._restores = Restores(context)
        self._bootstrap = Bootstrap(context)
        metadata_table = MetadataTable(context, known=order.metadata_table)
        savepoints = Savepoints(context, after=self.services)
        # Tables of the other type have no log files.
        self._gauge = Gauge(context.table, context.slot) if context.spec.type == TableType.MERGE_ON_READ else None
        gauge = [self._gauge] if self._gauge is not None else []
        self._in_order: tuple[TableTask, ...] = (self._bootstrap, metadata_table, savepoints, self.services, *gauge)
        self._callback_sender = _callback_sender(context, order)

    # -- a pass: settle, restore, list, all others ---------------------------------------------------------------------------------

    def settle(self, records: Records, *, stopping: Callable[[], bool]) -> bool:
        """Settle whoever is proven dead, and what was given up, if there is anybody; whether an instant got its outcome."""
        return records.work_for_the_settler() and bool(self._settler.run(records, stopping=stopping))

    def settle_all(self, records: Records, *, stopping: Callable[[], bool]) -> None:
        """The same, without a look at the records first."""
        self._settler.run(records, stopping=stopping)

    def restore(self, look: Look) -> None:
        """Begin a restore, or go on with one. It comes before the timeline is listed, and before everything else."""
        self._restores.consider(look)

    @property
    def restoring(self) -> bool:
        """Whether a restore is under way here: nothing else is done, and nothing is listed."""
        return not self._restores.idle

    def between(self, records: Records) -> bool:
        """Whether the table is neither what it was before a restore nor what it will be, whoever has begun it."""
        return self._restores.between(records)

    def timeline(self) -> tl.Timeline:
        """The active timeline, listed now, and handed to whoever tells others of commits."""
        return self._context.table.timeline() if self._callback_sender is None else self._callback_sender.look(self._context.table.timeline)

    def consider(self, look: Look) -> None:
        """All tasks but restores, each in turn; none behind one that must be alone."""
        for task in self._in_order:
            task.consider(look)
            if task.exclusive and not task.idle:
                return

    @property
    def read_cost(self) -> ReadCost | None:
        """What was counted last, for the report; None when nothing was."""
        return self._gauge.latest if self._gauge is not None else None

    # -- the end -------------------------------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not self.restoring and all(task.idle for task in self._in_order)

    def stop_telling(self) -> None:
        """Tell nobody of commits any more: the next agent goes on with that."""
        if self._callback_sender is not None:
            self._callback_sender.stop()

    def cancel_bootstrap(self) -> None:
        """Nobody waits for the bootstrap any more."""
        self._bootstrap.cancel()

    def cancel(self) -> None:
        """Ask everything under way to end."""
        for task in (*self._in_order, self._restores):
            task.cancel()

    def give_back(self) -> bool:
        """Give claims back; False when this incarnation has left something that may still be written, so that it must be proven dead (F4)."""
        self._settler.release_claims()
        return not self._settler.must_be_proven_dead()


def _settler(context: AgentContext, order: AssignmentRecord) -> Settler:
    drain = float((order.lock or Durations()).drain)
    spark = context.spark
    return Settler(context.table, context.session, context.name, context.options, context.ended, lost=lambda: sp.lost_executors(spark), drain=drain)


def _services(context: AgentContext, order: AssignmentRecord) -> Services:
    def withdrawn(instant: str) -> None:
        context.ended.add(instant)
        context.session.forget(instant)

    def lost(instant: str) -> None:
        context.session.forget(instant)

    actions = Actions(context.table, context.name, context.options, context.records, withdrawn, lost, context.spec.merge)
    wanted, merge_on_read = triggers.orders(order.services), context.spec.type == TableType.MERGE_ON_READ
    return Services(context.spark, actions, context.session, wanted=wanted, merge_on_read=merge_on_read, label=context.label, slot=context.slot)


def _callback_sender(context: AgentContext, order: AssignmentRecord) -> CallbackSender | None:
    namespace, _, name = context.label.partition("/")
    source = Source(namespace, name, context.spec.id, context.spec.path)
    made = callback.from_order(order.callback, source, context.table, context.session.etcd, inc=context.session.inc)
    if made is None:
        callback.forget(context.session.etcd)
    return made
