"""Docs/results/certify.md, from what is kept."""

from __future__ import annotations

import textwrap
from typing import Any

from tests.campaigns.certify import candidate, decisions, run
from tests.campaigns.certify.candidate import Versions
from tests.campaigns.certify.run import CLASSES, PASSED
from tests.support import ROOT
from tests.support.evidence import DIRECT, Evidence, as_said

PAGE = ROOT / "docs" / "results" / "certify.md"
JsonDict = dict[str, Any]
HEAD = """\
# Versions of Hudi and Spark that were run

Written by `make certify`; do not edit. A version of Hudi or Spark is decided by the tests of
`tests/campaigns/certify/decides.yaml`: those that observe what Hudi and Spark do, and those of each
class of theirs that this project names and that they do not promise to keep. **Passed**: on one
commit, every class is there and every test of the list has passed. **Failed**: one was missing, or
has failed. **Incomplete**: not all was run. The tests also run in `make test` and `make test-all`
with the versions that are pinned ([last run](last-run.md)); here stands only what `make certify`
itself has run. What a version is supported for: [support](../use/support.md).
"""


def results() -> list[tuple[Versions, JsonDict]]:
    """Stored results, the newest versions first."""
    found = [path.stem.removeprefix("hudi-").split("-spark-") for path in sorted(run.RESULTS.glob("*.json"))]
    return [(Versions(*pair), run.load(Versions(*pair))) for pair in reversed(found)]


def verdict(result: JsonDict, listed: decisions.Decisions) -> str:
    """Verdict on a pair of versions."""
    tests, looked = result.get("tests", {}), result.get(CLASSES)
    files = [file for found in listed.files().values() for file in found]
    said = [tests[file] for file in files if file in tests]
    if any(one["outcome"] != PASSED for one in said) or (looked and (looked["missing"] or looked["unmarked"])):
        return "**failed**"
    commits = {one["commit"] for one in [*said, *([looked] if looked else [])]}
    whole = len(said) == len(files) and looked and len(commits) == 1 and not next(iter(commits)).endswith("+")
    return "**passed**" if whole else "incomplete"


def page(kept: list[tuple[Versions, JsonDict]] | None = None) -> str:
    """The whole page."""
    kept, listed = results() if kept is None else kept, decisions.decisions()
    kept = kept or [(candidate.pinned(), {})]
    files = [file for found in listed.files().values() for file in found]
    every = [one for _, result in kept for one in (*result.get("tests", {}).values(), *_looked(result))]
    told = Evidence.of(
        every,
        f"the last one of each of {sum(len(result.get('tests', {})) for _, result in kept)} files of tests, and "
        f"{sum(len(_looked(result)) for _, result in kept)} looks at the jars",
        left_out="earlier runs",
        direct=DIRECT + " The files of the tier e2e, which are on pods, go through it.",
    )
    lines = [HEAD, str(told), ""]
    lines += [
        "| Hudi | Spark | verdict | files passed | failed | not run | classes |",
        "|---|---|---|---:|---:|---:|---|",
    ]
    for versions, result in kept:
        tests = result.get("tests", {})
        good = sum(tests[file]["outcome"] == PASSED for file in files if file in tests)
        bad = sum(tests[file]["outcome"] != PASSED for file in files if file in tests)
        lines.append(
            f"| {versions.hudi} | {versions.spark} | {verdict(result, listed)} | {good} | {bad} | "
            f"{len(files) - good - bad} | {_classes(result)} |"
        )
    lines += ["", "## What decides", ""]
    kept = [(versions, result) for versions, result in kept if result.get("tests")] or kept[:1]
    for one in listed.decisions:
        classes = f" ({len(one.classes)} classes)" if one.classes else ""
        lines += [f"### {one.name}", "", *textwrap.wrap(f"{one.about}{classes}.", 100), ""]
        lines += ["| test | " + " | ".join(f"{pair.hudi} with {pair.spark}" for pair, _ in kept) + " |"]
        lines += ["|---" * (len(kept) + 1) + "|"]
        for test, file in zip(one.tests, one.files, strict=True):
            cells = [_cell(result.get("tests", {}).get(file)) for _, result in kept]
            lines.append(" | ".join([f"| `{test}`", *cells]) + " |")
        lines.append("")
    return "\n".join(lines)


def _looked(result: JsonDict) -> list[JsonDict]:
    return [result[CLASSES]] if CLASSES in result else []


def _classes(result: JsonDict) -> str:
    if CLASSES not in result:
        return "not run"
    looked = result[CLASSES]
    wrong = [f"missing: {', '.join(looked['missing'])}"] if looked["missing"] else []
    wrong += [f"no interface any more: {', '.join(looked['unmarked'])}"] if looked["unmarked"] else []
    return "; ".join(wrong) or f"all {looked['looked']} there, on {as_said(looked['commit'])}, {looked['at'][:10]}"


def _cell(said: JsonDict | None) -> str:
    if said is None:
        return "not run"
    failed = f": {', '.join(said['failed'])}" if said.get("failed") else ""
    return f"{said['outcome']}{failed}, {said['tests']} tests, {as_said(said['commit'])}, {said['at'][:10]}"


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
