"""How often a batch is looked for: what one look has found is what the next one begins with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyspark.sql import types

from hudi_contract import metadata
from hudi_runtime.read.progress import Progress
from hudi_runtime.read.sources import Batch
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import CommitInfo
from hudi_runtime.writer import schema as sc
from hudi_runtime.writer.commit import Committer

FIELDS = types.StructType([types.StructField(name, types.StringType()) for name in ("id", "p", "ts")])
FRAME: Any = SimpleNamespace(schema=FIELDS)


def at(number: int) -> str:
    return f"202601010000{number:05}"


class Table:
    """A table of which each look is noted."""

    def __init__(self) -> None:
        self.instants: list[tl.Instant] = []
        self.looks: list[object] = []

    def timeline(self) -> tl.Timeline:
        self.looks.append("timeline")
        return tl.Timeline(tuple(self.instants))

    def commits(self, instants: tuple[tl.Instant, ...]) -> Any:
        for instant in instants:
            extra = {metadata.WRITER: "w", metadata.INC: "i", metadata.PROGRESS: f'{{"digest":"{instant.requested}"}}'}
            yield instant, CommitInfo(extra, 1)

    def columns(self, *, listed: str | None) -> tuple[types.StructType, str]:
        self.looks.append(listed)
        return FIELDS, listed or "0"


class Looking(Committer):
    """A committer that writes nothing."""

    def __init__(self) -> None:
        self.table = Table()
        self._table: Any = self.table
        self._session: Any = SimpleNamespace(quiet=lambda: True, inc="i")
        self._job: Any = SimpleNamespace(writer="w")
        self._rules = sc.Rules(("id", "p"), ("ts",), null_for_missing=False)
        self._fitted_to, self._listed = None, None

    def batch(self, number: int) -> tuple[int, str]:
        """Looks for columns, commits, and looks for the commit; the schema base of the write."""
        mine = tl.Instant(at(number), "commit", tl.State.COMPLETED, at(number + 1))
        batch = Batch(FRAME, {}, mine.requested, Progress())
        _, base = self._evolved(batch, FRAME)
        self.table.instants.append(mine)
        found = self._find(batch, base="0")
        assert found is not None
        assert found[0] == mine
        looks = len(self.table.looks)
        self.table.looks.clear()
        return looks, base


def test_a_batch_looks_twice() -> None:
    """Before its write for the table's columns, after it for its commit."""
    looking = Looking()
    assert looking.batch(1) == (2, "0")
    assert looking.batch(3) == (2, at(2)), "with the listing that has shown the commit before it"
    assert looking.batch(5) == (2, at(4))
