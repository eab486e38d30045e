"""Definition of a mutation, and its insertion into a source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support import ROOT

JAVA_TESTS = "spark-images/etcd-lock/src/test/java/io/hudioperator"
JAVA_SOURCES = "spark-images/etcd-lock/src/main/java/io/hudioperator"
INVARIANTS = tuple(f"I{n}" for n in range(1, 14))
FINDINGS = tuple(
    sorted(
        re.findall(r"^### (F\d+): ", (ROOT / "docs" / "design" / "findings.md").read_text(), re.MULTILINE),
        key=lambda number: int(number[1:]),
    )
)
"""The findings of docs/design/findings.md, by number."""
AVAILABILITY = "availability"
"""Rules that work goes on, which no invariant asks for."""
SECURITY = "security"
"""Rules about permissions and the origin of code, which have no number among the findings."""
HOUSE = "house"
"""Rules about the imports that a part of the code may use."""
UNNUMBERED = (AVAILABILITY, SECURITY, HOUSE)
REQUIRED = (*INVARIANTS, *FINDINGS[:12])
"""Rules that must have a mutation; of the later findings those are covered that the code has a
place for.
"""


@cache
def java_file(folder: str, name: str) -> str:
    """Path of a Java class below a folder, in whichever package.

    Without such a class a path that does not exist, which the checks report.
    """
    found = sorted((ROOT / folder).rglob(f"{name}.java"))
    return str(found[0].relative_to(ROOT)) if found else f"{folder}/{name}.java"


def java_class(test: str) -> str:
    """Class of a listed test of Java, with its package."""
    return test.partition("/java/")[2].partition(".java")[0].replace("/", ".")


class Drifted(Exception):
    """The source does not say any more what a mutation wants to replace: the mutation is brought up
    to date, or it proves nothing.
    """


@dataclass(frozen=True)
class Edit:
    """One replacement; ``old`` must stand in the file exactly once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutation:
    """One deliberate mistake.

    ``says``: behaviour of the mutated code, as of a naive design.

    ``tests``: ``file::test`` as in tests/campaigns/faults/cases.py; every one of them must fail.
    ``redundant``: why nothing may notice this one alone; it must then survive, and the mutation
    that is called ``pair`` takes out both checks and must be caught.
    """

    id: str
    breaks: tuple[str, ...]
    says: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    redundant: str = ""
    pair: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """Files that it changes."""
        return tuple(dict.fromkeys(edit.file for edit in self.edits))


def mutation(
    name: str, breaks: str, says: str, edits: Edit | Sequence[Edit], *tests: str, redundant: str = "", pair: str = ""
) -> Mutation:
    """A mutation; ``breaks`` is a list of invariants and findings with blanks between them."""
    return Mutation(
        name, tuple(breaks.split()), says, (edits,) if isinstance(edits, Edit) else tuple(edits), tests, redundant, pair
    )


def mutated(text: str, edit: Edit, name: str) -> str:
    """The source with one replacement made. Raises Drifted, which names the mutation."""
    count = text.count(edit.old)
    if count != 1:
        first = edit.old.strip().splitlines()[0]
        raise Drifted(
            f"mutation {name}: its text ({first} ...) stands {count} times in {edit.file}, not once: bring "
            "tests/campaigns/mutations up to date"
        )
    if edit.old == edit.new:
        raise Drifted(f"mutation {name} changes nothing in {edit.file}")
    return text.replace(edit.old, edit.new)


def sources(of: Mutation, root: Path = ROOT) -> dict[str, str]:
    """Mutated text of every file that a mutation changes. Raises Drifted."""
    texts = {file: (root / file).read_text() if (root / file).exists() else "" for file in of.files}
    for edit in of.edits:
        texts[edit.file] = mutated(texts[edit.file], edit, of.id)
    return texts


def missing_tests(tests: Iterable[str], root: Path = ROOT) -> list[str]:
    """Named tests that do not exist."""
    found = []
    for test in tests:
        file, _, name = test.partition("::")
        path = root / file
        if not path.exists() or f" {name}(" not in path.read_text():
            found.append(test)
    return found


def of(rule: str, mutations: Iterable[Mutation]) -> list[Mutation]:
    """Mutations of an invariant or finding: those that must be caught."""
    return [one for one in mutations if rule in one.breaks and not one.redundant]
