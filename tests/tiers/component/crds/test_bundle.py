"""OLM's own validators read the bundle, and an API server takes it, by the schema of a
ClusterServiceVersion. No OLM is here to install it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hack.bundle import make

from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import Cluster, module_folder, wait_until

pytestmark = [pytest.mark.extra, pytest.mark.timeout(900)]

API = ("github.com/operator-framework/api@v0.45.0", "h1:hkROwtsLH3oszp4IW+WsXEFSDgveSahHI7DKStOtrUI=")
"""OLM's types, validators and CRDs, with the sum of Go's checksum database."""


def test_olms_validators_find_nothing(tmp_path: Path) -> None:
    program = tmp_path / "operator-verify"
    command = ["go", "build", "-o", str(program), "./cmd/operator-verify"]
    subprocess.run(command, cwd=module_folder(*API), check=True, timeout=800)

    def said(folder: Path) -> list[str]:
        # Its exit code is 0 whatever it finds; what it finds goes to standard error.
        command = [program, "manifests", "--operatorhub_validate", "--object_validate", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return [line for line in (done.stdout + done.stderr).splitlines() if "level=" in line or "Error" in line]

    assert [line for line in said(make.BUNDLE / "manifests") if not known(line)] == []
    broken = tmp_path / "broken"
    shutil.copytree(make.BUNDLE / "manifests", broken)
    file = broken / "hudi-operator.clusterserviceversion.yaml"
    file.write_text(
        file.read_text()
        .replace("type: AllNamespaces\n", "type: SomeNamespaces\n")
        .replace("minKubeVersion: 1.30.0", "minKubeVersion: new")
    )
    (broken / "hudioperator.io_hudiwriters.yaml").unlink()
    found = "\n".join(said(broken))
    assert "MinKubeVersion has an invalid value: new" in found
    assert 'Kind=HudiWriter\\" not found in bundle' in found


def known(line: str) -> bool:
    """What the program says of itself."""
    return "validator is deprecated" in line


def test_an_api_server_takes_a_clusterserviceversion(bare_cluster: Cluster) -> None:
    """Every field has a place in the schema, and a value that it allows."""
    crd = module_folder(*API) / "crds/operators.coreos.com_clusterserviceversions.yaml"
    bare_cluster.kubectl("create", "-f", str(crd))
    # Of a CRD without any status yet, kubectl says at once that it cannot be waited for.
    wait = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    wait_until(lambda: bare_cluster.run(*wait).returncode == 0)
    bare_cluster.kubectl("create", "namespace", "hudi-operator")
    apply = ("apply", "--server-side", "--validate=strict", "-n", "hudi-operator", "-f")
    for path in sorted((make.BUNDLE / "manifests").glob("*.yaml")):
        bare_cluster.kubectl(*apply, str(path))
    csv = bare_cluster.get(
        "clusterserviceversion", quick_yaml.load(csv_text())["metadata"]["name"], "-n", "hudi-operator"
    )
    assert list(lost(quick_yaml.load(csv_text())["spec"], csv["spec"])) == []


def lost(due: Any, there: Any, where: str = "spec") -> Iterator[str]:
    """Where an object has not what it was given; defaults may join it."""
    if isinstance(due, dict) and isinstance(there, dict):
        for name, value in due.items():
            yield from lost(value, there.get(name), f"{where}.{name}")
    elif isinstance(due, list) and isinstance(there, list) and len(due) == len(there):
        for number, value in enumerate(due):
            yield from lost(value, there[number], f"{where}[{number}]")
    elif due != there:
        yield f"{where}: {there!r}, not {due!r}"


def csv_text() -> str:
    return (make.BUNDLE / "manifests/hudi-operator.clusterserviceversion.yaml").read_text(encoding="utf-8")


def test_what_is_beside_the_bundle_and_the_bundle_are_taken_together(bare_cluster: Cluster, tmp_path: Path) -> None:
    """In the order of the page: first what is beside it. What OLM itself makes of the CSV is left
    out.
    """
    file = tmp_path / "beside.yaml"
    file.write_text(make.file_beside(make.INSTALL.read_text(encoding="utf-8")), encoding="utf-8")
    for crd in sorted((make.ROOT / "crds").glob("*.yaml")):
        bare_cluster.kubectl("apply", "--server-side", "-f", str(crd))
    bare_cluster.kubectl("apply", "--server-side", "--validate=strict", "-f", str(file))
    for path in sorted((make.BUNDLE / "manifests").glob("hudi-operator*_*.yaml")):
        bare_cluster.kubectl("apply", "--server-side", "--validate=strict", "-n", "hudi-operator", "-f", str(path))
