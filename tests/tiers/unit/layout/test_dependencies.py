"""What the operator imports is declared: a package that only comes along with another one may go
with that one's next release.
"""

from __future__ import annotations

import ast
import re
import sys
from importlib.metadata import packages_distributions

from tests.support import ROOT

OPERATOR = ROOT / "operator"


def imported() -> set[str]:
    """Top-level packages that the operator's modules import and that are neither the standard
    library's nor its own.
    """
    found = set[str]()
    for path in OPERATOR.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"hudi_console", "hudi_contract", "hudi_kubectl", "hudi_operator"}


def declared() -> set[str]:
    lines = (line.partition("#")[0].strip() for line in (OPERATOR / "requirements.in").read_text().splitlines())
    return {_normal(re.split(r"[<>=!~\[; ]", line)[0]) for line in lines if line}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_package_that_the_operator_imports_is_declared() -> None:
    distributions = packages_distributions()
    wanted = {package: {_normal(name) for name in distributions[package]} for package in imported()}
    assert wanted, "nothing was found"
    assert not {package: names for package, names in wanted.items() if not names & declared()}
