"""What became of an attempt: a class from the pod's facts, the runtime's termination message and the exit code.

The message is the runtime's own word and wins; without one (killed, image not found) the pod and the node tell. Whatever the
word, what a commit became is read from the timeline: a class never decides about data (I4).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hudi_operator.model import containers
from hudi_operator.model.facts import ContainerFacts, NodeFacts, PodFacts

JsonDict = dict[str, Any]

SUCCEEDED = "Succeeded"
USER_ERROR = "UserError"
INFRASTRUCTURE = "Infrastructure"
OUT_OF_MEMORY = "OutOfMemory"
EVICTION = "Eviction"
DEADLINE_EXCEEDED = "DeadlineExceeded"
WRITE_CONFLICT = "WriteConflict"
LOCK_TIMEOUT = "LockTimeout"
FENCED = "Fenced"
HEARTBEAT_LOST = "HeartbeatLost"
CLOCK_SKEW = "ClockSkew"
"""The host's wall clock is off: repeated with back-off, and not counted against the limit of retries (F47)."""
NODE_LOST = "NodeLost"
OPTION_NOT_ALLOWED = "OptionNotAllowed"
STORAGE_UNREACHABLE = "StorageUnreachable"
POSITION_LOST = "PositionLost"
SCHEMA_MISMATCH = "SchemaMismatch"
HUDI_VERSION_MISMATCH = "HudiVersionMismatch"
PARTITION_NOT_DECLARED = "PartitionNotDeclared"
BAD_DATA = "BadData"
CANCELLED = "Cancelled"
ENDED_FOR_CHANGE = "EndedForChange"
"""The table's gate was closed for a change (F44): the next attempt goes on when it opens."""
STOPPED = (CANCELLED, ENDED_FOR_CHANGE)
"""Ended because the operator asked for it: no failure, no retry, no back-off."""

EXIT_CODES = {
    0: SUCCEEDED,
    10: USER_ERROR,
    11: INFRASTRUCTURE,
    12: ENDED_FOR_CHANGE,
    13: WRITE_CONFLICT,
    14: LOCK_TIMEOUT,
    15: FENCED,
    16: HEARTBEAT_LOST,
}
"""docs/design/contracts.md §5."""
MESSAGE_CLASSES = frozenset(
    {
        USER_ERROR,
        INFRASTRUCTURE,
        ENDED_FOR_CHANGE,
        WRITE_CONFLICT,
        LOCK_TIMEOUT,
        FENCED,
        HEARTBEAT_LOST,
        CLOCK_SKEW,
        OPTION_NOT_ALLOWED,
        STORAGE_UNREACHABLE,
        POSITION_LOST,
        SCHEMA_MISMATCH,
        HUDI_VERSION_MISMATCH,
        PARTITION_NOT_DECLARED,
        BAD_DATA,
    }
)
NOT_RETRIED = frozenset({USER_ERROR, OPTION_NOT_ALLOWED, POSITION_LOST, SCHEMA_MISMATCH, HUDI_VERSION_MISMATCH, PARTITION_NOT_DECLARED, BAD_DATA})
"""The same input fails again: only a changed spec or a new restartNonce helps."""
_KILLED = (137, 143)
_ENDED_BY_KUBELET = {"Evicted": EVICTION, "DeadlineExceeded": DEADLINE_EXCEEDED}
MESSAGE_LIMIT = 1024


@dataclass(frozen=True)
class Outcome:
    """Class, exit code (None when no container ended) and first line of an attempt's end, and the runtime's report."""

    kind: str
    exit_code: int | None
    message: str
    report: JsonDict

    @property
    def retried(self) -> bool:
        """True when another attempt may help."""
        return self.kind not in NOT_RETRIED and self.kind not in (SUCCEEDED, *STOPPED)


def termination_report(message: str) -> JsonDict:
    """The runtime's JSON in a termination message; empty when there is none."""
    try:
        parsed = json.loads(message)
    except (ValueError, TypeError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def main_container(pod: PodFacts) -> ContainerFacts | None:
    """The container that ran the attempt: the JVM's when it has ended; else one that failed, an init container for instance, else the first; None: none."""
    ended = [c for c in pod.containers if c.terminated]
    jvm = containers.host(pod)
    for found in (
        [jvm] if jvm is not None and jvm.terminated else [],
        [c for c in ended if termination_report(c.message)],
        [c for c in ended if c.exit_code not in (0, None)],
        ended,
    ):
        if found:
            return found[0]
    return pod.containers[0] if pod.containers else None


def classify(pod: PodFacts | None, *, node: NodeFacts | None = None, stopping: bool = False, changing: bool = False, fenced_reason: str = "") -> Outcome:
    """Outcome of an attempt whose pod has ended, or whose pod object is gone (None).

    ``stopping``: the writer was being suspended or deleted; ``changing``: it was asked to end for a change of the table.
    ``fenced_reason``: settle reason when the operator fenced it first.
    """
    if pod is None:
        kind = CANCELLED if stopping else ENDED_FOR_CHANGE if changing else NODE_LOST
        return Outcome(kind, None, "the pod object is gone; whether its process lives on is not known", {})
    main = main_container(pod)
    report = termination_report(main.message) if main is not None else {}
    code = main.exit_code if main is not None and main.terminated else None
    if report.get("outcome") == SUCCEEDED and code in (0, None):
        return Outcome(SUCCEEDED, code, "", report)
    kind = _failure(pod, main, report, code, node)
    if stopping and kind != SUCCEEDED:
        kind = CANCELLED
    elif changing and kind != SUCCEEDED:
        kind = ENDED_FOR_CHANGE
    elif kind == INFRASTRUCTURE and pod.reason in _ENDED_BY_KUBELET:
        kind = _ENDED_BY_KUBELET[pod.reason]  # asked to stop, it gave up what did not fit, and left by itself
    elif kind == INFRASTRUCTURE and fenced_reason == "LeaseGone":
        kind = HEARTBEAT_LOST
    elif kind == INFRASTRUCTURE and fenced_reason == "HeldTooLong":
        kind = FENCED
    elif kind in (INFRASTRUCTURE, FENCED) and fenced_reason == CLOCK_SKEW:
        kind = CLOCK_SKEW
    return Outcome(kind, code, _first_line(pod, main, report, kind), report)


def _failure(pod: PodFacts, main: ContainerFacts | None, report: JsonDict, code: int | None, node: NodeFacts | None) -> str:
    word = report.get("class")
    reason = main.reason if main is not None and main.reason else ""
    if word in MESSAGE_CLASSES:
        return str(word)
    if reason == "OOMKilled":
        return OUT_OF_MEMORY
    if code not in EXIT_CODES and pod.reason in _ENDED_BY_KUBELET:
        return _ENDED_BY_KUBELET[pod.reason]
    if code in EXIT_CODES and code is not None:
        return EXIT_CODES[code]
    if reason == "ContainerStatusUnknown" or (node is not None and not node.ready) or (code is None and pod.phase in ("Running", "Unknown")):
        return NODE_LOST
    if code is None or (pod.deleting and code in _KILLED):
        return EVICTION
    return INFRASTRUCTURE


def _first_line(pod: PodFacts, main: ContainerFacts | None, report: JsonDict, kind: str) -> str:
    text = str(report.get("message") or "")
    if not text and main is not None:
        text = main.message if not report else ""
    if not text and main is not None and main.terminated:
        text = f"container {main.name} ended with exit code {main.exit_code} ({main.reason or 'no reason'})"
    if not text:
        text = pod.waiting or pod.unschedulable or f"pod is {pod.phase}"
    return "" if kind == SUCCEEDED else text.strip().splitlines()[0][:MESSAGE_LIMIT]
