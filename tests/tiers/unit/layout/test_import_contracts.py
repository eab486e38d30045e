"""Each contract of import-linter (pyproject.toml) notices an import that it alone forbids.

The import is written into a copy of the packages.
"""

from __future__ import annotations

import importlib.util
import itertools
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract

from tests.support import ROOT

Import = tuple[str, str]
"""Importer, imported."""
CONFIGURATION = read_configuration(str(ROOT / "pyproject.toml"))
SESSION: dict[str, Any] = CONFIGURATION["session_options"]
CONTRACTS: list[dict[str, Any]] = CONFIGURATION["contracts_options"]
KINDS = {"layers": LayersContract, "forbidden": ForbiddenContract, "acyclic_siblings": AcyclicSiblingsContract}


class Tree:
    """A copy of the packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for package in SESSION["root_packages"]:
            spec = importlib.util.find_spec(package)
            assert spec is not None
            assert spec.origin is not None
            shutil.copytree(
                Path(spec.origin).parent, self.folder / package, ignore=shutil.ignore_patterns("__pycache__")
            )

    def file(self, module: str) -> Path:
        path = self.folder.joinpath(*module.split("."))
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    def graph(self) -> grimp.ImportGraph:
        with pytest.MonkeyPatch.context() as patch:
            # A package that is loaded is looked for where it was loaded from.
            for package in SESSION["root_packages"]:
                patch.delitem(sys.modules, package, raising=False)
            patch.syspath_prepend(self.folder)
            return grimp.build_graph(*SESSION["root_packages"], include_external_packages=True, cache_dir=None)

    @contextmanager
    def importing(self, importer: str, imported: str) -> Iterator[None]:
        path = self.file(importer)
        before = path.read_text()
        path.write_text(f"{before}\nimport {imported}\n")
        try:
            yield
        finally:
            path.write_text(before)


def holds(contract: dict[str, Any], graph: grimp.ImportGraph) -> bool:
    made = KINDS[contract["type"]](contract["name"], SESSION, contract)
    return bool(made.check(deepcopy(graph), verbose=False).kept)


def broken(graph: grimp.ImportGraph) -> list[str]:
    return [contract["name"] for contract in CONTRACTS if not holds(contract, graph)]


def forbidden(contract: dict[str, Any], graph: grimp.ImportGraph) -> Iterator[Import]:
    """Imports to try: what the contract names, or the way back of each import that there is."""
    if contract["type"] == "forbidden":
        yield from itertools.product(contract["source_modules"], contract["forbidden_modules"])
    elif contract["type"] == "layers":
        for container in contract.get("containers", [""]):
            layers = [
                [f"{container}.{name.strip()}".strip(".") for name in layer.split("|")] for layer in contract["layers"]
            ]
            for layer in layers:
                yield from itertools.permutations(layer, 2)
            for higher, lower in itertools.combinations(layers, 2):
                yield from itertools.product(lower, higher)
    else:
        for ancestor in contract["ancestors"]:
            for importer in sorted(graph.find_descendants(ancestor)):
                for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                    if imported.startswith(f"{ancestor}.") and not imported.startswith(f"{importer}."):
                        yield imported, importer


def alone(contract: dict[str, Any], graph: grimp.ImportGraph, wrong: Import) -> bool:
    """Whether this contract forbids it, and no other one."""
    changed = deepcopy(graph)
    if wrong[1] not in graph.modules:
        changed.add_module(wrong[1], is_squashed=True)
    changed.add_import(importer=wrong[0], imported=wrong[1])
    if holds(contract, changed):
        return False
    return all(holds(other, changed) for other in CONTRACTS if other is not contract)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("imports"))


@pytest.fixture(scope="module")
def graph(tree: Tree) -> grimp.ImportGraph:
    return tree.graph()


def test_the_copy_breaks_no_contract(graph: grimp.ImportGraph) -> None:
    assert set(SESSION["root_packages"]) <= graph.modules
    assert broken(graph) == []


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract["name"])
def test_each_contract_notices_what_it_alone_forbids(
    tree: Tree, graph: grimp.ImportGraph, contract: dict[str, Any]
) -> None:
    wrong = next((one for one in forbidden(contract, graph) if alone(contract, graph, one)), None)
    assert wrong is not None, "other contracts forbid all of it: it can be removed"
    with tree.importing(*wrong):
        assert broken(tree.graph()) == [contract["name"]], wrong
