from typing import Any

import pytest

from hudi_contract.settle import NamedPod, Phase, Proof, Reason, SettledInstant, SettleRecord
from hudi_contract.shape import ShapeError
from hudi_contract.words import Outcome, ProofKind

WHO = {
    "attempt": "ns.p",
    "role": "writer",
    "namespace": "ns",
    "pod": "p",
    "pod_uid": "u",
    "boot_id": "b",
    "node": "n",
    "app_id": "a",
}


def record(**more: Any) -> SettleRecord:
    return SettleRecord.of(inc="i", reason=Reason.LEASE_GONE, now_ms=1, **WHO).but(**more)


def test_phases_are_those_of_the_crd_and_the_contract() -> None:
    assert [p.name for p in Phase] == [
        "Fenced",
        "Terminating",
        "Draining",
        "Unlocked",
        "RollingBack",
        "Swept",
        "Settled",
    ]


def test_an_unreadable_phase_starts_from_the_beginning() -> None:
    assert SettleRecord.known({}).phase is Phase.Fenced
    assert SettleRecord.known({"phase": "?"}).phase is Phase.Fenced
    with pytest.raises(ShapeError, match=r"SettleRecord\.phase is not one of Fenced, "):
        SettleRecord.from_json({"phase": "?"})


def test_moving_keeps_the_times() -> None:
    moved = record().moved(Phase.Terminating, now_ms=5)
    assert moved.times == {"Fenced": 1, "Terminating": 5}
    assert moved.phase is Phase.Terminating


def test_a_pod_seen_without_evidence_stays_without() -> None:
    """F26"""
    seen = record().with_pods({"u2": NamedPod(name="e", node="", evidence=False)})
    again = seen.with_pods({"u2": NamedPod(name="e", node="n", evidence=True)})
    assert again.pods["u2"] == NamedPod(name="e", node="n", evidence=False)


def test_a_proof_that_stands_is_kept() -> None:
    ended, attested, rebooted = (
        Proof(kind=kind) for kind in (ProofKind.POD_TERMINATED, ProofKind.ATTESTATION, ProofKind.NODE_REBOOTED)
    )
    second = record().with_proofs({"u": ended}).with_proofs({"u": attested, "v": rebooted})
    assert second.proofs == {"u": ended, "v": rebooted}
    assert second.proven == {"u", "v"}


def test_a_pod_is_named_until_its_death_is_recorded() -> None:
    """F616: a record has space for many proofs, and for fewer pods."""
    listed = record().with_pods({uid: NamedPod(name=uid, node="n", evidence=True) for uid in ("u", "v")})
    proven = listed.with_proofs({"u": Proof(kind=ProofKind.POD_TERMINATED)})
    assert (set(proven.pods), proven.proven) == ({"v"}, {"u"})
    assert listed.with_proofs({}) == listed


def test_outcomes_and_failures() -> None:
    known = record(
        instants={"t1": SettledInstant(outcome=Outcome.ROLLED_BACK), "t2": SettledInstant(failures=3, error="403")}
    )
    assert known.without_outcome(["t1", "t2", "t3"]) == ("t2", "t3")
    assert known.failures == (3, "403")
    assert record().failures == (0, "")


def test_what_a_newer_version_has_written_is_written_back() -> None:
    newer = {
        **record().to_json(),
        "operatorField": {"kept": True},
        "pods": {"u": {"name": "p", "node": "n", "evidence": True, "sandbox": "gvisor"}},
    }
    assert SettleRecord.from_json(newer).to_json() == newer
