"""Questions to the API server about executors that do not come, and its answers (F301).

A question is a dry run with the pod that Spark would make. It costs the API server as much as a
pod, its webhooks too: an attempt is asked about with back-off, and all attempts together at a
limited rate. Answers are intentionally lost at a failover.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hudi_contract import naming
from hudi_contract.backoff import exponential
from hudi_contract.secret_names import is_secret
from hudi_operator.control.queue import Key
from hudi_operator.manifests import asked_executor
from hudi_operator.model.facts import ExecutorAnswer, Observed
from hudi_operator.model.ports import Fatal, KubernetesPort, Refused, Retryable
from hudi_operator.plan.core.actions import AskExecutors
from hudi_operator.plan.writers import executors_missing

JsonDict = dict[str, Any]
LOG = logging.getLogger("hudi_operator.control")

FIRST_SECONDS = 30.0
LONGEST_SECONDS = 480.0
"""Time from one question about an attempt to the next one."""
PAUSE_SECONDS = 0.25
"""Time from one question to the next one, whatever attempts they are about."""
MESSAGE_LIMIT = 1000
_SHORTEST = 4
"""Characters of a value that is hidden: shorter ones are in every message."""


@dataclass(frozen=True)
class _Known:
    answer: ExecutorAnswer
    times: int
    due: float


class ExecutorQuestions:
    """Asks, and remembers answers by table and attempt."""

    def __init__(self, kubernetes: KubernetesPort, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: monotonic, in seconds."""
        self._kubernetes = kubernetes
        self._clock = clock
        self._known: dict[Key, dict[str, _Known]] = {}
        self._next = float("-inf")

    async def ask(self, key: Key, question: AskExecutors) -> bool:
        """Ask, unless it is too early; returns whether it was asked. Never fails."""
        now, known = self._clock(), self._known.get(key, {}).get(question.attempt)
        if now < self._next or (known is not None and now < known.due):
            return False
        self._next = now + PAUSE_SECONDS
        answer = await self._answer(question)
        times = 1 if known is None else known.times + 1
        delay = exponential(times, first=FIRST_SECONDS, longest=LONGEST_SECONDS)
        self._known.setdefault(key, {})[question.attempt] = _Known(answer, times, self._clock() + delay)
        if known is None or known.answer != answer:
            said = f"{answer.reason}: {answer.message}".strip(": ") or "would be made"
            LOG.warning("%s: an executor of attempt %s: %s", "/".join(key), question.attempt, said)
        return True

    async def _answer(self, question: AskExecutors) -> ExecutorAnswer:
        pod: JsonDict = {}
        try:
            found = await self._kubernetes.get("ConfigMap", question.namespace, question.driver)
            if found is None or not naming.MANAGED.items() <= (found["metadata"].get("labels") or {}).items():
                return ExecutorAnswer(message=f"ConfigMap {question.driver} is gone")
            pod = asked_executor.executor_pod(
                found.get("data") or {}, namespace=question.namespace, driver=question.driver, uid=question.uid
            )
            await self._kubernetes.would_create(pod)
        except Refused as error:
            return ExecutorAnswer(error.reason, _shown(str(error), pod))
        except (Retryable, Fatal, ValueError) as error:
            return ExecutorAnswer(message=_shown(str(error), pod))
        return ExecutorAnswer()

    def keep(self, key: Key, observed: Observed) -> None:
        """Forget attempts that miss no executors: those without a timer, when they are due."""
        known, now = self._known.pop(key, {}), self._clock()
        if observed.table is None:
            return
        known = {
            attempt: one
            for attempt, one in known.items()
            if executors_missing.timer(attempt) in observed.timers or now < one.due
        }
        if known:
            self._known[key] = known

    def facts(self, key: Key) -> dict[str, ExecutorAnswer]:
        """The last answer about each attempt of a table."""
        now = self._clock()
        return {
            attempt: replace(known.answer, seconds=max(0.0, known.due - now))
            for attempt, known in self._known.get(key, {}).items()
        }


def _shown(text: str, pod: JsonDict) -> str:
    """One line for people: a webhook may have put values of the pod into its message."""
    for value in sorted({*_secrets(pod)}, key=len, reverse=True):
        text = text.replace(value, "<redacted>")
    return " ".join(text.split())[:MESSAGE_LIMIT]


def _secrets(pod: JsonDict) -> Iterator[str]:
    """Values of variables whose names suggest a secret."""
    spec = pod.get("spec") or {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for variable in container.get("env") or ():
            name, value = str(variable.get("name") or ""), str(variable.get("value") or "")
            # The operator's own variables name the places of secrets, and are no secrets
            # themselves.
            if len(value) >= _SHORTEST and is_secret(name) and not name.startswith("HUDI_OPERATOR_"):
                yield from {value, value.replace("$$", "$")}
