"""The table of proofs (docs/design/protocol.md), line by line, and what is not proof (F27)."""

from dataclasses import replace

import pytest

from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_operator.api.spec import Attestation, FencingSpec
from hudi_operator.model.facts import ContainerFacts, NodeFacts, Nodes, PodFacts
from hudi_operator.model.proof import Seen, Subject, prove, ways_out

RAN = ContainerFacts("driver", started=True, terminated=True, exit_code=137)
RUNS = ContainerFacts("driver", started=True, terminated=False)
NEVER = ContainerFacts("driver", started=False, terminated=False)
SIDECAR = ContainerFacts("sidecar", started=True, terminated=False)
NODE = NodeFacts(
    "n1",
    "uid-n1",
    "boot-1",
    ready=True,
    out_of_service=False,
    created_at="2026-01-01T00:00:00Z",
    machine="m1",
    ready_since="2026-01-03T00:00:00Z",
)
LOST = replace(NODE, ready=False)
REMADE = replace(NODE, uid="another", created_at="2026-01-02T00:00:00Z")
UNKNOWN = replace(RAN, reason="ContainerStatusUnknown")
TRUST_ALL = FencingSpec(trust_node_deletion=True, trust_out_of_service_taint=True)
SEEN = Seen("n1", "uid-n1", "m1", "boot-1")
SUBJECT = Subject(uid="u", name="p", node="n1", seen=SEEN, hosted=True)


def pod(phase: str = "Failed", *containers: ContainerFacts, **changes: object) -> PodFacts:
    facts = PodFacts(
        "ns",
        "p",
        "u",
        {},
        phase,
        "n1",
        deleting=False,
        finalizers=(EVIDENCE_FINALIZER,),
        containers=containers or (RAN,),
    )
    facts = replace(facts, created_at="2026-01-02T00:00:00Z")
    return replace(facts, **changes)  # type: ignore[arg-type]


DELETED = pod("Failed", NEVER, deleting=True, deleted_at="2026-01-03T00:00:01Z", grace_seconds=0)


def asked(*there: NodeFacts) -> Nodes:
    """Whoever is proven here was asked for its node."""
    return Nodes.of({"n1"}, {node.name: node for node in there})


def kind(found: object) -> str:
    return getattr(found, "kind", "")


@pytest.mark.parametrize(
    ("facts", "subject", "nodes", "expected"),
    [
        (pod(), SUBJECT, [NODE], "PodTerminated"),
        (pod("Succeeded"), SUBJECT, [NODE], "PodTerminated"),
        (pod(), SUBJECT, [LOST], "PodTerminated"),
        # a container that never started has nothing to end
        (pod("Failed", RAN, NEVER), SUBJECT, [NODE], "PodTerminated"),
        # phase alone, or containers alone, prove nothing
        (pod("Failed", RUNS), SUBJECT, [NODE], ""),
        (pod("Running"), SUBJECT, [NODE], ""),
        (pod("Failed", RAN, SIDECAR), SUBJECT, [NODE], ""),
        (pod("Unknown"), SUBJECT, [NODE], ""),
        # the pod garbage collector writes Failed for pods of lost nodes
        (pod("Failed", NEVER), SUBJECT, [NODE], ""),
        (pod("Failed", NEVER), replace(SUBJECT, hosted=False), [LOST], ""),
        (pod("Failed", NEVER), replace(SUBJECT, hosted=False), [], ""),
        (pod("Failed", NEVER), replace(SUBJECT, hosted=False), [NODE], "PodTerminated"),
        # of a pod that is deleted, while its node was not there: it may not have looked yet (F614)
        (DELETED, replace(SUBJECT, hosted=False), [NODE], "PodTerminated"),
        (DELETED, replace(SUBJECT, hosted=False), [replace(NODE, ready_since="2026-01-03T00:00:02Z")], ""),
        (DELETED, replace(SUBJECT, hosted=False), [replace(NODE, ready_since="")], ""),
        (DELETED, replace(SUBJECT, hosted=False), [replace(NODE, out_of_service=True)], ""),
        (replace(DELETED, grace_seconds=1), replace(SUBJECT, hosted=False), [NODE], ""),
        (replace(DELETED, deleted_at=""), replace(SUBJECT, hosted=False), [NODE], ""),
        (pod("Failed", RAN, deleting=True), SUBJECT, [replace(NODE, ready_since="")], "PodTerminated"),
        # refused, perhaps by a kubelet that was restarted and has not ended the containers yet: not
        # one is mentioned (F52)
        (pod("Failed", containers=()), replace(SUBJECT, hosted=False), [NODE], ""),
        (pod("Failed", containers=(), deleting=True), replace(SUBJECT, hosted=False), [NODE], ""),
        (pod("Failed", containers=(), node=""), replace(SUBJECT, hosted=False), [], ""),
        # looked for by another machine, under the node's name
        (pod("Failed", NEVER), replace(SUBJECT, hosted=False), [REMADE], ""),
        (pod("Failed", NEVER), replace(SUBJECT, hosted=False), [replace(NODE, created_at="")], ""),
        (pod("Failed", UNKNOWN), SUBJECT, [NODE], "PodTerminated"),
        (pod("Failed", UNKNOWN), SUBJECT, [REMADE], ""),
        (pod("Failed", UNKNOWN), SUBJECT, [], ""),
        (pod("Failed", RAN), SUBJECT, [REMADE], "PodTerminated"),
        # without our finalizer, now or at any time before
        (pod(finalizers=()), SUBJECT, [NODE], ""),
        (pod(), replace(SUBJECT, evidence=False), [NODE], ""),
        # never scheduled
        (pod("Pending", NEVER, deleting=True, node=""), replace(SUBJECT, node="", hosted=False), [], "NeverScheduled"),
        (pod("Pending", NEVER, node=""), replace(SUBJECT, node="", hosted=False), [], ""),
        (pod("Pending", NEVER, deleting=True), replace(SUBJECT, hosted=False), [NODE], ""),
        # rebooted: another boot id than the one it was seen alive in, of the same node object and
        # machine (F43)
        (pod("Running", RUNS), SUBJECT, [replace(NODE, boot_id="boot-2")], "NodeRebooted"),
        (pod("Running", RUNS), replace(SUBJECT, seen=None), [replace(NODE, boot_id="boot-2")], ""),
        (pod("Running", RUNS), SUBJECT, [replace(NODE, boot_id="boot-2", uid="another")], ""),
        (pod("Running", RUNS), SUBJECT, [replace(NODE, boot_id="boot-2", machine="m2")], ""),
        (pod("Running", RUNS), SUBJECT, [replace(NODE, boot_id="")], ""),
        # NotReady and gone are not proof, nor the taint, unless a person says so
        (pod("Running", RUNS), SUBJECT, [LOST], ""),
        (pod("Running", RUNS), SUBJECT, [], ""),
        (pod("Running", RUNS), SUBJECT, [replace(LOST, out_of_service=True)], ""),
        # another pod of that name
        (pod(uid="other"), SUBJECT, [NODE], ""),
        (None, SUBJECT, [NODE], ""),
        (None, SUBJECT, [replace(NODE, boot_id="boot-2")], "NodeRebooted"),
    ],
)
def test_proofs(facts: PodFacts | None, subject: Subject, nodes: list[NodeFacts], expected: str) -> None:
    assert kind(prove(subject, facts, asked(*nodes), FencingSpec())) == expected


def test_trusted_nodes() -> None:
    assert kind(prove(SUBJECT, None, asked(), TRUST_ALL)) == "NodeDeleted"
    assert kind(prove(SUBJECT, None, asked(replace(LOST, out_of_service=True)), TRUST_ALL)) == "OutOfService"
    assert prove(SUBJECT, None, asked(LOST), TRUST_ALL) is None
    # the taint of another node object of that name is not about this pod
    assert prove(SUBJECT, None, asked(replace(LOST, out_of_service=True, uid="another")), TRUST_ALL) is None
    assert prove(replace(SUBJECT, node=""), None, asked(), TRUST_ALL) is None


def test_a_node_that_nobody_asked_for_is_not_gone() -> None:
    """F610: what was not read proves nothing, and nobody is told that it is gone."""
    for nodes in (Nodes(), Nodes.of({"n2"}, {})):
        assert prove(SUBJECT, None, nodes, TRUST_ALL) is None
        text = ways_out(SUBJECT, None, nodes, FencingSpec())
        assert "node object gone" not in text
        assert "trustNodeDeletion" not in text


@pytest.mark.parametrize(
    ("uid", "node", "counts"),
    [("u", "n1", True), ("u", "", True), ("u", "n2", False), ("other", "n1", False), ("", "n1", False)],
)
def test_attestations_name_pod_and_node(uid: str, node: str, counts: bool) -> None:
    word = Attestation(uid, node, "power cut", "ann", "2026-01-01T00:00:00Z")
    found = prove(SUBJECT, None, asked(LOST), FencingSpec(attestations=(word,)))
    assert (found is not None) is counts
    if found is not None:
        assert "ann" in found.detail
        assert "power cut" in found.detail


def test_ways_out_name_what_a_person_needs() -> None:
    text = ways_out(SUBJECT, None, asked(), FencingSpec())
    for word in (
        "pod p",
        "uid u",
        "node n1",
        "node object gone",
        "trustNodeDeletion",
        "trustOutOfServiceTaint",
        "attestations",
    ):
        assert word in text
