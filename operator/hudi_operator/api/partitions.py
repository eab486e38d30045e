"""Partition patterns declared by writers.

Their meaning, and whether two declarations have a partition in common.

A pattern is matched against a partition's values joined with ``/``, in the order of the table's
partition fields: ``*`` stands for any characters, ``/`` included, ``?`` for one character.
``field=`` before a value is optional, however the table names its folders.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

SEPARATOR = "/"
MOST_STARS = 5
"""Number of ``*`` in a pattern."""
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


class Patterns:
    """Patterns that are compared with others all at once (F513).

    A set of positions in all of them is one int: a pattern of n characters has n + 1 bits, from
    before its first character to behind its last one, and one above them that is never reached.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        """No pattern: any partition, which is ``*``."""
        self.patterns = tuple(patterns) or ("*",)
        self._starts = self._stars = self._any = self._above = 0
        self._ends: list[int] = []
        of: dict[str, int] = {}
        at = 1
        for pattern in map(_short, self.patterns):
            self._starts |= at
            for char in pattern:
                of[char] = of.get(char, 0) | at
                at <<= 1
            self._ends.append(at)
            self._above |= at << 1
            at <<= 2
        self._stars, one = of.pop("*", 0), of.pop("?", 0)
        self._of = {char: positions | one for char, positions in of.items()}
        self._other = one
        self._any = one
        for positions in of.values():
            self._any |= positions

    def first_met(self, pattern: str) -> tuple[str | None, int]:
        """The first of them that matches some text that ``pattern`` matches, and the steps taken.

        A step is one character of ``pattern``.
        """
        steps, reached = 0, self._behind_stars(self._starts)
        for char in _short(pattern):
            steps += 1
            if char == "*":
                # Every position from the first one on, in each pattern.
                reached = (reached | (self._above - reached)) & ~self._above
                continue
            fits = self._any if char == "?" else self._of.get(char, self._other)
            reached = self._behind_stars((reached & fits) << 1 | reached & self._stars)
            if not reached:
                return None, steps
        return next((p for p, end in zip(self.patterns, self._ends, strict=True) if reached & end), None), steps

    def _behind_stars(self, reached: int) -> int:
        """A ``*`` may stand for nothing."""
        return reached | (reached & self._stars) << 1


def in_common(mine: Patterns, others: Patterns) -> tuple[tuple[str, str] | None, int]:
    """The first two patterns that match a common partition, and the steps taken.

    None: there are no such two.
    """
    taken = 0
    for pattern in mine.patterns:
        met, steps = others.first_met(pattern)
        taken += steps
        if met is not None:
            return (pattern, met), taken
    return None, taken


def _short(pattern: str) -> str:
    """The same with one ``*`` for several in a row."""
    return re.sub(r"\*+", "*", pattern)
