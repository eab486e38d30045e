"""A simulated world that judges every action in it by its true state: running processes, requests
on the wire, acknowledged commits.

Nothing here asks the operator's code or believes what a settle record says of itself; the records
are only compared with the truth. Violations of invariants:

* I1: the operator deletes a lock while a process of its owner runs, or before the drain is over;
  one acquires while another's commit is on the wire
* I2: an incarnation registers, beats or acquires after it was fenced, also when its fence was
  collected
* I3: a commit lands after its incarnation was called Unlocked
* I4: a completed instant is rolled back, or an instant is forgotten that was neither completed nor
  rolled back
* I5: a commit lands after it was rolled back
* I6: something does not end once the world is healed (`histories`)
* I7: an instant is rolled back whose owner runs, or was never fenced, or that nobody has recorded
* I8: an acknowledged commit is not completed any more, and no restore was asked for
* I9: an attempt starts while an older one of its writer runs, or reads its progress while a commit
  of that one may come
* I11: any of these after a look that missed something, or that is old
* I12: the agent settles for an incarnation of which a process runs; a table is bootstrapped twice
* availability: an incarnation is fenced, or its pod deleted, for no reason that the world knows

I10 (clocks) and I13 (keys) are the JVMs' alone, and so are the checks of I9 at the commit: no
planner has a part in them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hudi_operator.plan.core import actions as act
from tests.support.world.simulated_store import LEASE, Pod, Process
from tests.support.world.simulated_world import World

ORDER = ("Fenced", "Terminating", "Draining", "Unlocked", "RollingBack", "Swept", "Settled")
"""Phases of settling as docs/design/protocol.md has them."""
OPERATOR = "operator"
PUBLISHING = 4
"""Step of a simulated writer at which its commit is sent."""
SUSPECT_BEATS = LEASE + 2
"""Seconds without a process that beats after which its heartbeat may be gone."""


@dataclass
class OnTheWire:
    """A commit that was sent by a process that has died since."""

    process: Process
    lands_at: float


class Watched(set[str]):
    """A set that reports additions and removals."""

    def __init__(self, comes: Callable[[str], None], goes: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self._comes, self._goes = comes, goes

    def add(self, item: str) -> None:
        self._comes(item)
        super().add(item)

    def remove(self, item: str) -> None:
        self._goes(item)
        super().remove(item)


class JudgedWorld(World):
    """The world with its judge.

    A rule that is broken is an AssertionError that names the invariant.
    """

    def __init__(self, **settings: Any) -> None:
        self.actor = ""
        """Acting party: an incarnation, `operator`, or empty (the world itself)."""
        self.owners: dict[str, str] = {}
        """Incarnation by the instant that it has recorded."""
        self.fenced: set[str] = set()
        self.unlocked: set[str] = set()
        self.acknowledged: set[str] = set()
        self.wire: list[OnTheWire] = []
        self.wire_seconds: float | None = None
        """Seconds for which the commit of the next process that is killed while it publishes is on
        the wire; None: it died with the process.
        """
        self.last_beat: dict[str, float] = {}
        self.writer_uids: dict[str, str] = {}
        """Uid of the HudiWriter by that of its driver's pod."""
        super().__init__(**settings)
        self.completed = Watched(self._lands, self._vanishes)
        self.rolled_back = Watched(self._is_rolled_back)

    # ---- the truth

    def bodies(self, inc: str) -> list[Process]:
        """Every process that runs an incarnation's code, executors too."""
        return [process for process in self.processes if process.inc == inc]

    def living(self, inc: str) -> list[Process]:
        return [process for process in self.bodies(inc) if process.alive]

    def _jvm(self, inc: str) -> Process | None:
        return next((process for process in self.bodies(inc) if process.role != "executor"), None)

    # ---- keys

    def put(self, key: str, value: dict[str, Any], lease: str = "") -> int:
        kind, _, name = key.partition("/")
        if kind == "lock":
            self._acquires(str(value["inc"]))
        elif kind in ("writer", "alive"):
            assert name not in self.fenced, f"{name} was fenced and puts {kind} (I2)"
        elif kind == "instant":
            self.owners[name] = str(value["inc"])
        elif kind == "fence":
            self._is_fenced(name)
        elif kind == "settle" and ORDER.index(value["phase"]) >= ORDER.index("Unlocked"):
            self.unlocked.add(name)
        if kind == "alive":
            self.last_beat[name] = self.now
        return super().put(key, value, lease)

    def drop(self, key: str) -> None:
        if key == "lock" and key in self.kv:
            self._is_unlocked(str(self.kv["lock"].value["inc"]))
        if key.startswith("instant/") and key in self.kv and self.actor == OPERATOR:
            instant = key.removeprefix("instant/")
            assert instant in self.completed or instant in self.rolled_back, (
                f"{instant} is forgotten, and nobody knows what became of it (I4)"
            )
        super().drop(key)

    def _acquires(self, inc: str) -> None:
        assert inc not in self.fenced, f"{inc} was fenced and acquires (I2)"
        assert self.actor == inc, f"{inc} has the lock by the doing of {self.actor} (I1)"
        others = [one.process.inc for one in self.wire if one.process.inc != inc]
        assert not others, f"{inc} acquires while the commit of {others[0]} is on the wire (I1)"

    def _is_unlocked(self, owner: str) -> None:
        if self.actor == owner:
            return
        assert self.actor == OPERATOR, f"the lock of {owner} is deleted by {self.actor or 'nobody'} (I1)"
        if self.kv["gate"].value["mode"] != "PodTermination":
            return
        running = self.living(owner)
        assert not running, f"the lock of {owner} is deleted while {running[0].pod} runs (I1)"
        drain = self.kv["gate"].value["lock"]["drainSeconds"]
        for process in self.bodies(owner):
            assert self.now - process.died_at >= drain, (
                f"the lock of {owner} is deleted {self.now - process.died_at} s after {process.pod} has died (I1)"
            )

    def _is_fenced(self, inc: str) -> None:
        assert self.actor == OPERATOR, f"{inc} is fenced by {self.actor} (I2)"
        assert self._excuse(inc), f"{inc} is well and is fenced ({self.kv[f'settle/{inc}'].value['reason']})"
        self.fenced.add(inc)

    # ---- instants

    def _lands(self, instant: str) -> None:
        owner = self.owners.get(instant, "")
        holder = self.kv["lock"].value["inc"] if "lock" in self.kv else ""
        assert owner, f"{instant} is completed, and nobody has recorded it (I7)"
        assert instant not in self.rolled_back, f"{instant} is completed after it was rolled back (I5)"
        assert owner not in self.unlocked, f"{instant} is completed after {owner} was Unlocked (I3)"
        assert holder == owner, f"{instant} of {owner} is completed while {holder or 'anybody'} may have the lock (I1)"
        self.acknowledged.add(instant)

    def _vanishes(self, instant: str) -> None:
        assert self.kv["gate"].value.get("restoring"), f"{instant} was acknowledged and is undone (I8)"
        self.acknowledged.discard(instant)

    def _is_rolled_back(self, instant: str) -> None:
        assert instant not in self.completed, f"{instant} is completed and is rolled back (I4)"
        owner = self.owners.get(instant, "")
        assert owner, f"{instant} is rolled back, and nobody has recorded it (I7)"
        assert owner in self.fenced, f"{instant} is rolled back, and {owner} was never fenced (I7)"
        if self.kv["gate"].value["mode"] == "PodTermination":
            running = self.living(owner)
            assert not running, f"{instant} is rolled back while {running[0].pod} runs (I7, I12)"
            assert not [one for one in self.wire if one.process.inc == owner], (
                f"{instant} is rolled back while its commit is on the wire (I3)"
            )

    # ---- processes

    def tick(self, seconds: float = 1.0) -> None:
        for one in [one for one in self.wire if one.lands_at <= self.now]:
            self.wire.remove(one)
            if one.process.instant not in self.completed:
                self.completed.add(one.process.instant)
        self.actor = ""
        super().tick(seconds)
        missing = self.acknowledged - self.completed
        assert not missing, f"{min(missing)} was acknowledged and is gone (I8)"

    def kill(self, process: Process, code: int = 137) -> None:
        publishing = process.alive and process.role == "writer" and process.step == PUBLISHING and self.holds(process)
        if publishing and self.wire_seconds is not None:
            self.wire.append(OnTheWire(process, self.now + self.wire_seconds))
        self.wire_seconds = None
        super().kill(process, code)

    def _start(self, pod: Pod) -> Process:
        process = super()._start(pod)
        if process.role == "writer":
            self.writer_uids[pod.uid] = pod.owner_uids[0] if pod.owner_uids else ""
            self._check_alone(process)
        return process

    def _check_alone(self, process: Process) -> None:
        for other in self.processes:
            same = (
                other is not process
                and other.role == "writer"
                and self.writer_uids.get(other.pod_uid) == self.writer_uids[process.pod_uid]
            )
            if same and other.alive and other.inc not in self.fenced:
                raise AssertionError(f"{process.pod} starts while {other.pod} runs and may commit (I9)")
            if same and other.alive and "lock" in self.kv and self.kv["lock"].value["inc"] == other.inc:
                raise AssertionError(f"{process.pod} starts while {other.pod} runs and has the lock (I9)")

    def _reads_progress(self, process: Process) -> None:
        """No commit of an earlier attempt may come after this."""
        super()._reads_progress(process)
        holder = self.kv["lock"].value["inc"] if "lock" in self.kv else ""
        late = {holder, *(one.process.inc for one in self.wire)}
        for other in self.processes:
            same = self.writer_uids.get(other.pod_uid) == self.writer_uids[process.pod_uid]
            if other is not process and other.role == "writer" and same and other.inc in late:
                raise AssertionError(f"{process.pod} reads its progress while {other.pod} may still commit (I9)")

    def _keepalive(self, process: Process) -> None:
        self.actor = process.inc
        super()._keepalive(process)

    def _writer(self, process: Process) -> None:
        self.actor = process.inc
        super()._writer(process)

    def _agent(self, process: Process) -> None:
        self.actor = process.inc
        super()._agent(process)

    def _clean_exit(self, process: Process) -> None:
        self.actor = process.inc
        super()._clean_exit(process)

    # ---- the operator

    def perform(self, action: act.Action) -> None:
        self.actor = OPERATOR
        if isinstance(action, act.DeletePod) or (isinstance(action, act.DeleteObject) and action.kind == "Pod"):
            self._judge_deletion(action.name, action.uid)
        if isinstance(action, act.DropEvidence):
            self._judge_evidence(action)
        try:
            super().perform(action)
        finally:
            self.actor = ""

    def _judge_deletion(self, name: str, uid: str) -> None:
        pod = self.pods.get(name)
        if (
            pod is None
            or pod.uid != uid
            or pod.process is None
            or not pod.process.alive
            or pod.deleting_since is not None
        ):
            return
        inc = pod.process.inc
        refused = pod.phase not in ("Running", "Pending")
        assert refused or inc in self.fenced or self._excuse(inc), f"the pod {name} is deleted while {inc} is well"

    def _judge_evidence(self, action: act.DropEvidence) -> None:
        pod = self.pods.get(action.name)
        if pod is None or pod.uid != action.uid:
            return
        for process in self.processes:
            if process.pod_uid != pod.uid:
                continue
            assert not process.alive, f"the evidence of {pod.name} is dropped while it runs (F14)"
            record = self.kv.get(f"settle/{process.inc}")
            if record is None:  # a lost executor of a driver that goes on is taken away
                assert process.role == "executor" or f"writer/{process.inc}" not in self.kv, (
                    f"the evidence of {pod.name} is dropped before {process.inc} is settled (F14)"
                )
            elif (
                ORDER.index(record.value["phase"]) < ORDER.index("Draining")
                and self.kv["gate"].value["mode"] == "PodTermination"
            ):
                # An executor that has ended before the record was begun is not in it, and nobody
                # waits for its proof.
                needed = {record.value["podUID"], *record.value["pods"]} - set(record.value["proofs"])
                assert pod.uid not in needed, f"the evidence of {pod.name} is dropped before its proof is written (F14)"

    # ---- why somebody may be ended

    def _excuse(self, inc: str) -> str:
        """A reason, in the world itself, to end an incarnation; empty: there is none."""
        process = self._jvm(inc)
        if process is None or not process.alive:
            return "it is dead"
        pod = self.pods.get(process.pod)
        if pod is None or pod.uid != process.pod_uid:
            return "its pod is gone"
        if pod.deleting_since is not None or pod.phase not in ("Running", "Pending"):
            return "its pod is deleted, or was refused"
        if process.registered and self.now - self.last_beat.get(inc, self.now) >= SUSPECT_BEATS:
            return "its heart has stood still"
        lock = self.kv.get("lock")
        if (
            lock is not None
            and lock.value["inc"] == inc
            and self.now_ms - lock.value["sinceMs"] >= 1000 * self._max_hold()
        ):
            return "it holds the lock for too long"
        return self._told_to_end(process, pod)

    def _max_hold(self) -> float:
        return float((self.table or {}).get("spec", {}).get("lock", {}).get("maxHoldSeconds", 0))

    def _told_to_end(self, process: Process, pod: Pod) -> str:
        if (
            self.terminating
            or self.table is None
            or self.table["metadata"].get("deletionTimestamp")
            or self.table["spec"].get("suspend")
        ):
            return "the table is deleted or suspended"
        if process.role == "agent":
            newer = [p for p in self.processes if p.role == "agent" and p.alive and p.registered and p is not process]
            return "another agent serves" if newer else ""
        owner = next((w for w in self.writers.values() if w["metadata"]["uid"] in pod.owner_uids), None)
        if owner is None or owner["metadata"].get("deletionTimestamp") or owner["spec"].get("suspend"):
            return "its writer is deleted or suspended"
        return "the gate is closed for a change" if self.kv["gate"].value.get("closedFor") else ""
