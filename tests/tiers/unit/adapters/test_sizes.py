"""What the operator writes into etcd has a limit, below which its largest records stay."""

from __future__ import annotations

import pytest

from hudi_contract import records
from hudi_contract.keys import MAX_VALUE_BYTES, Kind
from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_contract.settle import NamedPod, SettleRecord
from hudi_operator.adapters.etcd import _encode
from hudi_operator.api.spec import Attestation, FencingSpec
from hudi_operator.model.facts import ContainerFacts, Nodes, PodFacts
from hudi_operator.model.ports import Fatal
from hudi_operator.model.proof import Subject, prove

RAN = ContainerFacts("executor", started=True, terminated=True, exit_code=0)
EXECUTORS, ATTESTATIONS = 200, 32
"""At most, by the CRDs."""


def test_the_record_of_the_largest_driver_can_be_written() -> None:
    """F510: otherwise a driver with many executors can never be settled."""
    node = "n" * 63
    record = SettleRecord.of(
        inc="i" * 36,
        reason="LeaseGone",
        now_ms=1,
        attempt=f"{'n' * 63}.{'w' * 63}",
        namespace="n" * 63,
        pod="w" * 63,
        pod_uid="u" * 36,
        node=node,
        boot_id="b" * 253,
        app_id="a" * 253,
    )
    for number in range(EXECUTORS):
        uid = f"{number:036d}"
        record = record.with_pods({uid: NamedPod(name="e" * 63, node=node, evidence=True)})
        said = Attestation(uid, node, "\u6b7b" * 1024, "\u4eba" * 253, "2026-01-01T00:00:00Z")
        subject = Subject(uid, "e" * 63, node)
        ended = PodFacts("ns", "e" * 63, uid, {}, "Succeeded", node, False, (EVIDENCE_FINALIZER,), (RAN,))
        attested = number < ATTESTATIONS
        words = FencingSpec(attestations=(said,) if attested else ())
        found = prove(subject, None if attested else ended, Nodes(), words)
        assert found is not None
        record = record.with_proofs({uid: found.record(1_700_000_000_000)})
    assert len(_encode(record.to_json(), Kind.SETTLE)) < Kind.SETTLE.max_value_bytes / 2, (
        "its instants are not in it yet"
    )
    assert not records.stored(Kind.SETTLE, record.inc, _encode(record.to_json(), Kind.SETTLE)).unreadable


def test_the_limit_is_that_of_the_kind() -> None:
    at_most = {"a": "x" * (MAX_VALUE_BYTES - 8)}
    assert len(_encode(at_most)) == MAX_VALUE_BYTES
    longer = {"a": "x" * (MAX_VALUE_BYTES - 7)}
    with pytest.raises(Fatal, match="a value of 65537 bytes is too large for etcd \\(at most 65536\\)"):
        _encode(longer)
    assert _encode(longer, Kind.SETTLE)
