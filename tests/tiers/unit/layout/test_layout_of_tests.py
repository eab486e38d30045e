"""Layout of tests, tools and pages: every folder says what lives in it, and imports of tests
go one way.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.support import ROOT

ORDER = ("support", "campaigns", "tiers")
"""A folder of tests/ may import those before it."""
PYTHON = sorted((ROOT / "tests").rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Modules of tests, or names in them, that a file imports."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            found |= {f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
    return {name for name in found if name.split(".")[0] == "tests"}


def wrong(path: str, names: set[str]) -> list[str]:
    """Imports that a file of tests must not have."""
    place = path.split("/")[1]
    above = {f"tests.{one}" for one in ORDER[ORDER.index(place) + 1 :]}
    return sorted(
        name
        for name in names
        if ".".join(name.split(".")[:2]) in above
        or any(part.startswith("test_") or part == "conftest" for part in name.split(".")[:-1])
    )


def test_every_folder_of_tests_is_a_package_that_says_what_lives_there() -> None:
    for folder in {path.parent for path in PYTHON}:
        text = folder / "__init__.py"
        assert text.exists(), f"{folder}: two files of one name in two folders could not be collected in one run"
        assert ast.get_docstring(ast.parse(text.read_text())), folder


@pytest.mark.parametrize("folder", ["hack", "docs"])
def test_every_folder_of_tools_and_pages_opens_with_a_readme(folder: str) -> None:
    # One program or image each, or data: the README above says what
    programs = {
        "kube",
        "etcd",
        "gateway",
        "coredns",
        "pause",
        "gitops-check",
        "spark-operator",
        "helm",
        "versitygw",
        "fake-gcs-server",
        "kube-router",
        "external-secrets",
        "cyclonedx-gomod",
        "kubectl-hudi",
        "kafka",
        "hdfs",
        "hive",
        "registry",
        "s3",
        "console",
        "raw",
    }
    for place in [
        ROOT / folder,
        *(one for one in (ROOT / folder).iterdir() if one.is_dir() and one.name != "__pycache__"),
    ]:
        assert (place / "README.md").exists(), place
        for inner in place.iterdir():
            told = (inner / "README.md").exists() or inner.name in {*programs, "__pycache__"}
            assert place == ROOT / folder or not inner.is_dir() or told, f"{inner} has no place in a README"


def test_imports_of_tests_go_one_way() -> None:
    found = {str(path.relative_to(ROOT)): imports(path) for path in PYTHON}
    assert {
        name: bad for name, names in found.items() if "/" in name.removeprefix("tests/") and (bad := wrong(name, names))
    } == {}
    assert wrong("tests/support/world/a.py", {"tests.campaigns.chaos.page", "tests.support.model.state"}) == [
        "tests.campaigns.chaos.page"
    ]
    assert wrong("tests/campaigns/a/b.py", {"tests.tiers.hudi.apps.x"}) == ["tests.tiers.hudi.apps.x"]
    assert wrong("tests/tiers/unit/a.py", {"tests.tiers.unit.test_b.helper"}) == ["tests.tiers.unit.test_b.helper"]
    assert wrong("tests/tiers/e2e/a.py", {"tests.tiers.e2e.conftest.make"}) == ["tests.tiers.e2e.conftest.make"]


def test_no_path_is_added_to_find_tests_or_the_demo() -> None:
    """They are found from the root.

    What runs without it in its path, as a script, adds the root and the product's folders.
    """
    allowed = re.compile(r"sys\.path\[:0\] = \[(str\(ROOT( / \"(operator|spark-images)\")?\)(, )?)+\]")
    for path in [*PYTHON, *sorted((ROOT / "demo").glob("*.py"))]:
        if path != Path(__file__):
            left = [
                line
                for line in path.read_text().splitlines()
                if re.search(r"sys\.path(\[|\.insert|\.append)", line) and not allowed.search(line)
            ]
            assert left == [], path


def test_scripts_source_and_run_what_is_there() -> None:
    """`$HACK/...` of every shell script, and what shellcheck is told that it sources."""
    scripts = [
        path
        for folder in ("hack", "demo")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.is_file() and _is_shell(path)
    ]
    assert len(scripts) > 15
    for path in scripts:
        text = path.read_text()
        named = re.findall(r"\$HACK/([\w./-]+)", text) + [
            name.removeprefix("hack/") for name in re.findall(r"source=(hack/\S+)", text)
        ]
        missing = [name for name in named if not (ROOT / "hack" / name).exists() and not name.endswith("/target")]
        assert missing == [], path
        for name in re.findall(r'^\. "\$\(dirname "\$0"\)/(\S+)"$', text, re.MULTILINE):
            assert (path.parent / name).resolve().exists(), (path, name)
        assert subprocess.run(["bash", "-n", path], check=False).returncode == 0, path


def _is_shell(path: Path) -> bool:
    return path.suffix == ".sh" or (not path.suffix and path.read_bytes()[:20].startswith(b"#!/bin/bash"))
