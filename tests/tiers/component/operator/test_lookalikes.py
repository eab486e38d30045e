"""Objects that somebody else has made under names and labels of the operator's: it neither uses nor
deletes them, and what belongs to the table goes on.

No policies here: what the operator does by itself. The policies: ``crds/test_lookalikes.py``.
"""

from __future__ import annotations

import time

import pytest

from hudi_contract import naming
from tests.support.harness.operator_world import World
from tests.support.harness.servers import JsonDict, wait_for

EXECUTORS = {"executors": {"instances": 1}}


def told(world: World, what: str) -> str:
    """The operator's refusal, from the events of the table."""
    path = f"/apis/events.k8s.io/v1/namespaces/{world.namespace}/events"

    def find() -> str | None:
        items = (world.cluster.request("GET", path) or {"items": []})["items"]
        notes = [str(e.get("note")) for e in items if e.get("reason") == "ActionRefused"]
        return next((note for note in notes if what in note), None)

    return str(wait_for(f"the operator says that {what}", find, seconds=60))


def lookalike(pod: JsonDict, **meta: object) -> JsonDict:
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod["metadata"]["name"], **meta}}
    return made | {"spec": {"containers": [{"name": "driver", "image": "theirs"}]}}


def in_the_way(world: World, body: JsonDict) -> str:
    """Create an object as somebody else; returns its uid."""
    plural = {"Pod": "pods", "Secret": "secrets"}[body["kind"]]
    made = world.cluster.request("POST", world.path(plural, group="/api/v1"), body)
    assert made is not None
    return str(made["metadata"]["uid"])


def remove(world: World, plural: str, name: str) -> None:
    world.cluster.request("DELETE", f"{world.path(plural, name, '/api/v1')}?gracePeriodSeconds=0")
    wait_for(f"{name} is gone", lambda: world.get(plural, name) is None)


def writer_name(world: World, name: str) -> str:
    """The name of the first pod of a writer that exists."""
    found = world.get("hudiwriters", name)
    assert found is not None
    return naming.driver_pod_name(name, found["metadata"]["uid"], 1)


@pytest.mark.parametrize("labelled", [False, True])
def test_a_pod_of_an_attempts_name_is_not_the_attempt(world: World, labelled: bool) -> None:
    """It gets no role at the gateway, which knows a pod by its name, and is left alone."""
    world.start_operator()
    table_id, _, _ = world.running_table()
    world.writer(suspend=True)
    name = writer_name(world, "load")
    labels = {naming.LABEL_TABLE: "flights", naming.LABEL_ROLE: "driver", naming.LABEL_WRITER: "load"}
    labels |= {naming.LABEL_ATTEMPT: "1"}
    theirs = in_the_way(world, lookalike({"metadata": {"name": name}}, labels=labels if labelled else {}))
    world.cluster.request(
        "PATCH", world.path("hudiwriters", "load"), {"spec": {"suspend": False}}, "application/merge-patch+json"
    )
    assert name in told(world, f"Pod {world.namespace}/{name} exists")
    assert not world.etcd.read(f"/hudi/control/{table_id}/admit/{world.namespace}.{name}")
    found = world.get("pods", name)
    assert found is not None
    assert (found["metadata"]["uid"], found["metadata"].get("deletionTimestamp")) == (theirs, None)
    world.writer("other")  # the table's work goes on beside it
    world.pod("driver", writer="other")
    remove(world, "pods", name)
    made = wait_for("the attempt starts", lambda: world.get("pods", name), seconds=60)
    assert naming.EVIDENCE_FINALIZER in made["metadata"]["finalizers"]
    assert world.etcd.read(f"/hudi/control/{table_id}/admit/{world.namespace}.{name}")


def test_a_registration_of_another_pod_stops_nobody(world: World) -> None:
    """Whatever stands in etcd: a pod without a mark of ours is not touched, nor is one elsewhere,
    though it is a driver of a table of this name there.
    """
    world.start_operator()
    table_id, _, _ = world.running_table()
    elsewhere = in_the_way(world, lookalike({"metadata": {"name": "theirs"}}))
    labels = {**naming.MANAGED, naming.LABEL_TABLE: "flights"}
    labels |= {naming.LABEL_ROLE: naming.ROLE_DRIVER, naming.LABEL_DRIVER: "far-away"}
    marked = lookalike({"metadata": {"name": "far-away"}}, labels=labels)
    world.cluster.request("POST", "/api/v1/namespaces/default/pods", marked)
    far = world.cluster.request("GET", "/api/v1/namespaces/default/pods/far-away")
    assert far is not None
    try:
        forged = (("theirs", world.namespace, elsewhere), ("far-away", "default", far["metadata"]["uid"]))
        for inc, (name, namespace, uid) in zip(("forged-1", "forged-2"), forged, strict=True):
            told_ = {"inc": inc, "role": "writer", "namespace": namespace, "pod": name, "podUID": uid}
            told_ |= {"attempt": f"{namespace}.{name}", "epoch": 1, "node": "", "bootId": ""}
            world.etcd.put(world.key(table_id, f"writer/{inc}"), told_)
        wait_for(
            "both are suspected", lambda: len(world.etcd.read(f"/hudi/control/{table_id}/fence/")) == 2, seconds=60
        )
        wait_for(
            "nobody can prove it",
            lambda: (c := world.condition("huditables", "flights", "AwaitingProofOfDeath")) and c["status"] == "True",
            seconds=90,
        )
        phases = ("Terminating",) * 2
        wait_for(
            "both wait for proof",
            lambda: tuple(r["phase"] for r in world.etcd.read(f"/hudi/tables/{table_id}/settle/").values()) == phases,
        )
        time.sleep(10)  # some looks, each of which would delete what is the table's
        for path in (world.path("pods", "theirs", "/api/v1"), "/api/v1/namespaces/default/pods/far-away"):
            found = world.cluster.request("GET", path)
            assert found is not None
            assert "deletionTimestamp" not in found["metadata"]
    finally:
        world.cluster.request("DELETE", "/api/v1/namespaces/default/pods/far-away?gracePeriodSeconds=0")


def test_a_pod_that_only_names_a_driver_is_left_alone(world: World) -> None:
    """F356: Spark's label, and the dead driver among its owners: neither deleted nor waited for."""
    world.start_operator()
    table_id, _, _ = world.running_table()
    driver, inc = world.running_writer(table_id, **EXECUTORS)
    world.lock(table_id, inc, driver)
    account = world.get("serviceaccounts", "default")
    assert account is not None
    # The second owner keeps them from the garbage collector.
    kept = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "default", "uid": account["metadata"]["uid"]}
    named = {"apiVersion": "v1", "kind": "Pod", "name": driver["metadata"]["name"], "uid": driver["metadata"]["uid"]}
    theirs = {}
    for name, owner in (("theirs", named), ("renamed", {**named, "name": "renamed-1", "controller": True})):
        made = lookalike({"metadata": {"name": name}}, labels={"spark-role": "executor"}, ownerReferences=[owner, kept])
        theirs[name] = in_the_way(world, made)
    world.revoke(inc)
    world.kubelet_kills(driver)
    record = world.phase(table_id, inc, "Unlocked", "RollingBack", "Swept", "Settled")
    assert {*record["pods"], *record["proofs"]} == {driver["metadata"]["uid"]}
    assert not world.etcd.read(world.key(table_id, "lock"))
    for name, uid in theirs.items():
        found = world.get("pods", name)
        assert found is not None
        assert (found["metadata"]["uid"], found["metadata"].get("deletionTimestamp")) == (uid, None)


def key_secret(name: str) -> JsonDict:
    meta = {"name": f"{name}-spark-key"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"key": "known"}}


def test_a_key_that_somebody_else_has_made_is_not_used(world: World) -> None:
    """Made before the pod: nothing starts. Made when the pod is there: the pod is stopped."""
    operator = world.start_operator()
    table_id, _, _ = world.running_table()
    world.writer(suspend=True, **EXECUTORS)
    name = writer_name(world, "load")
    in_the_way(world, key_secret(name))
    world.cluster.request(
        "PATCH", world.path("hudiwriters", "load"), {"spec": {"suspend": False}}, "application/merge-patch+json"
    )
    told(world, f"Secret {world.namespace}/{name}-spark-key exists")
    assert world.pods("driver") == []
    assert not world.etcd.read(f"/hudi/control/{table_id}/admit/{world.namespace}.{name}")
    remove(world, "secrets", f"{name}-spark-key")
    pod = world.pod("driver", writer="load")
    ours = wait_for("its key", lambda: world.get("secrets", f"{name}-spark-key"))
    assert [owner["uid"] for owner in ours["metadata"]["ownerReferences"]] == [pod["metadata"]["uid"]]
    operator.kill()
    remove(world, "secrets", f"{name}-spark-key")
    in_the_way(world, key_secret(name))
    world.start_operator()
    wait_for(
        "the pod is stopped",
        lambda: (found := world.get("pods", name)) is None or found["metadata"].get("deletionTimestamp"),
    )
