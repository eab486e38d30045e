"""Several processes of pytest share the files of one tier.

    python -m pytest -p tests.support.sharing --share FOLDER --measured FILE tests/tiers/hudi

Each process collects all tests. A file is run whole, by the process that comes to it first: it
leaves an empty file in FOLDER, and the others pass over those tests, which are not in their
reports. So a process may join at any time, and each runs as much as it can. Nobody takes over what
a process has begun: when it dies, its exit code says so, and the run has failed.

Files that take longest come first, so that all processes end at about the same time; with
--oldest-first those that were seen longest ago (:mod:`tests.support.order`): a process that has
begun long before the others then shows those, should the time not be enough for all. FILE holds the
results of earlier runs (docs/results/raw/last-run/hudi.json); they decide the order, and nothing
else. FOLDER has to be empty at the beginning of a run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import order
from tests.support.time_limit import is_over


def take(folder: Path, file: str) -> bool:
    """Whether a file of tests is ours: no other process has taken it before."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        (folder / f"{file.replace('/', '-')}.taken").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Sharing:
    """The hooks of one process."""

    def __init__(self, folder: Path, results: order.Results, *, oldest_first: bool = False) -> None:
        self._folder = folder
        self._results = results
        self._sorted = order.oldest_first if oldest_first else order.longest_first
        self._ours: dict[str, bool] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if len({item.path.parent for item in items}) > 1:
            # pytest ends the fixtures of a folder after its last test, which another process may
            # have.
            raise pytest.UsageError("--share: all files of tests have to be in one folder")
        order.sort(items, self._sorted([(order.file_of(item), item.name) for item in items], self._results))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """True: nothing is left to do for this test."""
        file = order.file_of(item)
        if file not in self._ours:
            if is_over():
                return None  # left to other processes that have time; here the time limit passes over it
            self._ours[file] = take(self._folder, file)
        return None if self._ours[file] else True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        taken = [Path(file).stem for file, ours in self._ours.items() if ours]
        terminalreporter.write_line(f"{len(taken)} of {len(self._ours)} files were run here: {' '.join(taken)}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", type=Path, metavar="FOLDER", help="share the files with other processes")
    parser.addoption("--measured", type=Path, metavar="FILE", help="last results of the tests")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--share")
    if folder:
        oldest = config.getoption("--oldest-first", None)
        results = order.stored(oldest or config.getoption("--measured"))
        config.pluginmanager.register(Sharing(folder, results, oldest_first=bool(oldest)), "sharing-of-files")
