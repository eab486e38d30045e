"""Several processes of pytest share the files of one tier.

    python -m pytest -p tests.support.sharing --share FOLDER --measured FILE tests/tiers/hudi

Each process collects all tests. A file is run whole, by the process that comes to it first: it
leaves an empty file in FOLDER, and the others pass over those tests, which are not in their
reports. So a process may join at any time, and each runs as much as it can. Nobody takes over what
a process has begun: when it dies, its exit code says so, and the run has failed.

Files that take longest come first, so that all processes end at about the same time; with
--shortest-first those that take least: a process that has begun long before the others then shows
as many tests as it can, should the time not be enough for all. FILE holds the seconds of earlier
runs (docs/results/raw/last-run/hudi.json); they decide the order, and nothing else. FOLDER has to
be empty at the beginning of a run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.time_limit import is_over

UNKNOWN_SECONDS = 60.0
"""Assumed for a test that was not measured: about as long as a test of one writer takes."""
Seconds = Mapping[str, Mapping[str, float]]
"""File → test with its parameters → seconds."""


def measured(path: Path) -> dict[str, dict[str, float]]:
    """Seconds of the tests of a tier, from its stored results; empty: there are none."""
    if not path.exists():
        return {}
    stored = json.loads(path.read_text(encoding="utf-8"))
    return {
        file: {test: float(said["seconds"]) for test, said in group.items() if "seconds" in said}
        for file, group in stored.items()
    }


def longest_first(tests: Sequence[tuple[str, str]], seconds: Seconds) -> list[str]:
    """The files of tests (file, name), by the sum of the seconds of these tests.

    Files that take equally long stay in the order that they have.
    """
    sums: dict[str, float] = {}
    for file, name in tests:
        sums[file] = sums.get(file, 0.0) + seconds.get(file, {}).get(name, UNKNOWN_SECONDS)
    return sorted(sums, key=lambda file: -sums[file])


def take(folder: Path, file: str) -> bool:
    """Whether a file of tests is ours: no other process has taken it before."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        (folder / f"{file.replace('/', '-')}.taken").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def file_of(item: pytest.Item) -> str:
    """The file of a test, from the root of the repository."""
    return item.nodeid.partition("::")[0]


class Sharing:
    """The hooks of one process."""

    def __init__(self, folder: Path, seconds: Seconds, *, shortest_first: bool = False) -> None:
        self._folder = folder
        self._seconds = seconds
        self._shortest_first = shortest_first
        self._ours: dict[str, bool] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if len({item.path.parent for item in items}) > 1:
            # pytest ends the fixtures of a folder after its last test, which another process may
            # have.
            raise pytest.UsageError("--share: all files of tests have to be in one folder")
        order = longest_first([(file_of(item), item.name) for item in items], self._seconds)
        if self._shortest_first:
            order.reverse()
        items.sort(key=lambda item: order.index(file_of(item)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """True: nothing is left to do for this test."""
        file = file_of(item)
        if file not in self._ours:
            if is_over():
                return None  # left to whoever else has time; here the time limit passes over it
            self._ours[file] = take(self._folder, file)
        return None if self._ours[file] else True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        taken = [Path(file).stem for file, ours in self._ours.items() if ours]
        terminalreporter.write_line(f"{len(taken)} of {len(self._ours)} files were run here: {' '.join(taken)}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", type=Path, metavar="FOLDER", help="share the files with other processes")
    parser.addoption("--shortest-first", action="store_true", help="files that take least come first")
    parser.addoption("--measured", type=Path, metavar="FILE", help="seconds that tests have taken")


def pytest_configure(config: pytest.Config) -> None:
    folder, stored = config.getoption("--share"), config.getoption("--measured")
    if folder:
        sharing = Sharing(
            folder, measured(stored) if stored else {}, shortest_first=config.getoption("--shortest-first")
        )
        config.pluginmanager.register(sharing, "sharing-of-files")
