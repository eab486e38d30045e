"""F43: what looks like a reboot and is none.

The writer holds the lock and is frozen, its kubelet too. Nothing else should run on
the cluster meanwhile.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from demo import cluster
from demo.cluster import kubectl

from tests.support import CACHE
from tests.support.cluster import clock_image
from tests.support.cluster.node import frozen
from tests.support.cluster.scene import Scene, past_services, stuck
from tests.support.cluster.space import OUT, SMALL, Space
from tests.support.harness import other_clock
from tests.support.harness.s3proxy import Proxy, completed, completed_in_metadata

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1200)]
OTHER = "ffffffff-0000-0000-0000-ffffffffffff"


@pytest.fixture(scope="module")
def image() -> str:
    clock_image.make(CACHE / "images" / "oci", OUT / "clock")
    return clock_image.IMAGE


def registration(scene: Scene, pod: str) -> dict[str, Any]:
    found = [
        c.value
        for c in scene.space.watch.changes(f"/{scene.table_id}/writer/")
        if c.value and c.value.get("pod") == pod
    ]
    assert found, f"{pod} has not registered"
    return dict(found[-1])


def boot_id(node: str) -> str:
    return str(cluster.get("node", node)["status"]["nodeInfo"]["bootID"])


@contextmanager
def made_again(name: str) -> Iterator[None]:
    """The Node is deleted and made again at once, as another machine's kubelet would register under
    its name; its own kubelet must be frozen.
    """
    old = cluster.get("node", name)
    kubectl("delete", "node", name)
    spec = {key: value for key, value in old["spec"].items() if key in ("podCIDR", "podCIDRs", "providerID")}
    meta = {
        "name": name,
        "labels": old["metadata"].get("labels", {}),
        "annotations": old["metadata"].get("annotations", {}),
    }
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec}))
    status = {**old["status"], "nodeInfo": {**old["status"]["nodeInfo"], "bootID": OTHER, "systemUUID": OTHER}}
    kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    assert cluster.get("node", name)["metadata"]["uid"] != old["metadata"]["uid"]
    assert boot_id(name) == OTHER
    yield


def judged(scene: Scene, instant: str, pod: str, at: float, back: float) -> None:
    """The kubelet is back and has ended the pod: settled on its word, and on no other."""
    record = scene.settled(scene.name, pod, back)
    kept = scene.record(pod)
    assert {proof["kind"] for proof in kept["proofs"].values()} == {"PodTerminated"}, kept["proofs"]
    assert all(proof["atMs"] / 1000 > back for proof in kept["proofs"].values()), kept["proofs"]
    assert record.outcomes == {instant: "RolledBack"}, record
    assert not scene.published(completed, instant)
    scene.assert_blocked(at, record)
    scene.assert_gone(instant)


def test_a_boot_id_that_is_not_the_nodes_from_the_start(space: Space, proxy: Proxy, image: str) -> None:
    """As in a sandbox with its own kernel."""
    driver = {**SMALL, "env": [{"name": other_clock.BOOT_VARIABLE, "value": "1"}]}
    scene = Scene(space, proxy, "sandboxed", victim={"driver": driver, "retryPolicy": {"limit": 0}}, image=image)
    instant, pod = scene.inflight()
    said = registration(scene, pod)
    assert said["bootId"] == other_clock.BOOT_ID
    assert boot_id(said["node"]) != other_clock.BOOT_ID
    assert not scene.space.watch.latest(f"/{scene.table_id}/seen/{said['inc']}")
    held = scene.hold(completed_in_metadata, instant)
    at = time.time()
    with past_services(proxy, space):
        with frozen("kubelet"):
            space.signal_all(pod, signal.SIGSTOP)
            held.deliver.set()
            assert stuck(scene, pod)["proofs"] == {}
            back = time.time()
        judged(scene, instant, pod, at, back)
        kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
    scene.finish(batches=0)


def test_a_node_whose_object_is_deleted_and_made_again(space: Space, proxy: Proxy) -> None:
    scene = Scene(space, proxy, "remade", victim={"retryPolicy": {"limit": 0}})
    instant, pod = scene.inflight()
    said = registration(scene, pod)
    assert said["bootId"] == boot_id(said["node"])
    held = scene.hold(completed_in_metadata, instant)
    at = time.time()
    with past_services(proxy, space):
        with frozen("kubelet"), made_again(said["node"]):
            space.signal_all(pod, signal.SIGSTOP)
            held.deliver.set()
            assert stuck(scene, pod)["proofs"] == {}
            back = time.time()
        kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
        judged(scene, instant, pod, at, back)
    scene.finish(batches=0)
