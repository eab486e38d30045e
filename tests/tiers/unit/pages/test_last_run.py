"""What groups of tests said last: taken over from reports, kept by test where a file is not run
whole, and shown when it is missing.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.campaigns.pages import last_run
from tests.campaigns.pages.last_run import counted, missing, page, record, results
from tests.support import evidence
from tests.support.evidence import catalog


def report(folder: Path, **cases: str) -> list[Path]:
    """A JUnit report of tests.tiers.hudi.test_a.

    Outcomes: `passed`, or the element that a case has.
    """
    lines = [
        (
            '<testcase classname="tests.tiers.hudi.test_a" '
            f'name="{name}">{"" if kind == "passed" else f"<{kind}/>"}</testcase>'
        )
        for name, kind in cases.items()
    ]
    path = folder / "hudi.xml"
    path.write_text(f"<testsuites><testsuite>{''.join(lines)}</testsuite></testsuites>")
    return [path]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(last_run, "RESULTS", tmp_path / "raw")
    monkeypatch.setattr(
        last_run,
        "files",
        lambda tier: ["tests/tiers/hudi/test_a.py", "tests/tiers/hudi/test_b.py"] if tier in ("hudi", "unit") else [],
    )
    monkeypatch.setattr(evidence, "reachable", lambda commit: True)
    monkeypatch.setattr(last_run, "resolved", lambda checkout, commit: commit)
    known = {"tests/tiers/hudi/test_a.py": ("one", "two", "three"), "tests/tiers/hudi/test_b.py": ("four",)}
    monkeypatch.setattr(
        catalog, "tests", lambda file: tuple(catalog.Test(file, name, catalog.EVERY) for name in known[file])
    )
    monkeypatch.setattr(catalog, "ids", lambda file: ())
    return tmp_path


def test_each_test_of_a_long_tier_has_its_own_last_result(place: Path) -> None:
    record(
        "hudi", report(place, one="passed", two="failure", three="skipped"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z"
    )
    assert missing("hudi", "aaaaaaaaaa") == ["tests/tiers/hudi/test_a.py", "tests/tiers/hudi/test_b.py"], (
        "a file that failed, and one that was not run"
    )
    record("hudi", report(place, two="passed", three="passed"), commit="bbbbbbbbbb", at="2026-01-02T00:00Z")
    assert {test: run["commit"] for test, run in results("hudi")["tests/tiers/hudi/test_a.py"].items()} == {
        "one": "a" * 10,
        "two": "b" * 10,
        "three": "b" * 10,
    }
    assert missing("hudi", "bbbbbbbbbb") == ["tests/tiers/hudi/test_a.py", "tests/tiers/hudi/test_b.py"], (
        "one was not run on it"
    )
    record(
        "hudi", report(place, one="passed", two="passed", three="passed"), commit="bbbbbbbbbb", at="2026-01-02T00:00Z"
    )
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
    assert "* tests/tiers/hudi/test_a.py: three\n" in page().partition("## Without a result")[2], (
        "a test of a file that was run in part"
    )


def test_of_other_tiers_a_file_has_one_result(place: Path) -> None:
    record("unit", report(place, one="passed", two="failure"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z")
    wanted = {
        "commit": "aaaaaaaaaa",
        "at": "2026-01-01T00:00Z",
        "outcome": "failed",
        "tests": 2,
        "names": ["one", "two"],
    }
    assert results("unit")["tests/tiers/hudi/test_a.py"] == {"*": wanted}
    record("unit", report(place, one="passed", two="passed"), commit="bbbbbbbbbb", at="2026-01-02T00:00Z")
    assert results("unit")["tests/tiers/hudi/test_a.py"]["*"]["outcome"] == "passed"


def test_what_a_later_run_leaves_out_keeps_its_earlier_result(place: Path) -> None:
    record(
        "unit", report(place, one="passed", two="passed", gone="passed"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z"
    )
    record("unit", report(place, one="failure"), commit="bbbbbbbbbb", at="2026-01-02T00:00Z")
    group = results("unit")["tests/tiers/hudi/test_a.py"]
    assert [(said["commit"], said["outcome"]) for said in last_run.said(group, "two")] == [("aaaaaaaaaa", "passed")]
    assert [(said["commit"], said["outcome"]) for said in last_run.said(group, "one")] == [("bbbbbbbbbb", "failed")]
    assert last_run.said(group, "gone") == [], "a test that the file has no more"
    assert (
        "| unit | tests/tiers/hudi/test_a.py | 1 | 1 | 2026-01-01 to 2026-01-02 | `aaaaaaaaaa`, `bbbbbbbbbb` |"
        in page()
    )
    record("unit", report(place, one="passed", two="passed"), commit="cccccccccc", at="2026-01-03T00:00Z")
    assert list(results("unit")["tests/tiers/hudi/test_a.py"]) == ["*"]


def test_a_test_that_is_gone_is_not_shown(place: Path) -> None:
    record(
        "hudi",
        report(place, **{"one[a]": "passed", "renamed[a]": "failure"}),
        commit="aaaaaaaaaa",
        at="2026-01-01T00:00Z",
    )
    assert list(results("hudi")["tests/tiers/hudi/test_a.py"]) == ["one[a]"]


def test_parameters_that_a_test_has_no_more_are_not_counted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody need run anything for that; those that were not run yet are named."""
    record(
        "hudi",
        report(place, **{"one[a]": "passed", "one[old]": "failure", "two": "passed", "three": "passed"}),
        commit="aaaaaaaaaa",
        at="2026-01-01T00:00Z",
    )
    assert "* tests/tiers/hudi/test_a.py::one[old]" in page()
    monkeypatch.setattr(
        catalog, "ids", lambda file: ("one[a]", "one[new]", "two", "three") if file.endswith("test_a.py") else ()
    )
    assert list(results("hudi")["tests/tiers/hudi/test_a.py"]) == ["one[a]", "three", "two"]
    assert "one[old]" not in page()
    assert "| hudi | test_a.py | 3 | 0 |" in page()
    assert "* tests/tiers/hudi/test_a.py: one[new]\n" in page().partition("## Without a result")[2]


def test_parameters_are_those_that_pytest_collects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "ROOT", tmp_path)
    folder = tmp_path / "tests/tiers/hudi"
    folder.mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_a.py").write_text(
        "import pytest\nWORDS = [str(n) for n in range(2)]\n"
        "@pytest.mark.parametrize('a', [*WORDS, pytest.param('x y::z', marks=pytest.mark.extra)])\n"
        "def test_one(a): ...\ndef test_two(): ...\n"
    )
    (folder / "test_b.py").write_text("import nothing_of_that_name\n")
    assert catalog.ids("tests/tiers/hudi/test_a.py") == ("test_one[0]", "test_one[1]", "test_one[x y::z]", "test_two")
    assert catalog.ids("tests/tiers/hudi/test_b.py") == ()
    assert catalog.ids("tests/tiers/unit/test_a.py") == (), "its parameters have no results of their own"


def a_run(checkout: Path, *, commit: str = "") -> None:
    """What `tests/run` leaves of the tier hudi."""
    (checkout / "build" / "test").mkdir(parents=True)
    report(checkout / "build" / "test", one="passed", two="failure")
    if commit:
        (checkout / "build" / "test" / "hudi.commit").write_text(f"{commit}\n")


def test_a_run_of_make_test_is_taken_over(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(last_run, "write", lambda: None)
    a_run(place / "other", commit="aaaaaaaaaa")
    assert last_run.main(["--note", str(place / "other")]) == 0
    assert "hudi: 2 tests on aaaaaaaaaa\n" in capsys.readouterr().out
    group = results("hudi")["tests/tiers/hudi/test_a.py"]
    assert {test: (run["commit"], run["outcome"]) for test, run in group.items()} == {
        "one": ("aaaaaaaaaa", "passed"),
        "two": ("aaaaaaaaaa", "failed"),
    }
    last_run.note(place / "other", commit="bbbbbbbbbb")
    assert results("hudi")["tests/tiers/hudi/test_a.py"] == group, "what stands beside a report is what was run"


def test_of_a_report_without_a_commit_nothing_is_noted(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(last_run, "write", lambda: None)
    with pytest.raises(SystemExit):
        last_run.main(["--note", str(place / "nothing")])
    assert "no report of tests/run" in capsys.readouterr().err
    a_run(place / "other")
    with pytest.raises(SystemExit):
        last_run.main(["--note", str(place / "other")])
    assert "of which commit is" in capsys.readouterr().err
    assert results("hudi") == {}
    assert last_run.main(["--note", str(place / "other"), "--commit", "aaaaaaaaaa"]) == 0
    assert results("hudi")["tests/tiers/hudi/test_a.py"]["one"]["commit"] == "aaaaaaaaaa"


def git(folder: Path, *words: str) -> str:
    told = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.strip()


@pytest.fixture
def repository(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one commit of two files of tests."""
    folder = place / "checkout"
    (folder / "tests/tiers/hudi").mkdir(parents=True)
    for name in ("a", "b"):
        (folder / f"tests/tiers/hudi/test_{name}.py").write_text("def test_one(): ...\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    monkeypatch.setattr(last_run, "ROOT", folder)
    return folder


def changed_since() -> str:
    """The last column of the row of test_a in the tier hudi."""
    return next(line for line in page().splitlines() if line.startswith("| hudi | test_a.py |")).split("|")[-2].strip()


def test_a_result_of_an_earlier_text_of_its_test_is_marked(place: Path, repository: Path) -> None:
    commit, file = git(repository, "rev-parse", "HEAD")[:10], repository / "tests/tiers/hudi/test_a.py"
    record("hudi", report(place, one="passed", two="passed"), commit=commit, at="2026-01-01T00:00Z")
    assert changed_since() == ""
    assert "Of 0 of them the test was changed since." in page()
    file.write_text("def test_one(): assert True\n")
    assert changed_since() == "2", "also before it is committed"
    assert "Of 2 of them the test was changed since." in page()
    git(repository, "commit", "-q", "-a", "-m", "another text")
    assert changed_since() == "2"
    newer = git(repository, "rev-parse", "HEAD")[:10]
    record("hudi", report(place, one="passed"), commit=newer, at="2026-01-02T00:00Z")
    assert changed_since() == "1", "each result has its own commit"
    file.write_text("def test_one(): ...\n")
    assert changed_since() == "1", "what was there once is there again"
    record("hudi", report(place, one="passed", two="passed"), commit=f"{newer}+", at="2026-01-03T00:00Z")
    assert changed_since() == "", "changes that were not committed were run"


def test_whether_a_test_was_changed_is_known_without_a_history(place: Path, repository: Path) -> None:
    """In a shallow clone, and where no repository is at all: what was run stands with it."""
    git(repository, "commit", "-q", "--allow-empty", "-m", "two")
    of, file = git(repository, "rev-parse", "HEAD~1")[:10], repository / "tests/tiers/hudi/test_a.py"
    for tier in ("hudi", "unit"):
        record(tier, report(place, one="passed"), commit=of, at="2026-01-01T00:00Z")
    git(place, "clone", "-q", "--depth", "1", f"file://{repository}", "shallow")
    for where in (place / "shallow", repository):
        shutil.rmtree(where / ".git") if where == repository else None
        last_run.ROOT = where  # the fixture puts it back
        assert changed_since() == ""
        (where / file.relative_to(repository)).write_text("def test_one(): assert True\n")
        assert changed_since() == "1"
        assert "Of 2 of them the test was changed since." in page()


def test_of_a_result_without_its_contents_it_is_not_known(place: Path, repository: Path) -> None:
    """Nobody guesses: neither the mark nor its absence would be true."""
    record("hudi", report(place, one="passed"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z")
    assert "source" not in results("hudi")["tests/tiers/hudi/test_a.py"]["one"]
    assert changed_since() == "1 not known"
    assert "Of 0 of them the test was changed since, of 1 it is not known." in page()


def test_each_stored_result_says_what_was_run() -> None:
    without = [
        (file, test)
        for tier in last_run.TIERS
        for file, group in results(tier).items()
        for test, result in group.items()
        if not result.get("source")
    ]
    assert without == []


def test_a_commit_that_is_said_is_one_of_the_checkout(tmp_path: Path) -> None:
    for words in (
        ["init", "-q"],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "one"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert last_run.resolved(tmp_path, "HEAD") == last_run.resolved(tmp_path, head[:7]) == head[:10]
    (tmp_path / "build" / "test").mkdir(parents=True)
    report(tmp_path / "build" / "test", one="passed")
    with pytest.raises(ValueError, match="--commit aaaaaaaaaa names no commit"):
        last_run.note(tmp_path, commit="aaaaaaaaaa")


def test_a_file_that_is_gone_is_not_shown(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record("hudi", report(place, one="passed"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z")
    monkeypatch.setattr(last_run, "files", lambda tier: ["tests/tiers/hudi/test_b.py"] if tier == "hudi" else [])
    record("hudi", report(place, one="passed"), commit="aaaaaaaaaa", at="2026-01-01T00:00Z")
    assert results("hudi") == {}


def test_the_page_names_every_group() -> None:
    """Each file by its path: two of one tier may have one name."""
    lines = page().splitlines()
    for tier, folder in last_run.TIERS.items():
        for name in last_run.files(tier):
            row, never = f"| {tier} | {name.removeprefix(f'{folder}/')} | ", f"* {name}"
            assert any(line.startswith(row) or line.partition(": ")[0] == never for line in lines), name
