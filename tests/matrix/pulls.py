"""Incremental pulls in the three orders, while commits end out of order: nothing is lost, nothing given twice, nothing given too early."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.matrix.setup import Setup
from tests.matrix.workload import Row, given_twice

from hudi_runtime.incremental import Reader
from hudi_runtime.positions import ORDERS, Position
from hudi_runtime.timeline import WRITE_ACTIONS


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
        look = self._reader.look()
        completed = [i for i in look.timeline.completed if i.action in WRITE_ACTIONS]
        fence = min((i.requested for i in look.timeline.pending if i.action in WRITE_ACTIONS), default="")
        for name, consumer in self._consumers.items():
            while pull := look.pull(consumer.position, limit=1):
                consumer.position = pull.position
                consumer.pulls.append(pull.instants)
                for row in pull.frame.collect():
                    values = row.asDict()
                    consumer.rows[row.id, row.p] = (row.id, row.p, row.v, row.ts, values.get("n"))
            given = {instant for pulled in consumer.pulls for instant in pulled}
            due = {i.requested for i in completed if name != "Fenced" or not fence or i.requested < fence}
            assert given == due, f"{name}: given {sorted(given)}, due {sorted(due)}"
        self.looks += 1

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
