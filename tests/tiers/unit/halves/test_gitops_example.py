"""examples/gitops: what Argo CD and Flux are told fits together, and this repository.

The API of the two tools is not here; tables and writers are judged as those of each example.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT, quick_yaml

FOLDER = ROOT / "examples/gitops"
WAVE = "argocd.argoproj.io/sync-wave"


def objects(folder: Path) -> list[dict[str, Any]]:
    return [one for path in sorted(folder.rglob("*.yaml")) for one in quick_yaml.load_all(path.read_text()) if one]


def named(folder: Path) -> dict[str, dict[str, Any]]:
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in objects(folder)}


APPS = named(FOLDER / "argocd")
FLUX = named(FOLDER / "flux")
VALUES = {
    "argocd": APPS["Application/hudi-operator"]["spec"]["source"]["helm"]["valuesObject"],
    "flux": FLUX["HelmRelease/hudi-operator"]["spec"]["values"],
}


def test_nothing_is_left_out_of_a_comparison() -> None:
    assert len(APPS) == 3
    for name, one in APPS.items():
        assert "ignoreDifferences" not in one["spec"], name
        options = one["spec"]["syncPolicy"].get("syncOptions", [])
        assert not [option for option in options if "Ignore" in option or "Validate=false" in option], name


def test_folders_are_there() -> None:
    paths = {name: one["spec"]["source"]["path"] for name, one in APPS.items()}
    paths |= {name: one["spec"]["path"] for name, one in FLUX.items() if name.startswith("Kustomization/")}
    paths["HelmRelease"] = FLUX["HelmRelease/hudi-operator"]["spec"]["chart"]["spec"]["chart"]
    assert len(paths) == 6
    assert [name for name, path in paths.items() if not (ROOT / path).is_dir()] == []
    for name in ("Application/lake", "Kustomization/lake"):
        assert objects(ROOT / paths[name]) == objects(FOLDER / "lake")
    assert (ROOT / paths["HelmRelease"] / "Chart.yaml").is_file()


def wave(one: dict[str, Any]) -> int:
    return int(one["metadata"]["annotations"][WAVE])


def test_waves_are_in_the_order_in_which_objects_need_each_other() -> None:
    """Namespace, account, tables, writers; and the operator before all of them."""
    assert wave(APPS["Application/hudi-operator"]) < wave(APPS["Application/lake"])
    order = ["Namespace", "ServiceAccount", "HudiTable", "HudiWriter"]
    found = sorted(objects(FOLDER / "lake"), key=wave)
    assert list(dict.fromkeys(one["kind"] for one in found)) == order
    assert {kind: len({wave(one) for one in found if one["kind"] == kind}) for kind in order} == dict.fromkeys(order, 1)
    assert len({wave(one) for one in found}) == len(order)


def test_flux_waits_in_the_same_order() -> None:
    lake, operator = FLUX["Kustomization/lake"]["spec"], FLUX["Kustomization/hudi-operator"]["spec"]
    assert lake["dependsOn"] == [{"name": "hudi-operator"}]
    assert lake["wait"] is operator["wait"] is True
    assert {one["kind"] for one in lake["healthCheckExprs"]} == {"HudiTable", "HudiWriter"}
    sources = {one["spec"]["sourceRef"]["name"] for name, one in FLUX.items() if name.startswith("Kustomization/")}
    sources.add(FLUX["HelmRelease/hudi-operator"]["spec"]["chart"]["spec"]["sourceRef"]["name"])
    assert {f"GitRepository/{name}" for name in sources} <= set(FLUX)


@pytest.mark.parametrize("tool", VALUES)
def test_the_operator_serves_the_tables(tool: str) -> None:
    """Both install the same, and each path of a table is one that its namespace may use."""
    values = VALUES[tool]
    assert values == VALUES["argocd"]
    for one in objects(FOLDER / "lake"):
        if one["kind"] == "HudiTable":
            prefixes = values["config"]["pathPrefixes"][one["metadata"]["namespace"]]
            assert one["spec"]["path"].startswith(tuple(prefixes))


def test_no_secret_is_in_git() -> None:
    assert "Secret" not in {one["kind"] for one in objects(FOLDER)}
