"""Results that a rerun has replaced: their verdicts stay with the newest one, so that a page can
count what it does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

KEPT_SINCE = "2026-11-28"
"""Day since which results that are replaced are kept in `earlier`."""

Result = Mapping[str, Any]


def with_earlier(new: Result, old: Result | None, *, verdict: Callable[[Result], str] | None = None) -> dict[str, Any]:
    """`new`, and in `earlier` the verdicts, commits and days of the results before it, the oldest
    first. `verdict`: of a result without a field of that name.
    """
    return {**new, "earlier": earlier(old, verdict=verdict)}


def earlier(old: Result | None, *, verdict: Callable[[Result], str] | None = None) -> list[dict[str, str]]:
    """Value of `earlier` in a result that replaces `old`; None: it replaces nothing."""
    if old is None:
        return []
    said = verdict(old) if verdict else str(old["verdict"])
    return [*old.get("earlier", ()), {"verdict": said, "commit": str(old["commit"]), "at": str(old.get("at") or "")}]


def told(found: Iterable[Result | None], wanted: Callable[[Result], str] = lambda _: "ok") -> str:
    """Number of replaced results, for `Evidence.left_out`; `wanted`: the verdict that a cell must
    have.
    """
    pairs = [(one["verdict"], wanted(new)) for new in found if new is not None for one in new.get("earlier", ())]
    bad = sum(verdict != due for verdict, due in pairs)
    return (
        f"results that newer ones have replaced ({len(pairs)}, {bad} of them not as they must be, counted since "
        f"{KEPT_SINCE}; of those before nothing is known)"
    )
