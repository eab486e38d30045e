"""`make test-all` in parts, with real pytest on a few tests of a folder of its own: what is
continued, what is kept, and what is said of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from tests.support import ROOT, evidence

FILE = "tests/tiers/hudi/test_{}.py"
DRIVER = """
import sys
from pathlib import Path
from types import SimpleNamespace
from tests.campaigns.guarantees import page as guarantees
from tests.campaigns.pages import last_run, measured, reach, shown
from tests.support import evidence
from tests.support.evidence import catalog

place, commit = Path(sys.argv[1]), sys.argv[2]
last_run.ROOT = catalog.ROOT = place
last_run.RESULTS, last_run.PAGE, shown.PAGE = place / "raw", place / "last-run.md", place / "shown.md"
reach.PAGE, guarantees.PAGE = place / "reach.md", place / "guarantees.md"
measured.PAGE = place / "measured.md"
faults = SimpleNamespace(TARGET=place / "faults.md", page=lambda: "")
sys.modules["tests.campaigns.faults.table"] = faults  # a page that takes long to make, and is of other results
catalog.ids = lambda file: ()  # so does asking for the parameters of all tests
evidence.commit, evidence.reachable = lambda: commit, lambda commit: True
sys.exit(1 if last_run.run("hudi") else 0)
"""
"""The program that `tests/run --all` starts for a tier, with its folders elsewhere."""


class Place:
    """A checkout with one tier, and what was run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / FILE).parent.mkdir(parents=True)
        (folder / "pytest.ini").write_text("[pytest]\n")

    def file(self, name: str, body: str) -> None:
        """A file with one test, which notes that it was run."""
        lines = [
            "import os, time",
            "from pathlib import Path",
            f"def test_{name}():",
            f"    open('ran', 'a').write('{name} ')",
            f"    {body}",
            "",
        ]
        (self.folder / FILE.format(name)).write_text("\n".join(lines))

    def start(self, commit: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, "-c", DRIVER, str(self.folder), commit]
        return subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def run(self, commit: str) -> tuple[int, str]:
        process = self.start(commit)
        said = process.communicate(timeout=60)[0]
        return process.returncode, said

    def cut_off(self, commit: str, name: str) -> None:
        """Start a run, and kill it as soon as it has come to this file."""
        self.ran()
        process, ran = self.start(commit), self.folder / "ran"
        end = time.monotonic() + 40
        while not ran.exists() or name not in ran.read_text():
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=20)

    def ran(self) -> list[str]:
        """What was run since this was asked last."""
        file = self.folder / "ran"
        found = file.read_text().split() if file.exists() else []
        file.unlink(missing_ok=True)
        return found

    def page(self) -> str:
        return (self.folder / "last-run.md").read_text()

    def failed(self) -> str:
        return self.page().partition("## Failed\n")[2].partition("## Without")[0].strip()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


A, B = "a" * 10, "b" * 10


def test_what_was_cut_off_is_continued(place: Place) -> None:
    place.file("one", "pass")
    place.file("two", "Path('go').exists() or time.sleep(60)")
    place.cut_off(A, "two")
    assert place.ran() == ["one", "two"]
    (place.folder / "go").touch()
    code, said = place.run(A)
    assert (code, place.ran()) == (0, ["two"]), said
    assert "1 of 2 files have passed" in said
    assert place.failed() == "None."
    assert place.run(A)[0] == 0
    assert place.ran() == [], "all has passed on this commit"


def test_what_failed_is_kept_as_failed_and_is_run_again(place: Place) -> None:
    place.file("bad", "assert Path('well').exists()")
    place.file("one", "pass")
    assert place.run(A)[0] == 1
    assert place.ran() == ["bad", "one"]
    assert place.failed() == f"* {FILE.format('bad')}::test_bad"
    assert place.run(A)[0] == 1
    assert place.ran() == ["bad"]
    (place.folder / "well").touch()
    assert place.run(A)[0] == 0
    assert place.failed() == "None."


def test_a_file_that_ends_without_a_report_has_failed(place: Place) -> None:
    """Also where an earlier commit had passed: its result would stand as if
    nothing had happened.
    """
    place.file("gone", "pass")
    assert place.run(A)[0] == 0
    place.file("gone", "Path('well').exists() or os._exit(9)")
    code, said = place.run(B)
    assert (code, "exit 9" in said) == (1, True), said
    assert place.failed() == f"* {FILE.format('gone')}::(did not end)"
    (place.folder / "well").touch()
    assert place.run(B)[0] == 0
    assert place.failed() == "None."


def test_an_older_commit_is_said(place: Place) -> None:
    """Of a run that was cut off, what it did not come to stands with the commit that it was
    run on before.
    """
    place.file("one", "pass")
    place.file("two", "Path('stop').exists() and time.sleep(60)")
    assert place.run(A)[0] == 0
    (place.folder / "stop").touch()
    place.cut_off(B, "two")
    day = time.strftime("%Y-%m-%d", time.gmtime())
    assert f"| hudi | test_one.py | 1 | 0 | {day} | `{B}` |" in place.page()
    assert f"| hudi | test_two.py | 1 | 0 | {day} | `{A}` |" in place.page()
    (sentence,) = [line for line in place.page().splitlines() if line.startswith(evidence.MARK)]
    assert f"`{A}`" in sentence
    assert f"`{B}`" in sentence
    assert evidence.OLDER in sentence
    (place.folder / "stop").unlink()
    assert place.run(B)[0] == 0
    assert A not in place.page()


def test_a_test_that_is_gone_leaves_no_result(place: Place) -> None:
    place.file("one", "pass")
    assert place.run(A)[0] == 0
    (place.folder / FILE.format("one")).write_text("def test_other(): pass\n")
    assert place.run(B)[0] == 0
    assert f"| hudi | test_one.py | 1 | 0 | {time.strftime('%Y-%m-%d', time.gmtime())} | `{B}` |" in place.page()


def test_changes_without_a_commit_are_continued_by_nobody(place: Place) -> None:
    place.file("one", "pass")
    assert [place.run(f"{A}+")[0], place.run(f"{A}+")[0]] == [0, 0]
    assert place.ran() == ["one", "one"]


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program `tests/run`, with `--all`."""
    monkeypatch.setattr(sys, "argv", ["tests/run", "--all"])
    loader = SourceFileLoader("tests_run", str(ROOT / "tests" / "run"))
    spec = spec_from_loader("tests_run", loader)
    assert spec is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "tests_run", module)
    loader.exec_module(module)
    monkeypatch.setattr(module, "OUT", tmp_path)
    monkeypatch.setattr(module, "PYTHON", sys.executable)
    (tmp_path / "tmp").mkdir()
    return module


def test_the_long_tiers_go_file_by_file(runner: ModuleType) -> None:
    commands = {tier.name: tier.command for tier in runner.TIERS}
    for tier in ("hudi", "e2e"):
        assert commands[tier][1:] == ("-m", "tests.campaigns.pages.last_run", tier, "--run")
    for tier in ("unit", "model", "component"):
        assert "not extra" not in commands[tier]
    assert "-Dleft.out=none" in commands["java"]


def test_a_report_of_an_earlier_run_is_not_taken_for_this_one(
    runner: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tier that is cut off at its limit has written none."""
    taken: list[tuple[str, ...]] = []
    ordinary = runner.run

    def run(command: tuple[str, ...], log: Path, minutes: float) -> int:
        if "tests.campaigns.pages.last_run" in command:
            taken.append(command)
            return 0
        return int(ordinary(command, log, minutes))

    monkeypatch.setattr(runner, "run", run)
    old = runner.OUT / "unit.xml"
    old.write_text('<testsuites><testsuite tests="7" failures="0" errors="0" skipped="0"/></testsuites>')
    verdict, passed, failed = runner.run_tier(
        runner.Tier("unit", "slow", (), (sys.executable, "-c", "import time; time.sleep(60)"), 1 / 60)
    )
    assert verdict.startswith("FAILED (time limit")
    assert (passed, failed, taken) == (0, 1, [])
    write = (
        f'open({str(old)!r}, \'w\').write(\'<testsuites><testsuite tests="2" failures="0" errors="0" '
        'skipped="1"/></testsuites>\')'
    )
    verdict, passed, failed = runner.run_tier(runner.Tier("unit", "quick", (), (sys.executable, "-c", write), 1))
    assert (verdict.split()[0], passed, failed) == ("FAILED", 1, 1), "a skip is a failure"
    assert [command[-2:] for command in taken] == [("unit", str(old))]
