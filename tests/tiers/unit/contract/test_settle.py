from hudi_contract import settle
from hudi_contract.settle import Phase


def record() -> settle.JsonDict:
    return settle.new_record(
        inc="i", attempt="ns.p", role="writer", namespace="ns", pod="p", pod_uid="u", boot_id="b", node="n", app_id="a", reason="LeaseGone", now_ms=1
    )


def test_phases_are_those_of_the_crd_and_the_contract() -> None:
    assert [p.name for p in Phase] == ["Fenced", "Terminating", "Draining", "Unlocked", "RollingBack", "Swept", "Settled"]


def test_an_unreadable_phase_starts_from_the_beginning() -> None:
    assert settle.phase_of({}) is Phase.Fenced
    assert settle.phase_of({"phase": "?"}) is Phase.Fenced


def test_moving_keeps_the_times() -> None:
    moved = settle.moved(record(), Phase.Terminating, now_ms=5)
    assert moved["times"] == {"Fenced": 1, "Terminating": 5}
    assert settle.phase_of(moved) is Phase.Terminating


def test_a_pod_seen_without_evidence_stays_without() -> None:
    """F26"""
    seen = settle.with_pods(record(), {"u2": {"name": "e", "node": "", "evidence": False}})
    again = settle.with_pods(seen, {"u2": {"name": "e", "node": "n", "evidence": True}})
    assert settle.named_pods(again)["u2"] == {"name": "e", "node": "n", "evidence": False}


def test_a_proof_that_stands_is_kept() -> None:
    first = settle.with_proofs(record(), {"u": {"kind": "PodTerminated"}})
    second = settle.with_proofs(first, {"u": {"kind": "Attestation"}, "v": {"kind": "NodeRebooted"}})
    assert second["proofs"] == {"u": {"kind": "PodTerminated"}, "v": {"kind": "NodeRebooted"}}
    assert settle.proven(second) == {"u", "v"}


def test_outcomes_and_failures() -> None:
    known = {**record(), "instants": {"t1": {"outcome": "RolledBack"}, "t2": {"outcome": None, "failures": 3, "error": "403"}}}
    assert settle.without_outcome(known, ["t1", "t2", "t3"]) == ("t2", "t3")
    assert settle.failures(known) == (3, "403")
    assert settle.failures(record()) == (0, "")
