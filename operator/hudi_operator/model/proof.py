"""Proof that a pod's processes are gone: the table of proofs in protocol.md, and nothing else.

None of these is a proof: the object is gone, ``phase=Failed`` alone, a node that is NotReady, a
force delete (a force-deleted pod's process lived up to 53 s longer, measured), a kubelet's refusal
of a pod that may have run before it started (F52). Unknown means not proven (I11).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hudi_contract import settle
from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_contract.words import ProofKind
from hudi_operator.api.spec import Attestation, FencingSpec
from hudi_operator.model import conditions, containers
from hudi_operator.model.facts import NodeFacts, Nodes, PodFacts

JsonDict = dict[str, Any]

LOST_CONTAINER = "ContainerStatusUnknown"
"""Reason that a kubelet reports for a container that it should have and cannot find."""
RECORDED = 256
"""Characters of an attestation in the settle record; the HudiTable has the whole."""


@dataclass(frozen=True)
class Proof:
    """Why a pod counts as dead."""

    kind: ProofKind
    detail: str

    def record(self, now_ms: int) -> settle.Proof:
        """The proof as written to the settle record."""
        return settle.Proof(kind=self.kind, detail=self.detail, at_ms=now_ms)


@dataclass(frozen=True)
class Seen:
    """The boot of a node in which a pod was seen alive.

    The node reported the boot id that the pod's JVM had registered (F43).
    """

    node: str
    node_uid: str
    machine: str
    boot_id: str


@dataclass(frozen=True)
class Subject:
    """The pod to be proven dead, from the settle record and the registration.

    Every string may be empty (unknown).
    """

    uid: str
    name: str = ""
    node: str = ""
    seen: Seen | None = None
    """None: never seen, or not applicable (an executor does not register)."""
    hosted: bool = False
    """An incarnation registered from this pod: at least one container ran."""
    evidence: bool = True
    """False when the pod was ever seen without our finalizer."""


def terminal(pod: PodFacts) -> bool:
    """True when the phase is terminal and every container that ever started has terminated.

    This alone is not a proof: see :func:`pod_proof`.
    """
    return pod.phase in containers.TERMINAL and all(c.terminated for c in pod.containers if c.started)


def ran_out(pod: PodFacts) -> bool:
    """True when containers ran and all of them have ended.

    The kubelet will set the phase, and nothing is left to kill.
    """
    started = [c for c in pod.containers if c.started]
    return bool(started) and all(c.terminated for c in started)


def pod_proof(pod: PodFacts, nodes: Nodes, *, hosted: bool, evidence: bool = True) -> Proof | None:
    """Proof from the pod object itself (F13, F26, F27). None: not proven."""
    if EVIDENCE_FINALIZER not in pod.finalizers or not evidence:
        return None
    if pod.deleting and not pod.node:
        return Proof(ProofKind.NEVER_SCHEDULED, "it was deleted before it had a node")
    if not terminal(pod):
        return None
    started = [c for c in pod.containers if c.started]
    node = nodes.get(pod.node)
    if not started and (hosted or silent(pod) or node is None or not node.ready or not _bound_to(pod, node)):
        # F27: Failed may have been written by the pod garbage collector for a node that is lost;
        # only a node that is there and ready can have looked for containers and found none. A
        # registered process did run.
        return None
    if not started and (node is None or not _was_there(pod, node)):
        return None  # its kubelet may be back, and not have looked yet (F614)
    if any(c.reason == LOST_CONTAINER for c in started) and (node is None or not _bound_to(pod, node)):
        return None  # no container was found, but possibly by another machine under the node's name
    return Proof(ProofKind.POD_TERMINATED, f"it is {pod.phase} and all its containers are terminated")


def silent(pod: PodFacts) -> bool:
    """True when the phase is terminal and no container is reported (F52).

    A kubelet that refuses a pod writes this. A restarted kubelet may refuse a running pod: it
    writes this before it ends the containers. It reports the containers that it actually found when
    the pod is deleted.
    """
    return pod.phase in containers.TERMINAL and not pod.containers


def _bound_to(pod: PodFacts, node: NodeFacts) -> bool:
    """True when the node object is older than the pod.

    The pod was bound to this very object then: it was not recreated under its name (F43).
    """
    return bool(node.created_at) and node.created_at < pod.created_at


def _was_there(pod: PodFacts, node: NodeFacts) -> bool:
    """True when nobody but the kubelet can have written a terminal phase.

    The garbage collector writes it of a pod that is being deleted while its node is out of service.
    """
    if node.out_of_service:
        return False
    if not pod.deleting:
        return True
    over, since = conditions.from_rfc3339(pod.deleted_at), conditions.from_rfc3339(node.ready_since)
    if over is None or since is None:
        return False
    return since < over - 1000 * (pod.grace_seconds or 0)  # when its deletion was first asked for


def node_proof(subject: Subject, nodes: Nodes, fencing: FencingSpec) -> Proof | None:
    """Proof from the node, or from an attestation. None: not proven."""
    word = _attestation(subject, fencing)
    if word is not None:
        return Proof(ProofKind.ATTESTATION, f"{word.attested_by} at {word.at}: {word.statement}"[:RECORDED])
    if not subject.node:
        return None
    node = nodes.get(subject.node)
    if node is None:
        if not nodes.gone(subject.node):
            return None  # it was not asked for, and may be there (F610)
        gone = Proof(ProofKind.NODE_DELETED, f"node {subject.node} is gone and spec.fencing.trustNodeDeletion is set")
        return gone if fencing.trust_node_deletion else None
    if subject.seen is not None and not _same_node(subject.seen, node):
        return None  # another object, or another machine, has that name now: its state proves nothing about this pod
    if subject.seen is not None and node.boot_id and node.boot_id != subject.seen.boot_id:
        return Proof(
            ProofKind.NODE_REBOOTED,
            (
                f"node {node.name} (uid {node.uid}) booted again: boot id {node.boot_id}, the pod ran in "
                f"{subject.seen.boot_id}"
            ),
        )
    if node.out_of_service and fencing.trust_out_of_service_taint:
        return Proof(
            ProofKind.OUT_OF_SERVICE,
            f"node {node.name} carries the out-of-service taint and spec.fencing.trustOutOfServiceTaint is set",
        )
    return None


def _same_node(seen: Seen, node: NodeFacts) -> bool:
    return (node.name, node.uid, node.machine) == (seen.node, seen.node_uid, seen.machine)


def _attestation(subject: Subject, fencing: FencingSpec) -> Attestation | None:
    for word in fencing.attestations:
        if (
            subject.uid
            and word.pod_uid == subject.uid
            and (not subject.node or not word.node or word.node == subject.node)
        ):
            return word
    return None


def prove(subject: Subject, pod: PodFacts | None, nodes: Nodes, fencing: FencingSpec) -> Proof | None:
    """Proof of death of one pod.

    ``pod`` None means that no object with this uid exists any more, which is not a proof.
    """
    if pod is not None and pod.uid == subject.uid:
        found = pod_proof(pod, nodes, hosted=subject.hosted, evidence=subject.evidence)
        if found is not None:
            return found
    return node_proof(subject, nodes, fencing)


def ways_out(subject: Subject, pod: PodFacts | None, nodes: Nodes, fencing: FencingSpec) -> str:
    """Steps that a person can take if a proof is missing; names pod and node."""
    where = f"node {subject.node}" if subject.node else "an unknown node"
    gone = "its object is gone" if pod is None else f"phase {pod.phase}"
    node = nodes.get(subject.node)
    missing = nodes.gone(subject.node)
    state = "node object gone" if missing else ("NotReady" if node is not None and not node.ready else "")
    ways = [
        "bring the node back or reboot it" if pod is not None or subject.seen is not None else "bring the node back"
    ]
    if missing and not fencing.trust_node_deletion:
        ways.append("set spec.fencing.trustNodeDeletion")
    if not fencing.trust_out_of_service_taint:
        ways.append("taint the node out-of-service with spec.fencing.trustOutOfServiceTaint set")
    ways.append(f"attest in spec.fencing.attestations that pod uid {subject.uid} is dead")
    found = ", ".join(filter(None, [gone, state]))
    return (
        f"pod {subject.name or 'unknown'} (uid {subject.uid}) on {where} is not proven dead ({found}); to resolve "
        "it, do one of: "
    ) + "; ".join(ways)
