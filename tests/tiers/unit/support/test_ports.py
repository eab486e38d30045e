"""A port that one test has drawn is nobody else's, before its server listens as well."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import ROOT, ports


class Drawn:
    """Draws these numbers, one after the other."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = list(numbers)

    def randint(self, first: int, last: int) -> int:
        assert (first, last) == (ports.FIRST, ports.LAST)
        return self._numbers.pop(0)


def test_no_port_is_drawn_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ports.free_ports(2)
    monkeypatch.setattr(ports, "_ours", {first})
    monkeypatch.setattr(ports, "_DRAWN", Drawn(first, first, second))
    assert ports.free_port() == second


def test_another_process_draws_others() -> None:
    """Nobody listens on them; the other process still takes none of these, and some others."""
    mine = ports.free_ports(3)
    others = range(ports.FIRST, ports.FIRST + 100)
    asked = f"print([p for p in {mine} if ports._is_ours(p)], any(ports._is_ours(p) for p in {others}))"
    done = subprocess.run(
        [sys.executable, "-c", f"from tests.support import ports; {asked}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["[]", "True"]
