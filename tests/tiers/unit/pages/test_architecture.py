"""docs/design/architecture.md: every place that it names is there, and no room is left out.

Docs/design/glossary.md is in order.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.tiers.unit.pages.names import problem

PAGE = (ROOT / "docs/design/architecture.md").read_text()
GLOSSARY = (ROOT / "docs/design/glossary.md").read_text()
JAVA = "spark-images/etcd-lock/src/main/java/io/hudioperator"
ROOMS = ("operator/hudi_contract", "operator/hudi_operator", "spark-images/hudi_runtime", JAVA)


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
        ("crds/hudioperator.io_hudiwriters.yaml::sources", "defines no"),
    ],
)
def test_a_place_that_is_not_there_is_found(place: str, said: str) -> None:
    assert said in problem(place)


def test_every_room_has_its_line() -> None:
    """Folders with code directly in them; the root of a tree is described by its head line."""
    code = {path.parent for room in ROOMS for pattern in ("*.py", "*.java") for path in (ROOT / room).rglob(pattern)}
    inner = {path for path in code if any((path / name).exists() for name in ("__init__.py", "package-info.java"))}
    wanted = (
        {f"{path.relative_to(ROOT)}/" for path in inner}
        - {f"{room}/" for room in ROOMS[1:]}
        - {"operator/hudi_operator/plan/"}
    )
    assert wanted - {place for place in named(PAGE) if place.endswith("/")} == set()


def test_ten_questions_have_a_place_and_a_test_each() -> None:
    questions = re.split(r"^### (\d+)\. ", PAGE, flags=re.MULTILINE)[1:]
    assert questions[::2] == [str(number) for number in range(1, 11)]
    for answer in questions[1::2]:
        tests = [place for place in named(answer) if re.match(r"tests/|spark-images/etcd-lock/src/test/", place)]
        assert tests, answer
        assert len(named(answer)) > len(tests) or "I4" in answer, answer


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
