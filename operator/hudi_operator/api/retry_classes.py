"""Classes of failures for which ``retryPolicy.classLimits`` may have a limit."""

from __future__ import annotations

RETRIED_CLASSES = (
    "CommitDeadlineExceeded",
    "DeadlineExceeded",
    "Eviction",
    "Fenced",
    "HeartbeatLost",
    "Infrastructure",
    "LockTimeout",
    "NodeLost",
    "OutOfMemory",
    "ReadyDeadlineExceeded",
    "StartDeadlineExceeded",
    "StorageUnreachable",
    "WriteConflict",
)
"""Another attempt may help after each of them."""
