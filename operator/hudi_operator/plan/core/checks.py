"""Named checks in a visible chain. The planners use them for decisions with many reasons.

Each check is a function with a name and one subject. It returns a finding, or None.
The first finding decides, so the order of a chain is the order of precedence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Facts = TypeVar("Facts")
Found = TypeVar("Found")


class Chain(Generic[Facts, Found]):
    """Checks of the same facts, in order of precedence.

    A chain is itself a check, so chains can be nested.
    """

    def __init__(self, *checks: Callable[[Facts], Found | None]) -> None:
        self.checks = checks

    def __call__(self, facts: Facts) -> Found | None:
        """The first finding; None when no check has one. Later checks are not called."""
        for check in self.checks:
            found = check(facts)
            if found is not None:
                return found
        return None
