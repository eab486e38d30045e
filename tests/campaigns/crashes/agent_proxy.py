"""A proxy in front of etcd for the real agent: its writes are numbered with the operator's, and it
can be killed before and after each.

Not numbered, because they come by the clock: heartbeats, places in the queue, reports.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hudi_operator.adapters import etcd_rpc as rpc
from tests.campaigns.crashes.etcd_proxy import TXN, EtcdProxy, JsonDict
from tests.campaigns.crashes.faults import Injector
from tests.campaigns.crashes.monitor import EtcdStep, Monitor
from tests.campaigns.crashes.naming import Names
from tests.support.trace.events import Event

PREFIX = "agent "
"""Names of the agent's writes begin with it."""
_BY_THE_CLOCK = frozenset({"report", "queue"})


class AgentStep(EtcdStep):
    """One write of the agent."""

    def name(self, names: Names) -> str:
        """The same in each run."""
        return names.text(f"{PREFIX}{self.action} {self.key} {self.detail}".rstrip())


class AgentProxy(EtcdProxy):
    """One proxy of one run, for all agents that serve its table one after the other."""

    def __init__(
        self, pki: Path, endpoint: str, *, injector: Injector, monitor: Monitor, names: Names, kill: Callable[[], None]
    ) -> None:
        """``kill`` kills the agent and returns when its process is gone."""
        self._kill_agent = kill
        self.incarnations: list[str] = []
        """As they have registered."""
        self.lost_events: list[Event] = []
        """Executed, though the agent was killed before it could log them."""
        self._executed: list[tuple[EtcdStep, int, dict[str, str]]] = []
        self._token = 0
        super().__init__(pki, endpoint, injector=injector, monitor=monitor, names=names, identity="gateway")

    def _read(self) -> None:
        """Reads of the agent say nothing of the operator."""

    def _sent(self, step: EtcdStep) -> None:
        """Nothing is demanded: the trace checker does that."""

    def _step(self, method: str, request: bytes) -> EtcdStep | None:
        if method != TXN:
            return None
        txn = rpc.messages.TxnRequest.FromString(request)
        operations = self._operations(txn)
        heads = {key.partition("/")[0] for _, key, _ in operations}
        if not heads or heads <= _BY_THE_CLOCK or heads == {"alive"}:
            return None
        if "writer" in heads and operations[0][0] == "put":
            self._registers(str(operations[0][2].get("inc")))
        action, key, detail = agent_write(operations, compared=[self._below(c.key) for c in txn.compare])
        return AgentStep(
            action=action, key=key, detail=detail, table=self._monitor.table_id, operations=tuple(operations)
        )

    def _registers(self, inc: str) -> None:
        if inc not in self.incarnations:
            self.incarnations.append(inc)
            self._names.call(inc, f"inc-agent-{len(self.incarnations)}")

    def _kill(self, step: EtcdStep) -> None:
        self._kill_agent()
        for executed, revision, outcome in self._executed:
            if executed is step:
                self.lost_events += self._event(step, revision, outcome)

    def _done(self, step: EtcdStep, *, revision: int, succeeded: bool) -> None:
        if not succeeded:
            return
        outcome: dict[str, str] = {}
        for kind, key, value in step.operations:
            if kind == "put" and key.startswith("settle/"):
                inc = key.partition("/")[2]
                outcome = self._outcome(self._monitor.settles.get(inc) or {}, value)
                self._monitor.agent_wrote(inc, value, revision)
        if step.action == "acquire":
            self._token = revision
        self._executed.append((step, revision, outcome))

    @staticmethod
    def _outcome(before: JsonDict, after: JsonDict) -> dict[str, str]:
        """The instant whose outcome is new."""
        known = before.get("instants") or {}
        for instant, item in (after.get("instants") or {}).items():
            if item.get("outcome") and not (known.get(instant) or {}).get("outcome"):
                return {"instant": instant, "outcome": str(item["outcome"])}
        return {}

    def _event(self, step: EtcdStep, revision: int, outcome: dict[str, str]) -> list[Event]:
        """The line that the agent did not come to write.

        None for a write that the protocol does not know.
        """
        head, _, rest = step.key.partition("/")
        more: dict[str, Any] = {"key": step.key, "detail": step.detail.partition(" open=")[0], **outcome}
        if step.action in ("clock", "remember", "forget", "other"):
            return []
        if step.action == "register":
            more = {"attempt": str(step.operations[0][2].get("attempt"))}
        elif step.action in ("acquire", "release", "record-instant", "publish"):
            more = {"token": self._token, "detail": step.detail}
        if head == "instant":
            more["instant"] = rest
        return [Event(self._monitor.table_id, self.incarnations[-1], "agent", step.action, revision, True, **more)]


def agent_write(operations: list[tuple[str, str, JsonDict]], *, compared: list[str]) -> tuple[str, str, str]:
    """Action, key and detail of a transaction of an agent by what it writes and which
    keys it compares.
    """
    puts = {key.partition("/")[0]: (key, value) for kind, key, value in operations if kind == "put"}
    deletes = [key for kind, key, _ in operations if kind == "delete"]
    if "writer" in puts:
        return "register", puts["writer"][0], ""
    if "lock" in puts:
        return "acquire", "lock", ""
    if "settle" in puts:
        key, value = puts["settle"]
        open_ = sum(1 for item in (value.get("instants") or {}).values() if not item.get("outcome"))
        return "settle-update", key, str(value.get("phase")) + (f" open={open_}" if open_ else "")
    if "instant" in puts and "clock" in puts:
        return "record-instant", puts["instant"][0], str(puts["instant"][1].get("action"))
    if "instant" in puts:
        return "claim", puts["instant"][0], ""
    if "clock" in puts:
        instant = next((key for key in compared if key.startswith("instant/")), "")
        return ("publish", instant, str(puts["clock"][1].get("value"))) if instant else ("clock", "clock", "")
    if "done" in puts:
        return "remember", puts["done"][0], ""
    if "lock" in deletes:
        return "release", "lock", ",".join(key.partition("/")[2] for key in deletes if key.startswith("instant/"))
    if any(key.startswith("writer/") for key in deletes):
        return "clean-exit", deletes[0], ""
    if deletes and deletes[0].startswith("done/"):
        return "forget", deletes[0], ""
    if deletes and deletes[0].startswith("instant/"):
        return "done", deletes[0], "abandoned"
    return "other", operations[0][1], ""
