"""The audit's answer about a table that has come to rest: what says "ask again" is asked again, and
has to end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from hudi_runtime.audit.report import TITLES

T = TypeVar("T")
TIMES = 6
"""Number of times that the audit is run at most. One run takes seconds, and what it met (a clean, a
settling) usually has ended when it is over.
"""
PAUSE = 3.0
"""Seconds between two runs."""


class Unasked(str):
    """Reason of a check that is not asked at all. Of the others that are left out the outcome is
    looked at: they must not be ok.
    """

    __slots__ = ()


def not_seen(*names: str) -> dict[str, str]:
    """`without` of checks that nobody has seen on such a table yet, whatever they would say: to be
    asked when the test is run next, and left out with what is found, if at all.
    """
    return dict.fromkeys(names, Unasked("nobody has seen yet whether it holds here"))


def settled(
    ask: Callable[[], T],
    checks: Callable[[T], Iterable[Mapping[str, Any]]],
    wanted: Mapping[str, str],
    *,
    without: Mapping[str, str] = MappingProxyType({}),
    times: int = TIMES,
    pause: float = PAUSE,
) -> T:
    """The first answer whose checks (as JSON, all of those in `wanted`) have the outcomes
    that are wanted.

    Asked again only while every other outcome is of a check that says so itself (`askAgain`): a
    violation is never looked at twice here. AssertionError with the checks that differ, and how
    often was asked.

    `without`: the other checks, which do not hold, each with the reason. AssertionError for one
    that is ok: it need not be left out. ValueError without a reason.
    """
    _has_reasons(without)
    for asked in range(1, times + 1):
        answer = ask()
        found = {check["name"]: check for check in checks(answer)}
        assert found.keys() == wanted.keys() | without.keys(), (
            f"asked for {sorted(wanted)}, the audit has {sorted(found)}"
        )
        wrong = [found[name] for name in wanted if found[name]["outcome"] != wanted[name]]
        if not wrong:
            holds = [name for name in without if found[name]["outcome"] == "ok"]
            assert not holds, f"{', '.join(holds)}: left out ({without[holds[0]]}), but it holds"
            return answer
        if asked == times or not all(check["askAgain"] for check in wrong):
            break
        time.sleep(pause)
    told = "\n".join(
        (
            f"{one['name']}: {one['outcome']}, wanted {wanted[one['name']]}: {one['sentence']}: "
            f"{'; '.join(one['findings'])}"
        )
        for one in wrong
    )
    raise AssertionError(f"asked {asked} of at most {times} times:\n{told}")


def _has_reasons(without: Mapping[str, str]) -> None:
    for name, why in without.items():
        if name not in TITLES:
            raise ValueError(f"{name}: there is no such check of the audit; there are {', '.join(TITLES)}")
        if len(why.split()) < 3:
            raise ValueError(f"{name}: left out for the reason {why!r}: it needs a sentence that says why")
