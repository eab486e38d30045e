"""Whether a test has to leave nothing behind, for the replay of its protocol logs: no lock, no
record, nobody registered or unsettled.

Every test has to that has passed, but those that say why not: `@pytest.mark.unfinished("why")`.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

_PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """For a tier's conftest: notes whether the test has passed.

    A failed one leaves its work unfinished, and has reported its failure.
    """
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


def complete(item: pytest.Item) -> bool:
    """Asked when the test has ended. AssertionError when its mark gives no reason."""
    marker = item.get_closest_marker("unfinished")
    assert marker is None or (len(marker.args) == 1 and str(marker.args[0]).strip()), (
        'say why: @pytest.mark.unfinished("why")'
    )
    return marker is None and item.stash.get(_PASSED, False)
