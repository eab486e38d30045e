"""Runs of a HudiWriter, derived from its attempts: whether one is over, and when another follows.

Read from the spec and the status alone.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract.backoff import LONGEST_PAUSE_SECONDS, exponential
from hudi_contract.words import WriterState
from hudi_operator.api.spec import WriterSpec
from hudi_operator.model import classify, conditions
from hudi_operator.model.status import AttemptEntry
from hudi_operator.plan.core.actions import Action

JsonDict = dict[str, Any]

JITTER = 0.1
NO_LIMITS: Mapping[str, int] = {}
_HARMLESS = ("", classify.SUCCEEDED, *classify.STOPPED)
"""Classes of attempts that do not count as failures; empty: it has not ended."""


@dataclass(frozen=True)
class Progress:
    """Changes of a writer's attempts since the last look.

    The entries for status, and the actions that follow.

    ``before`` comes before the status update, ``after`` after all of them. ``ended`` is the attempt
    that ended since the last look (None: none did).
    """

    entries: tuple[AttemptEntry, ...]
    before: tuple[Action, ...] = ()
    after: tuple[Action, ...] = ()
    ended: AttemptEntry | None = None
    summary: tuple[str, ...] = ()
    requeue: float = field(default=LONGEST_PAUSE_SECONDS)


def run_of(entry: AttemptEntry) -> int:
    """Number of the run that an attempt belongs to.

    Attempts of one run share its committed progress, another run starts over.
    """
    return entry.run or 1


def run_started_ms(status: JsonDict) -> int:
    """Start of the current run: the last time that Finished became False.

    0 when it never was True.
    """
    finished = conditions.find(status, "Finished")
    if finished.get("status") == "False":
        return conditions.from_rfc3339(str(finished.get("lastTransitionTime") or "")) or 0
    return 0


def failures(status: JsonDict, entries: tuple[AttemptEntry, ...], limits: Mapping[str, int] = NO_LIMITS) -> int:
    """Failed attempts of the current run since a streaming one last made progress.

    Attempts that were stopped or failed for a clock (F47) do not count. ``limits``: classes that
    have their own limit. The attempts that count towards the limit of the last one are counted:
    those of its class, or of all classes without such a limit.
    """
    began = run_started_ms(status)
    last = entries[-1].class_ if entries else ""
    count = 0
    for entry in reversed(entries):
        if run_of(entry) != run_of(entries[-1]):  # a run may follow another one at once (F469)
            break
        together = entry.class_ == last if last in limits else entry.class_ not in limits
        if (
            together
            and entry.class_ not in (*_HARMLESS, classify.CLOCK_SKEW)
            and (conditions.from_rfc3339(entry.start_time) or 0) >= began
        ):
            count += 1
        if entry.advanced:
            break
    return count


def verdict(writer: WriterSpec, status: JsonDict, entries: tuple[AttemptEntry, ...]) -> str:
    """``Succeeded`` or ``Failed`` when the run is over.

    Empty while another attempt may come or one is running.

    Once Finished is True it stays True, whatever the spec is, until a new nonce (a finished writer
    never runs again by itself).
    """
    if conditions.is_true(status, "Finished"):
        return str(conditions.find(status, "Finished").get("reason") or WriterState.FAILED)
    kind = entries[-1].class_ if entries else ""
    if kind == classify.SUCCEEDED:
        return WriterState.SUCCEEDED
    limits = writer.retry.by_class
    if kind in classify.NOT_RETRIED or (
        kind not in _HARMLESS and failures(status, entries, limits) > limits.get(kind, writer.retry.limit)
    ):
        return WriterState.FAILED
    return ""


def restart_wanted(writer: WriterSpec, status: JsonDict) -> bool:
    """True when the nonce differs from the executed one.

    The nonce at the first look is the baseline.
    """
    return "executedNonce" in status and bool(writer.restart_nonce) and writer.restart_nonce != status["executedNonce"]


def next_retry_ms(writer: WriterSpec, status: JsonDict, entries: tuple[AttemptEntry, ...]) -> int:
    """Earliest start of the next attempt, Unix milliseconds.

    Exponential with a cap and a little jitter; 0 = now. The first retry of an attempt that
    something around it has ended waits only as far as attempts would follow each other faster than
    its back-off: from its start, not from its end (F260).
    """
    last = entries[-1] if entries else AttemptEntry()
    ended = conditions.from_rfc3339(last.end_time)
    if last.class_ in _HARMLESS or ended is None:
        return 0
    skewed = len(list(itertools.takewhile(lambda entry: entry.class_ == classify.CLOCK_SKEW, reversed(entries))))
    count = max(1, skewed or failures(status, entries, writer.retry.by_class))
    delay = exponential(count, first=writer.retry.backoff_seconds, longest=writer.retry.max_backoff_seconds)
    digest = hashlib.sha256(writer.attempt_id(last.number).encode()).digest()
    began = (
        conditions.from_rfc3339(last.start_time) if count == 1 and last.class_ in classify.LOST_WITH_ITS_PLACE else None
    )
    since = ended if began is None else began
    return max(ended, since + int(1000 * delay * (1 + JITTER * digest[0] / 255)))
