"""The version is the same wherever a tool reads it, and written nowhere else."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from hack.release import version

import hudi_operator
from tests.support import ROOT

SECTIONS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def copy(folder: Path) -> Path:
    for path in {path for path, _ in version.PLACES}:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    return folder


def test_all_places_have_one_version() -> None:
    assert version.read() == hudi_operator.__version__
    assert version.VERSION.fullmatch(version.read())


def test_a_new_version_is_written_to_all_of_them(tmp_path: Path) -> None:
    root = copy(tmp_path)
    before = {path: (root / path).read_text() for path, _ in version.PLACES}
    version.write("1.2.3-rc.1", root)
    assert version.read(root) == "1.2.3-rc.1"
    for path, text in before.items():
        after = (root / path).read_text().splitlines()
        changed = [line for line, old in zip(after, text.splitlines(), strict=True) if line != old]
        assert len(changed) == [one for one, _ in version.PLACES].count(path)
    version.write(version.read(), root)
    version.write(hudi_operator.__version__, root)
    assert {path: (root / path).read_text() for path in before} == before


def test_places_that_differ_are_named(tmp_path: Path) -> None:
    root = copy(tmp_path)
    chart = root / "charts/hudi-operator/Chart.yaml"
    chart.write_text(re.sub("^appVersion: .*", "appVersion: 9.9.9", chart.read_text(), flags=re.MULTILINE))
    with pytest.raises(ValueError, match=re.escape("charts/hudi-operator/Chart.yaml has 9.9.9")):
        version.read(root)
    chart.write_text("name: hudi-operator\n")
    with pytest.raises(ValueError, match="0 lines match"):
        version.read(root)


@pytest.mark.parametrize("wrong", ["1", "1.2", "01.2.3", "v1.2.3", "1.2.3+build", "1.2.3-", "1.2.3\n", "latest"])
def test_what_is_no_version_is_refused(wrong: str, tmp_path: Path) -> None:
    root = copy(tmp_path)
    with pytest.raises(ValueError, match=r"must be MAJOR\.MINOR\.PATCH"):
        version.write(wrong, root)
    assert version.read(root) == hudi_operator.__version__


def test_the_changelog_has_its_form() -> None:
    """Versions from the newest to the oldest, with dates; sections by name; no entry twice."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *versions = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert first.startswith("[Unreleased]\n")
    released = [re.match(r"\[(\S+)\] - \d{4}-\d{2}-\d{2}\n", one) for one in versions]
    assert all(released)
    numbers = [tuple(map(int, found[1].partition("-")[0].split("."))) for found in released if found]
    assert numbers == sorted(set(numbers), reverse=True)
    for part in (first, *versions):
        names = re.findall(r"^### (.*)$", part, re.MULTILINE)
        assert names == [name for name in SECTIONS if name in names]
        parts = re.split(r"^(?:\* |#.*)", part, flags=re.MULTILINE)
        entries = [" ".join(entry.split()) for entry in parts[1:] if entry.strip()]
        assert len(entries) == len(set(entries)), [entry for entry in entries if entries.count(entry) > 1]
