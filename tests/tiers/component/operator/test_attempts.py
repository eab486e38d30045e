"""From a HudiTable and a HudiWriter to pods, and from a finished or dead pod to
the next attempt.
"""

from __future__ import annotations

import json
import time

from tests.support.harness.operator_world import EVIDENCE, SUCCEEDED, World
from tests.support.harness.servers import wait_for


def test_a_table_gets_its_gate_and_agent_and_a_writer_its_driver(world: World) -> None:
    world.start_operator()
    table_id, agent, _ = world.running_table()
    gates = f"/hudi/control/{table_id}/gate"
    gate = wait_for(
        "open gate", lambda: next((g for g in world.etcd.read(gates).values() if g["state"] == "open"), None)
    )
    assert gate["authority"], "the gate names a lock authority"
    pod, _ = world.running_writer(table_id)
    for made in (agent, pod):
        spec, container = made["spec"], made["spec"]["containers"][0]
        assert EVIDENCE in made["metadata"]["finalizers"]
        assert spec["restartPolicy"] == "Never"
        assert not spec.get("hostNetwork")
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert spec["automountServiceAccountToken"] is False
    name = pod["metadata"]["name"]
    job = json.loads((world.get("configmaps", name) or {})["data"]["job.json"])
    assert job["attempt"] == {"id": f"{world.namespace}.{name}", "number": 1}
    assert f"/hudi/control/{table_id}/admit/{world.namespace}.{name}" in world.etcd.read(
        f"/hudi/control/{table_id}/admit/"
    )
    told = world.get("configmaps", "hudi-operator-etcd")
    assert told is not None
    assert told["data"] == {"ca.crt": (world.etcd.pki / "ca.crt").read_text()}
    assert not (world.get("secrets", "") or {}).get("items"), "no pod is given an identity as a Secret"


def test_a_finished_writer_succeeds_and_its_evidence_goes(world: World) -> None:
    world.start_operator()
    table_id, _, _ = world.running_table()
    pod, inc = world.running_writer(table_id)
    # Clean exit: heartbeat and registration are deleted by the JVM itself.
    world.revoke(inc)
    world.etcd.delete(world.key(table_id, f"writer/{inc}"))
    world.end_pod(pod, exit_code=0, message=SUCCEEDED)
    condition = wait_for(
        "Finished", lambda: (c := world.condition("hudiwriters", "load", "Finished")) and c["status"] == "True" and c
    )
    assert condition["reason"] == "Succeeded"
    wait_for(
        "evidence dropped",
        lambda: (
            EVIDENCE
            not in (
                (world.get("pods", pod["metadata"]["name"]) or {"metadata": {}})["metadata"].get("finalizers") or []
            )
        ),
    )
    assert len(world.pods("driver", writer="load")) <= 1, "a finished writer does not run again"


def test_a_killed_driver_is_fenced_proven_drained_swept_and_followed(world: World) -> None:
    operator = world.start_operator()
    table_id, _, _ = world.running_table()
    pod, inc = world.running_writer(table_id)
    world.lock(table_id, inc, pod)
    world.instant(table_id, inc, "20260101000000000")
    world.end_pod(pod, exit_code=137)
    world.sweep(table_id, inc)
    record = world.phase(table_id, inc, "Settled")
    assert pod["metadata"]["uid"] in record["proofs"]
    assert world.key(table_id, "lock") not in world.etcd.read(world.key(table_id, "lock"))
    assert not world.etcd.read(world.key(table_id, "instant/"))
    assert not world.etcd.read(world.key(table_id, f"writer/{inc}"))
    assert world.etcd.read(f"/hudi/control/{table_id}/fence/{inc}"), "a fence is permanent (I2)"
    times = record["times"]
    assert times["Unlocked"] - times["Draining"] >= 1000, "drain of one second"
    world.pod("driver", number=2, writer="load", seconds=40)
    assert operator.metric("hudi_operator_fences_total") == 1
    assert operator.metric("hudi_operator_attempts_total") == 2


def test_the_successor_of_a_lock_holder_is_made_during_the_drain(world: World) -> None:
    """F392, F5: it may register; the lock stands until it is drained."""
    world.start_operator(leader_election=False)
    table_id, _, _ = world.running_table(fencing={"drainSeconds": 25})
    pod, inc = world.running_writer(table_id)
    world.lock(table_id, inc, pod)
    world.end_pod(pod, exit_code=137)
    successor = world.pod("driver", number=2, writer="load", seconds=60)
    lock = world.key(table_id, "lock")
    assert world.etcd.read(lock)[lock]["inc"] == inc
    record = world.phase(table_id, inc, "Draining")
    assert pod["metadata"]["uid"] in record["proofs"]
    world.run_pod(successor)
    world.register(table_id, successor)
    record = world.phase(table_id, inc, "Unlocked", "RollingBack", "Swept", "Settled", seconds=120)
    assert record["times"]["Unlocked"] - record["times"]["Draining"] >= 25000, "the drain is not shortened"
    assert not world.etcd.read(lock)


def test_a_force_deleted_driver_is_not_proven_dead(world: World) -> None:
    world.start_operator()
    table_id, _, _ = world.running_table()
    pod, inc = world.running_writer(table_id)
    world.lock(table_id, inc, pod)
    name = pod["metadata"]["name"]
    # Somebody takes the finalizer away and deletes by force; the process may live on.
    world.cluster.request(
        "PATCH", world.path("pods", name, "/api/v1"), {"metadata": {"finalizers": None}}, "application/merge-patch+json"
    )
    world.cluster.request("DELETE", f"{world.path('pods', name, '/api/v1')}?gracePeriodSeconds=0")
    wait_for("object gone", lambda: world.get("pods", name) is None)
    world.phase(table_id, inc, "Terminating")
    waiting = wait_for(
        "AwaitingProofOfDeath",
        lambda: (c := world.condition("huditables", "flights", "AwaitingProofOfDeath")) and c["status"] == "True" and c,
    )
    assert "node1" in waiting["message"]
    assert pod["metadata"]["uid"] in waiting["message"]
    assert world.etcd.read(world.key(table_id, "lock")), "no proof, no unlock (I1)"
    # A person vouches for it.
    word = {
        "podUID": pod["metadata"]["uid"],
        "node": "node1",
        "statement": "the host was switched off",
        "attestedBy": "admin",
        "at": "2026-01-01T00:00:00Z",
    }
    fencing = {"drainSeconds": 1, "attestations": [word]}
    world.cluster.request(
        "PATCH", world.path("huditables", "flights"), {"spec": {"fencing": fencing}}, "application/merge-patch+json"
    )
    record = world.phase(table_id, inc, "Unlocked", "RollingBack", "Swept", "Settled")
    assert next(iter(record["proofs"].values()))["kind"] == "Attestation"


def test_a_lost_heartbeat_is_enough_to_fence_and_delete_but_not_to_unlock(world: World) -> None:
    world.start_operator()
    table_id, _, _ = world.running_table()
    pod, inc = world.running_writer(table_id)
    world.lock(table_id, inc, pod)
    world.revoke(inc)
    record = world.phase(table_id, inc, "Fenced", "Terminating")
    assert record["reason"] == "LeaseGone"
    meta = wait_for(
        "deletion",
        lambda: (
            (p := world.get("pods", pod["metadata"]["name"]))
            and p["metadata"].get("deletionTimestamp")
            and p["metadata"]
        ),
    )
    assert meta["deletionGracePeriodSeconds"] > 0, "never by force"
    for _ in range(30):  # its process lives: it is not replaced (I9), however often the operator looks
        assert [p["metadata"]["name"] for p in world.pods("driver", writer="load")] == [meta["name"]]
        assert world.etcd.read(world.key(table_id, "lock"))
        time.sleep(0.1)
    world.end_pod(pod, exit_code=137)
    wait_for("unlock", lambda: not world.etcd.read(world.key(table_id, "lock")))
