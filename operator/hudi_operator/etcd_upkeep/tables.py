"""Tables with keys in etcd, and the deletion of a table's keys at a person's request.

A deleted HudiTable leaves its gate: the marker in the table's folder names the lock authority that
stands there, and another HudiTable of the path goes on with it. Only a person can know that none
will. Which HudiTables exist is not known here either: the caller compares (`kubectl hudi etcd
tables`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hudi_contract import naming, records
from hudi_contract.keys import CONTROL, RANGES, Kind, TableKeys, agent_prefix, kind_of
from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.table_keys import Gate
from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.etcd_upkeep import members as of
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Fatal, Retryable

JsonDict = dict[str, Any]

PAGE = 20_000
"""Keys of one read: an answer has 64 MiB at most."""
_AT_ONCE = 100
_NOT_WHILE = (Kind.LOCK, Kind.WRITER, Kind.ALIVE, Kind.ADMIT, Kind.QUEUE, Kind.INSTANT)
"""Kinds of keys that show a process that may still act."""
_ID = re.compile(naming.TABLE_ID)


@dataclass
class Found:
    """The keys of one table, or of one trial, which has no gate."""

    id: str
    keys: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    """Number of keys by their kind."""
    agents: list[str] = field(default_factory=list)
    """Agents that have an assignment of it."""
    gate: Gate | None = None

    def to_json(self) -> JsonDict:
        """For reports."""
        gate = self.gate or Gate()
        return {
            "id": self.id,
            "keys": self.keys,
            "kinds": dict(sorted(self.kinds.items())),
            "agents": self.agents,
            "gate": str(gate.state or ""),
            "path": gate.path,
            "table": gate.table,
            "tableUID": gate.table_uid,
        }


def look(config: EtcdConfig) -> list[Found]:
    """All of them, sorted by id. Raises Retryable or Fatal."""
    found: dict[str, Found] = {}
    with of.connected(config, config.endpoints[0]) as connection:
        for part in RANGES:
            prefix = f"{config.prefix}/{part}/"
            for key in _keys(connection, prefix):
                _note(found, part, key.removeprefix(prefix))
        gated = [one for one in found.values() if Kind.GATE in one.kinds]
        for first in range(0, len(gated), _AT_ONCE):
            some = gated[first : first + _AT_ONCE]
            reads = [rpc.get(TableKeys(config.prefix, one.id).of(Kind.GATE)) for one in some]
            answer = connection.call_now(rpc.kv, "Txn", rpc.txn_request([], reads), writes=False)
            for one, told in zip(some, answer.responses, strict=True):
                for pair in told.response_range.kvs:
                    one.gate = records.stored(Kind.GATE, "", pair.value).read(Gate)
    return [found[id] for id in sorted(found)]


def _keys(connection: Connection, prefix: str) -> Iterator[str]:
    """Names of all keys with a prefix, at one revision."""
    first, end, revision = prefix.encode(), rpc.prefix_end(prefix), 0
    while True:
        request = rpc.messages.RangeRequest(key=first, range_end=end, keys_only=True, limit=PAGE, revision=revision)
        answer = connection.call_now(rpc.kv, "Range", request, writes=False)
        revision = revision or answer.header.revision
        yield from (pair.key.decode(errors="backslashreplace") for pair in answer.kvs)
        if not answer.more:
            return
        first = answer.kvs[-1].key + b"\0"


def _note(found: dict[str, Found], part: str, path: str) -> None:
    id, _, rest = path.partition("/")
    if part == CONTROL and id == "agents":
        agent, _, id = rest.partition("/")
        if _ID.fullmatch(id):
            found.setdefault(id, Found(id)).agents.append(agent)
        return
    if not _ID.fullmatch(id) or not rest:
        return
    one, kind = found.setdefault(id, Found(id)), kind_of(rest)[0] or "unknown"
    one.keys += 1
    one.kinds[kind] = one.kinds.get(kind, 0) + 1


def forget(config: EtcdConfig, id: str) -> JsonDict:
    """Delete every key of a table that no HudiTable has, by a person's decision.

    The gate must be released, or there must be none, and nobody may still do something: then nobody
    can begin anything before the gate is put again, and the transaction compares that it was not.
    Raises Fatal with what stands in the way, Retryable when it changed meanwhile.
    """
    if not _ID.fullmatch(id):
        raise Fatal(f"{id!r} is no id of a table: {naming.TABLE_ID}")
    one = next((each for each in look(config) if each.id == id), None)
    if one is None:
        return {"id": id, "deleted": 0}
    keys = TableKeys(config.prefix, id)
    with of.connected(config, config.endpoints[0]) as connection:
        reads = [rpc.get(keys.of(Kind.GATE)), rpc.get_prefix(keys.control), rpc.get_prefix(keys.tables)]
        answer = connection.call_now(rpc.kv, "Txn", rpc.txn_request([], reads), writes=False)
        gates, control, tables = (list(told.response_range.kvs) for told in answer.responses)
        names = [pair.key.decode(errors="backslashreplace") for pair in (*control, *tables)]
        kinds = {kind_of(name.removeprefix(keys.control).removeprefix(keys.tables))[0] for name in names}
        _require_nobody(kinds, [pair.value for pair in gates])
        unsettled = [
            name.removeprefix(keys.every(Kind.SETTLE))
            for name, pair in zip(names[len(control) :], tables, strict=True)
            if name.startswith(keys.every(Kind.SETTLE)) and not _settled(pair.value)
        ]
        if unsettled:
            raise Fatal(
                f"incarnation {unsettled[0]} is not settled: a HudiTable of the path goes on with it, and its agent "
                "rolls back what it left"
            )
        mod = gates[0].mod_revision if gates else 0
        assigned = [rpc.delete(f"{agent_prefix(config.prefix, agent)}{id}") for agent in one.agents]
        deleted = rpc.txn_request(
            [rpc.mod_is(keys.of(Kind.GATE), mod)],
            [rpc.delete_prefix(keys.control), rpc.delete_prefix(keys.tables), *assigned],
        )
        done = connection.call_now(rpc.kv, "Txn", deleted, writes=True)
    if not done.succeeded:
        raise Retryable("its gate was put meanwhile: a HudiTable has the path")
    return {"id": id, "deleted": sum(each.response_delete_range.deleted for each in done.responses)}


def _require_nobody(kinds: set[str], gates: list[bytes]) -> None:
    for raw in gates:
        stored = records.stored(Kind.GATE, "", raw)
        gate = stored.read(Gate)
        if stored.unreadable:
            raise Fatal(f"its gate cannot be read: {stored.unreadable}")
        if gate.table_uid:
            raise Fatal(
                f"its gate names HudiTable {gate.table}: delete that one; where it does not exist any more, take its "
                "path over with another HudiTable, and delete that"
            )
    there = [kind for kind in _NOT_WHILE if kind in kinds]
    if there:
        raise Fatal(f"somebody may still do something there: it has keys of kind {', '.join(there)}")


def _settled(raw: bytes) -> bool:
    return records.stored(Kind.SETTLE, "", raw).read(SettleRecord).phase is Phase.Settled
