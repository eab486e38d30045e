"""Examples of Hypothesis are drawn anew in each run, by a seed that is printed.

Where `CI` is set, Hypothesis would draw the same ones for ever.
"""

from __future__ import annotations

import pytest
from hypothesis import core, settings

from tests.support import seeds

settings.register_profile("drawn", derandomize=False, print_blob=True)
settings.load_profile("drawn")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("hypothesis_seed", None) is None:
        core.global_force_seed = seeds.drawn()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Also in a run with ``-q``, and also when all is well."""
    terminalreporter.write_line(f"examples of Hypothesis: {seeds.VARIABLE}={core.global_force_seed}")
