"""The operator's side of the lock protocol in etcd.

Reads of one table and the transactions of docs/design/contracts.md §2.

Every transaction is written to the protocol log (docs/design/contracts.md §3),
whatever its outcome.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hudi_contract import naming, records
from hudi_contract.keys import MAX_VALUE_BYTES, PULSE, TIMELINE, Kind, TableKeys, assignment_key, pulse_key
from hudi_contract.records import Stored
from hudi_contract.settle import SettleRecord
from hudi_contract.table_keys import Admit, Fence, Gate, InstantRecord, Lock, Pulse, Sighting
from hudi_contract.words import InstantState
from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd_rpc import Connection, Message
from hudi_operator.model.facts import EtcdFacts
from hudi_operator.model.ports import Fatal, OutcomeUnknown, Retryable

JsonDict = dict[str, Any]

LOG = logging.getLogger(__name__)
PROTOCOL_LOG = logging.getLogger("hudi_operator.protocol")
_MAX_OPERATIONS = 100
"""etcd refuses transactions of more than 128 operations or compares by default."""
_GATES_AT_ONCE = (_MAX_OPERATIONS - 1) // 2
"""Tables in one transaction of :meth:`EtcdStore.read_gates`: two keys of each, and the pulse."""

_REVISION = re.compile("[0-9]{1,19}")
"""Revisions are signed numbers of 64 bits."""
_SINGLE = frozenset({Kind.GATE, Kind.LOCK, Kind.CLOCK})
_CONTROL_GROUPS = {Kind.ADMIT: "admits", Kind.FENCE: "fences", Kind.REQUEST: "requests", Kind.SEEN: "seen"}
_TABLE_GROUPS = {
    Kind.WRITER: "writers",
    Kind.ALIVE: "alive",
    Kind.QUEUE: "queue",
    Kind.INSTANT: "instants",
    Kind.SETTLE: "settles",
    Kind.REPORT: "reports",
    Kind.DONE: "done",
}


ACTOR = "operator"
"""Actor and role of this process in the protocol log."""


@dataclass(frozen=True)
class Seen:
    """Knowledge of one etcd cluster. An etcd that knows less was set back to an older state."""

    revision: int = 0
    """The highest revision of its answers."""
    pulse: int = 0
    """Revision of the last pulse that was written (:mod:`hudi_operator.adapters.etcd_pulse`)."""
    forgotten: int = 0
    """Grows each time the cluster is found set back: to the highest revision known then, at least.

    0: never. `revision` and `pulse` count from the last time.
    """


class Revisions:
    """Knowledge of each cluster, by cluster id (protocol.md, Assumptions).

    It is persisted in annotations of the leader's Lease, which is not in this etcd.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[str, Seen] = {}
        self.set_back: Callable[[], None] = lambda: None
        """Called when a cluster is found set back: every table has to be looked at."""

    def known(self) -> dict[str, Seen]:
        """By cluster id. Taken before a request is sent, its answer must not know less."""
        with self._lock:
            return dict(self._seen)

    def seen(self, cluster_id: str, revision: int) -> None:
        """Record the revision of an answer."""
        self.learn(cluster_id, Seen(revision=revision, forgotten=self.known().get(cluster_id, Seen()).forgotten))

    def learn(self, cluster_id: str, told: Seen) -> None:
        """Take what somebody else has known; of what was known before the last loss, nothing."""
        with self._lock:
            mine = self._seen.get(cluster_id, Seen())
            if told.forgotten > mine.forgotten:
                self._seen[cluster_id] = told
            elif told.forgotten == mine.forgotten:
                revision, pulse = max(mine.revision, told.revision), max(mine.pulse, told.pulse)
                self._seen[cluster_id] = Seen(revision, pulse, mine.forgotten)

    def judge(self, cluster_id: str, before: Mapping[str, Seen], answer: Seen) -> int:
        """Compare an answer with what was known when it was asked for; returns `Seen.forgotten`.

        ``answer``: its revision, that of the pulse in it, and what the pulse says was forgotten.
        """
        self.learn(cluster_id, answer)
        was = before.get(cluster_id, Seen())
        lost = max(was.revision if answer.revision < was.revision else 0, was.pulse if answer.pulse < was.pulse else 0)
        with self._lock:
            mine = self._seen.get(cluster_id, Seen())
            lost = lost if mine.forgotten == was.forgotten else 0  # another answer has already reported it
            if lost:
                mine = Seen(answer.revision, answer.pulse, max(lost, mine.forgotten + 1))
                self._seen[cluster_id] = mine
                LOG.error(
                    "etcd cluster %s knows nothing any more of its revision %d: restored from a backup? Every table "
                    "of it freezes until a person has looked (docs/operate/operations.md, etcd)",
                    cluster_id,
                    lost,
                )
        if lost:
            self.set_back()
        return mine.forgotten

    def floors(self) -> dict[str, int]:
        """Highest revision by cluster id."""
        return {cluster_id: seen.revision for cluster_id, seen in self.known().items()}


class RevisionNotes:
    """Knowledge of each cluster in annotations of the leader's Lease."""

    PREFIX = f"etcd-revision.{naming.GROUP}/"
    PULSE = f"etcd-pulse.{naming.GROUP}/"
    FORGOTTEN = f"etcd-forgotten.{naming.GROUP}/"

    def __init__(self, revisions: Revisions) -> None:
        self._revisions = revisions

    def write(self) -> dict[str, str]:
        """Annotations to store."""
        notes: dict[str, str] = {}
        for cluster, seen in self._revisions.known().items():
            notes[self.PREFIX + cluster] = str(seen.revision)
            notes |= {self.PULSE + cluster: str(seen.pulse)} if seen.pulse else {}
            notes |= {self.FORGOTTEN + cluster: str(seen.forgotten)} if seen.forgotten else {}
        return notes

    def read(self, annotations: Mapping[str, str]) -> None:
        """Annotations that an earlier leader stored."""
        numbers = {key: int(value) for key, value in annotations.items() if _REVISION.fullmatch(value)}
        for key, revision in numbers.items():
            if key.startswith(self.PREFIX):
                cluster = key.removeprefix(self.PREFIX)
                pulse, forgotten = (numbers.get(kind + cluster, 0) for kind in (self.PULSE, self.FORGOTTEN))
                self._revisions.learn(cluster, Seen(revision, pulse, forgotten))


class EtcdStore:
    """Implements :class:`hudi_operator.model.ports.EtcdPort`."""

    def __init__(
        self,
        connection: Connection,
        prefix: str,
        *,
        revisions: Revisions,
        observe: Callable[[str, float], None] | None = None,
    ) -> None:
        """``observe`` receives the name and the duration in seconds of each call.

        None: calls are not measured.
        """
        self._connection = connection
        self._prefix = prefix
        self._observe = observe or (lambda name, seconds: None)
        self._revisions = revisions

    def keys(self, table_id: str) -> TableKeys:
        """Full keys of one table."""
        return TableKeys(self._prefix, table_id)

    # ---- reads

    def floors(self) -> Mapping[str, int]:
        """Highest revision seen so far, by cluster id."""
        return self._revisions.floors()

    async def read_table(self, table_id: str, agent: str, others: Sequence[str] = ()) -> EtcdFacts:
        """One linearizable transaction (a read-only transaction is linearizable by default)."""
        control, table = self.keys(table_id).control, self.keys(table_id).tables
        operations = [rpc.get_prefix(control), rpc.get_prefix(table), rpc.get(pulse_key(self._prefix))]
        agents = (agent, *others) if agent else ()
        operations.extend(rpc.get(assignment_key(self._prefix, name, table_id)) for name in agents)
        answer, groups = await self._read("read-table", operations, pulse=2)
        for stored, prefix, names in (
            (answer.responses[0], control, _CONTROL_GROUPS),
            (answer.responses[1], table, _TABLE_GROUPS),
        ):
            for pair in stored.response_range.kvs:
                _sort_in(groups, pair.key.decode(errors="backslashreplace")[len(prefix) :], names, pair)
        found = {
            name: response.response_range.kvs[0]
            for name, response in zip(agents, answer.responses[3:], strict=True)
            if response.response_range.kvs
        }
        if agent in found:
            groups["assignment"] = _stored("assignment", "", found[agent])
        return EtcdFacts(**groups, elsewhere=tuple(name for name in others if name in found))

    async def read_gates(self, table_ids: Collection[str]) -> Mapping[str, EtcdFacts]:
        """Transactions of ``_GATES_AT_ONCE`` tables, one after the other."""
        found: dict[str, EtcdFacts] = {}
        ids = sorted(set(table_ids))
        for first in range(0, len(ids), _GATES_AT_ONCE):
            some = ids[first : first + _GATES_AT_ONCE]
            operations = [rpc.get(pulse_key(self._prefix))]
            for id in some:
                operations += [rpc.get(self.keys(id).of(Kind.GATE)), rpc.get(self.keys(id).of(Kind.REPORT, TIMELINE))]
            answer, state = await self._read("read-gates", operations, pulse=0)
            for n, id in enumerate(some):
                gate, report = (answer.responses[1 + 2 * n + k].response_range.kvs for k in (0, 1))
                found[id] = EtcdFacts(
                    **state,
                    gate=_stored(Kind.GATE, "", gate[0]) if gate else None,
                    reports={TIMELINE: _stored(Kind.REPORT, TIMELINE, report[0])} if report else {},
                )
        return found

    async def _read(self, name: str, operations: Sequence[Message], *, pulse: int) -> tuple[Message, dict[str, Any]]:
        """One linearizable transaction of reads: its answer, and what it shows of etcd as a whole.

        The latter are fields of EtcdFacts. ``pulse``: the place of the pulse among the operations.
        """
        before = self._revisions.known()
        answer = await self._send(name, rpc.txn_request([], operations), writes=False)
        cluster_id = f"{answer.header.cluster_id:x}"
        forgotten = self._revisions.judge(cluster_id, before, knows(answer, at=pulse))
        return answer, {"revision": answer.header.revision, "cluster_id": cluster_id, "forgotten": forgotten}

    # ---- transactions

    async def put_gate(
        self,
        table_id: str,
        value: JsonDict,
        *,
        expected_mod: int,
        others: Mapping[str, int] = MappingProxyType({}),
        unlocked: bool = False,
    ) -> bool:
        """gate-put: compare the gate's mod revision (0 = absent), and those of other tables.

        ``unlocked``: compare that nobody holds the table's lock, too.
        """
        key, state = self.keys(table_id).of(Kind.GATE), Gate.known(value).state
        return await self._txn(
            "gate-put",
            table_id,
            [
                rpc.mod_is(key, expected_mod),
                *(rpc.mod_is(self.keys(other).of(Kind.GATE), mod) for other, mod in sorted(others.items())),
                *([rpc.version_is(self.keys(table_id).of(Kind.LOCK), 0)] if unlocked else []),
            ],
            [rpc.put(key, _encode(value))],
            key=Kind.GATE.of(),
            detail=state,
        )

    async def put_admit(self, table_id: str, *, attempt: str, role: str) -> bool:
        """admit: create the key; also True when it exists."""
        key, name = self.keys(table_id).of(Kind.ADMIT, attempt), Kind.ADMIT.of(attempt)
        value = _encode(Admit(attempt=attempt, role=role, at_ms=_now_ms()).to_json())
        await self._txn("admit", table_id, [rpc.version_is(key, 0)], [rpc.put(key, value)], key=name)
        return True

    async def delete_admit(self, table_id: str, *, attempt: str) -> bool:
        """Withdraw an admission."""
        return await self._txn(
            "delete-admit",
            table_id,
            [],
            [rpc.delete(self.keys(table_id).of(Kind.ADMIT, attempt))],
            key=Kind.ADMIT.of(attempt),
        )

    async def put_assignment(self, table_id: str, *, agent: str, value: JsonDict | None) -> bool:
        """Assign a table to an agent, or withdraw the assignment (None)."""
        key = assignment_key(self._prefix, agent, table_id)
        operation = rpc.delete(key) if value is None else rpc.put(key, _encode(value))
        return await self._txn(
            "assign", table_id, [], [operation], key=f"agents/{agent}", detail="withdrawn" if value is None else None
        )

    async def fence(self, table_id: str, *, inc: str, attempt: str, settle: JsonDict, if_not_alive: bool) -> bool:
        """fence (I2): puts the settle record and the fence.

        The same transaction deletes heartbeat and admission.

        ``if_not_alive`` (reason LeaseGone, F29): an owner that obtained a new lease meanwhile is
        not fenced.
        """
        keys, reason = self.keys(table_id), SettleRecord.known(settle).reason
        fence, alive = keys.of(Kind.FENCE, inc), keys.of(Kind.ALIVE, inc)
        compare = [rpc.version_is(fence, 0)]
        if if_not_alive:
            compare.append(rpc.version_is(alive, 0))
        success = [
            rpc.put(keys.of(Kind.SETTLE, inc), _encode(settle, Kind.SETTLE)),
            rpc.put(fence, _encode(Fence(inc=inc, reason=reason, at_ms=_now_ms()).to_json())),
            rpc.delete(alive),
        ]
        if attempt:
            success.append(rpc.delete(keys.of(Kind.ADMIT, attempt)))
        return await self._txn(
            "fence", table_id, compare, success, key=Kind.FENCE.of(inc), detail=reason, attempt=attempt
        )

    async def adopt(self, table_id: str, *, inc: str, settle: JsonDict, gate_mod: int) -> bool:
        """adopt (I7): puts settle record, fence and a record for each instant that it names.

        All of it is one transaction, which compares the gate that was read.
        """
        keys, told = self.keys(table_id), SettleRecord.from_json(settle)
        fence, record = keys.of(Kind.FENCE, inc), keys.of(Kind.SETTLE, inc)
        instants = {keys.of(Kind.INSTANT, t): item for t, item in told.instants.items()}
        compare = [rpc.mod_is(keys.of(Kind.GATE), gate_mod), rpc.version_is(record, 0)]
        compare += [rpc.version_is(key, 0) for key in instants]
        success = [
            rpc.put(record, _encode(settle, Kind.SETTLE)),
            rpc.put(fence, _encode(Fence(inc=inc, reason=told.reason, at_ms=_now_ms()).to_json())),
        ]
        for key, item in instants.items():
            owned = InstantRecord(inc=inc, action=item.action, state=InstantState.PENDING, at_ms=_now_ms())
            success.append(rpc.put(key, _encode(owned.to_json())))
        return await self._txn(
            "adopt", table_id, compare, success, key=Kind.SETTLE.of(inc), detail=",".join(sorted(told.instants))
        )

    async def revoke_lease(self, lease: int) -> None:
        """Revoke a lease; a lease that no longer exists is success."""
        try:
            await self._connection.call(rpc.leases, "LeaseRevoke", rpc.revoke_request(lease), writes=True)
        except Retryable as error:
            if "lease not found" not in str(error):
                raise

    async def update_settle(self, table_id: str, *, inc: str, value: JsonDict, expected_mod: int) -> bool:
        """settle-update: compare the record's mod revision."""
        key = self.keys(table_id).of(Kind.SETTLE, inc)
        operations = [rpc.put(key, _encode(value, Kind.SETTLE))]
        return await self._txn(
            "settle-update",
            table_id,
            [rpc.mod_is(key, expected_mod)],
            operations,
            key=Kind.SETTLE.of(inc),
            detail=SettleRecord.known(value).phase.name,
        )

    async def unlock(self, table_id: str, *, inc: str, create_revision: int) -> bool:
        """unlock (I1): delete exactly this lock, and only of a fenced incarnation.

        The create revision identifies one acquisition permanently, so the transaction deletes the
        lock of the owner that was read here.
        """
        key = self.keys(table_id).of(Kind.LOCK)
        answer = await self._send("read-lock", rpc.txn_request([], [rpc.get(key)]), writes=False)
        found = [_stored(Kind.LOCK, "", pair) for pair in answer.responses[0].response_range.kvs]
        if not found or found[0].create_revision != create_revision or found[0].read(Lock).inc != inc:
            return False
        compare = [rpc.created_at(key, create_revision), rpc.exists(self.keys(table_id).of(Kind.FENCE, inc))]
        return await self._txn(
            "unlock", table_id, compare, [rpc.delete(key)], key=Kind.LOCK.of(), detail=inc, token=create_revision
        )

    async def finish_settle(
        self, table_id: str, *, inc: str, value: JsonDict, expected_mod: int, instants: Sequence[tuple[str, int]]
    ) -> bool:
        """settled: the record becomes Settled and the other keys of ``inc`` are deleted.

        Instants that do not fit into one transaction are deleted before it, each as it was read and
        under the same record.
        """
        key = self.keys(table_id).of(Kind.SETTLE, inc)
        unchanged = rpc.mod_is(key, expected_mod)
        rest = list(instants)
        while len(rest) > _MAX_OPERATIONS // 2:
            chunk, rest = rest[: _MAX_OPERATIONS // 2], rest[_MAX_OPERATIONS // 2 :]
            compare, operations = self._instant_deletions(table_id, chunk)
            if not await self._txn(
                "settled", table_id, [unchanged, *compare], operations, key=Kind.SETTLE.of(inc), detail="instants"
            ):
                return False
        compare, operations = self._instant_deletions(table_id, rest)
        operations += [
            rpc.put(key, _encode(value, Kind.SETTLE)),
            rpc.delete(self.keys(table_id).of(Kind.WRITER, inc)),
        ]
        return await self._txn("settled", table_id, [unchanged, *compare], operations, key=Kind.SETTLE.of(inc))

    def _instant_deletions(
        self, table_id: str, instants: Sequence[tuple[str, int]]
    ) -> tuple[list[Message], list[Message]]:
        keys = [(self.keys(table_id).of(Kind.INSTANT, instant), revision) for instant, revision in instants]
        return [rpc.mod_is(key, revision) for key, revision in keys], [rpc.delete(key) for key, _ in keys]

    async def collect(self, table_id: str, *, inc: str, expected_mod: int) -> bool:
        """collect (I2): record and fence of a settled incarnation are deleted together."""
        key = self.keys(table_id).of(Kind.SETTLE, inc)
        compare = [rpc.mod_is(key, expected_mod), rpc.version_is(self.keys(table_id).of(Kind.WRITER, inc), 0)]
        operations = [rpc.delete(key), rpc.delete(self.keys(table_id).of(Kind.FENCE, inc))]
        return await self._txn("collect", table_id, compare, operations, key=Kind.SETTLE.of(inc))

    async def delete_report(self, table_id: str, *, kind: str) -> bool:
        """Delete a report."""
        return await self._txn(
            "delete-report",
            table_id,
            [],
            [rpc.delete(self.keys(table_id).of(Kind.REPORT, kind))],
            key=Kind.REPORT.of(kind),
        )

    async def delete_done(self, table_id: str, *, name: str, expected_mod: int) -> bool:
        """Delete a record of an agent's work; False: it is another one by now."""
        key = self.keys(table_id).of(Kind.DONE, name)
        return await self._txn(
            "delete-done", table_id, [rpc.mod_is(key, expected_mod)], [rpc.delete(key)], key=Kind.DONE.of(name)
        )

    async def end_trial(self, trial_id: str, *, agents: Sequence[str]) -> bool:
        """Delete every key of a trial, and its assignments, in one transaction."""
        keys = self.keys(trial_id)
        assigned = [rpc.delete(assignment_key(self._prefix, agent, trial_id)) for agent in agents]
        ranges = [rpc.delete_prefix(keys.control), rpc.delete_prefix(keys.tables)]
        return await self._txn("end-trial", trial_id, [], [*ranges, *assigned], key="trial")

    async def put_request(self, table_id: str, *, id: str, value: JsonDict | None) -> bool:
        """Put a request for the agent, or withdraw it (None)."""
        key = self.keys(table_id).of(Kind.REQUEST, id)
        operation = rpc.delete(key) if value is None else rpc.put(key, _encode(value))
        return await self._txn(
            "request",
            table_id,
            [],
            [operation],
            key=Kind.REQUEST.of(id),
            detail="withdrawn" if value is None else value.get("nonce"),
        )

    async def put_seen(self, table_id: str, *, inc: str, value: JsonDict | None) -> bool:
        """see: put the sighting of an incarnation, or delete it (None)."""
        key = self.keys(table_id).of(Kind.SEEN, inc)
        operation = rpc.delete(key) if value is None else rpc.put(key, _encode(value))
        return await self._txn(
            "see",
            table_id,
            [],
            [operation],
            key=Kind.SEEN.of(inc),
            detail="forgotten" if value is None else Sighting.known(value).node,
        )

    # ---- transport

    async def _txn(
        self,
        action: str,
        table_id: str,
        compare: Sequence[Message],
        success: Sequence[Message],
        *,
        key: str,
        detail: object = None,
        token: int | None = None,
        attempt: str = "",
    ) -> bool:
        entry: JsonDict = {
            "v": 1,
            "ts": _now_ms(),
            "table": table_id,
            "actor": ACTOR,
            "role": ACTOR,
            "action": action,
            "rev": 0,
            "ok": False,
        }
        entry["key"] = key
        entry.update(
            {
                name: value
                for name, value in (("detail", detail), ("token", token), ("attempt", attempt or None))
                if value is not None
            }
        )
        try:
            answer = await self._send(action, rpc.txn_request(compare, success), writes=True)
        except (Retryable, Fatal) as error:
            entry["detail"] = "unknown" if isinstance(error, OutcomeUnknown) else str(error)
            raise
        else:
            entry.update(rev=answer.header.revision, ok=bool(answer.succeeded))
            return bool(answer.succeeded)
        finally:
            PROTOCOL_LOG.info("PROTOCOL %s", json.dumps(entry, separators=(",", ":")))

    async def _send(self, action: str, request: Message, *, writes: bool) -> Message:
        started = time.monotonic()
        try:
            answer = await self._connection.call(rpc.kv, "Txn", request, writes=writes)
        finally:
            self._observe(action, time.monotonic() - started)
        self._revisions.seen(f"{answer.header.cluster_id:x}", answer.header.revision)
        return answer


def knows(answer: Message, *, at: int) -> Seen:
    """Knowledge in an answer. ``at``: the place in it of the pulse, which was read with it."""
    found = answer.responses[at].response_range.kvs
    pulse = _stored(PULSE, "", found[0]) if found else None
    return Seen(
        answer.header.revision,
        pulse.mod_revision if pulse is not None else 0,
        records.read(pulse, Pulse).forgotten,
    )


def _sort_in(groups: dict[str, Any], path: str, names: Mapping[Kind, str], pair: Message) -> None:
    """Sort one key-value pair into its field of EtcdFacts.

    Keys that this version does not know are ignored.
    """
    head, _, rest = path.partition("/")
    if not rest and head in _SINGLE:
        groups[head] = _stored(head, "", pair)
    elif rest and head in names:
        groups.setdefault(names[Kind(head)], {})[rest] = _stored(head, rest, pair)


def _stored(kind: str, name: str, pair: Message) -> Stored:
    return records.stored(
        kind, name, pair.value, create_revision=pair.create_revision, mod_revision=pair.mod_revision, lease=pair.lease
    )


def _encode(value: JsonDict, kind: Kind | None = None) -> bytes:
    """The value as it is stored, within the size limit of its kind."""
    encoded = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    most = kind.max_value_bytes if kind is not None else MAX_VALUE_BYTES
    if len(encoded) > most:
        raise Fatal(f"a value of {len(encoded)} bytes is too large for etcd (at most {most})")
    return encoded


def _now_ms() -> int:
    return int(time.time() * 1000)
