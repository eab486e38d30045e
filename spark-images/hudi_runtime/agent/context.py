"""The context that all tasks of an agent at one table share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from hudi_contract.requests import DEFAULT_METADATA, MetadataDone, MetadataRequest
from hudi_contract.table_keys import Gate
from hudi_contract.words import GateState, Result
from hudi_runtime.agent import metadata_in_force
from hudi_runtime.agent.keys import AgentKeys
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.etcd import now_ms, read
from hudi_runtime.services.tasks import Slot
from hudi_runtime.settle.agent_session import AgentSession
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.settle.settle import Records


@dataclass(frozen=True)
class AgentContext:
    """One table of an agent, with its open session."""

    spark: SparkSession
    slot: Slot
    keys: AgentKeys
    spec: TableSpec
    table: AgentTable
    session: AgentSession
    wanted: Mapping[str, str]
    """Hudi options of the agent's own clients, as the spec has them."""
    ended: set[str] = field(default_factory=set)
    """Instants of this incarnation whose tasks had all ended when they were abandoned: they cannot
    have late files.
    """

    metadata_table: str = DEFAULT_METADATA
    """Nonce of the metadata table in ``wanted``."""

    def options(self, *, alone: bool = False) -> dict[str, str]:
        """Hudi options of the agent's own clients, read now.

        Those of the spec; while a change of the metadata table is not done, with the metadata table
        that the table has (F434). Before the gate was ever open there are no other processes, and
        the table is made as the spec says.

        ``alone``: no writer is left. A metadata table whose removal is requested is not used any
        more: it may be damaged, and what is pending must be rolled back before it goes.
        """
        done = read(self.session.etcd.get(metadata_in_force.DONE), MetadataDone)
        gate = self.gate()
        if metadata_in_force.changed(self.metadata_table, done) or not gate.was_open:
            return dict(self.wanted)
        if alone and gate.state is GateState.CLOSED and self._metadata_table_goes(done):
            return dict(self.wanted)
        return metadata_in_force.options(self.wanted, self.table)

    def _metadata_table_goes(self, done: MetadataDone) -> bool:
        """Whether the removal of the metadata table is requested: no attempt is left then.

        It is recorded as begun: if it is reverted, the table is built again.
        """
        asked = self.keys.requests().get(metadata_in_force.KEY)
        if asked is None or not metadata_in_force.goes(self.wanted):
            return False
        if MetadataRequest.from_json(asked).nonce != self.metadata_table:
            return False
        if done.nonce != self.metadata_table:
            begun = MetadataDone(nonce=self.metadata_table, result=Result.RUNNING, inc=self.session.inc, at_ms=now_ms())
            self.session.etcd.put(metadata_in_force.DONE, begun.to_json())
        return True

    @property
    def name(self) -> str:
        """The Hudi table's name."""
        return self.spec.name

    @property
    def label(self) -> str:
        """Namespace and name of the HudiTable."""
        return self.spec.table

    def records(self) -> Records:
        """All records of the table, read now."""
        return Records.from_entries(self.session.etcd.range(""), prefix=self.keys.table_prefix)

    def gate(self) -> Gate:
        """The table's gate, read now; a gate without a state when there is none."""
        return self.keys.gate()

    def gate_revision(self) -> int:
        """Revision of the table's gate, read now; another one when the gate was put meanwhile."""
        return self.keys.gate_revision()

    def gate_state(self) -> GateState | None:
        """State of the table's gate, read now; None when there is none."""
        return self.gate().state


def client_options(spec: TableSpec, wanted: Mapping[str, str]) -> dict[str, str]:
    """Options of the agent's own clients.

    The table's options without inline services, so that Hudi never chooses instants by itself.
    """
    return {
        **wanted,
        "hoodie.table.services.enabled": "false",
        "hoodie.rollback.avoid.duplicate.plan": "true",
        "hoodie.write.lock.etcd.table_id": spec.id,
    }
