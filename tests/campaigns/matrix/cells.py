"""The cells of RFC-22's test plan: {copy-on-write, merge-on-read} x {one writer, two on disjoint
files, two on the same} x tests 1-7 x storage. And one cell more for each table type, which RFC-22
does not have: two writers insert the same new keys (I13).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

KINDS: Mapping[str, str] = {"cow": "CopyOnWrite", "mor": "MergeOnRead"}
WRITERS: Mapping[str, str] = {
    "single": "single writer",
    "disjoint": "optimistic, disjoint",
    "overlapping": "optimistic, overlapping",
}
STORAGE: Mapping[str, str] = {"file": "file", "s3": "S3"}


@dataclass(frozen=True)
class Test:
    """One of the seven tests, in RFC-22's own order, or the one about new keys."""

    number: int
    title: str
    eager: bool = False
    """Failed writes are cleaned by the next writer."""
    metadata: bool = True
    """With Hudi's metadata table."""
    async_clean: bool = False
    """Table services run beside the writers, not after them."""
    incremental: bool = False
    new_keys: bool = False
    """The writers meet in new keys of a new partition, not on a file group."""


TESTS = {
    test.number: test
    for test in (
        Test(1, "eager, without metadata", eager=True, metadata=False),
        Test(2, "eager, with metadata", eager=True),
        Test(3, "eager, with metadata, async cleaning", eager=True, async_clean=True),
        Test(4, "lazy, without metadata", metadata=False),
        Test(5, "lazy, with metadata"),
        Test(6, "lazy, with metadata, async cleaning", async_clean=True),
        Test(7, "incremental pull, commits end out of order", incremental=True),
        Test(8, "lazy, with metadata, the same new keys", new_keys=True),
    )
}


@dataclass(frozen=True)
class Cell:
    """One cell; `name` is how it is asked for, `cow/overlapping/4/s3`."""

    kind: str
    writers: str
    number: int
    storage: str

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.writers}/{self.number}/{self.storage}"

    @property
    def file(self) -> str:
        """Name of its result file."""
        return self.name.replace("/", "-")

    @property
    def test(self) -> Test:
        return TESTS[self.number]

    @property
    def several(self) -> bool:
        """Two writers."""
        return self.writers != "single"

    @property
    def refused(self) -> bool:
        """Several writers that clean eagerly would roll each other back: refused, and that is what
        the cell shows.
        """
        return self.several and self.test.eager

    @property
    def beside_stock(self) -> bool:
        """The same workload with plain Hudi settings gives the same rows."""
        return self.test.eager and not self.several


PLAN = tuple(
    Cell(kind, writers, number, storage)
    for kind, writers, number, storage in itertools.product(KINDS, WRITERS, TESTS, STORAGE)
    if not TESTS[number].new_keys
)
"""RFC-22's own."""
EVERY = (*PLAN, *(Cell(kind, "overlapping", 8, "s3") for kind in KINDS))


def chosen(only: str) -> tuple[Cell, ...]:
    """Cells whose name has a match of this regular expression; all if it is empty.

    Raises ValueError when none has, or when it is no expression.
    """
    try:
        found = tuple(cell for cell in EVERY if re.search(only, cell.name))
    except re.error as error:
        raise ValueError(f"--only {only!r}: not a regular expression: {error}") from None
    if not found:
        raise ValueError(f"--only {only!r}: matches no cell; a cell is named like {EVERY[0].name}")
    return found


def cell(name: str) -> Cell:
    """The cell of that name. Raises KeyError."""
    return {each.name: each for each in EVERY}[name]
