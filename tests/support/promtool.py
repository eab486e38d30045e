"""Prometheus' promtool, and what can be read from a PromQL expression without it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_METRIC = re.compile(r"(?<![\w.$])((?:hudi_operator|hudi_gateway)_\w+|up)\b(?!\s*\()(?:\s*\{([^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(=~|!~|!=|=)\s*\"((?:[^\"\\]|\\.)*)\"")
_GROUPED = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)")


def need() -> None:
    """Skip a test on a machine without promtool; fail where the full tier is required."""
    if shutil.which("promtool") is None:
        why = "promtool is not installed, so no rule and no query is checked: hack/setup/deps installs it"
        if os.environ.get("REQUIRE_TIERS") == "full":
            pytest.fail(why)
        pytest.skip(why)


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool; output is standard output and error together."""
    return subprocess.run(
        ["promtool", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, cwd=cwd
    )


@dataclass(frozen=True)
class Selector:
    """Series that an expression asks for."""

    metric: str
    matchers: tuple[tuple[str, str, str], ...]
    """Label, operator and value."""

    @property
    def labels(self) -> set[str]:
        return {label for label, _, _ in self.matchers}


def selectors(expression: str) -> list[Selector]:
    """Every selector of a metric of ours, and of ``up``."""
    found = _METRIC.findall(expression)
    return [Selector(metric, tuple(_MATCHER.findall(matchers))) for metric, matchers in found]


def grouped(expression: str) -> set[str]:
    """Labels by which an expression aggregates or joins."""
    return {label.strip() for inner in _GROUPED.findall(expression) for label in inner.split(",") if label.strip()}


def replaced(expression: str, variables: dict[str, str]) -> str:
    """A dashboard's expression with Grafana's variables filled in, as Grafana does."""
    known = {"__rate_interval": "5m", "__range": "6h", **variables}
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda m: known[m[1] or m[2]], expression)
