"""Part of a source that an outcome can depend on: without its comments, docstrings and layout, and
for a file of tests without the tests that are not named.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from functools import cache

_BLANK = r"(?://[^\n]*|/\*.*?\*/|\s)+"
_LITERAL = r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
_JAVA = re.compile(rf"(?P<literal>{_LITERAL})|(?P<apart>(?<=\w){_BLANK}(?=\w))|{_BLANK}", re.DOTALL)
"""Literals, which stay as they are; comments and blanks, of which one blank stays where they keep
two words apart.
"""


@cache
def substance(name: str, text: str, tests: frozenset[str] = frozenset()) -> str:
    """The substance of a file.

    ``tests``: of a Python file of tests the names of those that count; empty: all of it counts.

    A file that is no Python although it should be is its text.
    """
    if name.endswith((".java", ".go")):
        return _JAVA.sub(_of_java, text)
    if not name.endswith(".py"):
        return text
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return text
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [one for one in node.body if not _is_text(one)]
    if tests:
        others = {
            one for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef) and _is_another(one.name, tests)
        }
        used = {
            node.id for one in tree.body if one not in others for node in ast.walk(one) if isinstance(node, ast.Name)
        }
        tree.body = [one for one in tree.body if one not in others or one.name in used]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _of_java(match: re.Match[str]) -> str:
    return match["literal"] or (" " if match["apart"] else "")


def _is_text(node: ast.stmt) -> bool:
    """A docstring, or one below an attribute."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_another(name: str, tests: Collection[str]) -> bool:
    return name.lower().startswith("test") and name not in tests
