"""Whether etcd can be trusted with a table's gate, and the word by which a person says so.

Uses `plan.core`. Invariants I2 and I11: an etcd that was set back, or another one, opens no gate.
"""

from __future__ import annotations

from hudi_contract import naming
from hudi_operator.plan.core.view import View

UNFREEZE_ANNOTATION = f"{naming.GROUP}/unfreeze"
"""Annotation of a HudiTable by which a person accepts the state of etcd: :func:`gate_word`."""
TAKE_OVER_ANNOTATION = f"{naming.GROUP}/take-over"
"""Annotation by which a person says that the HudiTable is gone that the gate of this one's path
names: :func:`gate_word`.
"""


def freeze_reason(view: View) -> str:
    """Why this etcd cannot be trusted (protocol.md, assumptions); empty when it can."""
    gate, etcd, observed = view.gate, view.etcd, view.observed
    if gate.cluster_id and gate.cluster_id != etcd.cluster_id:
        return (
            f"the gate was written in etcd cluster {gate.cluster_id}, this is {etcd.cluster_id}: restored from a "
            "backup?"
        )
    same_cluster = observed.known_cluster_id in ("", etcd.cluster_id)
    if same_cluster and observed.revision_floor > max(etcd.revision, gate.accepted_floor):
        return f"etcd's revision went back from {observed.revision_floor} to {etcd.revision}: restored from a backup?"
    if view.etcd.gate is not None and etcd.forgotten > gate.accepted_floor:
        return f"etcd was set back: it knows nothing any more of its revision {etcd.forgotten}: restored from a backup?"
    return ""


def gate_word(view: View) -> str:
    """Value of the annotation that is about this gate as it is now, and no other one.

    The revision of the gate. An etcd that is restored twice from the same backup can come to
    the same one, so it is followed by what was forgotten, which grows each time.
    """
    mod = view.etcd.gate.mod_revision if view.etcd.gate is not None else 0
    return f"{mod}-{view.etcd.forgotten}" if view.etcd.forgotten else str(mod)
