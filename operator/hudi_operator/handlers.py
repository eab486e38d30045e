"""kopf as an event source: an event only names the table that must be looked at again.

kopf's change detection, finalizers and state annotations are not used; the registry is explicit, so
that tests can build one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import kopf

from hudi_contract import naming
from hudi_contract.defaults import CONFIG_MAP
from hudi_contract.keys import Kind
from hudi_operator.adapters.etcd_watch import Change
from hudi_operator.adapters.kubernetes import PAGE
from hudi_operator.adapters.kubernetes_facts import pod_facts
from hudi_operator.control.index import TableIndex
from hudi_operator.control.memory import Memory, slim
from hudi_operator.control.queue import Key
from hudi_operator.model.objects import table_name_of

JsonDict = dict[str, Any]
Enqueue = Callable[[Key], None]


def settings() -> kopf.OperatorSettings:
    """Settings of kopf: request time-outs and no posted events.

    Resources are not scanned, because they never change.
    """
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.scanning.disabled = True
    chosen.peering.standalone = True
    chosen.watching.chunk_size = PAGE
    chosen.watching.server_timeout = 300
    chosen.watching.connect_timeout = 10
    chosen.watching.label_selectors["", "v1", "pods"] = ",".join(f"{k}={v}" for k, v in naming.MANAGED.items())
    chosen.watching.field_selectors["", "v1", "configmaps"] = f"metadata.name={CONFIG_MAP}"
    chosen.networking.request_timeout = 30
    chosen.networking.connect_timeout = 5
    chosen.queueing.idle_timeout = 1.0
    chosen.queueing.exit_timeout = 1.0
    chosen.process.ultimate_exiting_timeout = 10.0
    return chosen


def registry(index: TableIndex, memory: Memory, enqueue: Enqueue) -> kopf.OperatorRegistry:
    """Handlers for tables, writers, pods and the defaults of namespaces.

    The object of an event is in ``memory`` before the look at its table. ``enqueue`` must be cheap
    and callable from the event loop.
    """
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    def login(**arguments: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)

    @kopf.on.event(naming.GROUP, naming.VERSION, "huditables", registry=handlers)
    async def table_event(body: kopf.Body, type: str | None, **_: Any) -> None:
        table = slim(dict(body))
        key = (str(table["metadata"]["namespace"]), str(table["metadata"]["name"]))
        memory.table(table, deleted=type == "DELETED")
        if type == "DELETED":
            siblings = index.of_id(index.table_id(key))
            index.remove(key)
        else:
            index.put(table)
            siblings = index.of_id(index.table_id(key))
        for other in siblings | {key}:
            enqueue(other)

    @kopf.on.event(naming.GROUP, naming.VERSION, "hudiwriters", registry=handlers)
    async def writer_event(body: kopf.Body, type: str | None, **_: Any) -> None:
        memory.writer(slim(dict(body)), deleted=type == "DELETED")
        if table := table_name_of(dict(body)):
            enqueue((str(body["metadata"]["namespace"]), table))

    @kopf.on.event("", "v1", "pods", labels=naming.MANAGED, registry=handlers)
    async def pod_event(body: kopf.Body, type: str | None, **_: Any) -> None:
        memory.pod(pod_facts(dict(body)), deleted=type == "DELETED")
        for key in tables_of_pod(dict(body), index):
            enqueue(key)

    @kopf.on.event("", "v1", "configmaps", registry=handlers)
    async def defaults_event(body: kopf.Body, type: str | None, **_: Any) -> None:
        found = dict(body)
        if str(found["metadata"]["name"]) != CONFIG_MAP:
            return  # the watch asks for no other one
        memory.defaults(slim(found), deleted=type == "DELETED")
        for key in index.tables(str(found["metadata"]["namespace"])):
            enqueue(key)

    return handlers


def tables_of_pod(pod: JsonDict, index: TableIndex) -> set[Key]:
    """Tables that a pod works for.

    One for drivers and executors, all served tables for an agent.
    """
    meta = pod["metadata"]
    namespace, labels = str(meta["namespace"]), meta.get("labels") or {}
    if labels.get(naming.LABEL_TABLE):
        return {(namespace, str(labels[naming.LABEL_TABLE]))}
    if labels.get(naming.LABEL_AGENT):
        # The next table that is reconciled ends an agent that no table uses any more.
        return index.of_agent(namespace, str(labels[naming.LABEL_AGENT])) or set(index.tables(namespace)[:1])
    return set()


class EtcdRouter:
    """Turns changes in etcd into table keys.

    Heartbeats and the traffic of healthy commits are ignored.
    """

    def __init__(self, prefix: str, index: TableIndex, enqueue: Enqueue) -> None:
        self._pattern = re.compile(rf"^{re.escape(prefix)}/(?:control|tables)/({naming.TABLE_ID})/([a-z]+)")
        self._index = index
        self._enqueue = enqueue

    def route(self, changes: list[Change]) -> None:
        """Enqueue the tables of these changes; call it on the event loop."""
        ids = {
            match.group(1)
            for change in changes
            if (match := self._pattern.match(change.key)) and _is_news(match.group(2), deleted=change.deleted)
        }
        for table_id in ids:
            for key in self._index.of_id(table_id):
                self._enqueue(key)

    def everything(self) -> None:
        """Enqueue every table, because events may have been missed."""
        for key in self._index.tables():
            self._enqueue(key)


def _is_news(kind: str, *, deleted: bool) -> bool:
    if kind in (Kind.ALIVE, Kind.LOCK, Kind.QUEUE):
        return deleted and kind == Kind.ALIVE
    return kind not in (Kind.CLOCK, Kind.INSTANT, Kind.SEEN)
