"""How often a table is looked at for its columns, and that nothing which changes is taken from an
earlier look.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import types

from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import Table
from hudi_runtime.table.storage import Missing


def at(number: int) -> str:
    return f"202601010000{number:05}"


def text(*columns: str) -> str:
    return json.dumps(columns)


def struct(schema: str) -> types.StructType:
    return types.StructType([types.StructField(name, types.StringType()) for name in json.loads(schema)])


class Looked(Table):
    """A table whose timeline a test fills in, also between two listings, and which counts."""

    def __init__(self) -> None:
        self._commits, self._schemas = {}, {}
        self.written: dict[tl.Instant, tuple[str, str]] = {}
        """Operation and schema of the commits."""
        self.hidden: set[tl.Instant] = set()
        """What the next listing misses, although it has completed."""
        self.late: tuple[int, int, str] | None = None
        """What completes before Hudi lists the timeline."""
        self.listings = self.reads = self.asked = 0

    def commit(self, requested: int, completion: int, schema: str, operation: str = "UPSERT") -> tl.Instant:
        made = tl.Instant(at(requested), "deltacommit", tl.State.COMPLETED, at(completion))
        self.written[made] = (operation, schema)
        return made

    def timeline(self, *, folder: str = "") -> tl.Timeline:
        self.listings += 1
        found = tuple(sorted(i for i in self.written if i not in self.hidden))
        self.hidden = set()
        return tl.Timeline(found)

    def _completed(self, instant: tl.Instant) -> Any:
        self.reads += 1
        operation, schema = self.written[instant]
        return SimpleNamespace(
            getExtraMetadata=lambda: {"schema": schema} if schema else {},
            getOperationType=lambda: operation,
            fetchTotalInsertRecordsWritten=lambda: 1,
            fetchTotalUpdateRecordsWritten=lambda: 0,
            getTotalRecordsDeleted=lambda: 0,
        )

    def _asked(self) -> tuple[types.StructType | None, str]:
        """As Hudi does: the commit that began last and may change the schema has it."""
        self.asked += 1
        if self.late is not None:
            self.commit(*self.late)
            self.late = None
        written = sorted(self.written.items(), reverse=True)
        schemas = [schema for _, (operation, schema) in written if schema and operation != "COMPACT"]
        return (struct(schemas[0]), written[0][0].requested) if schemas else (None, "")

    def counted(self, listed: str | None) -> tuple[Any, tuple[int, int, int]]:
        """The answer; how many listings, commits that were read, and questions to Hudi it cost."""
        before = (self.listings, self.reads, self.asked)
        found = self.columns(listed=listed)
        return found, (self.listings - before[0], self.reads - before[1], self.asked - before[2])


OLD, NEW = text("id"), text("id", "c")


def test_one_commit_after_the_other_costs_a_listing_each() -> None:
    """Nobody else writes: the commit itself was read when its outcome was looked for."""
    table = Looked()
    assert table.counted(None) == ((None, "0"), (2, 0, 1))
    for n in range(1, 9, 2):
        mine = table.commit(n, n + 1, OLD)
        list(table.commits((mine,)))
        found, cost = table.counted(mine.completion)
        assert found == (struct(OLD), at(n + 1))
        assert cost == ((1, 0, 1) if n == 1 else (1, 0, 0)), "Hudi is asked once for each schema"


def test_others_commit() -> None:
    """The time is as new as without an earlier listing, and their commits are read once."""
    table = Looked()
    table.commit(1, 2, OLD)
    table.columns()
    table.commit(3, 4, OLD)
    assert table.counted(at(2)) == ((struct(OLD), at(4)), (2, 1, 0))
    table.commit(5, 6, NEW)
    assert table.counted(at(4)) == ((struct(NEW), at(6)), (2, 1, 1))
    assert table.counted(None) == ((struct(NEW), at(6)), (2, 0, 0))


def test_what_a_listing_misses_is_compared_under_the_lock() -> None:
    """A commit completes, and a later one; a listing shows the later one only.

    The columns would be without those of the first one, and the time after it: the write would
    hide its columns, and nobody would notice.
    """
    table = Looked()
    table.commit(1, 2, OLD)
    table.columns()
    missed = table.commit(3, 4, NEW)
    table.commit(2, 5, OLD)
    table.hidden = {missed}
    assert table.counted(at(2))[0] == (struct(NEW), at(5))
    last = table.commit(7, 8, OLD)
    table.hidden = {last}
    found, until = table.columns(listed=at(5))
    assert (found, until) == (struct(NEW), at(5)), "what completed later is compared"


def test_a_commit_that_completes_while_hudi_is_asked() -> None:
    """Its columns are not taken for those of the commit before it."""
    table = Looked()
    table.commit(1, 2, OLD)
    table.late = (5, 9, NEW)
    found, until = table.columns()
    assert (found, until) == (struct(NEW), at(2))
    del table.written[max(table.written)]
    assert table.counted(None) == ((struct(OLD), at(2)), (2, 0, 1))


def test_the_commit_that_began_last_has_the_schema_and_a_service_has_none() -> None:
    table = Looked()
    table.commit(5, 6, NEW)
    table.commit(1, 7, OLD)
    assert table.columns()[0] == struct(NEW)
    table.commit(8, 9, OLD, "COMPACT")
    assert table.counted(None) == ((struct(NEW), at(9)), (2, 1, 0))
    table.commit(10, 11, OLD)
    assert table.counted(None)[0] == (struct(OLD), at(11))


class Cause:
    """A Java throwable, as py4j hands it over."""

    _target_id, _gateway_client = "o1", None

    def __init__(self, name: str, cause: Cause | None) -> None:
        self._name, self._cause = name, cause

    def getClass(self) -> Any:
        return SimpleNamespace(getName=lambda: self._name)

    def getMessage(self) -> str:
        return "cannot read"

    def getCause(self) -> Cause | None:
        return self._cause


def thrown(*names: str) -> Py4JJavaError:
    made: Cause | None = None
    for name in reversed(names):
        made = Cause(name, made)
    return Py4JJavaError("read failed", made)


class Gone(Looked):
    """A table whose files are read as they are; the store has none."""

    def __init__(self, *causes: str) -> None:
        super().__init__()
        timeline = SimpleNamespace(
            HoodieInstant=SimpleNamespace(State=SimpleNamespace(COMPLETED="COMPLETED")),
            TimelineUtils=SimpleNamespace(getCommitMetadata=self._get),
        )
        self._jvm: Any = SimpleNamespace(
            org=SimpleNamespace(
                apache=SimpleNamespace(
                    hudi=SimpleNamespace(common=SimpleNamespace(table=SimpleNamespace(timeline=timeline)))
                )
            )
        )
        self._causes = causes
        self.named: list[tuple[str, ...]] = []
        generator = SimpleNamespace(createNewInstant=lambda *name: self.named.append(name))
        self._kept: Any = SimpleNamespace(getInstantGenerator=lambda: generator, getActiveTimeline=lambda: None)

    _completed = Table._completed

    def _get(self, _named: Any, _timeline: Any) -> Any:
        raise thrown(*self._causes)


INSTANT = tl.Instant(at(1), "deltacommit", tl.State.COMPLETED, at(2))


def test_a_commit_is_read_by_its_name() -> None:
    """What was archived since the listing is missing; any other failure is none (I11)."""
    gone = Gone("org.apache.hudi.exception.HoodieIOException", "java.io.FileNotFoundException")
    with pytest.raises(Missing, match=at(1)):
        list(gone.commits((INSTANT,)))
    assert gone.named == [("COMPLETED", "deltacommit", at(1), at(2))]
    assert gone.listings == 0
    broken = Gone("org.apache.hudi.exception.HoodieIOException", "java.net.SocketException")
    with pytest.raises(Py4JJavaError):
        list(broken.commits((INSTANT,)))
