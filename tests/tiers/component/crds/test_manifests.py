"""deploy/: the one file and the base are what the chart renders, the overlay is it with other
values, and an API server takes them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hack.manifests import make

from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import BIN, Cluster, JsonDict

Named = tuple[str, str, str]
"""Kind, namespace (empty for what has none) and name."""
ETCD = "--set-json=etcd.resources=" + '{"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}}'
HASHED = re.compile(r"hudi-operator-[a-z0-9]{10}")
"""The ConfigMap of the operator in an overlay."""


def by_name(manifests: str) -> dict[Named, JsonDict]:
    found = {
        (o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o
        for o in quick_yaml.load_all(manifests)
        if o
    }
    assert len(found) > 40
    return found


def read(of: Any) -> Any:
    """With one blank for each run of blanks and line breaks.

    To CEL they are the same, and Kustomize writes some line breaks twice.
    """
    if isinstance(of, dict):
        return {name: read(one) for name, one in of.items()}
    if isinstance(of, list):
        return [read(one) for one in of]
    return re.sub(r"\s+", " ", of) if isinstance(of, str) else of


def with_policies_read(objects: dict[Named, JsonDict]) -> dict[Named, JsonDict]:
    return {name: read(one) if name[0] == "ValidatingAdmissionPolicy" else one for name, one in objects.items()}


def kustomized(folder: str | Path) -> str:
    done = subprocess.run([BIN / "kubectl", "kustomize", make.DEPLOY / folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def mounted(objects: dict[Named, JsonDict]) -> str:
    """The ConfigMap that the operator reads."""
    spec = objects["Deployment", "hudi-operator", "hudi-operator"]["spec"]["template"]["spec"]
    (name,) = [volume["configMap"]["name"] for volume in spec["volumes"] if volume["name"] == "config"]
    return str(name)


def plain(objects: dict[Named, JsonDict]) -> dict[Named, JsonDict]:
    """Without what a kustomization has in the place of a checksum, another name of the ConfigMap,
    and labels that name a version of the chart.
    """
    name = mounted(objects)
    config = objects.pop(("ConfigMap", "hudi-operator", name))
    config["metadata"]["name"] = "hudi-operator"
    for label in ("app.kubernetes.io/version", "helm.sh/chart"):
        config["metadata"]["labels"].pop(label, "")
    template = objects["Deployment", "hudi-operator", "hudi-operator"]["spec"]["template"]
    del template["metadata"]["annotations"]["checksum/config"]
    (volume,) = [volume for volume in template["spec"]["volumes"] if volume["name"] == "config"]
    volume["configMap"]["name"] = "hudi-operator"
    return with_policies_read({**objects, ("ConfigMap", "hudi-operator", "hudi-operator"): config})


def test_the_files_are_what_the_chart_renders() -> None:
    made = make.files()
    assert {name: (make.DEPLOY / name).read_text() for name in made} == made, "run `make manifests`"
    objects = by_name(made["install/install.yaml"])
    namespace = objects.pop(("Namespace", "", "hudi-operator"))
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    assert objects == by_name(make.rendered(make.REGISTRY))
    assert {space for _, space, _ in objects} == {"", "hudi-operator"}


def test_the_base_is_the_one_file() -> None:
    objects = by_name(kustomized("base"))
    assert HASHED.fullmatch(mounted(objects))
    assert plain(objects) == plain(by_name((make.DEPLOY / "install/install.yaml").read_text()))


def test_the_overlay_is_the_chart_with_other_values() -> None:
    objects = by_name(kustomized("overlays/example"))
    assert HASHED.fullmatch(mounted(objects))
    assert ("ConfigMap", "hudi-operator", "hudi-operator") not in objects
    expected = by_name(make.install(make.REGISTRY, make.EXAMPLE, ETCD, "--set=replicas=2"))
    assert plain(objects) == plain(expected)


def test_another_configuration_starts_the_operator_anew(tmp_path: Path) -> None:
    """The file that people change is the overlay's config.yaml."""
    subprocess.run(["cp", "-r", make.DEPLOY, tmp_path / "deploy"], check=True)
    overlay = tmp_path / "deploy" / "overlays" / "example"
    before = mounted(by_name(kustomized(overlay)))
    config = overlay / "config.yaml"
    config.write_text(config.read_text().replace("s3a://lake/", "s3a://pond/"))
    objects = by_name(kustomized(overlay))
    assert mounted(objects) != before
    text = objects["ConfigMap", "hudi-operator", mounted(objects)]["data"]["config.yaml"]
    assert quick_yaml.load(text)["pathPrefixes"] == {"flights": ["s3a://pond/"], "*": []}


@pytest.mark.parametrize("what", ["-f", "-k"])
def test_an_api_server_takes_them(bare_cluster: Cluster, what: str) -> None:
    """Applied twice: the second time over what is there. Then the page's commands remove it."""
    path = make.DEPLOY / ("install/install.yaml" if what == "-f" else "overlays/example")
    for _ in range(2):
        bare_cluster.kubectl("apply", "--server-side", what, str(path))
    bare_cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    replicas = bare_cluster.get("deployment", "hudi-operator", "-n", "hudi-operator")["spec"]["replicas"]
    assert replicas == (1 if what == "-f" else 2)
    page = (make.DEPLOY / "README.md").read_text()
    commands = re.findall(r"^    kubectl (delete .+)$", page, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        bare_cluster.kubectl(*command.split())
    left = bare_cluster.kubectl("get", what, str(path), "--ignore-not-found", "-o", "name").split()
    crds = {
        f"customresourcedefinition.apiextensions.k8s.io/{name}.hudioperator.io"
        for name in ("huditables", "hudiwriters")
    }
    assert set(left) == {"namespace/hudi-operator", *crds}


def test_values_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with other values, in another namespace."""
    file = tmp_path / "mine.yaml"
    values = ["--set=images.registry=localhost:5000/a", "--set", "config.watchNamespaces={flights}"]
    monkeypatch.setattr("sys.argv", ["make", str(file), "--namespace", "hudi", *values])
    assert make.main() == 0
    objects = by_name(file.read_text())
    assert {space for _, space, _ in objects} == {"", "hudi", "flights"}
    assert "registry.example.com" not in file.read_text()
    assert ("RoleBinding", "flights", "hudi-operator") in objects
