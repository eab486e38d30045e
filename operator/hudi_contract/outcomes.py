"""Ends of a process: classes of failures, exit codes, and codes of errors.

Exit codes and error codes are defined in ``protocol.json``, which the Java module reads as well:
its JVM halts with two of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from hudi_contract.keys import protocol


class FailureClass(StrEnum):
    """Why an attempt failed, as reported by the runtime.

    It determines back-off and retry limits in the operator.
    """

    USER_ERROR = "UserError"
    INFRASTRUCTURE = "Infrastructure"
    ENDED_FOR_CHANGE = "EndedForChange"
    """The table's gate is closed for a change: the next attempt continues when it opens."""
    WRITE_CONFLICT = "WriteConflict"
    LOCK_TIMEOUT = "LockTimeout"
    FENCED = "Fenced"
    """The JVM halts."""
    HEARTBEAT_LOST = "HeartbeatLost"
    """etcd does not answer, or its revision went back. The JVM halts."""
    CLOCK_SKEW = "ClockSkew"
    OPTION_NOT_ALLOWED = "OptionNotAllowed"
    STORAGE_UNREACHABLE = "StorageUnreachable"
    POSITION_LOST = "PositionLost"
    SCHEMA_MISMATCH = "SchemaMismatch"
    HUDI_VERSION_MISMATCH = "HudiVersionMismatch"
    PARTITION_NOT_DECLARED = "PartitionNotDeclared"
    BAD_DATA = "BadData"
    VALIDATION_FAILED = "ValidationFailed"
    """The batch is not what `validations` of the HudiWriter expects."""


class Ending(StrEnum):
    """`outcome` of a termination message."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class ErrorCode(StrEnum):
    """Codes that appear in brackets at the beginning of an error."""

    FENCED = "HUDIOP-FENCED"
    NOT_ADMITTED = "HUDIOP-NOT-ADMITTED"
    NO_GATE = "HUDIOP-NO-GATE"
    CLOCK_BEHIND = "HUDIOP-CLOCK-BEHIND"
    CLOCK_AHEAD = "HUDIOP-CLOCK-AHEAD"
    CLOCK_NOT_PAST = "HUDIOP-CLOCK-NOT-PAST"
    NOT_OWNER = "HUDIOP-NOT-OWNER"
    NOT_PENDING = "HUDIOP-NOT-PENDING"
    TOKEN = "HUDIOP-TOKEN"  # noqa: S105 - of the lock, and no secret
    NO_GUARD = "HUDIOP-NO-GUARD"
    OTHER_AUTHORITY = "HUDIOP-OTHER-AUTHORITY"
    PROGRESS_MOVED = "HUDIOP-PROGRESS-MOVED"
    SCHEMA_MOVED = "HUDIOP-SCHEMA-MOVED"
    SNAPSHOT_MOVED = "HUDIOP-SNAPSHOT-MOVED"
    RECOMPUTED = "HUDIOP-RECOMPUTED"
    LOCK_TIMEOUT = "HUDIOP-LOCK-TIMEOUT"
    ETCD_SILENT = "HUDIOP-ETCD-SILENT"
    ETCD_SET_BACK = "HUDIOP-ETCD-SET-BACK"
    HUDI_VERSION = "HUDIOP-HUDI-VERSION"
    STATEMENT = "HUDIOP-STATEMENT"
    OPTION = "HUDIOP-OPTION"
    BAD_DATA = "HUDIOP-BAD-DATA"
    BAD_RECORD = "HUDIOP-BAD-RECORD"
    """Used only by the runtime, like the codes below it."""
    PARTITION = "HUDIOP-PARTITION"
    BATCH_CHANGED = "HUDIOP-BATCH-CHANGED"

    @property
    def meaning(self) -> str:
        """Meaning of the error."""
        data = protocol()
        return str({**data["errors"], **data["runtimeErrors"]}[self])


EXIT_CODES: Mapping[FailureClass, int] = MappingProxyType(
    {FailureClass(name): int(code) for name, code in protocol()["exitCodes"].items()}
)
"""Exit code of a process that fails with a class; 0 is success."""
FIRST_CLASSES: Mapping[int, FailureClass] = MappingProxyType(
    {code: kind for kind, code in reversed(list(EXIT_CODES.items()))}
)
"""The class of an exit code in the absence of a termination message: the first one in
``protocol.json`` with that code.
"""
HALTS = (FailureClass.FENCED, FailureClass.HEARTBEAT_LOST)
"""Classes whose exit code is one that the JVM itself halts with."""
JVM_ENDED = "the driver's JVM ended with exit code"
"""Prefix of the message of a runtime whose JVM has ended."""
