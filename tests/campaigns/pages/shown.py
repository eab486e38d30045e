"""Page on the runs that show each claim, with their last results: docs/results/shown.md.

    python -m tests.campaigns.pages.shown       write the page;
                                                `python -m tests.campaigns.pages.last_run` does it,
                                                too

The claims are the invariants of docs/design/protocol.md, the rows of docs/design/rfc-22.md, the
forty cases (tests/campaigns/faults/cases.py) and the fixes of findings of a security review
(tests/campaigns/pages/security.py). The runs are read from the tests' source
(tests/support/evidence/catalog.py), the last results from docs/results/raw/last-run. Only the tests
that show an invariant are typed (tests/support/evidence/invariants.py).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.campaigns.faults.cases import CASES
from tests.campaigns.pages import last_run, security
from tests.support import evidence
from tests.support.evidence import catalog, local_files
from tests.support.evidence.catalog import ALL, EVERY, Test
from tests.support.evidence.invariants import INVARIANTS

PAGE = evidence.ROOT / "docs" / "results" / "shown.md"
RFC = evidence.ROOT / "docs" / "design" / "rfc-22.md"
BY_HAND = {"faults": "make faults", "make": "a command of its own", "tests/campaigns/matrix": "make matrix"}
"""Words that name no test of a tier, and how what they name is run."""
ELSEWHERE = {"make demo": ("README", "one run of 2026-12-01, of ab6da290")}
"""Evidence and last result of such a word, where it has no page of results."""
STORES = {"hdfs": "HDFS", "gcs": "GCS"}
"""Fixtures by which a test of the hudi tier has its table in another store than S3."""
_ROW = re.compile(r"^\| (R[\d, –R]+) \|")
HEAD = """\
# Which run shows what

Written by `python -m tests.campaigns.pages.shown` and `make test-all`; do not edit. For each
invariant of [protocol.md](../design/protocol.md) some tests, those with the most real parts first;
for each row of [rfc-22.md](../design/rfc-22.md) and each of the
[forty cases](faults.md#the-forty-acceptance-cases) the tests that are named there. A test that is
named is about the claim; what it asserts stands in its source, and what a case lacks in its last
column. The last part has what a review of the product's security has found, by its subject and the
numbers of [findings](../design/findings.md): tests of the cure, and below them mutations that take
it out again, whose outcomes are in [mutations](mutations.md).

* **On**: as the tests are today; S3 is versitygw; – is neither Spark nor pods.
* **Run**: *every change* is the list of `make test` and CI, which begin no test of component and hudi
  after 37 minutes, so that a run may leave it out (**Last** says when it was run); *test-all* is
  `make test-all` alone, anything else is a command of its own; how many of the named tests; of those
  *in part* some parameters are left out.
* **Last**: how many of the named tests passed when they were last run and that was noted, with
  each of their parameters ([last-run.md](last-run.md)), the days and commits of that, and what has
  failed or has no noted result. *The test was changed since*: its file holds something else than
  on the commit of its result, as it was when this page was written. Of the tiers unit, model, java
  and component a file has one result, whatever the parameters: one test that fails makes all of it
  failed.
"""
Results = dict[str, dict[str, dict[str, Any]]]


def rows() -> Iterator[tuple[str, list[str]]]:
    """Rows of rfc-22.md, and what each names in its last column."""
    for line in RFC.read_text(encoding="utf-8").splitlines():
        if match := _ROW.match(line):
            yield match[1], list(catalog.words(line.rstrip().removesuffix("|").rpartition("|")[2]))


def cases() -> Iterator[tuple[str, list[str]]]:
    """The forty cases, and what each names."""
    for case in CASES:
        yield str(case.number), list(case.tests)


def reviewed() -> Iterator[tuple[str, list[str]]]:
    """Findings of the security review, and the tests of the fixes."""
    for one in security.FINDINGS:
        yield one.about, list(one.tests)


def run(found: tuple[Test, ...]) -> str:
    """Runs that contain them, with their numbers."""
    kinds = {kind: sum(test.run == kind for test in found) for kind in (EVERY, catalog.PART, ALL)}
    return ", ".join(f"{kind} ({number})" for kind, number in kinds.items() if number)


def noted() -> Results:
    """Stored results of every tier."""
    return {file: group for tier in last_run.TIERS for file, group in last_run.results(tier).items()}


def has_passed(results: Iterable[Mapping[str, Any]]) -> bool:
    """Whether each of them has passed."""
    return all(result["outcome"] == last_run.PASSED for result in results)


def last(found: Iterable[Test], stored: Results) -> str:
    """Last results of the tests."""
    passed, times, commits, failed, without, cases_of = 0, set[str](), set[str](), list[str](), list[str](), list[str]()
    changed = list[str]()
    found = list(found)
    for test in found:
        group = stored.get(test.file, {})
        results, missing = last_run.said(group, test.name), last_run.without(test, group)
        without += missing
        if not results:
            continue
        times |= {str(result["at"])[:10] for result in results}
        commits |= {str(result["commit"]) for result in results}
        good = has_passed(results)
        passed += _passed(test, stored)
        failed += [] if good else [test.name]
        changed += [test.name] if any(last_run.is_changed(test.file, result) for result in results) else []
        if test.run == catalog.PART:
            cases_of.append(f"{test.name}: {len(results)} case{'s' * (len(results) > 1)}")
    if not times:
        return "no result noted"
    said = (
        f"{passed} of {len(found)}, {' to '.join(dict.fromkeys((min(times), max(times))))}, "
        f"{', '.join(f'`{commit}`' for commit in sorted(commits))}"
    )
    return "; ".join(
        [
            said,
            *cases_of,
            *([f"**failed**: {', '.join(failed)}"] if failed else []),
            *([last_run.CHANGED + (f": {_few(changed)}" if len(found) > 1 else "")] if changed else []),
            *([f"no result: {_few(without)}"] if without else []),
        ]
    )


def _few(names: list[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def on(found: Iterable[Test]) -> str:
    """Real parts that the tests use, as far as their tier or their source tells."""
    said = set()
    for test in found:
        if test.file.startswith("tests/tiers/e2e/"):
            said.add("real pods and S3")
        elif test.file.startswith("tests/tiers/hudi/"):
            said |= {store for fixture, store in STORES.items() if f", {fixture}: " in test.text} or {"S3"}
            said |= {
                "local files" for one in local_files.exceptions() if one.file == test.file and one.of in ("", test.name)
            }
    return ", ".join(sorted(said)) or "–"


def _lines(claims: Iterable[tuple[str, Sequence[str]]], stored: Results) -> Iterator[str]:
    for claim, words in claims:
        for number, word in enumerate(words or ["–"]):
            found = catalog.named(word)
            first = claim if number == 0 else ""
            if found:
                yield f"| {first} | `{word}` | {on(found)} | {run(found)} | {last(found, stored)} |"
            else:
                how = next((how for begin, how in BY_HAND.items() if word.startswith(begin)), "no test")
                where, said = ELSEWHERE.get(word, ("–" if how == "no test" else "see its page", "–"))
                yield f"| {first} | {word if word == '–' else f'`{word}`'} | {where} | {how} | {said} |"


def not_shown(claims: Iterable[tuple[str, Sequence[str]]], stored: Results) -> str:
    """Claims that name tests with Spark or pods, none of which has passed with all of its
    parameters when it was last run and that was noted.
    """
    found = []
    for claim, words in claims:
        real = [test for word in words for test in catalog.named(word) if test.file.startswith(catalog.COLLECTED)]
        if real and not any(_passed(test, stored) for test in real):
            found.append(claim)
    said = "Tests with Spark or pods are named, and none of them has a passing noted result of all its parameters"
    return f"{said}: {', '.join(found) or '–'}."


def _passed(test: Test, stored: Results) -> bool:
    group = stored.get(test.file, {})
    return not last_run.without(test, group) and has_passed(last_run.said(group, test.name))


def page() -> str:
    """The whole page."""
    stored = noted()
    named = {
        test
        for claims in (INVARIANTS.items(), rows(), cases(), reviewed())
        for _, words in claims
        for word in words
        for test in catalog.named(word)
    }
    used = [result for file in sorted({test.file for test in named}) for result in stored.get(file, {}).values()]
    said = evidence.Evidence.of(
        used,
        f"the last noted one of each of {len(named)} tests, where there is one",
        left_out="earlier runs, and runs of CI",
        more=(last_run.THROUGH,),
    )
    head = ["|  | test | on | run | last |", "|---|---|---|---|---|"]
    parts = {
        "Invariants": list(INVARIANTS.items()),
        "RFC-22": list(rows()),
        "The forty cases": list(cases()),
        "Security review": list(reviewed()),
    }
    return "\n".join(
        [
            HEAD,
            str(said),
            *(
                line
                for title, claims in parts.items()
                for line in ("", f"## {title}", "", not_shown(claims, stored), "", *head, *_lines(claims, stored))
            ),
            "",
            "| finding of the review | mutations |",
            "|---|---|",
            *(f"| {one.about} | {', '.join(f'`{of}`' for of in one.mutations) or '–'} |" for one in security.FINDINGS),
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
