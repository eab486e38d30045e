"""The table's gate for a running writer.

When it is closed, the writer must end at its next commit boundary (F44).
"""

from __future__ import annotations

import sys

from hudi_contract.keys import Kind, TableKeys
from hudi_contract.table_keys import Gate
from hudi_contract.words import GateState
from hudi_runtime.process.etcd import read
from hudi_runtime.process.session import Session


def closed_for(session: Session) -> str:
    """The change for which the gate is closed, as text of the operator.

    Empty while it is open, and while etcd does not answer: then the run continues.
    """
    try:
        gate = read(session.etcd.get(TableKeys(session.etcd.prefix, session.table_id).of(Kind.GATE)), Gate)
    except Exception as error:
        print(f"cannot read the gate: {type(error).__name__}", file=sys.stderr, flush=True)
        return ""
    return gate.closed_for if gate.state is GateState.CLOSED else ""
