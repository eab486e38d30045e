"""Batches of the writers of a cell, the points at which they wait, and the rows that must be there
in the end.

Pure: no I/O.

A gate is a file. `after`: the writer waits before it gives the batch, all before it being committed
(`<gate>.reached` tells). `gate`: a task of the write waits, the instant being inflight.

    one writer     seed · update · a column more · [lost] · r0 · r1 · r2 · r3
    two writers    w1: seed · slow … ·                          r0 · r1 · r2 · r3
                   w2:        quick … · a column more · [lost] · q0 · q1

Each quick commit is made while w1's slow write is inflight: disjoint, then the slow one, which
began first, ends last; overlapping, then it has to lose. In the cells about new keys both insert
the same keys into a partition without files, each into a separate file group. The column is added
while no other write is inflight; w1 does not know it, and goes on. In [lost] the writer is killed.
r2 and r3 wait for table services where these run beside writers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.campaigns.matrix.cells import Cell

Batch = dict[str, Any]
Row = tuple[int, str, str, int, "int | None"]
OLD = "id int, p string, v string, ts long"
NEW = f"{OLD}, n int"
REST, COLUMN, REST_TWO, LOST, COMPACTED, CLEANED = "rest-1", "column", "rest-2", "lost", "compacted", "cleaned"


@dataclass(frozen=True)
class Race:
    """A quick commit of w2 while a slow write of w1 is inflight; `conflict`: on one file group, or
    of the same new keys.

    `next_*`: the writers that are there have committed.
    """

    slow: str
    quick: str
    next_slow: str
    next_quick: str
    conflict: bool


@dataclass(frozen=True)
class Work:
    """Batches of each writer; the gates in them are files with `prefix` before their names."""

    one: list[Batch]
    two: list[Batch] = field(default_factory=list)
    races: tuple[Race, ...] = ()

    @property
    def expected(self) -> list[Row]:
        """The rows in the end: of each key the one that is newest by the ordering field."""
        newest: dict[tuple[int, str], Row] = {}
        for batch in [*self.one, *self.two]:
            for number, p, v, ts, *more in batch["rows"]:
                row = (number, p, v, ts, more[0] if more else None)
                newest[number, p] = max(newest.get((number, p), row), row, key=lambda found: found[3])
        return sorted(newest.values(), key=lambda row: (row[0], row[1]))

    @property
    def commits(self) -> int:
        """Number of commits of writers that there must be."""
        return len(self.one) + len(self.two)


def batch(
    ids: Iterable[int], p: str, v: str, ts: int, *, n: int | None = None, after: str = "", gate: str = ""
) -> Batch:
    """One batch; with `n` it has the column more."""
    rows: list[list[Any]] = [[number, p, v, ts, *([] if n is None else [n])] for number in ids]
    found: Batch = {"rows": rows, "schema": OLD if n is None else NEW}
    return found | {name: gate for name, gate in (("after", after), ("gate", gate)) if gate}


def work(cell: Cell, prefix: str, *, killed: bool) -> Work:
    """The work of a cell; `killed`: with the batch in which a writer is killed."""
    made = _two(cell, killed=killed) if cell.several else _one(killed=killed)
    for each in [*made.one, *made.two]:
        for name in ("after", "gate"):
            if name in each:
                each[name] = f"{prefix}{each[name]}"
    return made


def _one(*, killed: bool) -> Work:
    seed = both(batch(range(10), "a", "seed", 1), batch(range(10, 20), "b", "seed", 1))
    column = both(batch(range(5, 10), "a", "column", 3, n=3), batch(range(15, 20), "b", "column", 3, n=3))
    lost = [batch(range(10), "a", "lost", 4, n=4, gate=LOST)] if killed else []
    return Work([seed, batch(range(5), "a", "update", 2), column, *lost, *_rest(n=10)])


def both(one: Batch, other: Batch) -> Batch:
    """One batch with the rows of two."""
    return one | {"rows": [*one["rows"], *other["rows"]]}


def _rest(*, n: int | None) -> list[Batch]:
    gates = (REST, "", COMPACTED, CLEANED)
    return [batch(range(5), "a", f"r{number}", 10 + number, n=n, after=gate) for number, gate in enumerate(gates)]


def _two(cell: Cell, *, killed: bool) -> Work:
    disjoint = cell.writers == "disjoint"
    # A writer that loses a race starts over, and no longer ends out of order: so the incremental
    # reader sees one race of each kind.
    places = [("a", "b")] if disjoint else [("c", "a"), ("a", "a")] if cell.test.incremental else [("a", "a")]
    if cell.test.new_keys:
        places = [("c", "c")]
    base = {"a": 0, "b": 20, "c": 40}

    def ids(p: str, first: int = 0, last: int = 10) -> range:
        return range(base[p] + first, base[p] + last)

    seed = batch(ids("a"), "a", "seed", 1)
    slow, quick, races = [], [], []
    for number, (mine, theirs) in enumerate(places):
        races.append(_race(number, len(places), conflict=mine == theirs))
        slow.append(batch(ids(mine), mine, f"slow{number}", 5 + number, gate=f"slow-{number}"))
        quick.append(batch(ids(theirs), theirs, f"quick{number}", 2 + number, after=f"quick-{number}"))
    place, half = ("b", ids("b", 5)) if disjoint else ("a", ids("a", 5))
    column = batch(half, place, "column", 7, n=7, after=COLUMN)
    lost = [batch(half, place, "lost", 8, n=8, after=REST_TWO, gate=LOST)] if killed else []
    more = [
        batch(half, place, f"q{number}", 20 + number, n=number, after="" if killed or number else REST_TWO)
        for number in range(2)
    ]
    rest = _rest(n=None)
    # hudi-rs does not read files of the schema before beside those of the one after: each file
    # group is written again
    if places[0][0] == "c":
        rest[0] = both(rest[0], batch(ids("c", 5), "c", "r0", 10))
    return Work([seed, *slow, *rest], [*quick, column, *lost, *more], tuple(races))


def _race(number: int, last: int, *, conflict: bool) -> Race:
    end = number + 1 == last
    return Race(
        f"slow-{number}",
        f"quick-{number}",
        REST if end else f"slow-{number + 1}",
        COLUMN if end else f"quick-{number + 1}",
        conflict,
    )


def given_twice(pulls: Sequence[Sequence[str]]) -> set[str]:
    """Instants that more than one pull has given."""
    every = [instant for pull in pulls for instant in pull]
    return {instant for instant in every if every.count(instant) > 1}
