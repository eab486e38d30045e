"""The table's gate as a running writer sees it: closed, it is to end at its next commit boundary (F44)."""

from __future__ import annotations

import sys

from hudi_runtime.process.session import Session


def closed_for(session: Session) -> str:
    """The change that the gate is closed for, in the operator's words; empty while it is not, and while etcd does not answer: that is no reason to end."""
    try:
        found = session.etcd.get(f"{session.etcd.prefix}/control/{session.table_id}/gate")
    except Exception as error:
        print(f"the gate is not seen: {type(error).__name__}", file=sys.stderr, flush=True)
        return ""
    return str(found.value.get("closedFor") or "") if found is not None and found.value.get("state") == "closed" else ""
