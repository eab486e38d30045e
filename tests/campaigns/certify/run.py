"""Run the list in the checkout that this is, file by file, and keep what each file said.

A result is a file in docs/results/raw/certify, one for a pair of versions. A file of tests that has
passed on this commit is not run again.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.campaigns.certify import decisions
from tests.campaigns.certify.candidate import Versions, pinned
from tests.campaigns.pages import last_run
from tests.support import CACHE, ROOT, evidence

RESULTS = evidence.RAW / "certify"
OUT = ROOT / "build" / "certify"
CLASSES = "classes"
"""Name of the check of the jars for --only."""
PYTHON = CACHE / "venv" / "bin" / "python"
MAVEN = ("mvn", "-q", "-B", "-f", "spark-images/etcd-lock/pom.xml")
BUILD = (*MAVEN, "package", "-DskipTests")
DOES_NOT_BUILD = {"outcome": last_run.FAILED, "tests": 0, "seconds": 0.0, "failed": ["(the module does not build)"]}
"""Result of files of the Java tier. Other set-up that fails says nothing about a version: it is not
kept.
"""
SURE_FIRE = ROOT / "spark-images" / "etcd-lock" / "target" / "surefire-reports"
SET_UP: dict[str, tuple[tuple[str, ...], ...]] = {
    CLASSES: (("hack/setup/venv",), ("hack/jars/fetch-jars",)),
    "unit": (("hack/setup/venv",),),
    "java": (("hack/build/build-binaries", "etcd"), BUILD),
    "hudi": (("hack/jars/fetch-kafka",), ("hack/jars/fetch-hive",), ("tests/run", "hudi", "--", "--version")),
    "e2e": (("tests/run", "e2e", "--", "--version"),),
}
"""Set-up of each tier; `tests/run TIER -- --version` sets a tier up and runs no test."""
PASSED, FAILED = last_run.PASSED, last_run.FAILED
JsonDict = dict[str, Any]


def path(versions: Versions) -> Path:
    """File with the result of a pair of versions."""
    return RESULTS / f"{versions}.json"


def load(versions: Versions) -> JsonDict:
    """Stored result of a pair of versions; empty: nothing was run."""
    file = path(versions)
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def keep(result: JsonDict, versions: Versions) -> None:
    """Write a result."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path(versions).write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def here(only: str = "", tiers: Iterable[str] = tuple(decisions.TIERS)) -> int:
    """Run what has not passed on this commit; return how many files, or looks, have failed."""
    versions, commit = pinned(), evidence.commit()
    result = load(versions)
    result |= {"hudi": versions.hudi, "spark": versions.spark, "arch": platform.machine()}
    tests: JsonDict = result.setdefault("tests", {})
    bad = 0
    listed = decisions.decisions()
    if only in ("", CLASSES):
        set_up(CLASSES)
        looked = classes() | stamp(commit)
        result[CLASSES] = looked
        keep(result, versions)
        bad += bool(looked["missing"] or looked["unmarked"])
        print(f"classes: {len(listed.classes)} looked for, missing {looked['missing']}, unmarked {looked['unmarked']}")
    wanted = {} if only == CLASSES else listed.files(only)
    for tier in (tier for tier in wanted if tier in tiers):
        left = [file for file in wanted[tier] if not passed(tests.get(file), commit)]
        if not left:
            continue
        try:
            set_up(tier)
        except subprocess.CalledProcessError as error:
            print(f"{tier}: NOT RUN, {' '.join(map(str, error.cmd))} ended with {error.returncode}", flush=True)
            tests |= {file: DOES_NOT_BUILD | stamp(commit) for file in left if error.cmd == BUILD}
            keep(result, versions)
            bad += 1
            continue
        for file, said in RUN.get(tier, pytest)(left):
            tests[file] = said | stamp(commit)
            keep(result, versions)
            bad += said["outcome"] != PASSED
            print(f"{tier} {file}: {said['outcome']}, {said['tests']} tests", flush=True)
    return bad


def stamp(commit: str) -> JsonDict:
    """On which commit, and when."""
    return {"commit": commit, "at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())}


def passed(said: JsonDict | None, commit: str) -> bool:
    """Whether a file has passed on a commit; changes that are not committed have no name."""
    return bool(said) and not commit.endswith("+") and said["commit"] == commit and said["outcome"] == PASSED


def set_up(tier: str) -> None:
    """Raises CalledProcessError when a step fails."""
    for command in SET_UP[tier]:
        subprocess.run(command, cwd=ROOT, env=environment(), check=True, stdout=subprocess.DEVNULL)


def environment() -> dict[str, str]:
    """As `tests/run` gives it to tests."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT / "operator"), str(ROOT / "spark-images"), str(ROOT))),
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python",
        "PATH": os.pathsep.join((str(CACHE / "venv" / "bin"), str(CACHE / "bin"), os.environ.get("PATH", ""))),
    }


def jars() -> list[Path]:
    """Jars of the image: Spark's, and those that are added."""
    spark = subprocess.run(
        [PYTHON, "-c", "import pyspark; print(pyspark.__file__)"], check=True, capture_output=True, text=True
    ).stdout.strip()
    return [*sorted(Path(spark).parent.glob("jars/*.jar")), *sorted((CACHE / "jars").glob("*.jar"))]


def classes() -> JsonDict:
    """Listed classes that the jars do not have, and public ones that Spark does not mark."""
    listed, found = decisions.decisions(), jars()
    ours = [jar for jar in found if jar.name.startswith(("hudi-spark", "spark-"))]
    return {
        "missing": decisions.missing(listed.classes, ours),
        "unmarked": decisions.unmarked(listed.public, ours),
        "looked": len(listed.classes),
    }


def java(files: list[str]) -> Iterator[tuple[str, JsonDict]]:
    """All classes in one run of Maven; a class without a report has failed."""
    for report in SURE_FIRE.glob("TEST-*.xml"):
        report.unlink()
    names = ",".join(Path(file).stem for file in files)
    subprocess.run((*MAVEN, "surefire:test", f"-Dtest={names}", "-Dleft.out=none"), cwd=ROOT, env=environment())
    for file in files:
        yield file, said(file, "java", sorted(SURE_FIRE.glob(f"TEST-*.{Path(file).stem}.xml")))


def pytest(files: list[str]) -> Iterator[tuple[str, JsonDict]]:
    """One run for each file."""
    OUT.mkdir(parents=True, exist_ok=True)
    for file in files:
        report = OUT / f"{Path(file).stem}.xml"
        report.unlink(missing_ok=True)
        command = [PYTHON, "-m", "pytest", "-q", "-m", "", f"--junitxml={report}", file]
        done = subprocess.run(command, cwd=ROOT, env=environment())
        outcome = said(file, decisions.tier_of(file), [report] if report.exists() else [])
        yield file, outcome if done.returncode == 0 else {**outcome, "outcome": FAILED}


RUN = {"java": java}
"""Functions that run a tier without pytest."""


def said(file: str, tier: str, reports: Iterable[Path]) -> JsonDict:
    """Results of a file in reports; a file that is in none has failed."""
    cases = [case for case in last_run.cases(tier, reports) if case[0] == file]
    good = bool(cases) and all(outcome == PASSED for _, _, outcome, _ in cases)
    failed = sorted(name for _, name, outcome, _ in cases if outcome != PASSED)
    told: JsonDict = {"outcome": PASSED if good else FAILED, "tests": len(cases)}
    told["seconds"] = round(sum(seconds for *_, seconds in cases), 1)
    return told | ({"failed": failed} if failed else {})
