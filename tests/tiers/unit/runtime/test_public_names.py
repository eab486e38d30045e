"""What user code imports: names, signatures and docstrings that stay, and no example or page that
imports anything else.
"""

from __future__ import annotations

import inspect
import re
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hudi_runtime import api
from hudi_runtime.api import Context, Pull, Reader, ReadSnapshot, Update, current_context, positions

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
IMPORT = re.compile(r"^\s*(?:from (hudi_runtime[\w.]*) import ([\w, ]+)|import (hudi_runtime[\w.]*))", re.MULTILINE)


def test_the_names_stay() -> None:
    assert sorted(api.__all__) == [
        "Context",
        "PositionLost",
        "Pull",
        "ReadSnapshot",
        "Reader",
        "RuntimeFailure",
        "Update",
        "current_context",
        "positions",
    ]
    assert sorted(positions.__all__) == ["ByCompletion", "Fenced", "OutOfOrder", "Position", "PositionError", "parse"]


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (Reader.__init__, ["self", "spark", "path", "merger=''"]),
        (Reader.look, ["self"]),
        (Reader.require_deletes, ["self"]),
        (ReadSnapshot.pull, ["self", "position", "limit=None", "deletes=False"]),
        (ReadSnapshot.snapshot, ["self", "position"]),
        (ReadSnapshot.latest, ["self", "position"]),
        (ReadSnapshot.require_kept, ["self", "position"]),
        (ReadSnapshot.empty, ["self"]),
        (Update.__init__, ["self", "rows", "serializable=False"]),
        (Context.read_table, ["self"]),
        (Context.commit_metadata, ["self"]),
        (Context.table_options, ["self"]),
        (current_context, []),
        (positions.ByCompletion.__init__, ["self", "completion='0'"]),
        (positions.Fenced.__init__, ["self", "requested='0'"]),
        (positions.OutOfOrder.__init__, ["self", "low='0'", "ahead=frozenset()"]),
        (positions.ByCompletion.checkpoint, ["self"]),
        (positions.parse, ["checkpoint"]),
    ],
)
def test_the_signatures_stay(function: Any, parameters: list[str]) -> None:
    found = [
        p.name if p.default is p.empty else f"{p.name}={p.default!r}"
        for p in inspect.signature(function).parameters.values()
    ]
    assert found == parameters


def test_the_fields_stay() -> None:
    assert list(Pull.__dataclass_fields__) == ["frame", "position", "instants", "deletes", "deleting"]
    assert {"table_path", "attempt", "spark", "arguments"} <= {*Context.__dataclass_fields__, *vars(Context)}


@pytest.mark.parametrize(
    "owner", [*(getattr(api, name) for name in api.__all__), *(getattr(positions, name) for name in positions.__all__)]
)
def test_each_name_says_what_it_means(owner: Any) -> None:
    if isinstance(owner, type):
        undocumented = [
            name
            for name, member in vars(owner).items()
            if not name.startswith("_") and callable(member) and not inspect.getdoc(member)
        ]
        assert not undocumented
    if isinstance(owner, type | ModuleType) or inspect.isfunction(owner):
        said = owner.__doc__ or ""
        assert len(said) > 20
        assert not said.startswith(f"{owner.__name__}("), "a dataclass without a docstring gets its signature"
        assert any(
            f"`{name}`" in (module.__doc__ or "") or f"`{name}()`" in (module.__doc__ or "")
            for module in (api, positions)
            for name in _names(owner)
        )


def _names(owner: Any) -> list[str]:
    if owner is positions.parse:
        return ["positions.parse(stored)"]
    return [str(owner.__name__).rpartition(".")[2]]


def imports() -> list[tuple[str, str, str]]:
    """File, module and names of each import of the runtime in examples and pages."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "examples", "docs", "README.md"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    found = []
    for name in listed.split("\0")[:-1]:
        if Path(name).suffix in (".md", ".py", ".yaml"):
            found += [
                (name, match[1] or match[3], match[2] or "")
                for match in IMPORT.finditer((ROOT / name).read_text(encoding="utf-8"))
            ]
    return found


def test_examples_and_pages_import_nothing_else() -> None:
    found = imports()
    assert {"sources.md", "writers.yaml"} <= {Path(name).name for name, _, _ in found}, "there is none to be looked at"
    for name, module, names in found:
        assert module == "hudi_runtime.api", f"{name} imports {module}"
        assert {part.strip() for part in names.split(",")} <= set(api.__all__), f"{name} imports {names}"
