"""Tests of this tier once more, on API server and controllers of the oldest Kubernetes that is
supported: what its rules, policies and collector make of our objects, and the operator on it.

`KUBE=kube-oldest python -m pytest FILE` runs any other file of the tier on it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_operator.main import OLDEST_KUBERNETES
from tests.support import CACHE, ROOT

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1800)]

FILES = (
    "crds/test_tables.py",
    "crds/test_writers.py",
    "crds/test_policies.py",
    "crds/test_pod_templates.py",
    "crds/test_references.py",
    "crds/test_examples.py",
    "crds/test_operators_account.py",
    "operator/test_attempts.py",
    "operator/test_cascades.py",
    "operator/test_crashes.py",
    "operator/test_finalizer_races.py",
    "operator/test_rights.py",
)


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_this_tier_passes_on_it(file: str, tmp_path: Path) -> None:
    assert (CACHE / "bin/kube-oldest").exists(), "run hack/build/build-binaries kube-oldest"
    path, report = Path(__file__).parents[1] / file, tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:cacheprovider", str(path)]
    done = subprocess.run(
        [*command, f"--junit-xml={report}", f"--basetemp={tmp_path / 'tests'}"],
        cwd=ROOT,
        env={**os.environ, "KUBE": "kube-oldest"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1700,
    )
    print(done.stdout[-6000:])
    assert done.returncode == 0


def test_it_is_the_oldest_that_is_supported(tmp_path: Path) -> None:
    """And not the one of all other tests."""
    directory, light = tmp_path / "cluster", str(ROOT / "hack/cluster/light-cluster")
    subprocess.run([light, "up", str(directory)], check=True, timeout=180, env={**os.environ, "KUBE": "kube-oldest"})
    try:
        kubectl = [str(CACHE / "bin/kubectl"), "--kubeconfig", str(directory / "kubeconfig"), "version", "-o", "json"]
        found = json.loads(subprocess.run(kubectl, check=True, capture_output=True, timeout=60).stdout)["serverVersion"]
    finally:
        subprocess.run([light, "down", str(directory)], check=False, timeout=60)
    assert (int(found["major"]), int(found["minor"])) == OLDEST_KUBERNETES, found
