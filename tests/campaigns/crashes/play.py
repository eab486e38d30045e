"""The parts that the tests play beside the operator: JVMs with the transactions of protocol.json,
and two lives of a writer.

The agent is the real one on a real table, or, where a run must not cost a JVM, is played as well.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hudi_operator.adapters import etcd_rpc as rpc
from tests.campaigns.crashes.agents import RealAgent
from tests.campaigns.crashes.etcd_proxy import channel
from tests.campaigns.crashes.monitor import Monitor
from tests.campaigns.crashes.naming import Names
from tests.support.harness.operator_world import World
from tests.support.harness.servers import Etcd, wait_for
from tests.support.trace.events import Event

JsonDict = dict[str, Any]
LEASE_SECONDS = 600
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 120.0
TABLE = {
    "partitionFields": ["p"],
    "fencing": {"drainSeconds": 1},
    "lock": {
        "leaseSeconds": 10,
        "keepAliveSeconds": 3,
        "rpcTimeoutSeconds": 3,
        "suspectSeconds": 1,
        "silenceSeconds": 60,
    },
}
WRITER = {"retryPolicy": {"backoffSeconds": 1, "writeConflict": {"inProcess": 1}}}


class Keys:
    """The keys of one table, with the pods' identity, in this process: etcdctl takes 50 ms of CPU
    per call.
    """

    def __init__(self, etcd: Etcd, table_id: str) -> None:
        # Without keep-alives: on a busy machine the play may be slow, and must not lose
        # its own connection.
        self._channel = channel(etcd.pki, "gateway", etcd.endpoint)
        self.table_id = table_id

    def close(self) -> None:
        self._channel.close()

    def name(self, key: str) -> str:
        kind = "control" if key.partition("/")[0] in ("gate", "admit", "fence") else "tables"
        return f"/hudi/{kind}/{self.table_id}/{key}"

    def call(self, stub: Any, method: str, request: Any) -> Any:
        return getattr(stub(self._channel), method)(request, timeout=60)

    def txn(self, compare: list[Any], success: list[Any], failure: tuple[Any, ...] = ()) -> Any:
        return self.call(rpc.kv, "Txn", rpc.txn_request(compare, success, failure))

    def get(self, key: str) -> tuple[JsonDict, int]:
        """Value and mod revision; empty and 0 when there is none."""
        found = self.call(rpc.kv, "Range", rpc.messages.RangeRequest(key=self.name(key).encode())).kvs
        return (json.loads(found[0].value), found[0].mod_revision) if found else ({}, 0)

    def was_there(self, key: str, revision: int) -> bool:
        """Whether there was this key at a revision of etcd."""
        request = rpc.messages.RangeRequest(key=self.name(key).encode(), revision=revision, keys_only=True)
        return bool(self.call(rpc.kv, "Range", request).kvs)

    def all(self) -> dict[str, JsonDict]:
        """Every key of the table."""
        found: dict[str, JsonDict] = {}
        for part in ("control", "tables"):
            prefix = f"/hudi/{part}/{self.table_id}/"
            request = rpc.messages.RangeRequest(key=prefix.encode(), range_end=rpc.prefix_end(prefix))
            found.update(
                {kv.key.decode()[len(prefix) :]: json.loads(kv.value) for kv in self.call(rpc.kv, "Range", request).kvs}
            )
        return found

    def put(self, key: str, value: JsonDict, lease: int = 0) -> Any:
        """Operation."""
        return rpc.messages.RequestOp(
            request_put=rpc.messages.PutRequest(
                key=self.name(key).encode(), value=json.dumps(value).encode(), lease=lease
            )
        )

    def delete(self, key: str) -> Any:
        """Operation."""
        return rpc.delete(self.name(key))

    def absent(self, key: str) -> Any:
        return rpc.version_is(self.name(key), 0)

    def there(self, key: str) -> Any:
        return rpc.exists(self.name(key))

    def lease(self) -> int:
        return int(self.call(rpc.leases, "LeaseGrant", rpc.messages.LeaseGrantRequest(TTL=LEASE_SECONDS)).ID)


class Jvm:
    """One incarnation: its transactions, each with a line in the protocol log.

    Every one must succeed here.
    """

    def __init__(self, play: Play, pod: JsonDict, *, role: str, name: str) -> None:
        self._play, self._keys, self.role = play, play.keys, role
        self.inc, self.pod = str(uuid.uuid4()), pod
        self.attempt = f"{play.world.namespace}.{pod['metadata']['name']}"
        self.token, self._alive, self._records = 0, 0, dict[str, int]()
        play.names.call(self.inc, name)

    def log(self, action: str, rev: int, **more: Any) -> None:
        self._play.write(
            Event(self._keys.table_id, self.inc, self.role, action, rev, True, ts=int(time.time() * 1000), **more)
        )

    def _must(self, action: str, compare: list[Any], success: list[Any], **more: Any) -> int:
        answer = self._keys.txn(compare, success)
        assert answer.succeeded, f"{action} of {self.attempt} was refused: {self._keys.all()}"
        self.log(action, answer.header.revision, **more)
        return int(answer.header.revision)

    def register(self) -> None:
        meta = self.pod["metadata"]
        value = {
            "inc": self.inc,
            "attempt": self.attempt,
            "role": self.role,
            "pod": meta["name"],
            "namespace": self._play.world.namespace,
            "podUID": meta["uid"],
            "node": "node1",
            "bootId": "boot-1",
            "appId": "local-1",
            "priority": 0,
            "protocolVersion": 1,
            "wallClockMs": int(time.time() * 1000),
        }
        k, lease = self._keys, self._keys.lease()
        compare = [k.there(f"admit/{self.attempt}"), k.absent(f"fence/{self.inc}")]
        puts = [k.put(f"writer/{self.inc}", value), k.put(f"alive/{self.inc}", {"inc": self.inc, "n": 1}, lease)]
        self._alive = self._must("register", compare, puts, attempt=self.attempt)

    def acquire(self) -> None:
        k = self._keys
        gate, g = k.get("gate")
        assert gate["state"] == "open", gate
        meta = self.pod["metadata"]
        value = {
            "inc": self.inc,
            "attempt": self.attempt,
            "podUID": meta["uid"],
            "nonce": "n",
            "sinceMs": int(time.time() * 1000),
        }
        compare = [
            k.absent("lock"),
            k.absent(f"fence/{self.inc}"),
            rpc.mod_is(k.name(f"alive/{self.inc}"), self._alive),
            rpc.mod_is(k.name("gate"), g),
        ]
        answer = k.txn(compare, [k.put("lock", value)])
        assert answer.succeeded, f"acquire of {self.attempt} was refused: {k.all()}"
        self.token = int(answer.header.revision)
        self.log("acquire", self.token, token=self.token, nonce="n")

    def _holds(self) -> Any:
        return rpc.created_at(self._keys.name("lock"), self.token)

    def record(self, instant: str) -> None:
        k = self._keys
        value = {"inc": self.inc, "action": "commit", "state": "Pending", "atMs": int(time.time() * 1000)}
        compare = [self._holds(), k.absent(f"instant/{instant}")]
        puts = [k.put(f"instant/{instant}", value), k.put("clock", {"value": instant})]
        self._records[instant] = self._must(
            "record-instant", compare, puts, instant=instant, token=self.token, detail="commit"
        )

    def publish(self, instant: str, completion: str) -> None:
        k = self._keys
        compare = [
            self._holds(),
            rpc.mod_is(k.name(f"instant/{instant}"), self._records[instant]),
            k.absent(f"fence/{self.inc}"),
        ]
        self._must(
            "publish",
            compare,
            [k.put("clock", {"value": completion})],
            instant=instant,
            token=self.token,
            detail=completion,
        )

    def release(self, *completed: str) -> None:
        k = self._keys
        operations = [k.delete("lock"), *(k.delete(f"instant/{t}") for t in completed)]
        self._must("release", [self._holds()], operations, token=self.token, detail=",".join(completed))

    def abandon(self, instant: str) -> None:
        k = self._keys
        value = {"inc": self.inc, "action": "commit", "state": "Abandoned", "atMs": int(time.time() * 1000)}
        compare = [rpc.mod_is(k.name(f"instant/{instant}"), self._records[instant])]
        self._must("abandon", compare, [k.put(f"instant/{instant}", value)], instant=instant)

    def leave(self) -> None:
        k = self._keys
        self._must(
            "clean-exit",
            [k.absent(f"fence/{self.inc}")],
            [k.delete(f"alive/{self.inc}"), k.delete(f"writer/{self.inc}")],
        )

    def report(self, stage: str, *, instant: str = "", conflicts: tuple[str, ...] = ()) -> None:
        value = {
            "attempt": self.attempt,
            "inc": self.inc,
            "atMs": int(time.time() * 1000),
            "stage": stage,
            "commits": 1 if instant else 0,
            "records": 10 if instant else 0,
            "lastInstant": instant,
            "lastCompletionTime": _completion(instant) if instant else "",
            "conflicts": [
                {"instant": t, "retriedAs": "", "with": "other", "fileGroups": ["f1"], "atMs": 0} for t in conflicts
            ],
        }
        self._keys.txn([], [self._keys.put(f"report/attempt/{self.attempt}", value)])


def _time(at: datetime) -> str:
    return f"{at:%Y%m%d%H%M%S}{at.microsecond // 1000:03d}"


def _completion(instant: str) -> str:
    """A millisecond later."""
    return _time(datetime.strptime(instant + "000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC) + timedelta(milliseconds=1))


class Play:
    """Everything around one operator in one run."""

    def __init__(
        self,
        world: World,
        *,
        keys: Keys,
        names: Names,
        monitor: Monitor,
        log: Path,
        at: Callable[[str], None],
        real: RealAgent | None = None,
    ) -> None:
        """``at`` is called with the points that the play reaches, see
        :mod:`tests.campaigns.crashes.interruptions`; without ``real`` the agent is played.
        """
        self.world, self.keys, self.names, self.monitor, self.log, self.at, self.real = (
            world,
            keys,
            names,
            monitor,
            log,
            at,
            real,
        )
        self.agent: Jvm | None = None
        self._instants: list[str] = []

    def write(self, event: Event) -> None:
        with self.log.open("a") as out:
            out.write(event.line() + "\n")

    def instant(self) -> str:
        """The next requested time, now; completion times lie between two of them."""
        now = _time(datetime.now(tz=UTC))
        while self._instants and now <= _completion(self._instants[-1]):
            time.sleep(0.002)
            now = _time(datetime.now(tz=UTC))
        self._instants.append(now)
        self.names.call(now, f"T{len(self._instants)}")
        self.names.call(_completion(now), f"T{len(self._instants)}-completed")
        return now

    def write_data(self, instant: str) -> None:
        """The files that a writer leaves when it dies before its commit."""
        if self.real is not None:
            self.real.place(instant)

    def wait(self, what: str, check: Callable[[], Any]) -> Any:
        return wait_for(what, check, seconds=PATIENCE_SECONDS)

    def jvm(self, role: str, number: int, *, writer: str = "") -> Jvm:
        """A pod that runs and has registered."""
        kind = "agent" if role == "agent" else "driver"
        pod = self.world.pod(kind, number=number, writer=writer, seconds=PATIENCE_SECONDS)
        self.world.run_pod(pod)
        made = Jvm(self, pod, role=role, name=f"inc-{writer or role}-{number}")
        made.register()
        return made

    def start_table(self) -> None:
        """A table, its agent, an open gate, and a writer."""
        self.world.table(**TABLE)
        if self.real is not None:
            self.real.start()
            self.wait("the table is reported", lambda: self.keys.get("report/timeline")[0].get("exists"))
            self.at("table")
            self.world.writer("load", **WRITER)
            return
        self.agent = self.jvm("agent", 1)
        value = {
            "atMs": 0,
            "agentInc": self.agent.inc,
            "exists": True,
            "lastInstant": "",
            "lastCompletionTime": "",
            "lowestPendingRequestedTime": "",
            "pending": [],
            "pendingCount": 0,
            "activeLength": 0,
            "foreign": [],
        }
        self.keys.txn([], [self.keys.put("report/timeline", value)])
        self.at("table")
        self.world.writer("load", **WRITER)

    def sweep(self, inc: str) -> None:
        """Do the agent's part of RollingBack: an outcome for each instant, then Swept."""
        if self.real is not None:
            self.wait(f"Swept of {inc}", lambda: self.keys.get(f"settle/{inc}")[0].get("phase") in ("Swept", "Settled"))
            return
        assert self.agent is not None
        record, mod = self.wait(
            f"RollingBack of {inc}",
            lambda: (r := self.keys.get(f"settle/{inc}"))[0].get("phase") == "RollingBack" and r,
        )
        owned = [
            key.partition("/")[2]
            for key, value in self.keys.all().items()
            if key.startswith("instant/") and value["inc"] == inc
        ]
        given_up = self.keys.get(f"done/abandoned-{inc}")[0].get("instants", [])
        for instant in sorted({*owned, *given_up}):
            record["instants"][instant] = {"action": "commit", "outcome": "RolledBack", "failures": 0}
            mod = self._settle(inc, record, mod, instant=instant if instant in owned else "")
        record["phase"] = "Swept"
        record["times"]["Swept"] = int(time.time() * 1000)
        self._settle(inc, record, mod)
        self.keys.txn([], [self.keys.delete(f"done/abandoned-{inc}")])

    def forget(self, inc: str) -> None:
        """The end of a writer that has left by itself.

        A real agent has rolled back all of it by then: nothing is left to settle, it
        looks once more.

        A played one has left the last instant to settling.
        """
        if self.real is not None:
            self.wait(f"the agent has looked once more at {inc}", lambda: not self.keys.get(f"done/abandoned-{inc}")[1])
            return
        self.sweep(inc)

    def _settle(self, inc: str, record: JsonDict, mod: int, *, instant: str = "") -> int:
        assert self.agent is not None
        self.monitor.agent_wrote(inc, record, mod)
        answer = self.keys.txn(
            [rpc.mod_is(self.keys.name(f"settle/{inc}"), mod)], [self.keys.put(f"settle/{inc}", record)]
        )
        assert answer.succeeded, "somebody changed the record in RollingBack"
        said = {"instant": instant, "outcome": "RolledBack"} if instant else {}
        self.agent.log("settle-update", answer.header.revision, key=f"settle/{inc}", detail=record["phase"], **said)
        return int(answer.header.revision)

    def give_up(self, jvm: Jvm, instant: str) -> None:
        """The agent rolls back an instant on its living owner's word."""
        if self.real is not None:
            self.wait(f"the record of {instant} goes", lambda: not self.keys.get(f"instant/{instant}")[1])
            return
        assert self.agent is not None
        record, mod = self.keys.get(f"instant/{instant}")
        claim = [self.keys.put(f"instant/{instant}", {**record, "claimedBy": self.agent.inc})]
        answer = self.keys.txn([rpc.mod_is(self.keys.name(f"instant/{instant}"), mod)], claim)
        self.agent.log("claim", answer.header.revision, instant=instant)
        value = {"inc": jvm.inc, "instants": [instant]}
        self.keys.txn([], [self.keys.put(f"done/abandoned-{jvm.inc}", value), self.keys.delete(f"instant/{instant}")])
        self.agent.log("done", 0, instant=instant, detail="abandoned RolledBack")

    def commit(self, jvm: Jvm) -> None:
        """One good commit and an exit in order."""
        instant = self.instant()
        jvm.acquire()
        jvm.record(instant)
        jvm.publish(instant, _completion(instant))
        jvm.release(instant)
        jvm.report("Finished", instant=instant)
        jvm.leave()
        word = {
            "outcome": "Succeeded",
            "class": None,
            "message": "",
            "commits": 1,
            "records": 10,
            "lastInstant": instant,
        }
        self.world.end_pod(
            jvm.pod,
            exit_code=0,
            message=json.dumps({**word, "lastCompletionTime": _completion(instant), "conflicts": 0}),
        )

    def finished(self) -> None:
        """Waits until the writer has succeeded."""
        self.wait(
            "Finished", lambda: (c := self.world.condition("hudiwriters", "load", "Finished")) and c["status"] == "True"
        )


def failing(play: Play) -> None:
    """A writer that dies with the lock and a pending instant, is settled, and whose
    second attempt commits.
    """
    play.start_table()
    first = play.jvm("writer", 1, writer="load")
    first.acquire()
    instant = play.instant()
    first.record(instant)
    play.write_data(instant)
    play.at("running")
    play.world.end_pod(first.pod, exit_code=137)
    play.at("dead")
    play.sweep(first.inc)
    _second(play)


def conflicting(play: Play) -> None:
    """A writer that loses a race, retries in its process, loses again and gives up.

    Its second attempt commits.
    """
    play.start_table()
    first = play.jvm("writer", 1, writer="load")
    play.at("running")
    lost: list[str] = []
    for last in (False, True):
        lost.append(play.instant())
        first.acquire()
        first.record(lost[-1])
        play.write_data(lost[-1])
        first.release()
        first.abandon(lost[-1])
        first.report("Retrying", conflicts=tuple(lost))
        if play.real is not None or not last:
            play.give_up(first, lost[-1])
    first.leave()
    word = {
        "outcome": "Failed",
        "class": "WriteConflict",
        "message": "write conflict after all retries in this process (1)",
        "conflicts": 2,
    }
    play.world.end_pod(
        first.pod,
        exit_code=13,
        message=json.dumps({**word, "commits": 0, "records": 0, "lastInstant": "", "lastCompletionTime": ""}),
    )
    play.at("dead")
    play.forget(first.inc)
    _second(play)


def _second(play: Play) -> None:
    """The second attempt commits, and the writer is finished."""
    second = play.jvm("writer", 2, writer="load")
    play.at("second")
    play.commit(second)
    play.finished()


SCENARIOS: dict[str, Callable[[Play], None]] = {"fails and is settled": failing, "conflicts and retries": conflicting}
