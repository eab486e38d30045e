"""The node's kubelet, or the cluster's API server, is frozen while a writer dies.

Nothing else should run on the cluster meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime

import pytest
from demo.cluster import kubectl

from tests.support.cluster.node import frozen
from tests.support.cluster.scene import Scene, awaiting_proof, past_services, stuck
from tests.support.cluster.space import Space, wait_for
from tests.support.harness.s3proxy import Proxy, completed, completed_in_metadata

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1200)]
API_SERVER_DOWN_SECONDS = 60


def test_node_lost_and_back(space: Space, proxy: Proxy) -> None:
    """A writer is frozen in the critical section on a node whose kubelet is frozen: no takeover.

    When the kubelet is back, all goes on.
    """
    scene = Scene(space, proxy, "nodeback", victim={"retryPolicy": {"limit": 0}})
    instant, pod = scene.inflight()
    held = scene.hold(completed_in_metadata, instant)
    at = time.time()
    with past_services(proxy, space):
        with frozen("kubelet"):
            space.signal_all(pod, signal.SIGSTOP)
            held.deliver.set()
            stuck(scene, pod)
            assert scene.commits(at, time.time()) == 0
            back = time.time()
        record = scene.settled("node back", pod, back)
        assert record.outcomes == {instant: "RolledBack"}, record
        assert not scene.published(completed, instant)
        scene.assert_blocked(at, record)
        scene.assert_gone(instant)
        wait_for("the end of the condition", lambda: not awaiting_proof(space, scene.name), seconds=30)
        kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
    scene.finish(batches=0)


def test_node_lost_and_a_person_attests(space: Space, proxy: Proxy) -> None:
    """The same, and the machine is off, as a person says: settled on that word while the kubelet is
    still away.
    """
    scene = Scene(space, proxy, "attested", victim={"retryPolicy": {"limit": 0}})
    instant, pod = scene.inflight()
    scene.hold(completed_in_metadata, instant)
    at = time.time()
    who = kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").strip()
    with past_services(proxy, space):
        with frozen("kubelet"):
            space.signal_all(pod, signal.SIGKILL)
            record = stuck(scene, pod)
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            word = {
                "podUID": record["podUID"],
                "node": record["node"],
                "statement": "its processes were killed",
                "attestedBy": who,
                "at": now,
            }
            patch = json.dumps({"spec": {"fencing": {"attestations": [word]}}})
            attested = time.time()
            kubectl("patch", "huditable", scene.name, "-n", space.namespace, "--type=merge", "-p", patch)
            settled = scene.settled("attested", pod, attested)
            proofs = scene.record(pod)["proofs"]
            assert {uid: proof["kind"] for uid, proof in proofs.items()} == {record["podUID"]: "Attestation"}, proofs
            assert who in proofs[record["podUID"]]["detail"]
            assert settled.outcomes == {instant: "RolledBack"}, settled
            scene.assert_blocked(at, settled)
            scene.assert_gone(instant)
        kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
    scene.finish(batches=0)


def test_api_server_down_while_a_writer_dies(space: Space, proxy: Proxy) -> None:
    """Without the API server nothing can be proven: the lock stays.

    When it is back, settling catches up.
    """
    scene = Scene(space, proxy, "noapi", victim={"retryPolicy": {"limit": 0}})
    instant, pod = scene.inflight()
    scene.hold(completed_in_metadata, instant)
    jvm = scene.pid(pod)
    with past_services(proxy, space):
        with frozen("kube-apiserver"):
            at = time.time()
            os.kill(jvm, signal.SIGKILL)
            time.sleep(API_SERVER_DOWN_SECONDS)
            assert scene.holds_lock(pod), "the lock was taken away without the API server"
            found = space.settling(pod)
            assert found is None or not {"Draining", "Unlocked"} & found.phases.keys(), found
            back = time.time()
        record = scene.settled("API server back", pod, back, seconds=240)
        assert record.outcomes == {instant: "RolledBack"}, record
        proofs = scene.record(pod)["proofs"]
        assert proofs, "settled without proof"
        assert all(proof["atMs"] / 1000 > back for proof in proofs.values()), proofs
        scene.assert_blocked(at, record)
        scene.assert_gone(instant)
        kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
    scene.finish(batches=0)
