"""What groups of tests said last: taken over from reports, kept by test where a file is not run whole, and shown when it is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.pages import last_run
from tests.campaigns.pages.last_run import PAGE, counted, missing, page, record, results
from tests.support import evidence
from tests.support.evidence import catalog


def report(folder: Path, **cases: str) -> list[Path]:
    """A JUnit report of tests.tiers.hudi.test_a; outcomes: `passed`, or the element that a case has."""
    lines = [
        f'<testcase classname="tests.tiers.hudi.test_a" name="{name}">{"" if kind == "passed" else f"<{kind}/>"}</testcase>' for name, kind in cases.items()
    ]
    path = folder / "hudi.xml"
    path.write_text(f"<testsuites><testsuite>{''.join(lines)}</testsuite></testsuites>")
    return [path]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(last_run, "RESULTS", tmp_path / "raw")
    monkeypatch.setattr(last_run, "files", lambda tier: ["tests/tiers/hudi/test_a.py", "tests/tiers/hudi/test_b.py"] if tier in ("hudi", "unit") else [])
    monkeypatch.setattr(evidence, "reachable", lambda commit: True)
    known = {"tests/tiers/hudi/test_a.py": ("one", "two", "three"), "tests/tiers/hudi/test_b.py": ("four",)}
    monkeypatch.setattr(catalog, "tests", lambda file: tuple(catalog.Test(file, name, catalog.EVERY) for name in known[file]))
    return tmp_path


def test_each_test_of_a_long_tier_has_its_own_last_result(place: Path) -> None:
    record("hudi", report(place, one="passed", two="failure", three="skipped"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z")
    assert missing("hudi", "aaaaaaaaaa") == ["tests/tiers/hudi/test_a.py", "tests/tiers/hudi/test_b.py"], "a file that failed, and one that was not run"
    record("hudi", report(place, two="passed", three="passed"), commit="bbbbbbbbbb", at="2026-01-02T00:00Z")
    assert {test: run["commit"] for test, run in results("hudi")["tests/tiers/hudi/test_a.py"].items()} == {"one": "a" * 10, "two": "b" * 10, "three": "b" * 10}
    assert missing("hudi", "bbbbbbbbbb") == ["tests/tiers/hudi/test_a.py", "tests/tiers/hudi/test_b.py"], "one was not run on it"
    record("hudi", report(place, one="passed", two="passed", three="passed"), commit="bbbbbbbbbb", at="2026-01-02T00:00Z")
    assert missing("hudi", "bbbbbbbbbb") == ["tests/tiers/hudi/test_b.py"]
    record("hudi", report(place, one="passed"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z")
    assert (counted("hudi", "aaaaaaaaaa"), counted("hudi", "bbbbbbbbbb")) == ((1, 0), (2, 0))
    text = page()
    assert "| hudi | test_a.py | 3 | 0 | 2026-01-01 to 2026-01-02 | `aaaaaaaaaa`, `bbbbbbbbbb` |" in text
    assert "## Without a result\n\n* tests/tiers/unit" not in text
    without = text.partition("## Without a result")[2]
    assert "* tests/tiers/hudi/test_b.py\n" in without
    assert without.count("test_a.py") == 1, "in the tier unit, where it was not run"
    assert evidence.faults(text) == []


def test_a_skip_is_a_failure_and_is_named(place: Path) -> None:
    record("hudi", report(place, one="skipped", two="error"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z")
    failed = page().partition("## Failed")[2].partition("## Without")[0]
    assert "* tests/tiers/hudi/test_a.py::one" in failed
    assert "* tests/tiers/hudi/test_a.py::two" in failed
    assert "* tests/tiers/hudi/test_a.py: three\n" in page().partition("## Without a result")[2], "a test of a file that was run in part"


def test_of_other_tiers_a_file_has_one_result(place: Path) -> None:
    record("unit", report(place, one="passed", two="failure"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z")
    wanted = {"commit": "aaaaaaaaaa", "at": "2026-01-01T00:00Z", "outcome": "failed", "tests": 2, "names": ["one", "two"]}
    assert results("unit")["tests/tiers/hudi/test_a.py"] == {"*": wanted}
    record("unit", report(place, one="passed", two="passed"), commit="bbbbbbbbbb", at="2026-01-02T00:00Z")
    assert results("unit")["tests/tiers/hudi/test_a.py"]["*"]["outcome"] == "passed"


def test_a_file_that_is_gone_is_not_shown(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record("hudi", report(place, one="passed"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z")
    monkeypatch.setattr(last_run, "files", lambda tier: ["tests/tiers/hudi/test_b.py"] if tier == "hudi" else [])
    record("hudi", report(place, one="passed"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z")
    assert results("hudi") == {}


def test_the_page_names_every_group() -> None:
    text = PAGE.read_text()
    for tier in last_run.TIERS:
        for name in last_run.files(tier):
            assert Path(name).name in text, "written by `python -m tests.campaigns.pages.last_run --page`"
