"""``P/control/agents/<agent>/<T>``.

Everything an agent needs to know about a table that it serves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_contract.job import Merge
from hudi_contract.shape import LEFT_OUT, Count, Ms, Record
from hudi_contract.table_keys import Durations
from hudi_contract.words import Adoption


@dataclass(frozen=True, kw_only=True)
class Window(Record):
    """The window that is open, or that opens next.

    A run begins only at or after the first moment and before the second.
    """

    from_ms: Ms
    until_ms: Ms


@dataclass(frozen=True, kw_only=True)
class ServiceOrder(Record):
    """A table service that should run."""

    after_commits: Count | None = None
    """None: only its schedule or a person starts it."""
    scheduled: bool = False
    """Ticks come as requests."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of Hudi."""
    window: Window | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class CallbackOrder(Record):
    """A receiver that is notified of the table's commits."""

    url: str
    timeout_seconds: Count
    secret: bool = False
    """Whether its Secret is mounted."""
    table_services: bool = False
    """Whether commits of table services are delivered as well."""


@dataclass(frozen=True, kw_only=True)
class CatalogOrder(Record):
    """The catalog in which the table is listed: a Hive Metastore, or AWS Glue."""

    uris: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """Addresses of one metastore: `thrift://host:port`. Empty: Glue."""
    region: str = field(default="", metadata=LEFT_OUT)
    """AWS region of Glue."""
    account: str = field(default="", metadata=LEFT_OUT)
    """AWS account of Glue's catalog; empty: that of the credentials."""
    database: str
    table: str
    timeout_seconds: Count
    uid: str = ""
    """uid of the HudiTable: another one is synchronized from the start."""
    drop: bool = field(default=False, metadata=LEFT_OUT)
    """The HudiTable is being deleted: its entries are dropped, and made no more."""

    @property
    def target(self) -> str:
        """Target of a report: the catalog, database and table, and the HudiTable."""
        where = ",".join(self.uris) or f"glue:{self.region}:{self.account}"
        return f"{where} {self.database}.{self.table} {self.uid}"


@dataclass(frozen=True, kw_only=True)
class AssignmentRecord(Record):
    """One table of an agent. A service that is absent does not run."""

    id: str = field(metadata={"name": "T"})
    """Table id."""
    path: str
    table: str
    """namespace/name of the HudiTable."""
    name: str
    type: str
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    hive_style_partitioning: bool = False
    merge: Merge | None = None
    hudi_props: Mapping[str, str] = field(default_factory=dict)
    """Options of Hudi of every client of the table."""
    adoption: str = Adoption.ADOPT_OR_CREATE
    metadata_table: str = ""
    """Nonce of the requested metadata table."""
    callback: CallbackOrder | None = field(default=None, metadata=LEFT_OUT)
    catalog: CatalogOrder | None = field(default=None, metadata=LEFT_OUT)
    services: Mapping[str, ServiceOrder] = field(default_factory=dict)
    """Keyed by a value of `Service`."""
    lock: Durations | None = None


@dataclass(frozen=True, kw_only=True)
class TrialRecord(Record):
    """The same place, of a path that the agent only tries to reach.

    It lacks what every assignment has, so an agent of an earlier release refuses it.
    """

    id: str = field(metadata={"name": "T"})
    """Id of the trial."""
    path: str
    table: str
    """namespace/name of the HudiTable."""
    trial: bool
    """True."""
