"""JSON of the API server as facts."""

from __future__ import annotations

from typing import Any

from hudi_operator.adapters.kubernetes_facts import node_facts, pod_facts
from hudi_operator.model.facts import PodName

JsonDict = dict[str, Any]


def pod(status: JsonDict, **spec: Any) -> JsonDict:
    return {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec, "status": status}


def test_a_container_that_is_not_reported_is_not_listed() -> None:
    facts = pod_facts(pod({"phase": "Pending"}))
    assert facts.containers == ()
    assert facts.node == ""


def test_a_pods_object_goes_with_its_last_finalizer_when_its_kubelet_has_done_with_it() -> None:
    """F611: as the API server decides."""

    def goes(*finalizers: str, **meta: Any) -> bool:
        made = pod({"phase": "Failed"}, nodeName="n1")
        made["metadata"] |= {"finalizers": list(finalizers), **meta}
        return pod_facts(made).goes_with("ours")

    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert goes("ours", **deleted, deletionGracePeriodSeconds=0)
    assert not goes("ours", **deleted, deletionGracePeriodSeconds=5)
    assert not goes("ours", "theirs", **deleted, deletionGracePeriodSeconds=0)
    assert not goes("ours")


def test_since_when_a_node_is_ready() -> None:
    def since(status: str) -> tuple[bool, str]:
        ready = {"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        facts = node_facts({"metadata": {"name": "n", "uid": "u"}, "status": {"conditions": [ready]}})
        return facts.ready, facts.ready_since

    assert since("True") == (True, "2026-01-01T00:00:00Z")
    assert since("Unknown") == (False, "")


def test_a_pod_belongs_to_its_controller() -> None:
    """F356: other owners may be anybody's uid; Kubernetes allows one controller."""

    def owned(*owners: JsonDict) -> PodName | None:
        made = pod({})
        made["metadata"]["ownerReferences"] = list(owners)
        return pod_facts(made).controller

    mine: JsonDict = {"apiVersion": "v1", "kind": "Pod", "name": "a-1", "uid": "a", "controller": True}
    other: JsonDict = {"apiVersion": "v1", "kind": "Pod", "name": "b-1", "uid": "b"}
    assert pod_facts(pod({})).controller is None
    for owners in ((mine,), (mine, other), (other, mine), (mine, {**other, "controller": False})):
        assert owned(*owners) == PodName("a-1", "a")
    assert owned(other) is None
    assert owned({**mine, "kind": "ReplicaSet", "apiVersion": "apps/v1"}) is None


def test_containers_of_all_kinds_count() -> None:
    running = {"name": "a", "state": {"running": {}}}
    ended = {
        "name": "b",
        "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "m", "finishedAt": "t"}},
    }
    waiting = {"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    status = {
        "phase": "Running",
        "containerStatuses": [running],
        "initContainerStatuses": [ended],
        "ephemeralContainerStatuses": [waiting],
    }
    facts = pod_facts(pod(status, nodeName="n1"))
    assert [(c.name, c.started, c.terminated) for c in facts.containers] == [
        ("a", True, False),
        ("b", True, True),
        ("c", False, False),
    ]
    assert (facts.containers[1].exit_code, facts.containers[1].reason) == (137, "OOMKilled")
    assert facts.waiting == "ImagePullBackOff: no such image"


def test_the_kinds_of_containers() -> None:
    """A native sidecar is an init container that is restarted: it runs beside the others."""
    names = {
        "containerStatuses": ["driver", "proxy"],
        "initContainerStatuses": ["setup", "mesh"],
        "ephemeralContainerStatuses": ["debugger"],
    }
    init = [{"name": "setup"}, {"name": "mesh", "restartPolicy": "Always"}]
    facts = pod_facts(
        pod({kind: [{"name": name} for name in found] for kind, found in names.items()}, initContainers=init)
    )
    assert [(c.name, c.kind) for c in facts.containers] == [
        ("driver", "container"),
        ("proxy", "container"),
        ("setup", "init"),
        ("mesh", "sidecar"),
        ("debugger", "ephemeral"),
    ]


def test_a_waiting_container_with_an_id_has_run() -> None:
    facts = pod_facts(
        pod({"containerStatuses": [{"name": "a", "containerID": "containerd://1", "state": {"waiting": {}}}]})
    )
    assert facts.containers[0].started
    assert not facts.containers[0].terminated


def test_why_a_pod_is_not_scheduled() -> None:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]
    assert pod_facts(pod({"conditions": conditions})).unschedulable == "0/1 nodes"


def test_a_pod_behind_scheduling_gates() -> None:
    held = pod({"conditions": [{"type": "PodScheduled", "status": "False", "message": "Scheduling is blocked"}]})
    held["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}, {"name": "b"}]
    found = pod_facts(held)
    assert found.gates == ("kueue.x-k8s.io/admission", "b")
    assert found.unschedulable == "waiting for its scheduling gates to be removed: kueue.x-k8s.io/admission, b"


def test_a_node() -> None:
    node = {
        "metadata": {"name": "n", "uid": "u"},
        "spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]},
        "status": {"nodeInfo": {"bootID": "b"}, "conditions": [{"type": "Ready", "status": "Unknown"}]},
    }
    facts = node_facts(node)
    assert (facts.boot_id, facts.ready, facts.out_of_service) == ("b", False, True)


def test_a_pod_has_the_account_of_its_spec() -> None:
    assert pod_facts(pod({}, serviceAccountName="lake")).service_account == "lake"
    assert pod_facts(pod({})).service_account == ""
