"""The loop: take a table from the queue, observe, plan and perform.

The result is logged in one sentence.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from hudi_contract import naming
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS, exponential
from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.words import WriterState
from hudi_operator.control.counts import COUNTS_SECONDS, left
from hudi_operator.control.executor import Executor
from hudi_operator.control.observe import Observer
from hudi_operator.control.queue import Key, WorkQueue
from hudi_operator.control.repeated import Repeated
from hudi_operator.control.telling import only_tells
from hudi_operator.control.timers import Timers
from hudi_operator.model import conditions
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import Observed, PodFacts
from hudi_operator.model.ports import Conflict, Fatal, LeaseLost, Retryable
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.writers import awaited, deadlines, executors_missing

JsonDict = dict[str, Any]
LOG = logging.getLogger("hudi_operator.control")

QUIET_SECONDS = 240.0
"""Maximum time between two looks at an idle table without events: the effect of a lost event is
found after it.
"""

NEWS_SECONDS = 0.5
"""Time until a refusal that nobody has planned with is in status."""

Planner = Callable[[Observed, OperatorConfig], act.Plan]


class Meter(Protocol):
    """Metrics sink."""

    def reconciled(self, outcome: str, seconds: float) -> None:
        """One reconcile."""

    def performed(self, observed: Observed, done: Sequence[act.Action]) -> None:
        """Actions that changed something."""

    def forget(self, table: Key) -> None:
        """A table is gone."""


class Reconciler:
    """Workers on one queue."""

    def __init__(
        self,
        *,
        queue: WorkQueue,
        observer: Observer,
        executor: Executor,
        planner: Planner,
        timers: Timers,
        config: OperatorConfig,
        meter: Meter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``clock``: by which looks are due."""
        self._clock = clock
        self._queue = queue
        self._observer = observer
        self._executor = executor
        self._planner = planner
        self._timers = timers
        self._config = config
        self._meter = meter
        self._logged = Repeated(clock)
        self._sentences: dict[Key, str] = {}
        self._quiet: dict[Key, int] = {}
        self._live_at: dict[Key, float] = {}
        """Time of the next live look at an idle table, whatever the watches report."""

    def configure(self, config: OperatorConfig) -> None:
        """Decide by this configuration from now on; every table is looked at live next."""
        self._observer.configure(config)
        self._config = config
        self._live_at.clear()

    async def work(self) -> None:
        """One worker; runs until cancelled."""
        while True:
            key = await self._queue.get()
            again: float | None = LONGEST_PAUSE_SECONDS
            started, outcome = time.monotonic(), "error"
            try:
                outcome, again = await self._reconcile(key)
                self._queue.succeeded(key)
            except Conflict as error:
                outcome, again = "conflict", error.delay
                LOG.info("%s: %s", "/".join(key), error)
            except LeaseLost as error:
                LOG.info("%s: not acted: %s", "/".join(key), error)
            except Retryable as error:
                again = max(self._queue.failed(key), error.delay or 0.0)
                LOG.warning("%s: %s; again in %.1f s", "/".join(key), error, again)
            except Fatal as error:
                again = max(self._queue.failed(key), 5.0)
                if error.delay is not None:
                    again = min(again, max(1.0, error.delay))
                # Without its numbers: revisions and times are others at each look.
                if self._logged.due((key, re.sub(r"\d+", "", str(error)))):
                    LOG.error("%s: %s; again in %.1f s", "/".join(key), error, again)
            except asyncio.CancelledError:
                raise
            except Exception:
                # A defect in a planner stops only this table, and is logged.
                again = max(self._queue.failed(key), 5.0)
                LOG.exception("%s: unexpected error; again in %.1f s", "/".join(key), again)
            finally:
                self._queue.done(key, again=again)
                self._meter.reconciled(outcome, time.monotonic() - started)

    async def _reconcile(self, key: Key) -> tuple[str, float | None]:
        """Outcome, and the delay until the next look (None: only after an event)."""
        at_rest = await self._still_at_rest(key)
        if at_rest is not None:
            return at_rest
        self._live_at.pop(key, None)
        config = self._config
        observed = await self._observer.observe(key)
        if config is not self._config:
            raise Conflict("the configuration has changed meanwhile")  # what was read follows from the old one
        plan = self._planner(observed, config)
        done: list[act.Action] = []
        try:
            done = await self._executor.perform(key, observed, plan)
        except Retryable as error:
            done = self._half_done(key, plan, error.done)
            raise
        except Fatal as error:
            done = self._half_done(key, plan, error.done)
            await self._executor.report(observed, str(error))
            # Nobody waits longer for a lock, or for a writer that is silent, because something else
            # was refused (F430).
            urgent = _settles(observed) or _timer_decides(observed)
            error.delay = max(plan.requeue_seconds, 1.0 if urgent else 5.0)
            raise
        finally:
            self._meter.performed(observed, done)
        if done or self._sentences.get(key) != plan.sentence:
            LOG.info("%s: %s%s", "/".join(key), plan.sentence, f" [{_names(done)}]" if done else "")
        if observed.table is None:
            self._meter.forget(key)
        if observed.table is None and not observed.writers:
            self._timers.forget(key)
            self._observer.forget(key)
            self._executor.forget(key)
            self._sentences.pop(key, None)
            self._quiet.pop(key, None)
            return "ok", None
        if plan.failed:
            # The parts that could be planned are done; they continue, one second apart, whatever
            # the state of the other parts.
            self._quiet[key] = -1
            return "error", max(1.0, plan.requeue_seconds)
        waits = plan.requeue_seconds < LONGEST_PAUSE_SECONDS
        outcome = "changed" if done else "ok"
        if self._executor.has_news(key, observed):
            # Status shows the refusal at the next look.
            return outcome, min(NEWS_SECONDS, plan.requeue_seconds)
        quiet = not (plan.actions or waits) and self._sentences.get(key) == plan.sentence and is_quiet(observed)
        self._quiet[key] = self._quiet.get(key, -1) + 1 if quiet else -1
        self._sentences[key] = plan.sentence
        interval = quiet_interval(plan.requeue_seconds, self._quiet[key])
        interval = min(interval, self._status_due_in(key, plan, done))
        if quiet and config is self._config:
            self._live_at[key] = self._clock() + interval
        return outcome, interval

    def _status_due_in(self, key: Key, plan: act.Plan, done: Sequence[act.Action]) -> float:
        """Seconds until a status that has not been written is written; infinite: there is none."""
        late = self._executor.statuses.late_in(key)
        return min(
            COUNTS_SECONDS if left(plan, done) else math.inf,
            max(NEWS_SECONDS, late) if late is not None else math.inf,
        )

    def _half_done(self, key: Key, plan: act.Plan, done: Sequence[act.Action]) -> list[act.Action]:
        """Log and return the actions that were done before a failure, or beside refused ones."""
        if done:
            LOG.info("%s: %s [%s]", "/".join(key), plan.sentence, _names(done))
        return list(done)

    async def _still_at_rest(self, key: Key) -> tuple[str, float] | None:
        """Outcome and delay for a table whose status only has to be updated.

        None: look now. The last live look found the table idle, and so do the watches and etcd.
        """
        due, config = self._live_at.get(key, 0.0), self._config
        left = due - self._clock()
        seen = await self._observer.glance(key) if left > 0 else None
        if seen is None or config is not self._config:
            return None
        plan = self._planner(seen, config)
        same = plan.requeue_seconds >= LONGEST_PAUSE_SECONDS and plan.sentence == self._sentences.get(key)
        if plan.failed or not same or not is_quiet(seen):
            return None
        if not plan.actions:
            return "rest", left
        if not only_tells(plan.actions, seen.objects):
            return None
        # Until it is done the next look is a live one: the object may be older than is known here.
        del self._live_at[key]
        done = await self._executor.perform(key, seen, plan)
        self._meter.performed(seen, done)
        if config is self._config:
            self._live_at[key] = due
        return "told", left


def is_quiet(observed: Observed) -> bool:
    """True when no writer is about to start or end, nothing is being settled, no timer decides.

    Then every change comes with an event: also the end of a lease and of a pod, and a lock that is
    held for long (`held_locks`).
    """
    moving = any(naming.EVIDENCE_FINALIZER in pod.finalizers and _moves(pod) for pod in observed.pods)
    due = any(
        each.spec is not None and deadlines.is_pending(observed, each.obj, each.spec)
        for each in observed.objects.writer_specs
    )
    return not (due or _settles(observed) or moving or _timer_decides(observed) or _service_due(observed)) and all(
        _at_rest(writer, observed.now_ms) for writer in observed.writers
    )


def _settles(observed: Observed) -> bool:
    """True when an incarnation is being settled, or when that is not known."""
    return observed.etcd is None or any(
        stored.read(SettleRecord).phase is not Phase.Settled for stored in observed.etcd.settles.values()
    )


def _moves(pod: PodFacts) -> bool:
    """True for a driver or an executor that starts, ends or has ended.

    An executor that is Pending may be so for hours. Its node comes with an event.
    """
    role = pod.labels.get(naming.LABEL_ROLE)
    if role == naming.ROLE_AGENT:
        return False
    waits = role == naming.ROLE_EXECUTOR and pod.phase == "Pending"
    return pod.deleting or not (pod.phase == "Running" or waits)


def _timer_decides(observed: Observed) -> bool:
    """True when a timer runs by which something is decided.

    That executors are missing has been reported: a pod of theirs comes with an event, and the
    question why is asked again at a later look.
    """
    return any(
        not (name.startswith(executors_missing.TIMER) and age >= executors_missing.MISSING_SECONDS)
        for name, age in observed.timers.items()
    )


def _service_due(observed: Observed) -> bool:
    """True when the schedule of a table service has a tick soon."""
    services = ((observed.table or {}).get("status") or {}).get("services") or {}
    ticks = (conditions.from_rfc3339(str(service.get("nextTime") or "")) for service in services.values())
    return any(tick is not None and tick - observed.now_ms <= QUIET_SECONDS * 1000 for tick in ticks)


def _at_rest(writer: JsonDict, now_ms: int) -> bool:
    """True when what the writer does next follows from an event alone.

    It is suspended, runs, has finished, or waits for something that comes as an event; no retry or
    run is due soon, because those come without one.
    """
    status, spec = writer.get("status") or {}, writer.get("spec") or {}
    if spec.get("suspend"):
        return True
    scheduled = bool(spec.get("schedule"))
    if awaited.waits(status):  # also with a run that is over
        calm = awaited.comes_as_event(status)
    else:
        calm = conditions.is_true(status, "Finished") or conditions.is_true(status, "Running")
        calm = calm or (scheduled and status.get("state") == WriterState.SCHEDULED)
    due = [status["nextRetryTime"]] if status.get("nextRetryTime") else []
    due += [status.get("nextScheduleTime")] if scheduled else []
    times = (conditions.from_rfc3339(str(at or "")) for at in due)
    return calm and all(at is not None and at - now_ms > QUIET_SECONDS * 1000 for at in times)


def quiet_interval(seconds: float, looks: int) -> float:
    """Interval that doubles after each look without a change.

    ``looks`` is negative while there is activity.
    """
    return seconds if looks < 0 else max(seconds, exponential(looks + 2, first=seconds, longest=QUIET_SECONDS))


def _names(done: Sequence[act.Action]) -> str:
    """Names of actions in order; equal names in a row appear once."""
    names: list[str] = []
    for action in done:
        name = type(action).__name__
        if not names or names[-1] != name:
            names.append(name)
    return ", ".join(names)
