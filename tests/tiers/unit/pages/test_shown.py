"""Each claim names tests that exist, and the page says of each which run it is in and what
it said last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.campaigns.mutations.lists import MUTATIONS
from tests.campaigns.pages import last_run, security, shown
from tests.support import evidence
from tests.support.evidence import catalog
from tests.support.evidence.catalog import ALL, EVERY, PART, Test

SOURCE = """
import pytest
KINDS = ["a", pytest.param("b", marks=pytest.mark.extra)]

def test_plain() -> None: ...

@pytest.mark.extra
def test_long() -> None: ...

@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind: str) -> None: ...
"""
JAVA = """
class OneTest {
  @Test
  void first() {
  }

  @Test
  @Tag("extra")
  void second() {
  }

  @ParameterizedTest
  @ValueSource(strings = {"a"})
  void third(String one) {
  }

  @BeforeEach
  void setUp() {
  }
}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(catalog, "ROOT", tmp_path)
    return tmp_path


def test_the_run_of_a_test_is_read_from_its_source(place: Path) -> None:
    (place / "test_one.py").write_text(SOURCE)
    assert [(test.name, test.run) for test in catalog.tests("test_one.py")] == [
        ("test_plain", EVERY),
        ("test_long", ALL),
        ("test_kinds", PART),
    ]
    (place / "test_all.py").write_text(
        f"import pytest\npytestmark = [pytest.mark.extra, pytest.mark.timeout(9)]\n{SOURCE}"
    )
    assert {test.run for test in catalog.tests("test_all.py")} == {ALL}
    (place / "OneTest.java").write_text(JAVA)
    assert [(test.name, test.run) for test in catalog.tests("OneTest.java")] == [
        ("first", EVERY),
        ("second", ALL),
        ("third", EVERY),
    ]
    (place / "AllTest.java").write_text('@Tag("extra")\n' + JAVA)
    assert {test.run for test in catalog.tests("AllTest.java")} == {ALL}


def test_what_was_said_last() -> None:
    one, two, three = (
        Test("tests/tiers/hudi/test_a.py", name, run) for name, run in (("one", EVERY), ("two", PART), ("three", ALL))
    )
    stored = {
        "tests/tiers/hudi/test_a.py": {
            "one": {"commit": "a" * 10, "at": "2026-01-01T00:00Z", "outcome": "passed"},
            "two[x]": {"commit": "b" * 10, "at": "2026-01-02T00:00Z", "outcome": "failed"},
            "two[y]": {"commit": "b" * 10, "at": "2026-01-02T00:00Z", "outcome": "passed"},
        }
    }
    assert shown.last([one], stored) == "1 of 1, 2026-01-01, `aaaaaaaaaa`"
    assert shown.last([three], stored) == "no result noted"
    said = shown.last([one, two, three], stored)
    assert said == (
        "1 of 3, 2026-01-01 to 2026-01-02, `aaaaaaaaaa`, `bbbbbbbbbb`; two: 2 cases; **failed**: two; no result: three"
    )
    assert shown.run((one, two, three)) == "every change (1), every change in part (1), test-all (1)"


def test_a_test_has_passed_with_all_of_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those without a result are named."""
    monkeypatch.setattr(catalog, "ids", lambda file: ("two[x]", "two[y]", "two[z]", "one"))
    two = Test("tests/tiers/hudi/test_a.py", "two", PART)
    run = {"commit": "a" * 10, "at": "2026-01-01T00:00Z", "outcome": "passed"}
    stored = {two.file: {"two[x]": run}}
    assert shown.last([two], stored) == ("0 of 1, 2026-01-01, `aaaaaaaaaa`; two: 1 case; no result: two[y], two[z]")
    stored = {two.file: {"two[x]": run, "two[y]": run, "two[z]": run}}
    assert shown.last([two], stored) == "1 of 1, 2026-01-01, `aaaaaaaaaa`; two: 3 cases"


def unchanged(stored: shown.Results) -> shown.Results:
    """The same results, of which nobody knows what was run."""
    return {
        file: {
            test: {name: value for name, value in result.items() if name != "source"} for test, result in group.items()
        }
        for file, group in stored.items()
    }


def test_a_result_of_an_earlier_text_is_marked(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_run, "ROOT", place)
    (place / "test_a.py").write_text(SOURCE)
    one, two, three = (Test("test_a.py", name, EVERY) for name in ("one", "two", "three"))
    run = {"commit": "a" * 10, "at": "2026-01-01T00:00Z", "outcome": "passed"}
    now, earlier = {**run, "source": last_run.held(place / "test_a.py")}, {**run, "source": "0123456789"}
    stored = {"test_a.py": {"one": now, "two[x]": now, "two[y]": earlier}}
    assert shown.last([one], stored) == "1 of 1, 2026-01-01, `aaaaaaaaaa`"
    assert shown.last([one, two, three], stored) == (
        "2 of 3, 2026-01-01, `aaaaaaaaaa`; the test was changed since: two; no result: three"
    )
    assert shown.last([two], stored) == "1 of 1, 2026-01-01, `aaaaaaaaaa`; the test was changed since"
    for names in ([two], [one, two], [one, two, three]):
        row = f"| `a` | {shown.last(names, stored)} |"
        assert last_run.CHANGED in row
        assert last_run.unmarked(row) == last_run.unmarked(f"| `a` | {shown.last(names, unchanged(stored))} |")
    stored["test_a.py"]["three"] = {**earlier, "outcome": "failed"}
    assert shown.last([two, three], stored) == (
        "1 of 2, 2026-01-01, `aaaaaaaaaa`; **failed**: three; the test was changed since: two, three"
    )


def test_a_claim_without_a_passing_result_of_real_parts_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of another tier that has passed does not hide it; a claim that names no such test
    is not meant.
    """
    run = {"commit": "a" * 10, "at": "2026-01-01T00:00Z", "outcome": "passed", "tests": 1}
    spark, pods, unit = (f"tests/tiers/{tier}/test_a.py" for tier in ("hudi", "e2e", "unit"))
    tests = {file: Test(file, "one", EVERY) for file in (spark, pods, unit)}
    monkeypatch.setattr(catalog, "named", lambda word: (tests[word],))
    claims = [("R1", [spark, unit]), ("R2", [spark, pods]), ("R3", [unit])]
    stored = {unit: {"*": {**run, "names": ["one"]}}, pods: {"one": run}}
    assert shown.not_shown(claims, stored).endswith("of all its parameters: R1.")
    stored[pods]["one"] = {**run, "outcome": "failed"}
    assert shown.not_shown(claims, stored).endswith("of all its parameters: R1, R2.")
    stored[spark] = stored[pods] = {"one": run}
    assert shown.not_shown(claims, stored).endswith("of all its parameters: –.")


def test_a_command_without_a_page_of_results_says_where_it_is_told() -> None:
    lines = [line for line in shown.page().splitlines() if "`make demo`" in line]
    assert lines
    assert all(
        line.endswith("| README | a command of its own | one run of 2026-12-01, of ab6da290 |") for line in lines
    )


def test_what_a_test_stands_on() -> None:
    pods, s3, unit = (
        Test(file, "test", EVERY)
        for file in ("tests/tiers/e2e/test_a.py", "tests/tiers/hudi/test_a.py", "tests/tiers/unit/test_a.py")
    )
    assert (shown.on([pods]), shown.on([s3]), shown.on([unit])) == ("real pods and S3", "S3", "–")
    said = {
        word: shown.on(catalog.named(word))
        for word in ("test_a_cell_is_ok", "test_hdfs", "test_gs", "test_settings_of_a_bucket")
    }
    assert said == {
        "test_a_cell_is_ok": "S3, local files",
        "test_hdfs": "HDFS",
        "test_gs": "GCS",
        "test_settings_of_a_bucket": "S3, local files",
    }


def test_a_whole_file_speaks_for_the_tests_that_were_run_with_it() -> None:
    group = {
        last_run.WHOLE: {
            "commit": "a" * 10,
            "at": "2026-01-01T00:00Z",
            "outcome": "passed",
            "tests": 3,
            "names": ["old"],
        }
    }
    assert last_run.said(group, "old")
    assert last_run.said(group, "new") == [], "it was written after that run"
    assert [last_run.base(name) for name in ("one", "two[a-b]", "three()", "four{String}[1]")] == [
        "one",
        "two",
        "three",
        "four",
    ]


def test_each_row_of_rfc_22_names_tests_that_exist() -> None:
    rows = dict(shown.rows())
    assert list(rows)[:2] == ["R1", "R2"]
    assert len(rows) == sum(line.startswith("| R") for line in shown.RFC.read_text().splitlines()), (
        "a row that the expression does not see is not shown"
    )
    nothing = [
        (row, word)
        for row, words in rows.items()
        for word in words
        if not catalog.named(word) and not word.startswith(tuple(shown.BY_HAND))
    ]
    assert nothing == []


def test_each_invariant_is_shown_by_a_test_of_every_change() -> None:
    stated = set(re.findall(r"\bI\d+\b", (evidence.ROOT / "docs" / "design" / "protocol.md").read_text()))
    assert set(shown.INVARIANTS) == stated
    for name, words in shown.INVARIANTS.items():
        assert any(test.run in (EVERY, PART) for test in catalog.named(words[0])), name
        assert [word for word in words if not catalog.named(word) and not word.startswith(tuple(shown.BY_HAND))] == []


ON_PODS_ALONE = {
    "I1": "the tests of S3 that pause a holder of the lock run for minutes (make faults, test_lease_only)",
    "I6": "S3 has the step that is repeated alone (test_agent.py::test_next_agent_finishes_a_rollback, test-all)",
}
"""Invariants that no test of every change shows on S3 without pods, and why."""


def not_shown_everywhere(invariants: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Invariants that the run of every change does not show on pods, or on S3, and which."""
    found = {}
    for name, words in invariants.items():
        named = [test for word in words for test in catalog.named(word)]
        if not any(test.run == EVERY and test.file.startswith("tests/tiers/e2e/") for test in named):
            found[name] = "pods"
        elif not any(test.run in (EVERY, PART) and test.file.startswith("tests/tiers/hudi/") for test in named):
            found[name] = "S3"
    return found


def test_each_invariant_is_shown_on_s3_and_on_pods_by_every_change() -> None:
    assert not_shown_everywhere(shown.INVARIANTS) == dict.fromkeys(ON_PODS_ALONE, "S3")
    without_pods = {name: [word for word in words if "/e2e/" not in word] for name, words in shown.INVARIANTS.items()}
    assert not_shown_everywhere(without_pods) == dict.fromkeys(shown.INVARIANTS, "pods")


@pytest.mark.parametrize("finding", security.FINDINGS, ids=lambda finding: finding.about[:40])
def test_each_finding_of_the_review_names_tests_and_mutations_that_exist(finding: security.Finding) -> None:
    assert finding.tests
    assert [word for word in finding.tests if not catalog.named(word)] == []
    known = {mutation.id for mutation in MUTATIONS}
    assert [name for name in finding.mutations if name not in known] == []
    numbers = re.findall(r"F\d+", finding.about)
    told = (evidence.ROOT / "docs" / "design" / "findings.md").read_text()
    assert [number for number in numbers if f"\n### {number}: " not in told] == []


def test_hudis_own_suite_says_what_is_not_in_the_run_of_every_change() -> None:
    cells = [
        line.rpartition("|")[0].rpartition("|")[2]
        for line in (evidence.ROOT / "docs" / "design" / "hudi-suite.md").read_text().splitlines()
        if line.startswith("| ")
    ]
    named = [(match[1], match[2]) for cell in cells for match in re.finditer(r"`([^`]+)`(?=(.{0,2}))", cell)]
    wrong = [
        word
        for word, after in named
        if (found := catalog.named(word)) and {test.run for test in found} == {ALL} and after != " +"
    ]
    assert wrong == []
