"""Drivers that the node ends: out of memory, evicted."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from demo import cluster
from demo.cluster import kubectl

from tests.support.cluster.scene import Scene
from tests.support.cluster.space import SLOW_SOURCE, Space, wait_for
from tests.support.harness.s3proxy import Proxy, completed, completed_in_metadata

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1200)]
# Takes all memory of its pod when the file /tmp/eat is there.
HUNGRY = """
import os
import threading
import time


def eat():
    while not os.path.exists("/tmp/eat"):
        time.sleep(0.1)
    eaten = []
    while True:
        eaten.append(bytearray(os.urandom(1 << 20)) * 64)


threading.Thread(target=eat, daemon=True).start()
"""


def test_out_of_memory_in_the_critical_section(space: Space, proxy: Proxy) -> None:
    code = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "hungry", "namespace": space.namespace},
        "data": {"hungry.py": HUNGRY + SLOW_SOURCE},
    }
    cluster.apply(json.dumps(code))
    arguments = {"batches": "1", "rows": "20", "delay": "0.3"}
    source = {
        "python": {
            "configMapKeyRef": {"name": "hungry", "key": "hungry.py"},
            "function": "batches",
            "arguments": arguments,
        }
    }
    scene = Scene(space, proxy, "memory", victim={"source": source})
    instant, pod = scene.inflight()
    scene.hold(completed_in_metadata, instant)
    at = time.time()
    Path(f"/proc/{scene.pid(pod)}/root/tmp/eat").touch()
    record = scene.settled("out of memory in the critical section", pod, at)
    assert scene.attempt(pod)["class"] == "OutOfMemory", scene.attempt(pod)
    assert record.outcomes == {instant: "RolledBack"}, record
    scene.assert_blocked(at, record)
    scene.assert_gone(instant)
    scene.finish()


def test_evicted_while_it_holds_the_lock(space: Space, proxy: Proxy) -> None:
    """Eviction with 30 s of grace: the commit at hand is finished, the lock given back, nothing to
    be proven; another pod goes on.
    """
    scene = Scene(space, proxy, "evicted", batches=2, victim={"stop": {"graceSeconds": 30}})
    instant, pod = scene.inflight()
    held = scene.hold(completed, instant)
    assert scene.holds_lock(pod)
    at = time.time()
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": space.namespace}}
    kubectl(
        "create",
        "--raw",
        f"/api/v1/namespaces/{space.namespace}/pods/{pod}/eviction",
        "-f",
        "-",
        stdin=json.dumps(eviction),
    )
    wait_for("the deletion of the pod", lambda: space.get("pod", pod)["metadata"].get("deletionTimestamp"), seconds=20)
    time.sleep(5)
    held.deliver.set()
    ended = scene.attempt(pod)
    print(f"\nevicted while it holds the lock: attempt ended after {time.time() - at:.1f} s as {ended['class']}")
    assert instant in {i.requested for i in space.lake.timeline(scene.path) if i.completed}
    scene.goes_on(at)
    scene.finish()
    assert space.settling(pod) is None, f"an evicted writer had to be settled: {scene.record(pod)}"
    # The evicted pod itself is gone
    attempts = [attempt["pod"] for attempt in space.get("hudiwriter", scene.victim)["status"]["attempts"]]
    assert len(attempts) == 2, attempts
    assert attempts[0] == pod
