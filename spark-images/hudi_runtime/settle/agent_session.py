"""An agent's session at one of its tables.

In addition to every session's operations, it claims instants, and begins savepoints and restores.

The Java session checks whether this is allowed (gate, lock, proof); a driver cannot import these
calls (import-linter).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pyspark.sql import SparkSession

from hudi_runtime.process.session import Session


class AgentSession(Session):
    """One for each table that the agent serves; see spark-images/etcd-lock/API.md."""

    @classmethod
    def open(cls, spark: SparkSession, settings: Mapping[str, str]) -> Self:
        """An agent's session for one of its tables; registers a new incarnation."""
        jvm: Any = spark.sparkContext._jvm
        java_settings = jvm.java.util.HashMap()
        for key, value in settings.items():
            java_settings.put(key, value)
        return cls(jvm.io.hudioperator.Sessions.open(java_settings))

    @property
    def clock_refused(self) -> str:
        """Why this process can do nothing more at any table: its host's clock; empty otherwise."""
        return str(self._java.clockRefused() or "")

    def forget(self, instant: str) -> bool:
        """Abandon an own recorded instant that a fresh listing does not show.

        It is checked and swept like any abandoned instant.
        """
        return bool(self._java.forget(instant))

    def claim(self, instant: str, previous_owner: str) -> bool:
        """Become the only executor of an instant whose owner is settled (F3, I12)."""
        return bool(self._java.claim(instant, previous_owner))

    def begin_savepoint(self, instant: str) -> None:
        """Record a completed commit's instant again, for its savepoint.

        Requires the lock and the closed gate; raises otherwise.
        """
        self._java.beginSavepoint(instant)

    def begin_restore(self, nonce: str) -> None:
        """Permit undoing completed commits during the present hold of the lock.

        Requires the gate closed for that restore; raises otherwise.
        """
        self._java.beginRestore(nonce)
