"""Requests to the agent that are made behind the closed gate."""

from __future__ import annotations

from hudi_contract.requests import named
from hudi_contract.words import RequestKind
from hudi_operator.plan.core.view import View
from hudi_operator.plan.gate import gate
from hudi_operator.plan.requests import restores


def asks_the_agent(view: View) -> bool:
    """True while the agent is asked for something that may take hours under the lock (F21).

    It creates or adopts the table, or does what a request says behind the closed gate. Mode and
    durations are no such thing: the operator changes them.
    """
    requests = any(not named(RequestKind.SERVICE, id) for id in view.etcd.requests)
    return not gate.adopted(view) or requests or restores.recorded(view) or restores.begun(view) is not None
