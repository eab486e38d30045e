"""A dry run of a release: all of its files, those that Helm makes among them."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

from hack.release import files, version

from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import BIN

REGISTRY = "registry.example.com/hudi-operator"


def test_all_files_of_a_release_are_of_one_version(tmp_path: Path) -> None:
    """The chart as it will be pushed can be rendered, and names the images of its release."""
    out, number = tmp_path / "files", version.read()
    given = ["--registry", REGISTRY, "--url", "https://example.com/v0", "--without-images"]
    assert files.main([str(out), *given]) == 0
    said = dict(files.versions(out))
    assert set(said.values()) == {number}
    for name in ("operator", "spark", "console"):
        bill = json.loads((out / f"{name}-python-{number}.cdx.json").read_text())
        assert len(bill["components"]) > 5, name
    with tarfile.open(out / f"olm-bundle-{number}.tar.gz") as packed:
        assert "bundle/metadata/annotations.yaml" in packed.getnames()
    images = {where.partition(": ")[2].rpartition(":")[0] for where in said if REGISTRY in where}
    assert images >= {f"{REGISTRY}/{name}" for name in ("operator", "spark", "gateway", "etcd")}

    command = [BIN / "helm", "template", "x", out / f"hudi-operator-{number}.tgz", f"--set=images.registry={REGISTRY}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (operator,) = [
        one
        for one in quick_yaml.load_all(done.stdout)
        if one
        and one["kind"] == "Deployment"
        and one["metadata"]["labels"]["app.kubernetes.io/component"] == "operator"
    ]
    assert operator["spec"]["template"]["spec"]["containers"][0]["image"] == f"{REGISTRY}/operator:{number}"
