"""The context of an agent's tasks, made of a test's own parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from hudi_contract.table_keys import Gate
from hudi_runtime.agent.context import AgentContext
from hudi_runtime.services.tasks import Observation
from hudi_runtime.settle.settle import Records

NOTHING = Records({}, {}, {}, {})


class AtOnce:
    """A slot that is free, and in which everything ends before the caller goes on."""

    def start(self, run: Callable[[], None]) -> Future[None]:
        run()
        done: Future[None] = Future()
        done.set_result(None)
        return done


def context(
    table: Any,
    session: Any,
    *,
    gate: Callable[[], Any],
    spec: Any = None,
    name: str = "t",
    spark: Any = None,
    revision: Callable[[], int] = lambda: 1,
    requests: Callable[[], Mapping[str, Any]] = dict,
    **options: str,
) -> AgentContext:
    """`gate` is asked at each look at the gate: for its state, or for its whole value.

    `revision`: at which it was last put.
    """

    def read() -> Gate:
        value = gate()
        return Gate.known(value if isinstance(value, Mapping) else {"state": value})

    slot: Any = AtOnce()
    keys: Any = SimpleNamespace(gate=read, gate_revision=revision, requests=requests)
    return AgentContext(
        spark, slot, keys, spec or SimpleNamespace(id="T", name=name, table=f"lake/{name}"), table, session, options
    )


def look(requests: Mapping[str, Mapping[str, Any]], records: Records = NOTHING) -> Observation:
    """Observation of a pass before it lists the timeline."""
    return Observation(requests, records)
