"""Named checks in a visible chain: how the planners write down a decision that has many reasons.

Each check is a function with a name and one subject. It returns what it has found, or None when it has nothing to say.
The first finding decides, so the order of a chain is the order of precedence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Facts = TypeVar("Facts")
Found = TypeVar("Found")


class Chain(Generic[Facts, Found]):
    """Checks of the same facts, in order of precedence. A chain is itself a check, so one may stand within another."""

    def __init__(self, *checks: Callable[[Facts], Found | None]) -> None:
        self.checks = checks

    def __call__(self, facts: Facts) -> Found | None:
        """The first finding; None when no check has one. The checks behind it are not asked."""
        for check in self.checks:
            found = check(facts)
            if found is not None:
                return found
        return None
