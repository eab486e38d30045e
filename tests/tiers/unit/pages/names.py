"""Names of places in the repository, as pages and pictures write them: `folder`, `folder/file.py`,
`folder/file.py::name`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.support import ROOT


def problem(name: str) -> str:
    """Why a place is not there; empty when it is.

    A name in a file may be `Class`, `function` or `Class.method`.
    """
    path, _, inner = name.partition("::")
    place = ROOT / path.rstrip("/")
    if not place.exists():
        return f"{path}: no such file or folder"
    if inner and not defined(place, inner):
        return f"{path}: defines no {inner}"
    return ""


def defined(path: Path, name: str) -> bool:
    """Whether a Python or Java file, or the schema of a CRD, defines this name itself: an import of
    it, or a call, is not enough.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        nodes = ast.parse(text).body
        for part in name.split("."):
            found = [node for node in nodes if _named(node, part)]
            if not found:
                return False
            nodes = getattr(found[0], "body", [])
        return True
    if path.suffix == ".java":
        declaration = (
            r"(?:class|interface|enum|record)\s+{0}\b|^\s+(?:(?:public|protected|private|static|final|"
            r"synchronized)\s+)*[\w<>\[\], .?]+\s{0}\s*\("
        )
        return all(
            re.search(declaration.format(re.escape(part)), _without_calls(text), re.MULTILINE)
            for part in name.split(".")
        )
    return re.search(rf"^\s*{re.escape(name)}:", text, re.MULTILINE) is not None


def _named(node: ast.stmt, name: str) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _without_calls(text: str) -> str:
    """Java without statements that could be taken for a declaration, such as `return find(x)` and
    `new Thing(x)`.
    """
    return re.sub(r"^\s+(?:return|throw|new|else)\b.*$", "", text, flags=re.MULTILINE)
