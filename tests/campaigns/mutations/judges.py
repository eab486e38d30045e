"""Run tests in the copy, and tell a test that has failed from one that could not be run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaigns.mutations.mutation import JAVA_TESTS, java_class

MODULE = "spark-images/etcd-lock"
MAVEN = ("mvn", "-q", "-B", "-f", f"{MODULE}/pom.xml")
TIERS = ("unit", "model", "java", "component", "hudi")
"""Tiers that judge, the cheapest first."""
LANES = (("unit", "model", "component"), ("java", "hudi"))
"""Tiers that may run side by side: the first lane needs neither real time nor a JVM, except for a
few tests of the operator with an etcd.
"""
SECONDS = {"unit": 120, "model": 300, "java": 180, "component": 300, "hudi": 600}
"""Seconds that the first test may take, with all set-up."""
EACH = {"unit": 5, "model": 60, "java": 10, "component": 60, "hudi": 200}
"""And each more."""
BROKEN = re.compile(
    r"^(\w+\.)*(SyntaxError|IndentationError|NameError|UnboundLocalError|ImportError|ModuleNotFoundError|TypeError|"
    r"AttributeError"
    r"|NoSuchMethodError|NoSuchFieldError|NoClassDefFoundError|ExceptionInInitializerError|VerifyError|"
    r"IncompatibleClassChangeError)\b"
)
"""Errors of code that cannot run at all: a mutation that is noticed by those only is no mutation of
the protocol.
"""


def tier(test: str) -> str:
    """The tier of a named test."""
    return "java" if test.startswith(JAVA_TESTS) else test.split("/")[2]


TIMED_OUT = re.compile(r"Failed: Timeout \(?>|(java\.util\.concurrent\.)?TimeoutException: \S+\(.*\) timed out")
"""Message of a test that was ended by its own time limit: its result was not judged."""


@dataclass
class Seen:
    """Results of tests, by their names in the list.

    ``invalid`` says why nothing can be concluded; else empty. ``endless``: those that did not end
    in their time, with what was said then.
    """

    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    invalid: str = ""
    endless: dict[str, str] = field(default_factory=dict)

    def add(self, other: Seen) -> None:
        """Take over what other tests have shown."""
        self.passed |= other.passed
        self.failed.update(other.failed)
        self.invalid = self.invalid or other.invalid
        self.endless.update(other.endless)


def run(tests: Iterable[str], place: Path, scratch: Path, changed: Iterable[str] = ()) -> Seen:
    """Run the named tests in ``place``, the cheapest tiers first.

    ``changed``: files of the copy that are mutated now.
    """
    seen = Seen()
    for kind in TIERS:
        mine = sorted({test for test in tests if tier(test) == kind})
        if mine and not seen.invalid and not seen.endless:
            seen.add(_java(mine, place, scratch, changed) if kind == "java" else _pytest(mine, place, scratch, kind))
    for test in set(tests) - seen.passed - set(seen.failed) if not seen.endless else ():
        seen.invalid = seen.invalid or f"{test} was not run"
    return seen


def batches(tests: Iterable[str]) -> list[list[str]]:
    """Tests that run together when nothing is mutated: by tier and, for tiers whose files have
    separate set-ups, by file.
    """
    found: dict[str, list[str]] = {}
    for test in sorted(tests, key=lambda test: (TIERS.index(tier(test)), test)):
        found.setdefault(test.partition("::")[0] if tier(test) in ("component", "hudi") else tier(test), []).append(
            test
        )
    return list(found.values())


def _command(command: tuple[str, ...], place: Path, log: Path, seconds: float) -> int:
    """Exit code; 124 when the time limit ended it. Everything that it started ends with it."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(place / "operator"), str(place / "spark-images"), str(place))),
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python",
        "PYTHONDONTWRITEBYTECODE": "1",  # a mutation may have the length and the second of the original
        "TMPDIR": str(log.parent / "tmp"),
    }
    shutil.rmtree(log.parent / "tmp", ignore_errors=True)
    (log.parent / "tmp").mkdir(parents=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return 124
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)  # fixtures tear down what they have set up
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # an etcd of tests that had no time to end it


def _last(log: Path) -> str:
    said = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    lines = [line for line in said if re.match(r"E  +\w+(Error|Exception)\b", line)] or [
        line for line in said if "error:" in line or "ERROR" in line
    ]
    return (lines or ["see " + str(log)])[0][:200]


# ---- Python


def _pytest(tests: list[str], place: Path, scratch: Path, kind: str) -> Seen:
    report, log = scratch / "pytest.xml", scratch / "pytest.log"
    report.unlink(missing_ok=True)
    command = (sys.executable, "-m", "pytest", "-q", "--tb=short", "--junitxml", str(report), *tests)
    limit = SECONDS[kind] + EACH[kind] * len(tests)
    code = _command(command, place, log, limit)
    if code == 124:
        return Seen(endless=dict.fromkeys(tests, f"no end after {limit} s"))
    if code not in (0, 1) or not report.exists():
        return Seen(invalid=f"pytest could not run them: {_last(log)}")
    return python_seen(tests, report)


def _settle(seen: Seen) -> None:
    """A test has failed when one of its parameters has, and has no end when one of them has none
    and none has failed.
    """
    seen.endless = {test: said for test, said in seen.endless.items() if test not in seen.failed}
    seen.passed -= {*seen.failed, *seen.endless}


def python_seen(tests: list[str], report: Path) -> Seen:
    """Results of the named tests in a JUnit report of pytest: a test fails when any of its
    parameters fails.
    """
    seen = Seen()
    broken = ""
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = _python_name(case, tests)
        failure = case.find("failure")
        if case.find("error") is not None or case.find("skipped") is not None:
            bad = case.find("error") if case.find("error") is not None else case.find("skipped")
            broken = broken or f"{case.get('name')}: {_message(bad)}"
        elif failure is not None and BROKEN.match(_message(failure)):
            broken = broken or f"{case.get('name')}: {_message(failure)}"
        elif failure is not None and name and TIMED_OUT.match(_message(failure)):
            seen.endless.setdefault(name, f"{case.get('name')}: {_message(failure)}")
        elif failure is not None and name:
            seen.failed.setdefault(name, f"{case.get('name')}: {_message(failure)}")
        elif name:
            seen.passed.add(name)
    _settle(seen)
    undecided = set(tests) - set(seen.failed) - set(seen.endless)
    # Code that cannot run does not spoil what another parameter of the same test has shown.
    seen.invalid = broken if broken and undecided else ""
    return seen


def _python_name(case: ElementTree.Element, tests: list[str]) -> str:
    """The listed test that a case of the report belongs to; empty: none."""
    module = str(case.get("classname") or "")
    function = str(case.get("name")).partition("[")[0]
    for test in tests:
        file, _, name = test.partition("::")
        dotted = file.removesuffix(".py").replace("/", ".")
        if name in (function, module.rpartition(".")[2]) and (module == dotted or module.startswith(dotted + ".")):
            return test
    return ""


def _message(element: ElementTree.Element | None) -> str:
    return " ".join(str((element.get("message") if element is not None else "") or "").split())[:240]


# ---- Java


def build(place: Path, scratch: Path, *, package: bool = False) -> str:
    """Compile the lock module and its tests in the copy (``package``: the jar too).

    Returns why that failed; empty when it did not.
    """
    log = scratch / "build.log"
    if package:
        return (
            "" if _command((*MAVEN, "package", "-DskipTests"), place, log, 600) == 0 else f"cannot build: {_last(log)}"
        )
    reports = place / MODULE / "target" / "surefire-reports"
    shutil.rmtree(reports, ignore_errors=True)
    # One test by the build tool: its report tells the class path.
    if _command((*MAVEN, "test-compile", "surefire:test", "-Dtest=ProtocolDataTest#keys"), place, log, 600) != 0:
        return f"cannot build: {_last(log)}"
    (report,) = reports.glob("TEST-*.xml")
    properties = {str(p.get("name")): str(p.get("value")) for p in ElementTree.parse(report).getroot().iter("property")}
    jars = [entry for entry in properties["surefire.test.class.path"].split(os.pathsep) if entry.endswith(".jar")]
    engine = next(Path(jar) for jar in jars if "junit-platform-engine" in jar)
    launcher = Path(str(engine).replace("junit-platform-engine", "junit-platform-launcher"))  # surefire has brought it
    target = place / MODULE / "target"
    path = os.pathsep.join(
        [str(scratch / "launcher"), str(target / "classes"), str(target / "test-classes"), *jars, str(launcher)]
    )
    (scratch / "classpath").write_text(path)
    shutil.rmtree(scratch / "launcher", ignore_errors=True)
    source = str(Path(__file__).parent / "NamedTests.java")
    done = _command(("javac", "-proc:none", "-d", str(scratch / "launcher"), "-cp", path, source), place, log, 120)
    return "" if done == 0 else f"cannot build: {_last(log)}"


def _java(tests: list[str], place: Path, scratch: Path, changed: Iterable[str]) -> Seen:
    """Mutated sources are compiled into a separate folder, which comes first on the class path."""
    log, mutated, path = scratch / "java.log", scratch / "mutated", (scratch / "classpath").read_text()
    shutil.rmtree(mutated, ignore_errors=True)
    mutated.mkdir()
    sources = [name for name in changed if name.endswith(".java")]
    quick = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    if (
        sources
        and _command(
            ("javac", *(f"-J{o}" for o in quick), "-proc:none", "-nowarn", "-d", str(mutated), "-cp", path, *sources),
            place,
            log,
            180,
        )
        != 0
    ):
        return Seen(invalid=f"does not compile: {_last(log)}")
    names = {f"{java_class(test)}#{test.partition('::')[2]}": test for test in tests}
    options = (
        *quick,
        "-Xmx512m",
        f"-Djava.io.tmpdir={scratch / 'tmp'}",
        "-Duser.timezone=UTC",
        "--add-opens=java.base/java.lang=ALL-UNNAMED",
    )
    command = ("java", *options, "-cp", f"{mutated}{os.pathsep}{path}", "NamedTests", *names)
    limit = SECONDS["java"] + EACH["java"] * len(tests)
    if _command(command, place, log, limit) == 124:
        return Seen(endless=dict.fromkeys(tests, f"no end after {limit} s"))
    return java_seen(names, log.read_text(errors="replace"))


def java_seen(names: dict[str, str], said: str) -> Seen:
    """Results in the lines of NamedTests. ``names``: listed test by ``class#method``."""
    seen, broken = Seen(), ""
    for line in said.splitlines():
        if not line.startswith("NAMED\t"):
            continue
        _, name, status, error = line.split("\t", 3)
        if (status != "SUCCESSFUL" and name not in names) or BROKEN.match(error):
            broken = broken or f"{name}: {error[:240]}"
        elif status == "FAILED" and TIMED_OUT.match(error):
            seen.endless.setdefault(names[name], f"{name.rpartition('#')[2]}: {error[:240]}")
        elif status == "FAILED":
            seen.failed.setdefault(names[name], f"{name.rpartition('#')[2]}: {error[:240]}")
        elif status == "SUCCESSFUL" and name in names:
            seen.passed.add(names[name])
    _settle(seen)
    seen.invalid = broken if broken and set(names.values()) - set(seen.failed) - set(seen.endless) else ""
    return seen
