"""JSON objects of the API server as facts: pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hudi_operator.model.facts import ContainerFacts, NodeFacts, PodFacts, PodName

JsonDict = dict[str, Any]

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def pod_facts(pod: JsonDict) -> PodFacts:
    """One pod. Containers without a status are not listed: the kubelet has not reported them."""
    meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    gates = tuple(gate.get("name", "") for gate in spec.get("schedulingGates") or ())
    return PodFacts(
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        uid=meta["uid"],
        labels=dict(meta.get("labels") or {}),
        phase=status.get("phase", ""),
        node=spec.get("nodeName") or "",
        deleting=bool(meta.get("deletionTimestamp")),
        finalizers=tuple(meta.get("finalizers") or ()),
        grace_seconds=meta.get("deletionGracePeriodSeconds"),
        deleted_at=meta.get("deletionTimestamp") or "",
        containers=tuple(_container(item, kind) for item, kind in _containers(spec, status)),
        controller=next(
            (_named(owner) for owner in meta.get("ownerReferences") or () if owner.get("controller")), None
        ),
        created_at=meta.get("creationTimestamp") or "",
        unschedulable=_gated(gates) or _unschedulable(status),
        gates=gates,
        waiting=next((text for text in map(_waiting, _statuses(status)) if text), ""),
        pod_ip=status.get("podIP") or "",
        reason=status.get("reason") or "",
        secrets=tuple(v["secret"].get("secretName", "") for v in spec.get("volumes") or () if v.get("secret")),
        service_account=spec.get("serviceAccountName") or "",
    )


def _named(owner: JsonDict) -> PodName | None:
    return PodName(owner["name"], owner["uid"]) if (owner["apiVersion"], owner["kind"]) == ("v1", "Pod") else None


def _statuses(status: JsonDict) -> Iterator[JsonDict]:
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        yield from status.get(kind) or ()


def _containers(spec: JsonDict, status: JsonDict) -> Iterator[tuple[JsonDict, str]]:
    """Every status with the kind of its container."""
    sidecars = {item.get("name") for item in spec.get("initContainers") or () if item.get("restartPolicy") == "Always"}
    yield from ((item, "container") for item in status.get("containerStatuses") or ())
    yield from (
        (item, "sidecar" if item.get("name") in sidecars else "init")
        for item in status.get("initContainerStatuses") or ()
    )
    yield from ((item, "ephemeral") for item in status.get("ephemeralContainerStatuses") or ())


def _container(status: JsonDict, kind: str) -> ContainerFacts:
    state = status.get("state") or {}
    terminated = state.get("terminated")
    ran = (
        terminated is not None
        or "running" in state
        or "terminated" in (status.get("lastState") or {})
        or bool(status.get("containerID"))
    )
    return ContainerFacts(
        name=status.get("name", ""),
        started=ran,
        terminated=terminated is not None,
        exit_code=terminated.get("exitCode") if terminated else None,
        reason=terminated.get("reason") if terminated else None,
        message=(terminated.get("message") or "") if terminated else "",
        finished_at=(terminated.get("finishedAt") or "") if terminated else "",
        kind=kind,
    )


def _waiting(status: JsonDict) -> str:
    waiting = (status.get("state") or {}).get("waiting")
    if not waiting:
        return ""
    return f"{waiting.get('reason', '')}: {waiting.get('message', '')}".strip(": ")


def _gated(gates: tuple[str, ...]) -> str:
    """Kubernetes' own message does not name them."""
    return f"waiting for its scheduling gates to be removed: {', '.join(gates)}" if gates else ""


def _unschedulable(status: JsonDict) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason") or "not scheduled")
    return ""


def node_facts(node: JsonDict) -> NodeFacts:
    """One node."""
    meta, status = node["metadata"], node.get("status") or {}
    ready: JsonDict = next((c for c in status.get("conditions") or () if c.get("type") == "Ready"), {})
    is_ready = ready.get("status") == "True"
    return NodeFacts(
        name=meta["name"],
        uid=meta["uid"],
        boot_id=(status.get("nodeInfo") or {}).get("bootID") or "",
        ready=is_ready,
        out_of_service=any(t.get("key") == OUT_OF_SERVICE for t in (node.get("spec") or {}).get("taints") or ()),
        created_at=meta.get("creationTimestamp") or "",
        machine=(status.get("nodeInfo") or {}).get("systemUUID") or "",
        ready_since=(ready.get("lastTransitionTime") or "") if is_ready else "",
    )
