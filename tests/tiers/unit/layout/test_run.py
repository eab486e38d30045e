"""`tests/run`: what runs side by side, what is set up once, and that nobody's failure is lost."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.pages import last_run
from tests.support import ROOT, evidence


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, with its logs in a folder of the test's own."""
    monkeypatch.setattr(sys, "argv", ["run"])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("tests_run", str(ROOT / "tests" / "run"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, loader.name, module)
    loader.exec_module(module)
    monkeypatch.setattr(module, "OUT", tmp_path)
    monkeypatch.setattr(module, "LEFT", tmp_path / "left")
    return module


REPORT = '<testsuites><testsuite tests="2" failures="{}" errors="0" skipped="0"/></testsuites>'


def tier(
    runner: Any,
    name: str,
    command: str = "true",
    *,
    setup: tuple[str, ...] = (),
    failures: int = 0,
    code: int = 0,
    minutes: int = 1,
) -> Any:
    """A tier of a shell command that leaves a report."""
    report = f"{command} && echo '{REPORT.format(failures)}' >{runner.OUT / name}.xml; exit {code}"
    return runner.Tier(name, name, tuple(("sh", "-c", one) for one in setup), ("sh", "-c", report), minutes)


def test_every_tier_is_in_one_lane(runner: Any) -> None:
    """However many lanes there are; what is left out then is another part of a shared tier."""
    wanted = [tier.name for tier in runner.TIERS if not tier.part_of]
    for number, lanes in runner.LANES.items():
        assert len(lanes) == number
        names = [name for lane in lanes for name in lane]
        assert sorted(names) == sorted(tier.name for tier in runner.parts(wanted, number))
        left = [tier for tier in runner.TIERS if tier.name not in names]
        assert all(tier.shared and tier.part_of in names for tier in left), left
    assert sorted(names) == sorted(tier.name for tier in runner.TIERS), "in as many lanes as there can be"
    builds = [
        tier.name for tier in runner.TIERS if any(phase in tier.command for phase in ("package", "verify", "install"))
    ]
    assert not builds, "a tier that builds the jar anew while others run with it"


def test_each_lane_has_its_part_of_a_shared_tier(runner: Any) -> None:
    every = [tier.name for tier in runner.TIERS if tier.shared == "hudi"]
    assert every == ["hudi", "hudi-2", "hudi-3"]
    for number, lanes in runner.LANES.items():
        parts = every[:number]
        assert [[name for name in lane if name in parts] for lane in lanes] == [[part] for part in parts]
        assert number == 1 or [lane[-1] for lane in lanes] == parts, "whatever the lanes ran before, they end together"
        assert [tier.name for tier in runner.parts(["hudi"], number)] == parts
        assert [tier.name for tier in runner.parts(["component"], number)] == ["component", "crds"]
    first, *others = (tier.command for tier in runner.TIERS if tier.name in every)
    for other in others:
        assert [word for word in first if word not in other] == [f"--junitxml={ROOT / 'build' / 'test' / 'hudi.xml'}"]
    oldest = [any(word.startswith("--oldest-first") for word in command) for command in (first, *others)]
    assert oldest == [False, False, True]


def test_what_nobody_begins_in_time_is_counted(runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one process had no time for another one may have run."""
    monkeypatch.setattr(runner, "CACHE", tmp_path)
    for said, seconds in (("", 55 * 60), ("90", 90 * 60), ("0", None), ("", 37 * 60)):
        for name in ("TESTS_END_AT", "TESTS_LEFT", "TEST_MINUTES"):
            monkeypatch.setenv(name, "")
            monkeypatch.delenv(name)
        if said:
            monkeypatch.setenv("TEST_MINUTES", said)
        runner.limit_time()
        end_at = runner.environment().get("TESTS_END_AT")
        assert (end_at is None) == (seconds is None)
        assert end_at is None or abs(float(end_at) - time.time() - seconds) < 5
        (tmp_path / "bin").mkdir(exist_ok=True)
        if said == "0":
            (tmp_path / "bin" / "kube").touch()  # from now on Kubernetes need not be built
    monkeypatch.setenv("TEST_MINUTES", "an hour")
    with pytest.raises(SystemExit, match="TEST_MINUTES='an hour': a number of minutes"):
        runner.limit_time()
    case = '<testcase classname="tests.tiers.hudi.test_a" name="test_{}"/>'
    (tmp_path / "hudi.xml").write_text(f"<testsuites>{case.format('first')}{case.format('second')}</testsuites>")
    (runner.LEFT).mkdir()
    names = {"1": ["first", "third[a-b]"], "2": ["second", "third[a-b]", "fourth"]}
    for process, left in names.items():
        (runner.LEFT / process).write_text("".join(f"tests.tiers.hudi.test_a::test_{name}\n" for name in left))
    (runner.LEFT / "3").write_text("tests.tiers.component.crds.test_b::test_first\n")
    chosen = runner.parts(["hudi", "component"], 3)
    assert runner.not_begun(chosen) == {"hudi": 2, "component": 1}
    limited = [tier.name for tier in runner.TIERS if "tests.support.time_limit" in tier.command]
    assert limited == ["component", "crds", "hudi", "hudi-2", "hudi-3"], "others are always run whole"


def test_as_many_lanes_as_the_machine_has_memory_for(runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIERS_AT_ONCE", raising=False)
    machine = {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 0}
    monkeypatch.setattr(runner.os, "sysconf", machine.__getitem__)
    monkeypatch.setattr(runner.os, "cpu_count", lambda: 2)
    for memory, lanes in ((11e9, 1), (13e9, 2), (24e9, 3)):
        machine["SC_PHYS_PAGES"] = int(memory)
        assert runner.at_once() == lanes
    monkeypatch.setattr(runner.os, "cpu_count", lambda: 1)
    assert runner.at_once() == 1
    for said, lanes in (("1", 1), ("2", 2), ("3", 3), ("7", 3)):
        monkeypatch.setenv("TIERS_AT_ONCE", said)
        assert runner.at_once() == lanes


def test_parts_share_files_and_nothing_of_an_earlier_run_counts(runner: Any, tmp_path: Path) -> None:
    """A part that comes late finds nothing left, which is no failure; a tier of which no part
    has run a test has failed, and so has a run whose part has died.
    """
    two, none = REPORT.format(0), REPORT.replace('tests="2"', 'tests="0"').format(0)

    def part(name: str, of: str = "", *, code: int = 0, before: str = "true") -> Any:
        """The first to come takes all that there is."""
        report = runner.OUT / f"{name}.xml"
        take = f"if mkdir {runner.taken('hudi')}; then echo '{two}' >{report}; else echo '{none}' >{report}; fi"
        shell = f"{before}; {take}; exit {code}"
        return runner.Tier(name, name, (), ("sh", "-c", shell), 1, part_of=of, shared="hudi")

    def verdicts(first: Any, second: Any, *, fresh: bool = True) -> dict[str, tuple[int, int]]:
        rows: dict[str, Any] = {}
        if fresh:
            runner.begin_sharing([first, second])
        runner.run_lanes([[first], [second]], rows)
        runner.end_sharing([first, second], rows)
        return {name: row[1:] for name, row in rows.items()}

    late = f"while [ ! -d {runner.taken('hudi')} ]; do sleep 0.05; done"
    assert verdicts(part("hudi"), part("hudi-2", "hudi", before=late)) == {"hudi": (2, 0), "hudi-2": (0, 0)}
    (tmp_path / "hudi-2.commit").write_text("of an earlier run")
    assert verdicts(part("hudi", before=late), part("hudi-2", "hudi")) == {"hudi": (0, 0), "hudi-2": (2, 0)}
    assert verdicts(part("hudi"), part("hudi-2", "hudi", before=late, code=3))["hudi-2"] == (0, 1)
    assert verdicts(part("hudi"), part("hudi-2", "hudi"), fresh=False) == {"hudi": (0, 1), "hudi-2": (0, 0)}
    runner.begin_sharing([part("hudi")])
    assert not list(tmp_path.glob("hudi*.xml")), "of a part that is not run now"
    assert not list(tmp_path.glob("hudi*.commit"))


def test_a_tier_that_a_machine_cannot_run_is_told(runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tiers = {tier.name: tier for tier in runner.TIERS}
    there = {"node": "/usr/bin/node", "npm": "/usr/bin/npm"}
    monkeypatch.setattr(runner.shutil, "which", there.get)
    assert [name for name, tier in tiers.items() if runner.lacking(tier, "")] == []
    light = "ok    root\nNO    no CAP_SYS_ADMIN\ntier: light\n"
    assert {name for name, tier in tiers.items() if runner.lacking(tier, light)} == {"e2e"}
    assert runner.lacking(tiers["e2e"], light) == "NO    no CAP_SYS_ADMIN"
    there.clear()
    assert {name for name, tier in tiers.items() if runner.lacking(tier, "")} == {"spec"}
    assert runner.lacking(tiers["spec"], "") == "no node, no npm"
    monkeypatch.delenv("REQUIRE_TIERS", raising=False)
    assert runner.not_run("no node") == ("did NOT run: no node", 0, 0)
    monkeypatch.setenv("REQUIRE_TIERS", "full")
    assert runner.not_run("no node") == ("FAILED: required, but did NOT run: no node", 0, 1)


def test_every_report_is_one_that_can_be_noted(runner: Any) -> None:
    tiers = {tier.name: tier for tier in runner.TIERS if tier.name != "lint"}
    assert {name: tier.part_of or name for name, tier in tiers.items()} == {
        name: tier for name, (tier, _) in last_run.REPORTS.items()
    }
    written = {
        name: word.partition("=")[2]
        for name, tier in tiers.items()
        for word in tier.command
        if word.startswith("--junitxml=")
    }
    assert written == {name: str(ROOT / where) for name, (_, where) in last_run.REPORTS.items() if name != "java"}
    java = [str(path) for path in runner.reports("java")]
    assert java == sorted(str(path) for path in ROOT.glob(last_run.REPORTS["java"][1]))


def test_a_report_says_of_which_commit_it_is(runner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runner.checked_out() == (evidence.commit() if (ROOT / ".git").exists() else "")
    said = iter(["aaaaaaaaaa", "aaaaaaaaaa", "aaaaaaaaaa", "bbbbbbbbbb", "", ""])
    monkeypatch.setattr(runner, "checked_out", lambda: next(said))
    (runner.OUT / "moved.commit").write_text("of an earlier run")
    for name in ("kept", "moved", "archive"):
        assert runner.run_tier(tier(runner, name))[0].startswith("ok")
    assert {path.name: path.read_text() for path in runner.OUT.glob("*.commit")} == {"kept.commit": "aaaaaaaaaa\n"}, (
        "one was changed while it was run"
    )


def test_lanes_run_side_by_side_and_their_common_set_up_once(runner: Any, tmp_path: Path) -> None:
    def meet(mine: str, other: str) -> str:
        return (
            f"touch {tmp_path / mine}; for i in $(seq 200); do [ -e {tmp_path / other} ] && break; sleep 0.05; "
            f"done; [ -e {tmp_path / other} ]"
        )

    once = f"echo x >>{tmp_path / 'once'}"
    rows: dict[str, Any] = {}
    left, right = (
        tier(runner, "left", meet("a", "b"), setup=(once,)),
        tier(runner, "right", meet("b", "a"), setup=(once,)),
    )
    runner.run_lanes([[left], [right, tier(runner, "last", f"[ -e {tmp_path / 'right.xml'} ]")]], rows)
    assert {name: row[1:] for name, row in rows.items()} == {"left": (2, 0), "right": (2, 0), "last": (2, 0)}
    assert (tmp_path / "once").read_text() == "x\n"


def test_quick_tiers_run_beside_the_set_up_and_the_others_after_it(runner: Any, tmp_path: Path) -> None:
    def wait(path: Path) -> str:
        return f"for i in $(seq 200); do [ -e {path} ] && break; sleep 0.05; done; [ -e {path} ]"

    quick, done = tmp_path / "quick", tmp_path / "done"
    rows: dict[str, Any] = {}
    first = tier(runner, runner.QUICK[0], f"touch {quick}; {wait(done)}")
    lanes = [
        [first, tier(runner, "left", f"[ -e {done} ]")],
        [tier(runner, "right", f"[ -e {done} ]", setup=(wait(quick), f"sleep 0.3; touch {done}"))],
    ]
    runner.run_lanes(lanes, rows)
    assert {name: row[2] for name, row in rows.items()} == {runner.QUICK[0]: 0, "left": 0, "right": 0}, rows


def test_programs_are_built_beside_all_other_set_up(
    runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for what needs them."""

    def meet(mine: str, other: str) -> tuple[str, ...]:
        seen = f"[ -e {tmp_path / other} ]"
        return (
            "sh",
            "-c",
            f"touch {tmp_path / mine}; for i in $(seq 200); do {seen} && break; sleep 0.05; done; {seen}",
        )

    pack = ("sh", "-c", f"[ -e {tmp_path / 'second'} ]")
    monkeypatch.setattr(runner, "BUILD", "env")
    monkeypatch.setattr(runner, "NEED_PROGRAMS", (pack,))
    report = ("sh", "-c", f"echo '{REPORT.format(0)}' >{runner.OUT}/$0.xml")
    quick = runner.Tier(runner.QUICK[0], "", (meet("venv", "first"),), (*report, runner.QUICK[0]), 1)
    long = runner.Tier(
        "long",
        "",
        (("env", *meet("first", "venv")), ("env", *meet("second", "jars")), pack, meet("jars", "second")),
        (*report, "long"),
        1,
    )
    rows: dict[str, Any] = {}
    runner.run_lanes([[quick, long]], rows)
    assert {name: row[1:] for name, row in rows.items()} == {runner.QUICK[0]: (1, 0), "long": (2, 0)}, rows


def test_what_fails_is_told_and_the_others_run(runner: Any) -> None:
    rows: dict[str, Any] = {}
    failing = ("unset", "red", "silent", "green")
    lanes = [
        [tier(runner, "unset", setup=("exit 3",)), tier(runner, "red", failures=1, code=1)],
        [runner.Tier("silent", "", (), ("true",), 1), tier(runner, "green")],
    ]
    runner.run_lanes(lanes, rows)
    assert [rows[name][2] for name in failing] == [1, 1, 1, 0], rows
    assert "set-up" in rows["unset"][0]
    assert rows["red"][0].startswith("FAILED (exit 1")
    assert rows["silent"][0].startswith("FAILED (exit 0"), "a tier without a report has shown nothing"


def test_a_run_that_is_given_up_ends_every_lane(runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs is interrupted as by a person, so that fixtures tear down.

    Nothing more is started.
    """

    def long(name: str) -> Any:
        # The handler is set, because a run in the background of a shell has SIGINT ignored.
        body = "\n".join(
            (
                "import signal, time",
                "signal.signal(signal.SIGINT, signal.default_int_handler)",
                "try:",
                f"  open(r'{tmp_path / name}', 'w'); time.sleep(60)",
                "except KeyboardInterrupt:",
                f"  open(r'{tmp_path / name}.down', 'w')",
            )
        )
        return runner.Tier(name, name, (), (sys.executable, "-c", body), 1)

    class GivesUp(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            if self.name in {"a-more", "b"} and not runner.ENDING.is_set():
                while not all((tmp_path / name).exists() for name in "ab"):
                    time.sleep(0.02)
                raise SystemExit(143)
            super().join(timeout)

    monkeypatch.setattr(runner.threading, "Thread", GivesUp)
    rows: dict[str, Any] = {}
    with pytest.raises(SystemExit):
        runner.run_lanes([[long("a"), long("more")], [long("b")]], rows)
    assert sorted(path.name for path in tmp_path.glob("*.down")) == ["a.down", "b.down"]
    assert not (tmp_path / "more").exists()


def test_what_failed_is_named(runner: Any, tmp_path: Path) -> None:
    """A run whose logs are gone still says which tests failed, and why."""
    (tmp_path / "unit.xml").write_text(
        '<testsuites><testsuite tests="4"><testcase classname="a.b" name="good"/>'
        '<testcase classname="a.b" name="wrong"><failure message="assert 1 == 2&#10; more">text</failure></testcase>'
        '<testcase classname="a.b" name="broken"><error>first line\nsecond</error></testcase>'
        '<testcase classname="a.b" name="left"><skipped/></testcase></testsuite></testsuites>'
    )
    assert runner.failures("unit") == [
        "unit: a.b::wrong (failure): assert 1 == 2",
        "unit: a.b::broken (error): first line",
        "unit: a.b::left (skipped): ",
    ]
    assert runner.failures("none") == []
