"""A dry run of a release: all of its files, those that Helm makes among them."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

import pytest
from hack.release import files, version

from tests.support import ROOT, quick_yaml
from tests.tiers.component.crds.cluster import BIN, module_folder

ACTIONLINT = "h1:vQ4GeJN86C0QH+gTUQcs8McmK62OLT3kmakPMtEWYnY="
"""Sum of actionlint's module, by Go's checksum database."""
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


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    """The workflows cannot be run here: their form is right at least."""
    source = module_folder("github.com/rhysd/actionlint@v1.7.12", ACTIONLINT)
    program = tmp_path / "actionlint"
    subprocess.run(["go", "build", "-o", str(program), "./cmd/actionlint"], cwd=source, check=True, timeout=800)
    workflows = sorted((ROOT / ".github/workflows").glob("*.yaml"))
    done = subprocess.run([program, "-no-color", *workflows], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
    broken = tmp_path / "broken.yaml"
    broken.write_text(workflows[-1].read_text().replace("needs: images", "needs: image"))
    done = subprocess.run([program, "-no-color", broken], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "image" in done.stdout
    assert done.returncode == 1
