"""The agent's report about one table (`report/timeline`).

Put when it changes, and repeated every REPORT_SECONDS.
"""

from __future__ import annotations

import time

from hudi_contract.reports import TimelineReport
from hudi_runtime.agent.keys import AgentKeys
from hudi_runtime.process.etcd import now_ms

REPORT_SECONDS = 60.0


class Reports:
    """Reports of one table."""

    def __init__(self, keys: AgentKeys) -> None:
        self._keys = keys
        self._last: TimelineReport | None = None
        self._at = 0.0

    def put(self, told: TimelineReport) -> None:
        """Put the report if it has changed, or if the last one is older than REPORT_SECONDS."""
        now = time.monotonic()
        if told == self._last and now - self._at < REPORT_SECONDS:
            return
        self._keys.report(told.but(at_ms=now_ms()))
        self._last, self._at = told, now
