"""Enums of the protocol: states, roles, results, services, modes.

Each is written to JSON as its value.

They are strings as well (`StrEnum`), so an unknown value of a newer version can be shown, and is
never taken for a known one.
"""

from __future__ import annotations

from enum import StrEnum


class GateState(StrEnum):
    """Incarnations that may acquire the table's lock. No gate: none."""

    OPEN = "open"
    """Every registered incarnation."""
    CLOSED = "closed"
    """Agents, and the attempts in `admitted`."""
    FROZEN = "frozen"
    """No incarnation: etcd, or the ownership of the table, is in doubt."""


class FencingMode(StrEnum):
    """The condition under which a dead writer's lock is deleted."""

    POD_TERMINATION = "PodTermination"
    """Proof of death, and a drain (I1)."""
    CREDENTIALS = "Credentials"
    """The same; of a writer also that the store refuses its credentials, which were revoked."""
    LEASE_ONLY = "LeaseOnly"
    """The end of its lease, as in other lock providers. Unsafe."""


class Concurrency(StrEnum):
    """Number of writers that a table has at a time, and the handling of conflicts."""

    SINGLE_WRITER = "SingleWriter"
    OPTIMISTIC = "Optimistic"
    NON_BLOCKING = "NonBlocking"


class InsertConflicts(StrEnum):
    """Rule for conflicts of two concurrent inserts. A JVM treats an unknown value as Partition."""

    KEY = "Key"
    PARTITION = "Partition"
    IGNORE = "Ignore"


class Role(StrEnum):
    """The role of an incarnation."""

    WRITER = "writer"
    AGENT = "agent"


class InstantState(StrEnum):
    """State of the record of an instant."""

    PENDING = "Pending"
    ABANDONED = "Abandoned"
    """Abandoned by its owner, which never publishes it; the agent rolls it back."""


class Outcome(StrEnum):
    """The outcome of an instant of a settled incarnation."""

    COMPLETED = "Completed"
    ROLLED_BACK = "RolledBack"
    GONE = "Gone"
    REEXECUTED = "Reexecuted"


class Result(StrEnum):
    """Progress of a request to the agent."""

    PENDING = "Pending"
    """Not begun: it waits, or was tried and changed nothing."""
    RUNNING = "Running"
    """Written before the work."""
    COMPLETED = "Completed"
    FAILED = "Failed"
    NOTHING_TO_DO = "NothingToDo"
    """Only for a table service."""
    POSTPONED = "Postponed"
    """Only for a table service that conflicted with a writer, or did not get the lock."""
    DELETED = "Deleted"
    """Only for a savepoint."""


class HoldOutcome(StrEnum):
    """State of a hold (`status.holds` of a HudiTable)."""

    PENDING = "Pending"
    """Files are kept, and not all are known to be there."""
    GRANTED = "Granted"
    REFUSED = "Refused"
    """Nothing is kept."""
    EXPIRED = "Expired"


class Stage(StrEnum):
    """The current stage of an attempt."""

    STARTING = "Starting"
    READING = "Reading"
    WAITING = "Waiting"
    """Only for a streaming run: it has caught up with its source."""
    WRITING = "Writing"
    COMMITTED = "Committed"
    RETRYING = "Retrying"
    YIELDING = "Yielding"
    """It lets another writer go first."""
    FINISHED = "Finished"


class WriterState(StrEnum):
    """State of a HudiWriter in one word (`status.state`); the CRD has the same choices."""

    STARTING = "Starting"
    """An attempt is admitted, and its driver has not registered yet."""
    RUNNING = "Running"
    """The driver of an attempt is registered."""
    STOPPING = "Stopping"
    """An attempt was asked to end: the writer is suspended, or its table changes."""
    RETRYING = "Retrying"
    """An attempt has ended, and another one follows."""
    WAITING = "Waiting"
    """It is due to start, and something blocks it."""
    SCHEDULED = "Scheduled"
    """Its schedule starts the first run."""
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    """Its run is over: retries are used up, or the class of the failure is not repeated."""
    SUSPENDED = "Suspended"
    STALLED = "Stalled"
    """A person must change something."""
    DELETING = "Deleting"


class Service(StrEnum):
    """Table services, in the order in which an agent considers them.

    The value is the field of `spec.services`.
    """

    COMPACTION = "compaction"
    CLUSTERING = "clustering"
    TTL = "ttl"
    CLEAN = "clean"
    ARCHIVE = "archive"


class RequestKind(StrEnum):
    """Kinds of requests to an agent."""

    SERVICE = "service"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    BOOTSTRAP = "bootstrap"
    METADATA = "metadata"
    HOLD = "hold"
    UNSAVEPOINT = "unsavepoint"


class Adoption(StrEnum):
    """Ways in which an agent takes over a table."""

    ADOPT_OR_CREATE = "AdoptOrCreate"
    ADOPT = "Adopt"
    CREATE = "Create"
    BOOTSTRAP = "Bootstrap"
    """Create; refuse a table that has commits of other writers."""


class BootstrapMode(StrEnum):
    """Ways in which the rows of a dataset become those of a table."""

    FULL_RECORD = "FullRecord"


class BootstrapFormat(StrEnum):
    """The format of that dataset."""

    PARQUET = "Parquet"


class MergeMode(StrEnum):
    """Rules that decide which of two versions of a record is kept."""

    EVENT_TIME = "EventTime"
    COMMIT_TIME = "CommitTime"
    CUSTOM = "Custom"


class PartialUpdates(StrEnum):
    """The meaning of a missing value in a batch."""

    IGNORE_NULLS = "IgnoreNulls"
    """Null in a batch: the column keeps its value."""


class MissingColumns(StrEnum):
    """Handling of a batch that lacks a column of the table."""

    NULL = "Null"
    REFUSE = "Refuse"


class TableType(StrEnum):
    """Types of Hudi tables, as Hudi names them."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class ApiTableType(StrEnum):
    """The same types as the API names them (`spec.type` of a HudiTable)."""

    COPY_ON_WRITE = "CopyOnWrite"
    MERGE_ON_READ = "MergeOnRead"


class Operation(StrEnum):
    """Write operations, as Hudi names them; the last one is defined by the runtime."""

    UPSERT = "upsert"
    INSERT = "insert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    INSERT_OVERWRITE = "insert_overwrite"
    """Replaces the rows of the partitions that the batch has rows of."""
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
    """Replaces the rows of the table."""
    DELETE_PARTITION = "delete_partition"
    REMOVE_DUPLICATES = "remove_duplicates"
    """Leaves one record of each key."""


class Duplicates(StrEnum):
    """Handling of a key that an insert finds in the table."""

    FAIL = "Fail"
    DROP = "Drop"
    ALLOW = "Allow"


class Deletes(StrEnum):
    """Handling of records that were deleted in the source Hudi table."""

    IGNORE = "Ignore"
    CARRY = "Carry"
    """They are deleted here as well."""


class AgentError(StrEnum):
    """Why an agent cannot serve a table.

    Besides these, the value of a failure class (`outcomes.FailureClass`).
    """

    TABLE_MISMATCH = "TableMismatch"
    TABLE_NOT_FOUND = "TableNotFound"
    TABLE_EXISTS = "TableExists"
    MERGER_MISSING = "MergerMissing"
    OTHER_LOCK_AUTHORITY = "OtherLockAuthority"
    PENDING_INSTANTS = "PendingInstants"
    """The table cannot be adopted yet: it has pending instants without a record."""
    STORE_UNFIT = "StoreUnfit"


class SourceError(StrEnum):
    """Why a bootstrap failed, besides `Failed`."""

    SOURCE_INVALID = "SourceInvalid"


class ProofKind(StrEnum):
    """Why a pod counts as dead (protocol.md, Proofs)."""

    POD_TERMINATED = "PodTerminated"
    NEVER_SCHEDULED = "NeverScheduled"
    NODE_REBOOTED = "NodeRebooted"
    NODE_DELETED = "NodeDeleted"
    OUT_OF_SERVICE = "OutOfService"
    CREDENTIALS_REVOKED = "CredentialsRevoked"
    """The pod may run on, but the store refuses every request of it."""
    ATTESTATION = "Attestation"
    """An attestation by a person."""
