"""The words of the protocol: states, roles, results, services, modes. Each stands in JSON as its value.

They are texts as well (`StrEnum`), so a word of a newer version that this one does not know can be shown, and is never taken for one it knows.
"""

from __future__ import annotations

from enum import StrEnum


class GateState(StrEnum):
    """Who may acquire the table's lock. No gate: nobody."""

    OPEN = "open"
    """Every registered incarnation."""
    CLOSED = "closed"
    """Agents, and the attempts in `admitted`."""
    FROZEN = "frozen"
    """Nobody: etcd itself, or whose table it is, is in doubt."""


class FencingMode(StrEnum):
    """What must be known before a dead writer's lock is deleted."""

    POD_TERMINATION = "PodTermination"
    """Proof of death, and a drain (I1)."""
    LEASE_ONLY = "LeaseOnly"
    """The end of its lease. Unsafe: what other lock providers do."""


class Concurrency(StrEnum):
    """How many writers a table has at a time, and who sees to it."""

    SINGLE_WRITER = "SingleWriter"
    OPTIMISTIC = "Optimistic"
    NON_BLOCKING = "NonBlocking"


class InsertConflicts(StrEnum):
    """What of two inserts at the same time is a conflict. A word that a JVM does not know is Partition to it."""

    KEY = "Key"
    PARTITION = "Partition"
    IGNORE = "Ignore"


class Role(StrEnum):
    """What an incarnation is."""

    WRITER = "writer"
    AGENT = "agent"
    JOB = "job"


class InstantState(StrEnum):
    """State of the record of an instant."""

    PENDING = "Pending"
    ABANDONED = "Abandoned"
    """Given up by its owner, for ever: it never publishes it, and the agent rolls it back."""


class Outcome(StrEnum):
    """What became of an instant of a settled incarnation."""

    COMPLETED = "Completed"
    ROLLED_BACK = "RolledBack"
    GONE = "Gone"
    REEXECUTED = "Reexecuted"


class Result(StrEnum):
    """How far what was asked of the agent has come."""

    PENDING = "Pending"
    """Not begun: it waits, or was tried and has changed nothing."""
    RUNNING = "Running"
    """Written ahead of the work."""
    COMPLETED = "Completed"
    FAILED = "Failed"
    NOTHING_TO_DO = "NothingToDo"
    """Of a table service."""
    POSTPONED = "Postponed"
    """Of a table service that met a writer, or did not get the lock."""


class Stage(StrEnum):
    """What an attempt is at."""

    STARTING = "Starting"
    READING = "Reading"
    WAITING = "Waiting"
    """Of a streaming run: its source has nothing more for now."""
    WRITING = "Writing"
    COMMITTED = "Committed"
    RETRYING = "Retrying"
    YIELDING = "Yielding"
    """It lets another writer go first."""
    FINISHED = "Finished"


class Service(StrEnum):
    """Table services, in the order in which an agent looks at them; the value is the field of `spec.services`."""

    COMPACTION = "compaction"
    CLUSTERING = "clustering"
    TTL = "ttl"
    CLEAN = "clean"
    ARCHIVE = "archive"


class RequestKind(StrEnum):
    """What the operator asks of an agent."""

    SERVICE = "service"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    BOOTSTRAP = "bootstrap"
    METADATA = "metadata"


class Adoption(StrEnum):
    """What an agent does with a table that it is given."""

    ADOPT_OR_CREATE = "AdoptOrCreate"
    ADOPT = "Adopt"
    CREATE = "Create"
    BOOTSTRAP = "Bootstrap"
    """Create; refuse a table that has commits of somebody else."""


class BootstrapMode(StrEnum):
    """How the rows of a dataset become those of a table."""

    FULL_RECORD = "FullRecord"


class MergeMode(StrEnum):
    """Which of two versions of a record stays."""

    EVENT_TIME = "EventTime"
    COMMIT_TIME = "CommitTime"
    CUSTOM = "Custom"


class PartialUpdates(StrEnum):
    """What a missing value of a batch means."""

    IGNORE_NULLS = "IgnoreNulls"
    """Null in a batch: the column keeps its value."""


class MissingColumns(StrEnum):
    """What becomes of a batch that lacks a column of the table."""

    NULL = "Null"
    REFUSE = "Refuse"


class TableType(StrEnum):
    """Types of Hudi tables, as Hudi names them."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class Operation(StrEnum):
    """What a write does with its rows, as Hudi names it; the last one is the runtime's own."""

    UPSERT = "upsert"
    INSERT = "insert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    REMOVE_DUPLICATES = "remove_duplicates"
    """Leaves one record of each key."""


class Duplicates(StrEnum):
    """What an insert does with a key that is in the table already."""

    FAIL = "Fail"
    DROP = "Drop"
    ALLOW = "Allow"


class Deletes(StrEnum):
    """What becomes of records that were deleted in the Hudi table that is read."""

    IGNORE = "Ignore"
    CARRY = "Carry"
    """They are deleted here as well."""


class AgentError(StrEnum):
    """Why an agent cannot serve a table; besides these, the value of a failure class (`outcomes.FailureClass`)."""

    TABLE_MISMATCH = "TableMismatch"
    TABLE_NOT_FOUND = "TableNotFound"
    TABLE_EXISTS = "TableExists"
    MERGER_MISSING = "MergerMissing"
    OTHER_LOCK_AUTHORITY = "OtherLockAuthority"
    PENDING_INSTANTS = "PendingInstants"
    """The table cannot be adopted yet: instants are pending that nobody has recorded."""
    STORE_UNFIT = "StoreUnfit"


class SourceError(StrEnum):
    """Why a bootstrap has failed, beyond `Failed`."""

    SOURCE_INVALID = "SourceInvalid"


class ProofKind(StrEnum):
    """Why a pod counts as dead (protocol.md, Proofs)."""

    POD_TERMINATED = "PodTerminated"
    NEVER_SCHEDULED = "NeverScheduled"
    NODE_REBOOTED = "NodeRebooted"
    NODE_DELETED = "NodeDeleted"
    OUT_OF_SERVICE = "OutOfService"
    ATTESTATION = "Attestation"
    """A person's word."""
