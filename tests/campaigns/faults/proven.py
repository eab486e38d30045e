"""By what a case is proven: its tests fail on another lock (a cell of `make faults`), or has caught
a deliberate mutation of ours (`make mutations`).

By stored outcomes alone: what is only listed proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.campaigns.faults.cases import CASES, Case
from tests.campaigns.mutations.campaign import CAUGHT, stored
from tests.campaigns.mutations.lists import MUTATIONS
from tests.campaigns.mutations.mutation import Mutation

SHOWN = 4
"""Mutations that are named in one cell of the table; the others are counted."""


def mutations_of(case: Case) -> list[str]:
    """Mutations that a test of the case has caught, by the outcomes that are stored
    (docs/results/mutations.json), of whatever code.
    """
    return [one.id for one in _named(case) if (stored(one) or {}).get("outcome") == CAUGHT]


def not_judged(case: Case) -> list[str]:
    """Mutations that a test of the case must catch, whose outcome nobody has stored."""
    return [one.id for one in _named(case) if stored(one) is None]


def _named(case: Case) -> list[Mutation]:
    return [one for one in MUTATIONS if not one.redundant and set(one.tests) & set(case.tests)]


def failed_cells(case: Case, setups: Iterable[str], result: Callable[[str, str], dict[str, Any] | None]) -> list[str]:
    """`fault/setup` of other locks that let a table of this case be corrupted.

    `result` is asked for a fault and a setup.
    """
    faults = [test.removeprefix("faults::") for test in case.tests if test.startswith("faults::")]
    cells = [(fault, setup) for fault in faults for setup in setups if setup != "ours"]
    return [f"{fault}/{setup}" for fault, setup in cells if (result(fault, setup) or {}).get("verdict") == "corrupt"]


def words(cells: list[str], mutations: list[str], listed: int) -> str:
    """One cell of the table. `listed`: mutations without a stored outcome."""
    more = f" and {len(mutations) - SHOWN} more" if len(mutations) > SHOWN else ""
    told = ", ".join(f"`{name}`" for name in mutations[:SHOWN]) + more
    return (
        "; ".join(
            filter(
                None,
                [
                    f"corrupt: {', '.join(f'`{cell}`' for cell in cells)}" if cells else "",
                    f"mutations: {told}" if told else "",
                    f"{listed} listed, not judged" if listed else "",
                ],
            )
        )
        or "–"
    )


def counted(rows: list[tuple[Case, list[str], list[str]]]) -> str:
    """The last line: how many cases are proven, and by what."""
    tested = [row for row in rows if row[0].tests]
    naive = [row for row in tested if row[1]]
    mutated = [row for row in tested if row[2]]
    neither = [str(row[0].number) for row in tested if not row[1] and not row[2]]
    none = [str(row[0].number) for row in rows if not row[0].tests]
    return (
        f"{len(tested)} of {len(CASES)} cases have tests (none: {', '.join(none) or '–'}); another lock fails in a "
        f"cell above: {len(naive)}, "
        f"one of their tests has caught a mutation: {len(mutated)}, neither: {', '.join(neither) or 'none'}"
    )
