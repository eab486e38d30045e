"""docs/design/architecture.md: every place that it names is there, and no room is left out.

docs/design/glossary.md is in order, and docs/operate/operations.md explains each reason to wait.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from hudi_contract.words import AgentError
from hudi_operator.plan.requests import restores
from tests.support import ROOT
from tests.tiers.unit.pages.names import problem

PAGE = (ROOT / "docs/design/architecture.md").read_text()
GLOSSARY = (ROOT / "docs/design/glossary.md").read_text()
JAVA = "spark-images/etcd-lock/src/main/java/io/hudioperator"
ROOMS = (
    "operator/hudi_contract",
    "operator/hudi_kubectl",
    "operator/hudi_console",
    "operator/hudi_operator",
    "spark-images/hudi_runtime",
    JAVA,
)
SHOWN_WHOLE = {"operator/hudi_operator/", "spark-images/hudi_runtime/", f"{JAVA}/", "operator/hudi_operator/plan/"}
"""Described by a head line, or by what lives in them."""
PLAIN = ("crds", "charts/hudi-operator", "deploy", "demo", "examples", "gateway", "hack", "tests/support")
"""Folders without a package of Python or Java at their top."""


def named(text: str) -> list[str]:
    """Places in the repository that a page names: code spans that begin with a file or a folder of
    its root.
    """
    roots = {path.name for path in ROOT.iterdir()}
    return [
        span
        for span in re.findall(r"`([^`\n]+)`", text)
        if span.partition("::")[0].partition("/")[0] in roots and " " not in span
    ]


def test_every_place_is_there() -> None:
    places = named(PAGE)
    assert len(places) > 60
    assert {place: why for place in places if (why := problem(place))} == {}


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("operator/hudi_operator/plans/", "no such"),
        ("operator/hudi_operator/plan/fencing/suspects.py::_reasons", "defines no"),
        ("operator/hudi_operator/plan/fencing/suspects.py::PartialPlan", "defines no"),  # it is imported there
        ("spark-images/hudi_runtime/settle/settle.py::Settler.walk", "defines no"),
        (f"{JAVA}/protocol/Gate.java::Gates", "defines no"),
        (f"{JAVA}/protocol/InstantProtocol.java::requestAndPublish", "defines no"),
        ("crds/hudioperator.io_hudiwriters.yaml::noSuchField", "defines no"),
    ],
)
def test_a_place_that_is_not_there_is_found(place: str, said: str) -> None:
    assert said in problem(place)


def test_every_room_has_its_line() -> None:
    """Folders with code directly in them."""
    code = {path.parent for room in ROOMS for pattern in ("*.py", "*.java") for path in (ROOT / room).rglob(pattern)}
    inner = {path for path in code if any((path / name).exists() for name in ("__init__.py", "package-info.java"))}
    wanted = {f"{path.relative_to(ROOT)}/" for path in inner} | {f"{folder}/" for folder in PLAIN}
    wanted -= SHOWN_WHOLE
    assert wanted - {place for place in named(PAGE) if place.endswith("/")} == set()


def test_every_folder_of_the_repository_has_its_line() -> None:
    """Folders at the top of the repository with files of ours, but for the pages."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    tops = {name.partition("/")[0] for name in listed.split("\0") if "/" in name and not name.startswith(".")}
    assert {"crds", "deploy", "gateway"} <= tops
    assert tops - {place.partition("/")[0] for place in named(PAGE)} - {"docs"} == set()


def test_ten_questions_have_a_place_and_a_test_each() -> None:
    questions = re.split(r"^### (\d+)\. ", PAGE, flags=re.MULTILINE)[1:]
    assert questions[::2] == [str(number) for number in range(1, 11)]
    for answer in questions[1::2]:
        tests = [place for place in named(answer) if re.match(r"tests/|spark-images/etcd-lock/src/test/", place)]
        assert tests, answer
        assert len(named(answer)) > len(tests) or "I4" in answer, answer


REASON_AT = {"Block": 0, "Stall": 0, "_not_ready": 0, "_stall": 0, "_stalled": 0, "table_blocks": 0, "Decision": 1}
"""Calls of the planners that give a reason to wait or to be stuck, and which argument it is."""


def reasons() -> set[str]:
    """Reasons for which a table or a writer waits, or needs a person."""
    found = {*map(str, AgentError), restores.REASON}
    for path in (ROOT / "operator/hudi_operator/plan").rglob("*.py"):
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
            at = REASON_AT.get(name, len(call.args))
            if name == "Decision" and ast.unparse(call.args[0]) not in ("Kind.WAIT", "Kind.SCHEDULED", "Kind.STALLED"):
                continue
            found |= {
                part.value
                for arg in call.args[at : at + 1]
                for part in ast.walk(arg)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            }
    return found


def test_every_reason_to_wait_is_explained_to_people() -> None:
    """Question 10: the first table of docs/operate/operations.md."""
    page = (ROOT / "docs/operate/operations.md").read_text()
    table = page[page.index("| condition |") : page.index("\n## A lost node")]
    assert {"Frozen", "MaxWriters", "AgentNotReady", "TableStalled", "BackOff", "StoreUnfit"} <= reasons()
    assert sorted(reason for reason in reasons() if f"`{reason}`" not in table) == []


def terms() -> list[str]:
    """Terms of the glossary in the order of the page."""
    return re.findall(r"^\*\*(.+?)\*\*", GLOSSARY, re.MULTILINE)


def test_the_glossary_is_alphabetical_and_says_each_term_once() -> None:
    assert len(terms()) > 40
    assert terms() == sorted(set(terms()), key=str.lower)


def test_each_term_is_short_and_says_where_it_is_defined() -> None:
    for entry in re.findall(r"^\*\*.+?(?=\n\n|\Z)", GLOSSARY, re.MULTILINE | re.DOTALL):
        said, _, where = entry.rpartition(" ([")
        assert where, f"no page: {entry}"
        # One or two sentences; the last one ends behind its link. A full stop within a name, as in
        # job.json, has no blank after it.
        assert len(re.findall(r"[.?]\s", said)) <= 1, entry


def test_the_terms_that_every_page_uses_are_there() -> None:
    known = {term.lower() for term in terms()}
    wanted = {
        "attempt",
        "incarnation",
        "instant",
        "timeline",
        "requested time",
        "completion time",
        "file group",
        "lease",
        "fence",
        "settle",
        "drain",
        "gate",
    }
    wanted |= {
        "admission",
        "evidence",
        "proof",
        "sweep",
        "claim",
        "clock",
        "queue",
        "restore",
        "savepoint",
        "adoption",
        "bootstrap",
        "table service",
    }
    wanted |= {"agent", "driver", "executor", "foreign writer", "lock", "token"}
    assert wanted - known == set()


def test_prose_is_not_wide() -> None:
    for text in (PAGE, GLOSSARY):
        assert [line for line in text.splitlines() if len(line) > 130 and not line.startswith("|")] == []


def test_pictures_are_named_where_readers_begin() -> None:
    for page in ("README.md", "docs/README.md", "docs/design/README.md"):
        assert "architecture" in Path(ROOT / page).read_text(), page
    assert "docs/design/architecture.svg" in (ROOT / "README.md").read_text()
