"""Parts of Hudi and Spark that this project depends on, and the tests that decide about them.

The list is data, `decides.yaml`; a unit test compares it with what the code names.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from tests.support import ROOT
from tests.support.evidence import catalog

LIST = Path(__file__).with_name("decides.yaml")
CODE = ("spark-images/etcd-lock/src/main/java", "spark-images/hudi_runtime", "operator")
"""Folders of the tree whose files name classes of Hudi and Spark."""
TIERS = {"java": catalog.JAVA, **{tier: f"tests/tiers/{tier}" for tier in ("unit", "hudi", "e2e")}}
"""Tiers that a test of the list may be of, in the order in which they are run."""
NAME = re.compile(r"(?<!\w)org\.apache\.(?:hudi|spark)(?:\.[a-z_][a-z_0-9]*)*\.[A-Z]\w*")
REFLECTED = re.compile(r"getMethod\(\s*\"(\w+)\"")
MARK = b"Lorg/apache/spark/annotation/"
"""In the file of a class that Spark marks as an interface, or of which it marks a part."""


@dataclass(frozen=True)
class Decision:
    """``tests``: as the list names them. ``methods``: called by name alone."""

    name: str
    about: str
    tests: tuple[str, ...]
    classes: tuple[str, ...]
    methods: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The files of its tests. Raises ValueError for a test that is not there."""
        return tuple(file_of(test) for test in self.tests)


@dataclass(frozen=True)
class Decisions:
    """The whole list."""

    public: tuple[str, ...]
    decisions: tuple[Decision, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """Every class that is named, public ones first."""
        return (*self.public, *(name for one in self.decisions for name in one.classes))

    def files(self, only: str = "") -> dict[str, list[str]]:
        """Files of tests by tier, each once: all, or those with a word in decision or name."""
        found: dict[str, list[str]] = {tier: [] for tier in TIERS}
        for one in self.decisions:
            for test, file in zip(one.tests, one.files, strict=True):
                if file not in found[tier_of(file)] and (only in one.name or only in test):
                    found[tier_of(file)].append(file)
        return {tier: files for tier, files in found.items() if files}


@cache
def decisions() -> Decisions:
    """Decisions in `decides.yaml`."""
    said = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    made = tuple(
        Decision(one["name"], one["about"], tuple(one["tests"]), tuple(one["classes"]), tuple(one.get("methods") or ()))
        for one in said["decisions"]
    )
    return Decisions(tuple(said["public"]), made)


def file_of(test: str) -> str:
    """The file of a test that the list names; ValueError: there is none, or none of these tiers."""
    files = {one.file for one in catalog.named(test)}
    if len(files) != 1 or not next(iter(files)).startswith(tuple(TIERS.values())):
        raise ValueError(f"{LIST.name}: {test} names {sorted(files) or 'no test'}, not one file of {', '.join(TIERS)}")
    return files.pop()


def tier_of(file: str) -> str:
    """The tier of a file of tests."""
    return next(tier for tier, folder in TIERS.items() if file.startswith(folder))


def used(root: Path = ROOT) -> dict[str, set[str]]:
    """Classes of Hudi and Spark that the code names, with the files that do."""
    return _found(NAME, root, (".java", ".py"))


def reflected(root: Path = ROOT) -> dict[str, set[str]]:
    """Methods that Java code looks up by name, with the files that do."""
    return _found(REFLECTED, root, (".java",))


def _found(what: re.Pattern[str], root: Path, kinds: tuple[str, ...]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for folder in CODE:
        for path in (root / folder).rglob("*"):
            if path.suffix in kinds:
                for name in what.findall(path.read_text(encoding="utf-8")):
                    found.setdefault(name, set()).add(str(path.relative_to(root)))
    return found


def missing(names: Iterable[str], jars: Iterable[Path]) -> list[str]:
    """Classes among these that no jar has, neither as a class nor as an object of Scala."""
    there = {entry for jar in jars for entry in _entries(str(jar))}
    paths = {name: name.replace(".", "/") for name in names}
    return [name for name, path in paths.items() if not {f"{path}.class", f"{path}$.class"} & there]


@cache
def _entries(jar: str) -> frozenset[str]:
    with zipfile.ZipFile(jar) as opened:
        return frozenset(opened.namelist())


def unmarked(names: Iterable[str], jars: Iterable[Path]) -> list[str]:
    """Classes among these that Spark does not mark as an interface any more, or no jar has."""
    left = {f"{name.replace('.', '/')}.class": name for name in names}
    for jar in jars:
        for path in left.keys() & _entries(str(jar)):
            with zipfile.ZipFile(jar) as opened:
                if MARK in opened.read(path):
                    del left[path]
    return sorted(left.values())
