"""The Java session of this process for one table: registration, heartbeat, records of instants.

The Java side enforces all safety.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from hudi_runtime.process.etcd import Etcd

FENCED = "FENCED"
"""The state of a fenced session, as spelled by the Java module."""
QUIET_SECONDS = 120
"""Time for a session to become quiet: no publication is unknown, and the lock is released."""


class NoSession(Exception):
    """The plugin has opened no session: the pod was changed after the operator rendered it."""


@dataclass(frozen=True)
class Conflict:
    """A refused commit: own instant and other instant.

    It also has some of the file groups that both changed.
    """

    instant: str
    other: str
    file_groups: tuple[str, ...]
    yielded: bool = False
    """The other instant has higher priority, and is not completed yet."""
    early: bool = False
    """Detected during the write; the other instant began earlier, and is not completed yet."""


class Session:
    """See spark-images/etcd-lock/API.md.

    The operations that only an agent may call are in `settle.agent_session`.
    """

    def __init__(self, java: Any) -> None:
        self._java = java
        self.inc = str(java.inc())
        self.table_id = str(java.tableId())
        self.attempt = str(java.attempt())
        self.etcd = Etcd(java.etcd())

    @classmethod
    def current(cls, spark: SparkSession) -> Session:
        """The driver's session, opened by the Spark plugin from the environment."""
        jvm: Any = spark.sparkContext._jvm
        java = jvm.io.hudioperator.Sessions.current()
        if java is None:
            raise NoSession("the Spark plugin io.hudioperator.HudiOperatorPlugin has opened no session")
        return cls(java)

    @property
    def state(self) -> str:
        """LIVE, LOST, FENCED or CLOSED."""
        return str(self._java.state())

    def pending(self) -> list[str]:
        """Pending instants owned or claimed by this incarnation, read from etcd."""
        return [str(instant) for instant in self._java.pendingInstants()]

    def abandon(self, instant: str) -> bool:
        """Declare an own pending instant Abandoned.

        It is never published from then on, so the agent may roll it back.
        """
        return bool(self._java.abandon(instant))

    def gave_up(self) -> bool:
        """Whether this incarnation has ever declared an instant Abandoned, for any reason."""
        return bool(self._java.gaveUp())

    def give_up_left_writes(self, spark: SparkSession) -> None:
        """From now on, what writes of a program leave pending is given up.

        Each instant as soon as its write has ended and none of its tasks runs any more (F477).
        """
        context: Any = spark.sparkContext
        self._java.giveUpLeftWrites(context._jsc.sc())

    def program_ended(self) -> None:
        """From now on, what the program has left running can begin no instant (F626)."""
        self._java.programEnded()

    def completed(self) -> set[str]:
        """The instants that the program of this driver has completed."""
        return {str(instant) for instant in self._java.completedInstants()}

    def quiet(self, seconds: float = QUIET_SECONDS) -> bool:
        """Wait until no publication is unknown and the lock is released; False on timeout."""
        return bool(self._java.awaitQuiet(int(seconds * 1000)))

    def may_yield(self, times: int) -> None:
        """Let the next `times` commits yield to writers of higher priority.

        Those writers are changing the same file groups.
        """
        self._java.mayYield(times)

    def looking_up(self, *, deletes: bool = False) -> AbstractContextManager[None]:
        """Context in which this thread reads the table for the write that ends the context.

        These reads count for that write alone, and hide nothing that the program has read before
        (F424). As in the other contexts, a subquery counts as read by the thread of its query
        (F450).

        `deletes`: that write is a delete; in mode NonBlocking the look-up does not count (F425).
        """
        reads = self._java.reads()
        return _between(partial(reads.lookUpBegins, deletes), reads.lookUpEnds)

    def batch(self) -> AbstractContextManager[None]:
        """The writes of this thread in this context are tries of one write.

        The program's earlier reads count for each of them (F442).
        """
        reads = self._java.reads()
        return _between(reads.batchBegins, reads.batchEnds)

    def trying(self) -> AbstractContextManager[None]:
        """Context in which this thread reads the table for one try of its batch."""
        reads = self._java.reads()
        return _between(reads.tryBegins, reads.tryEnds)

    def asking(self) -> AbstractContextManager[None]:
        """A function of the program makes the rows of a try, and may keep what it reads."""
        reads = self._java.reads()
        return _between(reads.askBegins, reads.askEnds)

    def recomputed(self) -> int:
        """Number of times that rows may have been computed again since this JVM began.

        It counts executors lost and stages repeated; -1: not known.
        """
        return int(self._java.recomputed())

    def last_conflict(self) -> Conflict | None:
        """The last refused commit of this session; None when there was none."""
        text = self._java.lastConflict()
        if text is None:
            return None
        data = json.loads(text)
        return Conflict(
            data["instant"], data["with"], tuple(data.get("fileGroups") or ())[:5], bool(data.get("yielded"))
        )

    def close(self) -> bool:
        """Clean exit.

        False: something is unresolved; the registration stays and the operator settles this
        incarnation.
        """
        return bool(self._java.close())


@contextmanager
def _between(begins: Callable[[], object], ends: Callable[[], object]) -> Iterator[None]:
    begins()
    try:
        yield
    finally:
        ends()
