"""The examples are what the API accepts, as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import ROOT, quick_yaml
from tests.tiers.component.crds.cluster import Cluster

EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").rglob("*.yaml"))
    if not path.is_relative_to(ROOT / "examples/gitops/argocd")
    and not path.is_relative_to(ROOT / "examples/gitops/flux")
]
"""But for objects of Argo CD and Flux, which are not here."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT / "examples")))
def test_an_example_is_accepted(
    light_cluster: Cluster, namespace: str, path: Path, request: pytest.FixtureRequest
) -> None:
    objects = [found for found in quick_yaml.load_all(path.read_text()) if found]
    if any(found["kind"] == "ExternalSecret" for found in objects):
        request.getfixturevalue("external_secrets")
    for found in objects:
        if found["kind"] == "Namespace":
            continue
        if "namespace" in found.get("metadata", {}):
            found["metadata"]["namespace"] = namespace
        light_cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=quick_yaml.dump(found))
    assert objects
