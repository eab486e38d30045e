"""A fixture for agents whose Spark is a fake: it has no executors that could be lost."""

from __future__ import annotations

import pytest

from hudi_runtime.process import spark as sp


@pytest.fixture(autouse=True)
def no_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    """None was lost. A test of a loss says so itself."""
    monkeypatch.setattr(sp, "lost_executors", lambda _spark: False)
