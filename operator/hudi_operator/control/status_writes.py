"""Writes of statuses: which are sent now, and which wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from hudi_operator.control.counts import Counts
from hudi_operator.control.late_statuses import LateStatuses
from hudi_operator.control.queue import Key
from hudi_operator.model.ports import KubernetesPort
from hudi_operator.plan.core import actions as act

JsonDict = dict[str, Any]


class StatusWrites:
    """Belongs to one event loop."""

    def __init__(
        self, kubernetes: KubernetesPort, late: LateStatuses | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``late`` is shared with the observer. ``clock``: monotonic, in seconds."""
        self._kubernetes = kubernetes
        self._counts = Counts(clock)
        self._late = late or LateStatuses(clock)

    async def write(self, key: Key, action: act.UpdateStatus, seen: JsonDict | None) -> bool:
        """Whether the status was sent. ``seen``: the object as this look has it."""
        if seen is not None and not self._late.is_due(key, action):
            known = (seen.get("status") or {}) == action.status
            if known or self._counts.may_wait(key, action, seen):
                return False
        if self._late.may_wait(key, action):
            return False
        await self._kubernetes.replace_status(
            action.kind, action.namespace, action.name, resource_version=action.resource_version, status=action.status
        )
        self._late.written(key, action)
        return True

    def due(self, key: Key) -> list[act.UpdateStatus]:
        """Statuses of a table's writers that have waited for the next one, and that got none."""
        return self._late.due(key)

    def late_in(self, key: Key) -> float | None:
        """Seconds until a status of the table's writers must be written; None: none waits."""
        return self._late.left(key)
