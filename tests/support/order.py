"""Order in which the files of a tier run.

    python -m pytest -p tests.support.order --oldest-first FILE tests/tiers/component/crds

FILE holds the last results (docs/results/raw/last-run/component.json). The files that show an
invariant come first, so that a run that is cut off shows these. Then come those whose tests were
seen longest ago, and of these the ones that take least: tests that one run has not shown are shown
by the next one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.evidence.invariants import INVARIANTS

UNKNOWN_SECONDS = 60.0
"""Assumed for a test that was not measured: about as long as a test of one writer takes."""
Results = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""File → test with its parameters → its last result: ``at`` (UTC), ``seconds``."""
Tests = Sequence[tuple[str, str]]
"""File and name."""


def stored(path: Path | None) -> Results:
    """The last results of a tier; empty: there are none."""
    if path is None or not path.exists():
        return {}
    found: Results = json.loads(path.read_text(encoding="utf-8"))
    return found


def _seconds(tests: Tests, results: Results) -> dict[str, float]:
    """For each file, in the order of the tests."""
    sums: dict[str, float] = {}
    for file, name in tests:
        sums[file] = sums.get(file, 0.0) + float(_last(results, file, name).get("seconds", UNKNOWN_SECONDS))
    return sums


def _last(results: Results, file: str, name: str) -> Mapping[str, Any]:
    """The last result of a test; of some tiers that of its whole file is kept, as ``*``."""
    group = results.get(file, {})
    return group.get(name) or group.get("*") or {}


OF_INVARIANTS = frozenset(test.partition("::")[0] for tests in INVARIANTS.values() for test in tests)
"""Files with tests of invariants."""


def longest_first(tests: Tests, results: Results) -> list[str]:
    """The files of tests, those of invariants first, then by the sum of the seconds of these tests.

    Files that take equally long stay in the order that they have.
    """
    sums = _seconds(tests, results)
    return sorted(sums, key=lambda file: (file not in OF_INVARIANTS, -sums[file]))


def oldest_first(tests: Tests, results: Results) -> list[str]:
    """The files of tests, those of invariants first, then by the day of the oldest result.

    The shortest of a day come first. A test without a result is the oldest.
    """
    sums, days = _seconds(tests, results), dict[str, str]()
    for file, name in tests:
        day = str(_last(results, file, name).get("at", ""))[: len("2026-01-01")]
        days[file] = min(day, days.get(file, day))
    return sorted(sums, key=lambda file: (file not in OF_INVARIANTS, days[file], sums[file]))


def file_of(item: pytest.Item) -> str:
    """The file of a test, from the root of the repository."""
    return item.nodeid.partition("::")[0]


def sort(items: list[pytest.Item], order: Sequence[str]) -> None:
    """Bring the files into this order; the tests of each stay as they are."""
    place = {file: number for number, file in enumerate(order)}
    items.sort(key=lambda item: place[file_of(item)])


class Order:
    """The hook of one process."""

    def __init__(self, results: Results) -> None:
        self._results = results

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        sort(items, oldest_first([(file_of(item), item.name) for item in items], self._results))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--oldest-first", type=Path, metavar="FILE", help="files that were seen longest ago come first")


def pytest_configure(config: pytest.Config) -> None:
    # With tests.support.sharing, that one decides the order.
    if (file := config.getoption("--oldest-first")) and not config.getoption("--share", None):
        config.pluginmanager.register(Order(stored(file)), "order-of-files")
