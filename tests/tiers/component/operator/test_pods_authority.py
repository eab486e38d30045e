"""The gateway's certificate authority is replaced while pods run: the operator copies it at once.

How a JVM reads what the kubelet has mounted of it: ``TlsTest``.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.support.harness.operator_world import World
from tests.support.harness.servers import wait_for


def test_an_authority_that_is_replaced_reaches_namespaces_without_a_new_pod(world: World, tmp_path: Path) -> None:
    """F274: it was copied only when a pod was made."""
    authority = tmp_path / "ca.crt"
    authority.write_text("of today\n")
    world.settings = {"podEtcd": {"endpoints": [world.pod_endpoint], "caFile": str(authority)}}
    world.start_operator()
    world.running_table()

    def copied() -> str:
        found = world.get("configmaps", "hudi-operator-etcd")
        return "" if found is None else str(found["data"]["ca.crt"])

    def look() -> None:
        patch = {"metadata": {"annotations": {"looked-at": str(time.time())}}}
        world.cluster.request("PATCH", world.path("huditables", "flights"), patch, "application/merge-patch+json")

    assert copied() == "of today\n"
    pods = {pod["metadata"]["uid"] for pod in world.pods("agent")}
    authority.write_text("of today\nof tomorrow\n")
    look()
    wait_for("it is copied", lambda: copied() == "of today\nof tomorrow\n", seconds=60)
    assert {pod["metadata"]["uid"] for pod in world.pods("agent")} == pods
    version = world.get("configmaps", "hudi-operator-etcd")["metadata"]["resourceVersion"]  # type: ignore[index]
    look()
    time.sleep(5)
    assert world.get("configmaps", "hudi-operator-etcd")["metadata"]["resourceVersion"] == version  # type: ignore[index]
