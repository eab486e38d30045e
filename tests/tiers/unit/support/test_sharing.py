"""Files of tests that several processes share: each is run whole, once, by one of them; the order
follows measured seconds. With real pytest on a few tests of a folder of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.support import ROOT, sharing


def test_a_file_is_taken_once(tmp_path: Path) -> None:
    folder = tmp_path / "taken"
    taken = [sharing.take(folder, file) for file in ("tests/a.py", "tests/b.py", "tests/a.py", "other/a.py")]
    assert taken == [True, True, False, True]


CONFTEST = """
import os, time
from pathlib import Path
import pytest

def said(*words):
    with open("said", "a") as file:
        print(*words, os.getpid(), file=file)

@pytest.fixture(scope="session", autouse=True)
def world():
    said("begun")
    yield said
    said("ended")
"""
TESTS = """
import os, time
from pathlib import Path
import pytest

@pytest.fixture(scope="module", autouse=True)
def own(world):
    world("begun", __name__)
    yield
    world("ended", __name__)

def test_first(world):
    world("ran", __name__)
    {body}

@pytest.mark.parametrize("number", [1, 2])
def test_more(world, number):
    world("ran", __name__)
"""


class Place:
    """A folder of tests, and what processes have run of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
        (folder / "conftest.py").write_text(CONFTEST)

    def file(self, name: str, body: str = "pass") -> None:
        (self.folder / f"test_{name}.py").write_text(TESTS.format(body=body))

    def measured(self, **seconds: float) -> None:
        stored = {
            f"test_{name}.py": {test: {"seconds": value / 3} for test in ("test_first", "test_more[1]", "test_more[2]")}
            for name, value in seconds.items()
        }
        (self.folder / "measured.json").write_text(json.dumps(stored))

    def start(self, report: str, *more: str) -> subprocess.Popen[str]:
        options = ("-p", "tests.support.sharing", "--share=taken", "--measured=measured.json", f"--junitxml={report}")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", *options, *more],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        said = process.communicate(timeout=60)[0]
        return process.returncode, said

    def reported(self, report: str) -> list[str]:
        cases = ElementTree.parse(self.folder / report).getroot().iter("testcase")
        return list(dict.fromkeys(str(case.get("classname")).removeprefix("test_") for case in cases))

    def lines(self, pid: int) -> list[str]:
        """What a process has said."""
        found = (self.folder / "said").read_text().splitlines()
        return [line.removesuffix(f" {pid}") for line in found if line.endswith(f" {pid}")]

    def until(self, name: str) -> None:
        end = time.monotonic() + 40
        while not (self.folder / name).exists():
            assert time.monotonic() < end, name
            time.sleep(0.02)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


HOLD = "Path({0!r}).touch(); [time.sleep(0.02) for _ in range(2000) if not Path({1!r}).exists()]"
"""A test that says that it is there, and waits for a file."""


def test_who_comes_later_takes_what_is_left(place: Place) -> None:
    """Each test is run once, with the fixtures of its file and those of its process's session."""
    place.file("one", HOLD.format("early", "go"))
    for name in ("two", "three", "four"):
        place.file(name)
    place.measured(one=30, two=20, three=10, four=5)
    early = place.start("early.xml")
    place.until("early")
    late = place.start("late.xml")
    code, said = place.end(late)
    assert (code, place.reported("late.xml")) == (0, ["two", "three", "four"]), said
    assert "3 of 4 files were run here: test_two test_three test_four" in said
    (place.folder / "go").touch()
    code, said = place.end(early)
    assert (code, place.reported("early.xml")) == (0, ["one"]), said
    whole = ["begun test_one", *["ran test_one"] * 3, "ended test_one"]
    assert place.lines(early.pid) == ["begun", *whole, "ended"]
    assert place.lines(late.pid)[:6] == ["begun", "begun test_two", *["ran test_two"] * 3, "ended test_two"]
    third = place.start("third.xml")
    code, said = place.end(third)
    assert (code, place.reported("third.xml"), place.lines(third.pid)) == (0, [], []), "nothing is left to set up for"


def test_a_failure_is_told_by_who_has_run_it(place: Place) -> None:
    place.file("one", HOLD.format("early", "go"))
    place.file("bad", "assert False")
    place.measured(one=30)
    early = place.start("early.xml")
    (place.folder / "go").touch()
    code, said = place.end(early)
    assert (code, "1 failed, 5 passed" in said) == (1, True), said
    assert place.reported("early.xml") == ["bad", "one"], "what was not measured comes first"


def test_what_a_dead_process_has_begun_is_not_taken_for_done(place: Place) -> None:
    """Its exit code says it; the others do the rest."""
    place.file("one", HOLD.format("early", "never"))
    place.file("two")
    place.measured(one=30, two=20)
    early = place.start("early.xml")
    place.until("early")
    os.killpg(early.pid, signal.SIGKILL)
    assert place.end(early)[0] == -signal.SIGKILL
    code, said = place.end(place.start("late.xml"))
    assert (code, place.reported("late.xml")) == (0, ["two"]), said
    assert not (place.folder / "early.xml").exists()


def test_when_the_time_is_over_nothing_is_begun(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is under way is finished, and what is left is written down by its name in reports."""
    monkeypatch.setenv("TESTS_END_AT", str(time.time() + 3600))
    monkeypatch.setenv("TESTS_LEFT", "left")
    place.file("one", "os.environ['TESTS_END_AT'] = '1'")
    place.file("two")
    place.measured(one=30, two=20)
    limit = ("-p", "tests.support.time_limit")
    process = place.start("early.xml", *limit)
    code, said = place.end(process)
    assert (code, place.reported("early.xml"), "1 passed" in said) == (0, ["one"], True), said
    assert "5 tests were not begun: the time of this run was over" in said
    assert "1 of 1 files were run here: test_one" in said, "the other one is there for who has time"
    assert place.lines(process.pid) == ["begun", "begun test_one", "ran test_one", "ended test_one", "ended"]
    (left,) = (place.folder / "left").iterdir()
    assert left.read_text().splitlines() == [
        *(f"test_one::test_more[{number}]" for number in (1, 2)),
        *(f"test_two::test_{name}" for name in ("first", "more[1]", "more[2]")),
    ]
    assert not (place.folder / "taken" / "test_two.py.taken").exists()
    code, said = place.end(place.start("late.xml", *limit))
    assert (code, place.reported("late.xml")) == (0, ["two"]), said


def test_those_that_were_seen_longest_ago_come_first_where_that_is_said(place: Place) -> None:
    for name in ("one", "two", "three"):
        place.file(name)
    place.measured(one=30, two=20, three=10)
    code, said = place.end(place.start("early.xml", "-p", "tests.support.order", "--oldest-first=none.json"))
    assert (code, place.reported("early.xml")) == (0, ["one", "three", "two"]), said


def test_files_of_several_folders_are_refused(place: Place) -> None:
    place.file("one")
    place.measured()
    (place.folder / "below").mkdir()
    (place.folder / "below" / "test_two.py").write_text("def test_two(): pass\n")
    code, said = place.end(place.start("early.xml"))
    assert (code, "--share: all files of tests have to be in one folder" in said) == (4, True), said
