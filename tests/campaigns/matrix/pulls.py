"""Incremental pulls in the three orders, while commits end out of order: nothing is lost, nothing
given twice, nothing given too early.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from hudi_runtime.read.incremental import Reader
from hudi_runtime.read.positions import ORDERS, Position
from tests.campaigns.matrix.setup import Setup
from tests.campaigns.matrix.workload import Row, given_twice

_COMPLETED = re.compile(r"(\d{17})_\d{17}\.(?:commit|deltacommit|replacecommit)")
_BEGUN = re.compile(r"(\d{17})\.(?:(?:deltacommit|replacecommit|commit)\.(?:requested|inflight)|inflight)")


@dataclass(frozen=True)
class Due:
    """Commits that a pull has to return, by the file names of the timeline.

    This parser is separate from the reader's, which may be wrong.
    """

    completed: frozenset[str]
    fence: str
    """The oldest write that has begun and is not completed; empty: none."""

    @classmethod
    def of(cls, names: list[str]) -> Due:
        completed = frozenset(match[1] for name in names if (match := _COMPLETED.fullmatch(name)))
        begun = {match[1] for name in names if (match := _BEGUN.fullmatch(name))}
        return cls(completed, min(begun - completed, default=""))

    def to(self, order: str) -> frozenset[str]:
        """To a reader of that order."""
        return frozenset(t for t in self.completed if order != "Fenced" or not self.fence or t < self.fence)


@dataclass
class Consumer:
    """One reader: its position, the instants of each pull, and the rows as it knows them by now."""

    position: Position
    pulls: list[tuple[str, ...]] = field(default_factory=list)
    rows: dict[tuple[int, str], Row] = field(default_factory=dict)


class Pulls:
    """A reader of each order over the cell's table."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._consumers = {name: Consumer(beginning()) for name, beginning in ORDERS.items()}
        self._reader: Reader | None = None
        self.looks = 0

    def look(self) -> None:
        """Each reader pulls what there is now, commit by commit."""
        self._reader = self._reader or Reader(self._setup.spark(), self._setup.table.path)
        before = self._due()
        look = self._reader.look()
        after = self._due()
        for name, consumer in self._consumers.items():
            known = len(consumer.pulls)
            while pull := look.pull(consumer.position, limit=1):
                consumer.position = pull.position
                consumer.pulls.append(pull.instants)
                for row in pull.frame.collect():
                    values = row.asDict()
                    consumer.rows[row.id, row.p] = (row.id, row.p, row.v, row.ts, values.get("n"))
            given = {instant for pulled in consumer.pulls for instant in pulled}
            late = {instant for pulled in consumer.pulls[known:] for instant in pulled} - after.to(name)
            said = f"{name}: given {sorted(given)}, due {sorted(before.to(name))} to {sorted(after.to(name))}"
            assert before.to(name) <= given, said
            assert not late, said
        self.looks += 1

    def _due(self) -> Due:
        return Due.of(os.listdir(self._setup.table.folder / ".hoodie" / "timeline"))

    def all_given(self, expected: list[Row]) -> str:
        """In the end each of them has every row in its final form, from each commit once."""
        for name, consumer in self._consumers.items():
            assert not given_twice(consumer.pulls), f"{name}: {given_twice(consumer.pulls)}"
            found = sorted(consumer.rows.values(), key=lambda row: (row[0], row[1]))
            assert found == expected, f"{name}: {found}"
        numbers = {name: sum(len(pull) for pull in consumer.pulls) for name, consumer in self._consumers.items()}
        commits = set(numbers.values())
        assert len(commits) == 1, numbers
        return f"{self.looks} looks by {', '.join(numbers)}: each commit once, every row"
