"""Proofs of a case: its tests fail on another lock (a cell of `make faults`), or have caught a
deliberate mutation of ours (`make mutations`).

Only stored outcomes count: a test that is merely listed proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from tests.campaigns.faults.cases import CASES, Case
from tests.campaigns.mutations.campaign import CAUGHT, own_key, stored
from tests.campaigns.mutations.lists import MUTATIONS
from tests.campaigns.mutations.mutation import Drifted, Mutation
from tests.campaigns.mutations.place import tracked

EARLIER = "of earlier code"
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


def of_earlier_code(mutation: str) -> bool:
    """Whether the stored outcome of a mutation is of other code than what is checked out."""
    (one,) = (one for one in MUTATIONS if one.id == mutation)
    try:
        return (stored(one) or {}).get("key") != own_key(one, _files())
    except Drifted:
        return True


@cache
def _files() -> list[str]:
    return tracked()


def _named(case: Case) -> list[Mutation]:
    return [one for one in MUTATIONS if not one.redundant and set(one.tests) & set(case.tests)]


def failed_cells(case: Case, setups: Iterable[str], result: Callable[[str, str], dict[str, Any] | None]) -> list[str]:
    """`fault/setup` of other locks that let a table of this case be corrupted.

    `result` is asked for a fault and a setup.
    """
    faults = [test.removeprefix("faults::") for test in case.tests if test.startswith("faults::")]
    cells = [(fault, setup) for fault in faults for setup in setups if setup != "ours"]
    return [f"{fault}/{setup}" for fault, setup in cells if (result(fault, setup) or {}).get("verdict") == "corrupt"]


def words(cells: list[str], mutations: list[str], listed: int, earlier: int = 0) -> str:
    """One cell of the table. `listed`: mutations without a stored outcome; `earlier`: how many of
    the others have one of earlier code.
    """
    more = f" and {len(mutations) - SHOWN} more" if len(mutations) > SHOWN else ""
    told = ", ".join(f"`{name}`" for name in mutations[:SHOWN]) + more
    told += f" ({earlier} of them {EARLIER})" if earlier else ""
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


def counted(rows: list[tuple[Case, list[str], list[str]]], earlier: Callable[[str], bool]) -> str:
    """The last line: how many cases are proven, and by what.

    `earlier`: whether the outcome of a mutation is of earlier code.
    """
    tested = [row for row in rows if row[0].tests]
    naive = [row for row in tested if row[1]]
    mutated = [row for row in tested if row[2]]
    old = sum(all(map(earlier, row[2])) for row in mutated)
    neither = [str(row[0].number) for row in tested if not row[1] and not row[2]]
    none = [str(row[0].number) for row in rows if not row[0].tests]
    return (
        f"{len(tested)} of {len(CASES)} cases have tests (none: {', '.join(none) or '–'}); another lock fails in a "
        f"cell above: {len(naive)}, "
        f"one of their tests has caught a mutation: {len(mutated)}"
        f"{f' ({old} of them by outcomes {EARLIER} alone)' if old else ''}, neither: {', '.join(neither) or 'none'}"
    )
