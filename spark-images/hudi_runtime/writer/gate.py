"""The table's gate as a running writer sees it: closed, it is to end at its next commit boundary (F44)."""

from __future__ import annotations

import sys

from hudi_contract.keys import Kind, TableKeys
from hudi_contract.table_keys import Gate
from hudi_contract.words import GateState
from hudi_runtime.process.etcd import read
from hudi_runtime.process.session import Session


def closed_for(session: Session) -> str:
    """The change that the gate is closed for, in the operator's words; empty while it is not, and while etcd does not answer: that is no reason to end."""
    try:
        gate = read(session.etcd.get(TableKeys(session.etcd.prefix, session.table_id).of(Kind.GATE)), Gate)
    except Exception as error:
        print(f"the gate is not seen: {type(error).__name__}", file=sys.stderr, flush=True)
        return ""
    return gate.closed_for if gate.state is GateState.CLOSED else ""
