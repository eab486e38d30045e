"""No test is begun after the time of a run is over.

    TESTS_END_AT=1764460800 TESTS_LEFT=FOLDER python -m pytest -p tests.support.time_limit ...

TESTS_END_AT: seconds since 1970; without one of the two nothing is passed over. A test that is
under way then is finished. Those that were not begun are in no report; their names are in a file in
FOLDER, a line each, as reports name them, and their number is the last line of pytest's output.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest


def name_of(item: pytest.Item) -> str:
    """A test as JUnit reports name it: module::name."""
    file = item.nodeid.partition("::")[0]
    return f"{file.removesuffix('.py').replace('/', '.')}::{item.name}"


def is_over() -> bool:
    """Whether no test may be begun any more."""
    end_at = os.environ.get("TESTS_END_AT")
    return bool(end_at and os.environ.get("TESTS_LEFT")) and time.time() >= float(end_at or 0)


class TimeLimit:
    """The hooks of one process."""

    def __init__(self, left: Path) -> None:
        self._left = left
        self._names: list[str] = []

    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """True: nothing is left to do for this test. Asked before pytest runs it, and after
        `sharing`, which is asked first and knows what other processes run.
        """
        if not is_over():
            return None
        self._names.append(name_of(item))
        return True

    def pytest_sessionfinish(self) -> None:
        if self._names:
            self._left.mkdir(parents=True, exist_ok=True)
            (self._left / f"{os.getpid()}").write_text("".join(f"{name}\n" for name in self._names), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._names:
            terminalreporter.write_line(f"{len(self._names)} tests were not begun: the time of this run was over")


def pytest_configure(config: pytest.Config) -> None:
    if (left := os.environ.get("TESTS_LEFT")) and os.environ.get("TESTS_END_AT"):
        config.pluginmanager.register(TimeLimit(Path(left)), "time-limit")
