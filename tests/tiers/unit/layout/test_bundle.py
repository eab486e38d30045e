"""The bundle for OLM is what deploy/ makes, and with the file beside it nothing is lost.

`component/crds/test_bundle.py` has OLM's validators and an API server read it.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hack.bundle import make
from hack.release import files, version

from tests.support import ROOT, quick_yaml

JsonDict = dict[str, Any]
FOUND = make.objects(make.INSTALL.read_text(encoding="utf-8"))
SUPPORTED = {
    "ClusterServiceVersion",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "PodDisruptionBudget",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
}
"""Kinds that every OLM takes in a bundle; some take more."""


def named(one: JsonDict) -> tuple[str, str]:
    return one["kind"], one["metadata"]["name"]


@pytest.fixture(scope="module")
def csv() -> JsonDict:
    (found,) = quick_yaml.load_all((make.BUNDLE / "manifests/hudi-operator.clusterserviceversion.yaml").read_text())
    return dict(found)


def test_the_bundle_is_up_to_date() -> None:
    assert make.wrong() == [], "python -m hack.bundle.make"


def test_nothing_of_the_install_file_is_lost_or_there_twice() -> None:
    """Each object is the CSV's, in the bundle, or beside it."""
    parts = [make.by_olm(FOUND), make.in_bundle(FOUND), make.beside(FOUND)]
    crds = [one for one in FOUND if one["kind"] == "CustomResourceDefinition"]
    assert sorted(named(one) for part in [*parts, crds] for one in part) == sorted(map(named, FOUND))
    assert {one["kind"] for one in parts[2]} >= {"StatefulSet", "ValidatingAdmissionPolicy", "ConfigMap"}
    assert {named(one) for one in parts[0]} >= {("Deployment", "hudi-operator"), ("ServiceAccount", "hudi-operator")}


def test_a_new_object_of_the_chart_goes_beside_the_bundle() -> None:
    """Rather than being lost, or being in a bundle that no OLM takes."""
    new = {"kind": "Job", "metadata": {"name": "new", "labels": {"app.kubernetes.io/component": "operator"}}}
    assert make.beside([*FOUND, new])[-1] == new
    assert new not in make.in_bundle([*FOUND, new])


def test_a_bundle_has_kinds_that_olm_takes_and_no_namespace() -> None:
    for path in (make.BUNDLE / "manifests").glob("*.yaml"):
        for one in quick_yaml.load_all(path.read_text()):
            assert one["kind"] in SUPPORTED, path
            assert "namespace" not in one["metadata"], path
            assert "Helm" not in (one["metadata"].get("labels") or {}).values(), path


def test_the_operator_has_the_rights_that_the_chart_gives(csv: JsonDict) -> None:
    """By every binding to its account, and no other."""
    install = csv["spec"]["install"]["spec"]
    for key, kind in (("permissions", "Role"), ("clusterPermissions", "ClusterRole")):
        (given,) = install[key]
        assert given["serviceAccountName"] == "hudi-operator"
        roles = {
            one["roleRef"]["name"]
            for one in FOUND
            if one["kind"] == f"{kind}Binding" and "hudi-operator" in [subject["name"] for subject in one["subjects"]]
        }
        due = [
            rule for one in FOUND if one["kind"] == kind and one["metadata"]["name"] in roles for rule in one["rules"]
        ]
        assert given["rules"] == due
        assert len(roles) == {"permissions": 1, "clusterPermissions": 2}[key]


def test_the_operator_is_the_charts(csv: JsonDict) -> None:
    (deployment,) = csv["spec"]["install"]["spec"]["deployments"]
    (chart,) = [one for one in FOUND if named(one) == ("Deployment", "hudi-operator")]
    made, due = deployment["spec"], chart["spec"]
    assert made["template"]["spec"] == due["template"]["spec"]
    assert {**made, "template": None} == {**due, "template": None}
    assert made["selector"]["matchLabels"].items() <= made["template"]["metadata"]["labels"].items()


def test_what_a_catalog_shows_is_what_the_chart_says(csv: JsonDict) -> None:
    assert csv["metadata"]["name"] == f"hudi-operator.v{version.read()}"
    assert csv["spec"]["version"] == version.read()
    assert {
        (one["kind"], one["name"], one["version"]) for one in csv["spec"]["customresourcedefinitions"]["owned"]
    } == {
        (crd["spec"]["names"]["kind"], crd["metadata"]["name"], crd["spec"]["versions"][0]["name"])
        for crd in (yaml.load(path.read_text(), Loader=make.LOADER) for path in (ROOT / "crds").glob("*.yaml"))
    }
    assert [one["kind"] for one in json.loads(csv["metadata"]["annotations"]["alm-examples"])] == [
        "HudiTable",
        "HudiWriter",
    ]
    images = {one["name"]: one["image"] for one in csv["spec"]["relatedImages"]}
    assert set(images) == set(files.IMAGES) - {"console"}, "the console is off by default"
    assert csv["metadata"]["annotations"]["containerImage"] == images["operator"]
    assert [one["type"] for one in csv["spec"]["installModes"] if one["supported"]] == ["AllNamespaces"]


def test_image_and_metadata_say_the_same() -> None:
    annotations = yaml.safe_load((make.BUNDLE / "metadata/annotations.yaml").read_text())["annotations"]
    text = (make.BUNDLE / "bundle.Dockerfile").read_text()
    assert (
        dict(line.removeprefix("LABEL ").split("=", 1) for line in text.splitlines() if line.startswith("LABEL"))
        == annotations
    )
    for folder in ("manifests", "metadata"):
        assert (make.BUNDLE / folder).is_dir()
        assert f"COPY {folder} /{annotations[f'operators.operatorframework.io.bundle.{folder}.v1']}" in text


def test_it_fits_where_olm_unpacks_it() -> None:
    """Into a ConfigMap, packed: at most one megabyte."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(make.BUNDLE / "manifests", "manifests")
    assert len(packed.getvalue()) < 500_000


@pytest.mark.parametrize(
    "change",
    [
        lambda place: (place / "manifests/hudi-operator-view_clusterrole.yaml").unlink(),
        lambda place: (place / "manifests/old.yaml").write_text("kind: ConfigMap\n"),
        lambda place: (place / "metadata/annotations.yaml").write_text("annotations: {}\n"),
    ],
    ids=["missing", "too many", "changed"],
)
def test_a_bundle_that_is_not_up_to_date_is_found(
    change: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in make.files(make.INSTALL.read_text(encoding="utf-8")).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(make, "BUNDLE", tmp_path)
    assert make.wrong() == []
    change(tmp_path)
    assert len(make.wrong()) == 1
