"""No page of results stands without its commits, without saying what it left out, or as if it were
of today's code.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
from pathlib import Path

import pytest

from tests.campaigns.matrix.cells import EVERY
from tests.campaigns.mutations import page as mutations_page
from tests.campaigns.mutations.campaign import CAUGHT, stored
from tests.campaigns.mutations.lists import MUTATIONS
from tests.campaigns.statements import rows
from tests.campaigns.statements.page import LIST
from tests.campaigns.statements.page import page as statements_page
from tests.campaigns.values.cases import CASES
from tests.support import ROOT, evidence
from tests.support.evidence import NOTHING, OLDER, Evidence, at_most, catalog, faults, none_of, of_results, reachable

PAGES = (
    *sorted(page for page in (ROOT / "docs" / "results").glob("*.md") if page.name != "README.md"),
    ROOT / "docs" / "use" / "what-user-code-may-do.md",
    ROOT / "docs" / "use" / "what-a-table-can-hold.md",
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_page_says_what_it_stands_on(page: object) -> None:
    assert faults(PAGES[PAGES.index(page)].read_text()) == []  # type: ignore[arg-type]


def test_rows_are_those_of_the_lists() -> None:
    text = {page.name: page.read_text() for page in PAGES}
    assert text["what-user-code-may-do.md"] == statements_page(), (
        f"written by `python -m tests.campaigns.statements.page` from {LIST.name}"
    )
    assert sum(
        line.count("**ok**") + line.count("not run") + line.count("**failed**")
        for line in text["matrix.md"].splitlines()
        if line.startswith("| ")
    ) == len(EVERY)
    for case in CASES:
        assert f"## {case.name[0].upper()}{case.name[1:]}\n" in text["what-a-table-can-hold.md"], (
            "written by `python -m tests.campaigns.values --page`"
        )
    assert mutations_page.differences(text["mutations.md"]) == [], (
        "written by `python -m tests.campaigns.mutations --table`"
    )


def test_what_no_run_contains_is_on_the_page_of_statements() -> None:
    """The rows are those of the lists, not those that a run has left."""
    page = statements_page({})
    assert [name for name in rows.EVERY if f"| {name} |" not in page] == []
    assert page.count("| not run | not run |") == sum(
        line.startswith("| ") and not line.startswith(("| what |", "| statement |")) for line in page.splitlines()
    )
    app = (ROOT / "tests" / "tiers" / "hudi" / "apps" / "statements_app.py").read_text()
    written = re.sub(r"\{\w+\}", "{}", app)
    made = re.compile(r"(?<=mode )\w+$|(?<=\.)\w+(?=\(\)$)")
    assert [name for name in rows.EVERY if f'"{name}"' not in app and f'"{made.sub("{}", name)}"' not in written] == []


def test_a_page_of_mutations_that_is_not_the_lists_is_found() -> None:
    page = (ROOT / "docs" / "results" / "mutations.md").read_text()
    judged = next(one for one in MUTATIONS if (stored(one) or {}).get("outcome") == CAUGHT)
    line = next(line for line in page.splitlines() if line.startswith(f"| `{judged.id}`"))
    for worse in ("", line.replace("caught", "survived"), line.replace("`, ", "` "), f"{line}\n| `made-up` | caught |"):
        if worse != line:
            assert len(mutations_page.differences(page.replace(line, worse))) == 1, worse


def test_what_a_page_must_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "reachable", lambda commit: commit == "a123456789")
    good = str(Evidence({"a123456789": "2026-01-01"}, "3 of 3"))
    assert faults(f"# A page\n\n{good}\n") == []
    assert faults(f"# A page\n\n{NOTHING}\n") == []
    assert faults("# A page\n") == ["it has 0 sentences of evidence (**Evidence.**) instead of one"]
    assert faults(good.replace(OLDER, "")) == ["it does not say that later code was not part of the runs"]
    assert faults(good.replace("Left out: ", "")) == ["its evidence does not tell its left out"]
    without = good.replace("a product without the gateway", "it").replace("with the gateway", "")
    assert faults(re.sub(r"the gateway, through", "it, through", without)) == [
        "it does not say whether the gateway was part of the runs"
    ]
    assert faults(good.replace("Repeats: ", "")) == ["its evidence does not tell its repeats"]
    gone = ["commit abcdef0123 is not in the history, and the page does not say so"]
    assert faults(f"{good}\nRun: commit abcdef0123, by hand\n") == gone
    assert faults(f"{good}\n* `abcdef0123` hudi=1\n") == gone
    assert faults(f"{good}\n* `abcdef0123 hudi=1`\n") == gone
    short = ["commit abcdef0 is not in the history, and the page does not say so"]
    assert faults(f"{good}\n| a | ok | `abcdef0` |\n") == short
    assert faults(good.replace("a123456789", "abcdef0")) == short
    assert faults(f"{good}\nRuns of `1234567`, `/hudi/abcdef0` and `abcdef0.json`.\n") == []
    lost = str(Evidence({"abcdef0123": "2026-01-01"}, "3 of 3"))
    assert "`abcdef0123`, not in this repository's history (2026-01-01)" in lost
    assert faults(lost) == []


def test_a_dirty_run_says_so_and_days_are_kept() -> None:
    results = [
        {"commit": "abc+", "at": "2026-01-03T10:00Z"},
        {"commit": "abc+", "at": "2026-01-01T10:00Z"},
        {"commit": "def", "date": "2026-01-04"},
    ]
    assert of_results(results) == {"def": "2026-01-04", "abc+": "2026-01-01 to 2026-01-03"}
    assert "with changes that were not committed" in str(Evidence(of_results(results), "3"))


def test_later_code_is_counted_from_the_oldest_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a page with several commits, the newest one would hide what came after the others. The
    runs may stand in any order: those of one day go by the history.
    """
    places = {"a123456789": 7, "b123456789": 9, "c123456789": 8}
    monkeypatch.setattr(evidence, "reachable", lambda commit: commit != "d123456789")
    monkeypatch.setattr(evidence, "position", lambda commit: (places.get(commit, -1), commit))
    results = [{"commit": commit, "at": "2026-01-01"} for commit in (*places, "d123456789")]
    for order in itertools.permutations(results):
        found = of_results(order)
        assert list(found) == ["b123456789", "c123456789", "a123456789", "d123456789"]
        assert "`git diff --stat a123456789 -- " in str(Evidence(found, "3"))


def test_the_oldest_commit_is_the_oldest_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """An older one may be gone."""
    monkeypatch.setattr(evidence, "reachable", lambda commit: commit != "d123456789")
    assert ", from the oldest of them, shows it." in str(Evidence({"a123456789": "2026-01-01"}, "1"))
    both = Evidence({"a123456789": "2026-01-02", "d123456789": "2026-01-01"}, "2")
    assert "`git diff --stat a123456789 -- operator" in str(both)
    assert ", from the oldest of them that is in the history, shows it." in str(both)


def test_runs_of_code_without_the_gateway_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    met = {"a123456789": True, "b123456789": False, "c123456789": None}
    monkeypatch.setattr(evidence, "has_gateway", lambda commit: met[commit])
    results = [{"commit": commit, "at": "2026-01-01"} for commit in ("a123456789", "b123456789+", "b123456789+")]
    met["b123456789"] = False
    said = "2 of 3 runs are of a product without the gateway, through which pods reach etcd today."
    assert said in str(Evidence.of(results, "3"))
    assert "All 1 are of a product with the gateway" in str(Evidence.of(results[:1], "1"))
    lost = Evidence.of([*results, {"commit": "c123456789", "tests": 4}], "4")
    assert "2 of 7 runs are of a product without the gateway" in str(lost)
    assert "today; of 4 it cannot be told, because their commits are gone." in str(lost)
    direct = str(Evidence.of(results, "3", direct="Sessions go past the gateway."))
    assert "Sessions go past the gateway." in direct
    assert "runs are of a product" not in direct


def test_the_gateway_is_told_by_ancestry() -> None:
    if evidence.has_history():
        came = evidence.GATEWAY
        assert [evidence.has_gateway(commit) for commit in (f"{came}~1", came, "HEAD", "0" * 40)] == [
            False,
            True,
            True,
            None,
        ]
        added = ["diff", "--name-only", "--diff-filter=A", f"{came}~1", came, "--", "gateway"]
        assert evidence._git(*added).stdout, "the commit that brings the folder"


def test_where_tables_were_is_told_by_ancestry() -> None:
    if evidence.has_history():
        came = evidence.S3
        named = {"a": f"{came}~1", "b": came, "c": "HEAD", "d": "0" * 40}
        assert [evidence.on_s3(commit) for commit in named.values()] == [False, True, True, None]
        brought = evidence._git("diff", "--name-only", f"{came}~1", came, "--", "tests/support/harness/local.py")
        assert brought.stdout, "the commit that changes where a table is"
        said = "The tables were on S3, but on local files (`file://`) in `a`; of `d` it cannot be told."
        assert evidence.of_storage(named) == said
        assert evidence.of_storage({"b": f"{came}+"}) == "The tables were on S3."
        assert evidence.of_storage({"a": f"{came}~1"}) == "All tables were on local files (`file://`), not on S3."


def test_a_page_says_where_its_tables_were() -> None:
    """A result on local files is none about S3."""
    no_tables = {"certify.md", "lock-gateway.md", "lock-load.md", "starvation.md"}
    text = {page.name: page.read_text() for page in PAGES}
    silent = {name for name, said in text.items() if "S3" not in said and NOTHING not in said}
    assert silent - no_tables == set()
    priority = text["priority.md"]
    (commit,) = set(re.findall(r"commit ([0-9a-f]{10}),", priority))
    if evidence.has_history():
        assert evidence.of_storage({"priority": commit}) in priority, "of this page no raw results are stored"


def test_what_is_before_in_the_history_has_a_smaller_place() -> None:
    if evidence.has_history():
        head = evidence.commit().rstrip("+")
        assert evidence.position(f"{head}~1") < evidence.position(head)
    assert evidence.position("0" * 40)[0] == -1


def test_the_history_is_asked_where_there_is_one() -> None:
    assert reachable("0" * 40) is not evidence.has_history()
    if evidence.has_history():
        assert reachable(evidence.commit().rstrip("+"))


def test_of_what_was_never_seen_the_bound_is_told() -> None:
    assert none_of(60) == "0 of 60: less than 4.9 %"
    assert none_of(1) == "0 of 1: less than 95 %"
    assert none_of(0) == "0 of 0: nothing is known"
    assert at_most(1, 11) == "1 of 11: less than 36 %"
    assert at_most(2, 2) == "2 of 2: all of them"


GROUND = ("`tests/", "Test.", "Test`", "`test_", "results/", "`make ", "by hand", "not measured")
"""What a sentence that says "measured" names: a test, a page of results, a command; or it says that
somebody has seen it by hand.
"""


EVERY_PAGE = (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md")
FOLDERS = ("concepts", "design", "operate", "results", "use")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def pieces(text: str) -> list[str]:
    """Paragraphs, items of lists and rows of tables, each on one line."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if not line.strip() or re.match(r"\s*([*-]|\d+\.|\|)\s", line):
            found.append([])
        found[-1].append(line.strip())
    return [" ".join(piece) for piece in found if any(piece)]


def without_ground(text: str) -> list[str]:
    """Pieces of a page that speak of a measurement and do not say where it can be looked up."""
    return [
        piece
        for piece in pieces(text)
        if re.search(r"\b[Mm]easured\b", piece) and not any(word in piece for word in GROUND)
    ]


def test_the_pages_of_each_folder_are_looked_at() -> None:
    """A glob that finds nothing, because pages have moved, would pass whatever they say."""
    for folder in FOLDERS:
        assert sum(page.parent == ROOT / "docs" / folder for page in EVERY_PAGE) > 3, folder


@pytest.mark.parametrize("page", EVERY_PAGE, ids=name_of)
def test_what_is_called_measured_can_be_looked_up(page: Path) -> None:
    assert without_ground(page.read_text()) == []


_SEEN = re.compile(r"(?:seen|observed|measured|run) (?:\w+[ ,]+){0,2}by hand|observed once|not kept", re.IGNORECASE)
SEEN_BY_HAND = {
    "docs/design/findings.md": "reasons, which no claim rests on",
    "docs/design/identities.md": "a comparison that led to a decision, with its date",
    "docs/design/protocol.md": "reasons of rules; its head says what the words mean",
    "docs/design/testing.md": "says what was not kept",
    "docs/results/README.md": "says what was not kept",
    "docs/use/indexes.md": "the record index, which is refused",
}
"""Pages that may say it, and why."""


def test_nobody_has_seen_it_by_hand_alone() -> None:
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.parent != ROOT / "docs" / "results"]
    found = {
        str(path.relative_to(ROOT))
        for path in [*pages, ROOT / "docs/results/README.md", ROOT / "README.md"]
        if _SEEN.search(" ".join(path.read_text().split()))
    }
    assert found == SEEN_BY_HAND.keys()


def test_a_measurement_without_ground_is_found() -> None:
    text = (
        "Measured: 3 s\n"
        "and 4 s.\n"
        "\n"
        "* It was measured\n"
        "  (`test_a.py`): 5 s.\n"
        "* measured, 6 s\n"
        "\n"
        "| a | measured 7 s |\n"
        "| b | by hand |\n"
    )
    assert without_ground(text) == ["Measured: 3 s and 4 s.", "* measured, 6 s", "| a | measured 7 s |"]


OF_THEN = (ROOT / "docs" / "results" / "mutations.md",)
"""Its outcomes of earlier code name tests as they were called then."""
_TEST_WORD = re.compile(
    r"`((?:tests/[\w/]+\.py(?:::\w+)?)|(?:[A-Z]\w+Test(?:\.[a-z]\w+)?)|(?:test_\w+(?:\.py(?:::\w+)?)?))`"
)


@pytest.mark.parametrize("page", [page for page in EVERY_PAGE if page not in OF_THEN], ids=name_of)
def test_a_test_that_a_page_names_exists(page: Path) -> None:
    named = {match[1] for match in _TEST_WORD.finditer(page.read_text())}
    files = {Path(name).name for name in catalog.every_file()}
    helpers = {path.name for path in (ROOT / "tests").rglob("*.py")}
    gone = [
        name
        for name in named
        if not catalog.named(name)
        and not catalog.named(f"{name}.py")
        and name not in files
        and Path(name).name not in helpers
    ]
    assert sorted(gone) == []
    assert evidence.lost(page.read_text()) == []


def test_each_invariant_has_a_mutation_that_was_caught() -> None:
    """docs/design/protocol.md: each of them has at least one test that fails when it is broken."""
    stated = set(
        re.findall(
            r"\bI\d+\b",
            (ROOT / "docs" / "design" / "protocol.md")
            .read_text()
            .partition("## Invariants")[2]
            .partition("Assumptions")[0],
        )
    )
    caught = {name for one in MUTATIONS if (stored(one) or {}).get("outcome") == CAUGHT for name in one.breaks}
    assert stated == {f"I{number}" for number in range(1, 14)}
    assert stated - caught == set()


def test_which_raw_results_of_before_were_kept() -> None:
    """As docs/results/README.md says it."""
    early = set()
    for path in evidence.RAW.rglob("*.json"):
        found = json.loads(path.read_text())
        day = str(found.get("at") or "") if isinstance(found, dict) else ""
        if "" < day < "2026-11-24" and "from" not in found and path.parent.name != "crashes":
            early.add(path.relative_to(evidence.RAW).as_posix())
    assert early == {"chaos/mor-bucket-202.json", "chaos/mor-default-101.json"}
    said = " ".join((ROOT / "docs" / "results" / "README.md").read_text().split())
    assert "Of runs before 2026-11-24 raw results were not kept, but for two of `chaos`." in said


def test_a_run_of_statements_is_kept_when_it_has_passed() -> None:
    """The page has no verdict of its own: what it is made of is written when all was asserted."""
    file = ROOT / "tests" / "tiers" / "hudi" / "test_statements.py"
    (test,) = (
        node
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "test_no_statement_loses_a_row"
    )
    calls = [ast.unparse(node) for node in ast.walk(test) if isinstance(node, ast.Call)]
    assert [call for call in calls if call.startswith("keep(")] == [ast.unparse(test.body[-1])]


def test_the_table_of_results_names_each_page_and_whether_its_raw_results_are_there() -> None:
    results = ROOT / "docs" / "results"
    text = (results / "README.md").read_text()
    named = set(re.findall(r"\]\(([\w-]+\.md)\)", text))
    assert named == {page.name for page in results.glob("*.md")} - {"README.md"}
    kept = {raw: page for page, raw in re.findall(r"^\| .*?\]\(([\w-]+\.md)\).*`raw/([\w-]+)`", text, re.MULTILINE)}
    there = {folder.name for folder in evidence.RAW.iterdir()}
    named = set(re.findall(r"`raw/([\w-]+)`", text))
    assert there - named == set(), "raw results that the table calls not kept"
    assert {raw for raw in named - there if NOTHING not in (results / kept[raw]).read_text()} == set(), (
        "raw results that the table calls kept, of pages that have some"
    )
