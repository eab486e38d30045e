"""Last result of each group of tests: docs/results/last-run.md.

    python -m tests.campaigns.pages.last_run hudi build/test/hudi.xml
        take over a report of pytest (or a folder of Maven's), run on the commit that is checked out
    python -m tests.campaigns.pages.last_run hudi REPORT --commit C
        the same, of another checkout
    python -m tests.campaigns.pages.last_run hudi --run
        run every file of a tier that has not passed on this commit, whole; continues where it was
        cut off
    python -m tests.campaigns.pages.last_run --page
        only the pages (this one and docs/results/shown.md)

`make test-all` does this by itself, `make test` and CI do not: they change no file of the checkout.
A group is a file of tests. In the tiers hudi and e2e, whose files are not always run whole, each
test has its own last result. With a result stands which contents of the file it is of, so that the
pages can say without any history whether the test was changed since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.support import evidence
from tests.support.evidence import catalog

ROOT = evidence.ROOT
RESULTS = evidence.RAW / "last-run"
PAGE = ROOT / "docs" / "results" / "last-run.md"
TIERS = {
    "unit": "tests/tiers/unit",
    "model": "tests/tiers/model",
    "java": "spark-images/etcd-lock/src/test/java/io/hudioperator",
    "component": "tests/tiers/component",
    "hudi": "tests/tiers/hudi",
    "e2e": "tests/tiers/e2e",
}
REPORTS = {
    "unit": ("unit", "build/test/unit.xml"),
    "model": ("model", "build/test/model.xml"),
    "spec": ("model", "build/test/spec.xml"),
    "java": ("java", "spark-images/etcd-lock/target/surefire-reports/TEST-*.xml"),
    "component": ("component", "build/test/component.xml"),
    "crds": ("component", "build/test/crds.xml"),
    "hudi": ("hudi", "build/test/hudi.xml"),
    "hudi-2": ("hudi", "build/test/hudi-2.xml"),
    "hudi-3": ("hudi", "build/test/hudi-3.xml"),
    "e2e": ("e2e", "build/test/e2e.xml"),
}
"""Names that `tests/run` uses for tiers: the tier here, and the location of its reports."""
IN_PARTS = ("hudi", "e2e")
"""Tiers of which single tests are run; of the others a file is run whole."""
WHOLE = "*"
NO_END = "(did not end)"
"""Stands for a file whose run has ended without a report of all its tests, or badly although each
of them has passed.
"""
NOT_KNOWN = "not known"
CHANGED = "the test was changed since"
_MARKS = re.compile(
    rf"; {CHANGED}(?:: [^;|\n]*?)?(?=; no result: |\)| \|)| Of \d+ of them {CHANGED}\.|(?<=` \|) \d* \|$", re.M
)
THROUGH = "Which tests go through the gateway: [testing](../design/testing.md)."
PASSED, FAILED = "passed", "failed"
Runs = dict[str, dict[str, dict[str, Any]]]
"""Group → test → `commit`, `at`, `outcome`, `tests`, `source`: the file's contents (`contents`); of
a whole file also `names`: its tests that were run, without their parameters; of a single test also
`seconds` (`tests.support.sharing`).
"""
HEAD = """\
# Last run of each group of tests

Written by `make test-all`, or `python -m tests.campaigns.pages.last_run` from reports of other
runs; do not edit. A group is a file of tests. Of the groups of the tiers hudi and e2e each test has
its own last result, of the others those that a run left out keep theirs, so that a line may name
several commits; a test without any result is not counted here. `make test` runs what is not marked
`extra`, and CI with it, on each commit; it changes no file of the checkout, so that of its runs
only those are here that were taken over by `--note`.

*Changed since*: how many of the results are of a file of tests that was changed after their commit,
as it was when this page was written. They are results of another text of the test than today's;
`git diff COMMIT -- FILE` shows what was changed, which may be the layout alone. What a test uses of
other files is not looked at.
"""


def files(tier: str) -> list[str]:
    """The groups of a tier, as they are in the tree."""
    folder = ROOT / TIERS[tier]
    found = folder.rglob("*Test.java" if tier == "java" else "test_*.py")
    return sorted(str(path.relative_to(ROOT)) for path in found)


def results(tier: str) -> Runs:
    """Stored results of a tier, for existing tests; empty: none."""
    path = RESULTS / f"{tier}.json"
    return _there(tier, json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def cases(tier: str, reports: Iterable[Path]) -> Iterator[tuple[str, str, str, float]]:
    """File, test, outcome and seconds of each case of JUnit reports.

    A skipped test counts as failed: tiers decide what runs.
    """
    known = {Path(name).with_suffix("").as_posix().replace("/", "."): name for name in files(tier)}
    known |= {
        Path(name).with_suffix("").as_posix().partition("/java/")[2].replace("/", "."): name
        for name in files(tier)
        if tier == "java"
    }
    for report in reports:
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            where = str(case.get("classname"))
            file = next((known[name] for name in (where, where.rpartition(".")[0]) if name in known), "")
            bad = any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
            if file:
                yield file, str(case.get("name")), FAILED if bad else PASSED, float(case.get("time", 0))


def contents(checkout: Path, commit: str, file: str) -> str:
    """Contents of a file on a commit of a checkout: the first ten digits of git's hash.

    For a commit with uncommitted changes: the current contents. Empty: unknown.
    """
    if commit.endswith("+"):
        return held(checkout / file)
    told = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{commit}:{file}"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip()[:10]


def held(path: Path) -> str:
    """Ten digits of git's name for what a file holds; empty: there is none.

    It needs no repository.
    """
    if not path.is_file():
        return ""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()[:10]


def is_changed(file: str, result: dict[str, Any]) -> bool | None:
    """Whether a file of tests holds something else than when it was run; None: it was not noted."""
    return held(ROOT / file) != result["source"] if result.get("source") else None


def unmarked(page: str) -> str:
    """A page without what it says of tests that were changed since.

    This is the state when the page was written: pages need not be rewritten with each change of a
    test.
    """
    return _MARKS.sub("", page)


def record(
    tier: str, reports: Iterable[Path], *, commit: str, at: str, whole: bool = False, checkout: Path | None = None
) -> None:
    """Take over what reports say.

    A group of a tier that is run whole gets one result.

    ``whole``: the reports are of whole files also in a tier that is run in parts. Results of these
    files that belong to removed tests are dropped. ``checkout``: that was run, when it is another
    one.
    """
    runs, seen = results(tier), set[str]()
    earlier = {file: dict(group) for file, group in runs.items()}
    for file, test, outcome, seconds in cases(tier, reports):
        if whole and file not in seen:
            runs.pop(file, None)
        group = runs.setdefault(file, {})
        if tier in IN_PARTS:
            seen.add(file)
            group[test] = {
                "commit": commit,
                "at": at,
                "outcome": outcome,
                "tests": 1,
                "seconds": round(seconds, 1),
            }
            continue
        before = group[WHOLE] if file in seen else {"outcome": PASSED, "tests": 0, "names": []}
        seen.add(file)
        worst = FAILED if FAILED in (outcome, before["outcome"]) else PASSED
        names = sorted({*before["names"], base(test)})
        group[WHOLE] = {"commit": commit, "at": at, "outcome": worst, "tests": before["tests"] + 1, "names": names}
    for file in seen:
        _name_contents(runs[file], commit, contents(checkout or ROOT, commit, file))
    for file in () if tier in IN_PARTS else seen:
        runs[file] = {WHOLE: runs[file][WHOLE]} | _left_out(file, runs[file][WHOLE]["names"], earlier.get(file, {}))
    _keep(tier, runs)


def _name_contents(group: dict[str, dict[str, Any]], commit: str, source: str) -> None:
    for result in group.values():
        if source and result["commit"] == commit:
            result["source"] = source


def _left_out(file: str, names: Iterable[str], earlier: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Earlier results of a file of those of its tests that are not among `names`: `make test`
    leaves out what `make test-all` runs.
    """
    others = {test.name for test in catalog.tests(file)} - set(names)
    found: dict[str, dict[str, Any]] = {}
    for result in earlier.values():
        left = sorted(others.intersection(result["names"]))
        others -= set(left)
        if left:
            found[f"{WHOLE} {result['commit']}"] = {**result, "tests": len(left), "names": left}
    return found


def _there(tier: str, runs: Runs) -> Runs:
    """Results of files and tests that there are; of the tiers that are run in parts, with
    parameters that their tests have.
    """
    known = set(files(tier))
    kept = {name: runs[name] for name in sorted(runs) if name in known}
    if tier in IN_PARTS:
        for name, group in kept.items():
            exact, names = set(catalog.ids(name)), {test.name for test in catalog.tests(name)}
            kept[name] = {
                test: result
                for test, result in group.items()
                if test == NO_END or (test in exact if exact else base(test) in names)
            }
        kept = {name: group for name, group in kept.items() if group}
    return kept


def _keep(tier: str, runs: Runs) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_there(tier, runs), indent=1, sort_keys=True)
    (RESULTS / f"{tier}.json").write_text(f"{text}\n", encoding="utf-8")


def base(test: str) -> str:
    """The name of a test without its parameters, as pytest and JUnit write them."""
    return re.split(r"[\[({]", test, maxsplit=1)[0]


def said(group: dict[str, dict[str, Any]], test: str) -> list[dict[str, Any]]:
    """Stored results of a test of a group, one for each of its parameters.

    A whole file's result counts for the tests that were run with it.
    """
    return [
        result
        for name, result in group.items()
        if (test in result["names"] if name.startswith(WHOLE) else base(name) == test)
    ]


def without(test: catalog.Test, group: dict[str, dict[str, Any]]) -> list[str]:
    """Parameters of a test of which a group has no result, as pytest names them; of a test without
    any result its name alone.
    """
    if not said(group, test.name):
        return [test.name]
    return [one for one in catalog.ids(test.file) if base(one) == test.name and one not in group]


def missing(tier: str, commit: str) -> list[str]:
    """Groups of which not every test has passed on that commit.

    Changes that are not committed have no name, so on a commit with `+` that is all of them.
    """
    runs = results(tier)
    return [name for name in files(tier) if commit.endswith("+") or not _passed(name, runs.get(name, {}), commit)]


def _passed(name: str, group: dict[str, dict[str, Any]], commit: str) -> bool:
    there = all(said(group, test.name) for test in catalog.tests(name))
    return (
        bool(group)
        and there
        and all(result["commit"] == commit and result["outcome"] == PASSED for result in group.values())
    )


def run(tier: str) -> int:
    """Run what is missing, a file at a time, and write down each one's outcome at once.

    Returns how many files have failed.
    """
    commit, left, bad = evidence.commit(), missing(tier, evidence.commit()), 0
    print(f"{tier}: {len(files(tier)) - len(left)} of {len(files(tier))} files have passed on {commit}", flush=True)
    for number, name in enumerate(left, start=1):
        report = ROOT / "build" / "test" / tier / f"{Path(name).stem}.xml"
        report.unlink(missing_ok=True)
        begun = time.time()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", name], cwd=ROOT, check=False
        )
        at = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())
        # 0: all have passed; 1: some have failed; any other: it was ended, or could not begin.
        if report.exists():
            record(tier, [report], commit=commit, at=at, whole=done.returncode in (0, 1))
        told = done.returncode == 1 and report.exists() and _failed(results(tier).get(name, {}))
        if done.returncode != 0 and not told:
            runs = results(tier)
            runs.setdefault(name, {})[NO_END] = {"commit": commit, "at": at, "outcome": FAILED, "tests": 1}
            _name_contents(runs[name], commit, contents(ROOT, commit, name))
            _keep(tier, runs)
        write()
        bad += done.returncode != 0
        print(
            (
                f"{tier} {number}/{len(left)} {name}: "
                f"{'ok' if done.returncode == 0 else f'FAILED (exit {done.returncode})'}, {time.time() - begun:.0f} s"
            ),
            flush=True,
        )
    return bad


def counted(tier: str, commit: str) -> tuple[int, int]:
    """Tests that have passed and failed on that commit."""
    outcomes = [
        result["outcome"] for group in results(tier).values() for result in group.values() if result["commit"] == commit
    ]
    return outcomes.count(PASSED), outcomes.count(FAILED)


def _failed(group: dict[str, dict[str, Any]]) -> list[str]:
    return sorted(test for test, result in group.items() if result["outcome"] != PASSED)


def page() -> str:
    """The whole page, from what is stored."""
    stored = {tier: results(tier) for tier in TIERS}
    every = [result for runs in stored.values() for group in runs.values() for result in group.values()]
    lines = [
        HEAD,
        str(
            evidence.Evidence.of(
                every,
                f"the last one of each of {sum(r['tests'] for r in every)} tests",
                left_out="earlier runs",
                more=(_all_changed(stored), THROUGH),
            )
        ),
        "",
    ]
    lines += [
        "| tier | group | passed | failed | run on | commits | changed since |",
        "|---|---|---:|---:|---|---|---:|",
    ]
    failed: list[str] = []
    for tier, runs in stored.items():
        for name, group in runs.items():
            good = sum(r["tests"] for r in group.values() if r["outcome"] == PASSED)
            days = sorted({r["at"][:10] for r in group.values()})
            commits = ", ".join(f"`{c}`" for c in sorted({r["commit"] for r in group.values()}))
            when = " to ".join(dict.fromkeys((days[0], days[-1])))
            lines.append(
                f"| {tier} | {_short(tier, name)} | {good} | {sum(r['tests'] for r in group.values()) - good} | {when} "
                f"| {commits} | {_changed(name, group)} |"
            )
            failed += [f"* {name}{_of_file(test, group[test])}" for test in _failed(group)]
    never: list[str] = []
    for tier, runs in stored.items():
        for name in files(tier):
            left = [one for test in catalog.tests(name) for one in without(test, runs.get(name, {}))]
            never += [f"* {name}" + (f": {', '.join(left)}" if runs.get(name) else "")] if left else []
    lines += ["", "## Failed", "", *(failed or ["None."]), "", "## Without a result", "", *(never or ["None."]), ""]
    return "\n".join(lines)


def _changed(name: str, group: dict[str, dict[str, Any]]) -> str:
    """Number of results of a group that are of an earlier text of its tests."""
    found = [(is_changed(name, result), int(result["tests"])) for result in group.values()]
    unknown = sum(number for changed, number in found if changed is None)
    number = sum(number for changed, number in found if changed)
    return ", ".join([*([str(number)] if number else []), *([f"{unknown} {NOT_KNOWN}"] if unknown else [])])


def _all_changed(stored: dict[str, Runs]) -> str:
    """The same of all groups, as a sentence."""
    found = [
        (is_changed(name, result), int(result["tests"]))
        for runs in stored.values()
        for name, group in runs.items()
        for result in group.values()
    ]
    unknown = sum(number for changed, number in found if changed is None)
    number = sum(number for changed, number in found if changed)
    return f"Of {number} of them {CHANGED}" + (f", of {unknown} it is {NOT_KNOWN}." if unknown else ".")


def _short(tier: str, name: str) -> str:
    """A group's file below its tier's folder: names alone are not unique."""
    return name.removeprefix(f"{TIERS[tier]}/")


def _of_file(test: str, result: dict[str, Any]) -> str:
    """Tests of a file that a result is of, as the page names them."""
    if test == WHOLE:
        return ""
    return f": one of {', '.join(result['names'])}" if test.startswith(WHOLE) else f"::{test}"


def note(checkout: Path, *, commit: str = "") -> list[str]:
    """Take over the reports of the last run of `tests/run` in a checkout.

    Returns a line for each tier of it.

    ``commit``: of reports beside which `tests/run` has written none. Raises ValueError when there
    is none either, and when there are no reports.
    """
    commit = resolved(checkout, commit) if commit else ""
    found: list[tuple[str, list[Path], str]] = []
    lines: list[str] = []
    for name, (tier, where) in REPORTS.items():
        paths = sorted(checkout.glob(where))
        if not paths:
            lines.append(f"{name}: no report")
            continue
        beside = checkout / "build" / "test" / f"{name}.commit"
        of = beside.read_text(encoding="utf-8").strip() if beside.exists() else commit
        if not of:
            raise ValueError(
                f"of which commit is {paths[0]}? {beside} is not there, because the run was cut off or files have "
                "changed meanwhile: say --commit"
            )
        found.append((tier, paths, of))
        lines.append(f"{name}: {sum(1 for _ in cases(tier, paths))} tests on {of}")
    if not found:
        raise ValueError(
            f"no report of tests/run in {checkout}: it looks at {', '.join(where for _, where in REPORTS.values())}"
        )
    for tier, paths, of in found:
        record(tier, paths, commit=of, at=_ended(paths), checkout=checkout)
    return lines


def resolved(checkout: Path, commit: str) -> str:
    """Ten digits of what names a commit there; raises ValueError when nothing does."""
    told = subprocess.run(
        ["git", "rev-parse", "--verify", "--short=10", f"{commit}^{{commit}}"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode != 0:
        raise ValueError(f"--commit {commit} names no commit in {checkout}: {told.stderr.strip()}")
    return told.stdout.strip()


def _ended(reports: Iterable[Path]) -> str:
    return time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(max(file.stat().st_mtime for file in reports)))


def write() -> None:
    """Write the page, and those of claims that are made of the same results."""
    from tests.campaigns.faults import table as faults  # they read this module
    from tests.campaigns.guarantees import page as guarantees
    from tests.campaigns.pages import measured, reach, shown

    PAGE.write_text(page(), encoding="utf-8")
    shown.PAGE.write_text(shown.page(), encoding="utf-8")
    faults.TARGET.write_text(faults.page(), encoding="utf-8")
    reach.PAGE.write_text(reach.page(), encoding="utf-8")
    measured.PAGE.write_text(measured.page(), encoding="utf-8")
    guarantees.PAGE.write_text(guarantees.page(), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.pages.last_run",
        description="take over what reports of tests say, and write docs/results/last-run.md",
    )
    parser.add_argument("tier", nargs="?", choices=TIERS)
    parser.add_argument("reports", nargs="*", type=Path, metavar="REPORT", help="JUnit files, or folders of them")
    parser.add_argument("--commit", default="", help="that was run (default: what is checked out)")
    parser.add_argument("--run", action="store_true", help="run what has not passed on this commit")
    parser.add_argument(
        "--note",
        nargs="?",
        type=Path,
        const=ROOT,
        metavar="CHECKOUT",
        help="take over the last `make test` of a checkout (default: this one)",
    )
    parser.add_argument("--page", action="store_true", help="only write the page")
    given = parser.parse_args(arguments)
    sys.path += [str(ROOT / name) for name in ("operator", "spark-images")]  # the page of faults is made with them
    if given.run and given.tier:
        return 1 if run(given.tier) else 0
    if given.note:
        try:
            print("\n".join(note(given.note, commit=given.commit)))
        except ValueError as error:
            parser.error(str(error))
    elif not given.page:
        if not given.tier or not given.reports:
            parser.error("name a tier and its reports, or --page")
        found = [
            file for path in given.reports for file in (sorted(path.glob("TEST-*.xml")) if path.is_dir() else [path])
        ]
        record(given.tier, found, commit=given.commit or evidence.commit(), at=_ended(found))
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
