"""Layout of the source tree."""

from __future__ import annotations

import operator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_folder_operator_is_no_package() -> None:
    assert not (ROOT / "operator/__init__.py").exists(), "it would shadow the standard library's `operator`"
    assert ROOT not in Path(operator.__file__).parents


def test_modules_are_short() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in (ROOT / "operator/hudi_operator").rglob("*.py")}
    assert {path.name: lines for path, lines in lengths.items() if lines > 500} == {}


def test_files_of_tests_have_names_of_their_own() -> None:
    """Folders of tests are no packages: pytest cannot collect two files of one name in a run, and a tier is one run."""
    for tier in (folder for folder in (ROOT / "tests").iterdir() if folder.is_dir()):
        names = [path.name for path in tier.rglob("*.py") if not (path.parent / "__init__.py").exists()]
        assert {name for name in names if names.count(name) > 1 and name != "conftest.py"} == set(), tier.name
