"""Partition patterns declared by writers.

Their meaning, and whether two declarations have a partition in common.

A pattern is matched against a partition's values joined with ``/``, in the order of the table's
partition fields: ``*`` stands for any characters, ``/`` included, ``?`` for one character.
``field=`` before a value is optional, however the table names its folders.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

SEPARATOR = "/"
MOST_STARS = 5
"""Number of ``*`` in a pattern: two patterns are compared in the product of their stars."""
MEANS_NOTHING = "[]{}!\\"
"""Characters that other patterns give a meaning to, and these do not."""


def problem(pattern: str) -> str:
    """Why this is no pattern of partitions (value and rule); empty when it is one."""
    if pattern.count("*") > MOST_STARS:
        return f"{pattern!r} has more than five *"
    if not all(pattern.split(SEPARATOR)):
        return f"{pattern!r} is not a partition path: no '/' at the beginning or end, and none twice in a row"
    if any(char in MEANS_NOTHING for char in pattern):
        return (
            f"{pattern!r}: patterns are made of * (any characters) and ? (one character) only; [ ] {{ }} ! and a "
            "backslash are not supported"
        )
    return ""


def normal(pattern: str, fields: Sequence[str]) -> str:
    """The pattern without names of partition fields, so that each partition has one spelling."""
    names = tuple(f"{field}=" for field in fields)
    return SEPARATOR.join(
        next((level.removeprefix(n) for n in names if level.startswith(n)), level) for level in pattern.split(SEPARATOR)
    )


def in_common(mine: Sequence[str], others: Sequence[str]) -> tuple[str, str] | None:
    """The first two patterns that match a common partition; None: there is none.

    An empty list means ``*``.
    """
    return next(((a, b) for a, b in product(mine or ("*",), others or ("*",)) if intersect(a, b)), None)


@lru_cache(maxsize=16384)
def intersect(a: str, b: str) -> bool:
    """Whether some text matches both patterns."""
    # Positions in a and b that some text can have reached, when both patterns are read in parallel.
    reached, seen = [(0, 0)], {(0, 0)}
    while reached:
        i, j = reached.pop()
        if i == len(a) and j == len(b):
            return True
        for step in _steps(a, i, b, j):
            if step not in seen:
                seen.add(step)
                reached.append(step)
    return False


def _steps(a: str, i: int, b: str, j: int) -> list[tuple[int, int]]:
    """Positions after one more character, or after the end of a ``*``."""
    left, right = a[i : i + 1], b[j : j + 1]
    steps = []
    if left == "*":
        steps.append((i + 1, j))
    if right == "*":
        steps.append((i, j + 1))
    if left and right and (left == right or left in "*?" or right in "*?"):
        steps.append((i if left == "*" else i + 1, j if right == "*" else j + 1))
    return steps
