"""The outcome of an attempt.

A class from the pod's facts, the runtime's termination message and the exit code.

The runtime's message takes precedence; without one (killed, image not found) the class follows from
the pod and the node. The outcome of a commit is always read from the timeline: a class never
decides about data (I4).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from hudi_contract.outcomes import EXIT_CODES, FIRST_CLASSES, JVM_ENDED, Ending, FailureClass
from hudi_contract.reports import TerminationMessage
from hudi_contract.settle import Reason
from hudi_operator.model import containers
from hudi_operator.model.facts import ContainerFacts, NodeFacts, PodFacts

JsonDict = dict[str, Any]

SUCCEEDED = Ending.SUCCEEDED.value
OUT_OF_MEMORY = "OutOfMemory"
DRIVER = "driver"
"""Value of ``out_of_memory`` for the driver; executors are named by their pods."""
EVICTION = "Eviction"
DEADLINE_EXCEEDED = "DeadlineExceeded"
START_DEADLINE_EXCEEDED = "StartDeadlineExceeded"
READY_DEADLINE_EXCEEDED = "ReadyDeadlineExceeded"
COMMIT_DEADLINE_EXCEEDED = "CommitDeadlineExceeded"
NODE_LOST = "NodeLost"
CANCELLED = "Cancelled"
STOPPED = (CANCELLED, FailureClass.ENDED_FOR_CHANGE)
"""Ended at the operator's request: no failure, no retry, no back-off."""
CLOCK_SKEW = FailureClass.CLOCK_SKEW
"""The host's wall clock is wrong: retried with back-off, and not counted against the
retry limit (F47).
"""
LOST_WITH_ITS_PLACE = frozenset(
    {FailureClass.INFRASTRUCTURE.value, FailureClass.HEARTBEAT_LOST.value, EVICTION, NODE_LOST}
)
"""Something around the process ended it, not what it was doing: it may do better elsewhere."""
NOT_RETRIED = frozenset(kind for kind, code in EXIT_CODES.items() if code == EXIT_CODES[FailureClass.USER_ERROR])
"""The same input would fail again: only a changed spec or a new restartNonce helps. All of these
classes have the same exit code.
"""
_KILLED = (137, 143)
_HEAP_IS_FULL = (3, 52)
"""Exit codes of a JVM of executors: of -XX:+ExitOnOutOfMemoryError, and of Spark's own handler."""
_ENDED_BY_KUBELET = {"Evicted": EVICTION, "DeadlineExceeded": DEADLINE_EXCEEDED}
MESSAGE_LIMIT = 1024


@dataclass(frozen=True)
class Outcome:
    """Class, exit code and first line of an attempt's end, and the runtime's report.

    The exit code is None when no container ended.
    """

    kind: str
    exit_code: int | None
    message: str
    report: TerminationMessage
    out_of_memory: str = ""
    """Process that ran out of memory: ``DRIVER``, or the pod of an executor; empty: none."""

    @property
    def retried(self) -> bool:
        """True when another attempt may help."""
        return self.kind not in NOT_RETRIED and self.kind not in (SUCCEEDED, *STOPPED)


def termination_report(message: str) -> TerminationMessage | None:
    """The runtime's JSON in a termination message; None when there is none."""
    try:
        parsed = json.loads(message)
    except (ValueError, TypeError, RecursionError):
        return None
    return TerminationMessage.known(parsed) if parsed and isinstance(parsed, dict) else None


def main_container(pod: PodFacts) -> ContainerFacts | None:
    """The container whose end counts: the JVM's if it has ended.

    Else a failed one, such as an init container; else the first; None: none. Only the JVM's end can
    be a success (F243).
    """
    ended = [c for c in pod.containers if c.terminated]
    jvm = containers.host(pod)
    for found in (
        [jvm] if jvm is not None and jvm.terminated else [],
        [c for c in ended if c.exit_code not in (0, None)],
        ended,
    ):
        if found:
            return found[0]
    return pod.containers[0] if pod.containers else None


def classify(
    pod: PodFacts | None,
    *,
    node: NodeFacts | None = None,
    stopping: bool = False,
    changing: bool = False,
    fenced_reason: str = "",
    lost: str = "",
) -> Outcome:
    """Outcome of an attempt whose pod has ended, or whose pod object is gone (None).

    ``stopping``: the writer was being suspended or deleted; ``changing``: it was asked to end for a
    change of the table. ``fenced_reason``: settle reason when the operator fenced it first.
    ``lost``: pod of an executor that has ended for lack of memory.
    """
    if pod is None:
        kind = CANCELLED if stopping else FailureClass.ENDED_FOR_CHANGE if changing else NODE_LOST
        return Outcome(
            str(kind),
            None,
            "the pod object is gone; whether its process is still alive is unknown",
            TerminationMessage(),
        )
    main = main_container(pod)
    ours = main is not None and main is containers.host(pod)
    told = termination_report(main.message) if main is not None and ours else None
    report = told or TerminationMessage()
    code = main.exit_code if main is not None and main.terminated and (ours or main.exit_code != 0) else None
    if report.outcome == Ending.SUCCEEDED and code in (0, None):
        return Outcome(SUCCEEDED, code, "", report)
    kind = _failure(pod, main, report, code, node, ours=ours)
    if stopping and kind != SUCCEEDED:
        kind = CANCELLED
    elif changing and kind != SUCCEEDED:
        kind = FailureClass.ENDED_FOR_CHANGE
    elif kind == FailureClass.INFRASTRUCTURE and pod.reason in _ENDED_BY_KUBELET:
        kind = _ENDED_BY_KUBELET[pod.reason]  # asked to stop, it abandoned unfinished work and exited by itself
    elif kind == FailureClass.INFRASTRUCTURE and pod.deleting and fenced_reason in ("", Reason.POD_TERMINATED):
        kind = EVICTION  # the same, and somebody has deleted its pod: a drain, a preemption, a queue (F557)
    elif kind == FailureClass.INFRASTRUCTURE and fenced_reason == Reason.LEASE_GONE:
        kind = FailureClass.HEARTBEAT_LOST
    elif kind == FailureClass.INFRASTRUCTURE and fenced_reason == Reason.HELD_TOO_LONG:
        kind = FailureClass.FENCED
    elif kind in (FailureClass.INFRASTRUCTURE, FailureClass.FENCED) and fenced_reason == Reason.CLOCK_SKEW:
        kind = CLOCK_SKEW
    message = _first_line(pod, main, told, kind)
    if kind == OUT_OF_MEMORY:
        return Outcome(kind, code, message, report, DRIVER)
    by_itself = code == EXIT_CODES[FailureClass.INFRASTRUCTURE] and not report.message.startswith(JVM_ENDED)
    if lost and kind == FailureClass.INFRASTRUCTURE and by_itself:
        # The driver knows no better reason: its tasks were lost too often.
        message = f"executor {lost} ended for lack of memory; {message}"[:MESSAGE_LIMIT]
        return Outcome(OUT_OF_MEMORY, code, message, report, lost)
    return Outcome(str(kind), code, message, report)


def lacked_memory(container: ContainerFacts | None) -> bool:
    """Whether an executor has ended for lack of memory: its container's, or its heap's."""
    if container is None or not container.terminated:
        return False
    return container.reason == "OOMKilled" or container.exit_code in _HEAP_IS_FULL


def _failure(
    pod: PodFacts,
    main: ContainerFacts | None,
    report: TerminationMessage,
    code: int | None,
    node: NodeFacts | None,
    *,
    ours: bool,
) -> str:
    """``ours``: ``main`` is the JVM's container, whose exit code is one of the runtime."""
    reason = main.reason if main is not None and main.reason else ""
    if report.class_ in set(FailureClass):
        return str(report.class_)
    if reason == "OOMKilled":
        return OUT_OF_MEMORY
    by_code = _by_code(code) if ours else None
    if by_code is None and pod.reason in _ENDED_BY_KUBELET:
        return _ENDED_BY_KUBELET[pod.reason]
    if by_code is not None:
        return by_code
    if (
        reason == "ContainerStatusUnknown"
        or (node is not None and not node.ready)
        or (code is None and pod.phase in ("Running", "Unknown"))
    ):
        return NODE_LOST
    if code is None or (pod.deleting and code in _KILLED):
        return EVICTION
    return FailureClass.INFRASTRUCTURE


def _by_code(code: int | None) -> str | None:
    """Class of an exit code of the runtime; None for any other exit code."""
    return SUCCEEDED if code == 0 else FIRST_CLASSES.get(code) if code is not None else None


_FRAME = re.compile(r"\s*(at [\w.$/<>]+\(.*|\.\.\. \d+ (more|common frames omitted)|File \".*)$")


def _last_words(log: str) -> str:
    """The last line of a log's end that is no line of a stack. The first line may be torn."""
    first, *lines = log.splitlines() or [""]
    said = [line.strip() for line in (lines or [first]) if line.strip() and not _FRAME.match(line)]
    return said[-1] if said else ""


def _first_line(pod: PodFacts, main: ContainerFacts | None, told: TerminationMessage | None, kind: str) -> str:
    text = told.message.strip() if told is not None else ""
    if not text and main is not None and main.terminated:
        text = f"container {main.name} ended with exit code {main.exit_code} ({main.reason or 'no reason'})"
        if told is None and (last := _last_words(main.message)):
            text += f"; its log ends with: {last}"
    if not text and kind == NODE_LOST and pod.node:
        text = f"node {pod.node} is not ready, or lost; its pod was last seen {pod.phase}"
    if not text:
        text = pod.waiting or pod.unschedulable or f"pod is {pod.phase}"
    return "" if kind == SUCCEEDED else next(iter(text.strip().splitlines()), "")[:MESSAGE_LIMIT]
