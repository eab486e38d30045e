"""A world in memory for the planner: API server, kubelet, etcd, JVMs and agents, with the truth beside what the operator may see.

The operator sees only what `World.observe` returns. `World.perform` executes actions with their preconditions and checks each one against
the truth: a lock is deleted only when its owner's processes are dead and drained (I1), nothing fenced acquires (I2), an instant is forgotten
only with an outcome (I4, I7), no pod of an attempt is made twice, evidence goes only when it is needed no more (F14).
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.model import naming, settle
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import ContainerFacts, EtcdFacts, NodeFacts, Observed, PodFacts, Stored
from hudi_operator.reconcile import actions as act
from hudi_operator.reconcile.agent_pods import unproven_uids
from hudi_operator.reconcile.table import plan_table

CONFIG = OperatorConfig()
NAMESPACE = "lake"
START_MS = 1_700_000_000_000
LEASE = 10.0
TERMINAL = ("Succeeded", "Failed")


class ConflictError(Exception):
    """A precondition of an action did not hold."""


class OperatorCrashError(Exception):
    """The operator died between two actions."""


@dataclass
class Pod:
    name: str
    uid: str
    labels: dict[str, str]
    owner_uids: tuple[str, ...]
    finalizers: list[str]
    grace: float
    node: str = ""
    phase: str = "Pending"
    exit_code: int | None = None
    message: str = ""
    deleting_since: float | None = None
    delete_grace: float = 30.0
    process: Process | None = None
    ended_at: str = ""


@dataclass
class Node:
    name: str
    uid: str
    boot_id: str
    ready: bool = True
    out_of_service: bool = False


@dataclass
class Process:
    """What really runs, whatever the API server says."""

    pod: str
    pod_uid: str
    role: str
    attempt: str
    inc: str
    node: str
    alive: bool = True
    paused: bool = False
    registered: bool = False
    step: int = 0
    instant: str = ""
    token: int = 0
    last_keepalive: float = 0.0
    n: int = 0
    died_at: float = 0.0
    ignores_sigterm: bool = False
    hang_at: int | None = None
    exit_code: int | None = None


@dataclass
class Key:
    value: dict[str, Any]
    create: int
    mod: int
    lease: str = ""


@dataclass
class World:
    schedulable: bool = True
    now: float = 0.0
    revision: int = 1
    kv: dict[str, Key] = field(default_factory=dict)
    table: dict[str, Any] | None = None
    writers: dict[str, dict[str, Any]] = field(default_factory=dict)
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Other HudiTables of the namespace, which writers read from."""
    applied: list[dict[str, Any]] = field(default_factory=list)
    pods: dict[str, Pod] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    timers: dict[str, float] = field(default_factory=dict)
    completed: set[str] = field(default_factory=set)
    rolled_back: set[str] = field(default_factory=set)
    created: list[str] = field(default_factory=list)
    events: list[act.EmitEvent] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    terminating: bool = False
    agent_hangs_at: str = ""
    """``first outcome``: agents die after the first outcome they have written."""
    table_error: dict[str, str] | None = None
    foreign: dict[str, str] = field(default_factory=dict)
    """Pending instants (and actions) of writers that know nothing of the lock."""
    beating: set[str] = field(default_factory=set)
    """Those of them whose heartbeat file is young."""
    bootstrap_hang_at: int | None = None
    """Step of a bootstrap at which new agents hang (None: they finish)."""
    bootstrap_error: str = ""
    """Why the dataset cannot be read; empty: it can."""
    bootstrapped: list[str] = field(default_factory=list)
    """Completed commits of bootstraps: never more than one."""
    writer_hang_at: int | None = None
    """Step at which new writer processes hang (None: they finish)."""
    executors_per_driver: int = 0
    exit_codes: list[int] = field(default_factory=list)
    """Exit codes of the next writers instead of a success (consumed)."""
    counter: Any = field(default_factory=lambda: itertools.count(1))
    proofs_seen_at: dict[str, float] = field(default_factory=dict)

    # ---- set-up

    def make_table(self, **spec: Any) -> None:
        self.table = self._object("HudiTable", "flights", {"path": "s3a://lake/flights", "recordKeyFields": ["id"], **spec})
        self.nodes.setdefault("n1", Node("n1", "node-uid-1", "boot-1"))

    def make_writer(self, name: str, **spec: Any) -> None:
        source = {"files": {"format": "csv", "paths": ["s3a://landing/x/"]}}
        self.writers[name] = self._object("HudiWriter", name, {"tableRef": {"name": "flights"}, "source": source, **spec})

    def _object(self, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        meta = {
            "namespace": NAMESPACE,
            "name": name,
            "uid": f"{kind.lower()}-uid-{next(self.counter):04d}",
            "generation": 1,
            "resourceVersion": str(next(self.counter)),
            "creationTimestamp": f"2026-01-01T00:00:{len(self.writers):02d}Z",
        }
        return {"apiVersion": naming.API_VERSION, "kind": kind, "metadata": meta, "spec": spec}

    def edit(self, obj: dict[str, Any], **spec: Any) -> None:
        obj["spec"].update(spec)
        obj["metadata"]["generation"] += 1
        self._touch(obj)

    def delete(self, obj: dict[str, Any]) -> None:
        obj["metadata"].setdefault("deletionTimestamp", "2026-01-02T00:00:00Z")
        self._touch(obj)
        self._collect_objects()

    def _touch(self, obj: dict[str, Any]) -> None:
        obj["metadata"]["resourceVersion"] = str(next(self.counter))

    def _collect_objects(self) -> None:
        if self.table is not None and self.table["metadata"].get("deletionTimestamp") and not self.table["metadata"].get("finalizers"):
            self.table = None
        for name, obj in list(self.writers.items()):
            if obj["metadata"].get("deletionTimestamp") and not obj["metadata"].get("finalizers"):
                del self.writers[name]
                for pod in list(self.pods.values()):  # garbage collection by owner
                    if obj["metadata"]["uid"] in pod.owner_uids:
                        self._mark_deleted(pod, 30)

    # ---- etcd

    def put(self, key: str, value: dict[str, Any], lease: str = "") -> int:
        self.revision += 1
        old = self.kv.get(key)
        self.kv[key] = Key(copy.deepcopy(value), old.create if old else self.revision, self.revision, lease)
        return self.revision

    def drop(self, key: str) -> None:
        if self.kv.pop(key, None) is not None:
            self.revision += 1

    def mod(self, key: str) -> int:
        return self.kv[key].mod if key in self.kv else 0

    def names(self, kind: str) -> dict[str, Key]:
        return {k.partition("/")[2]: v for k, v in self.kv.items() if k.startswith(kind + "/")}

    def _stored(self, kind: str) -> dict[str, Stored]:
        return {n: Stored(k.value, k.create, k.mod, 7 if k.lease else 0) for n, k in self.names(kind).items()}

    def _one(self, key: str) -> Stored | None:
        found = self.kv.get(key)
        return Stored(found.value, found.create, found.mod) if found else None

    def etcd_facts(self) -> EtcdFacts:
        return EtcdFacts(
            revision=self.revision,
            cluster_id="c1",
            gate=self._one("gate"),
            lock=self._one("lock"),
            clock=self._one("clock"),
            admits=self._stored("admit"),
            writers=self._stored("writer"),
            alive=self._stored("alive"),
            queue=self._stored("queue"),
            instants=self._stored("instant"),
            fences=self._stored("fence"),
            settles=self._stored("settle"),
            reports=self._stored("report"),
            done=self._stored("done"),
            assignment=self._one("assignment"),
            requests=self._stored("request"),
        )

    # ---- what the operator sees

    def pod_facts(self, pod: Pod) -> PodFacts:
        started = (pod.phase in ("Running", *TERMINAL) and pod.exit_code is not None) or pod.phase == "Running"
        return PodFacts(
            namespace=NAMESPACE,
            name=pod.name,
            uid=pod.uid,
            labels=dict(pod.labels),
            phase=pod.phase,
            node=pod.node,
            deleting=pod.deleting_since is not None,
            finalizers=tuple(pod.finalizers),
            containers=(ContainerFacts("main", started, pod.exit_code is not None, pod.exit_code, None, pod.message, pod.ended_at),),
            owner_uids=pod.owner_uids,
        )

    def observe(self) -> Observed:
        return Observed(
            table=self.table,
            writers=tuple(self.writers[n] for n in sorted(self.writers)),
            pods=tuple(self.pod_facts(p) for _, p in sorted(self.pods.items())),
            nodes={n.name: NodeFacts(n.name, n.uid, n.boot_id, n.ready, n.out_of_service) for n in self.nodes.values()},
            etcd=self.etcd_facts() if self.table is not None else None,
            timers={n: self.now - t for n, t in self.timers.items()},
            now_ms=self.now_ms,
            fresh_uuid=f"authority-{next(self.counter)}",
            source_tables=self.sources,
            namespace_terminating=self.terminating,
            agents_in_use=frozenset(),
            evidence_needed=frozenset(),
        )

    @property
    def now_ms(self) -> int:
        return START_MS + int(self.now * 1000)

    # ---- the operator

    def reconcile(self, crash_after: int | None = None) -> act.Plan:
        """One look; `crash_after`: die after that many actions, and lose all timers."""
        observed = self.observe()
        plan = plan_table(observed, CONFIG)
        self.sentences.append(plan.sentence)
        try:
            for number, action in enumerate(plan.actions):
                if crash_after is not None and number >= crash_after:
                    raise OperatorCrashError
                self.perform(action)
        except ConflictError:
            pass
        except OperatorCrashError:
            self.timers.clear()
        return plan

    def perform(self, action: act.Action) -> None:
        getattr(self, "_do_" + type(action).__name__)(action)

    def _target(self, kind: str, name: str) -> dict[str, Any]:
        found = self.table if kind == naming.TABLE_KIND else self.writers.get(name)
        if found is None:
            raise ConflictError("not found")
        return found

    def _do_PatchFinalizers(self, a: act.PatchFinalizers) -> None:
        obj = self._target(a.kind, a.name)
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if a.add and a.add not in finalizers:
            assert not obj["metadata"].get("deletionTimestamp"), "a finalizer cannot be added to a deleted object"
            finalizers.append(a.add)
        if a.remove in finalizers:
            finalizers.remove(a.remove)
            if a.kind == naming.TABLE_KIND:
                self._check_table_may_go()
        self._touch(obj)
        self._collect_objects()

    def _check_table_may_go(self) -> None:
        gate = self.kv.get("gate")
        if self.table is None or gate is None or gate.value["tableUid"] not in ("", self.table["metadata"]["uid"]):
            return
        assert "lock" not in self.kv, "the HudiTable went while the lock stood"
        for inc, key in self.names("writer").items():
            phase = self.kv[f"settle/{inc}"].value["phase"] if f"settle/{inc}" in self.kv else "none"
            assert phase in ("Unlocked", "RollingBack", "Swept", "Settled"), f"the HudiTable went while {key.value['attempt']} was {phase}"

    def _do_UpdateStatus(self, a: act.UpdateStatus) -> None:
        obj = self._target(a.kind, a.name)
        if obj["metadata"]["resourceVersion"] != a.resource_version:
            raise ConflictError("resourceVersion")
        assert obj.get("status") != a.status, "a status that has not changed is not written"
        obj["status"] = copy.deepcopy(a.status)
        self._touch(obj)

    def _do_Apply(self, a: act.Apply) -> None:
        assert not self.terminating, "nothing can be created in a terminating namespace"
        self.applied.append(a.manifest)

    def _do_CreatePod(self, a: act.CreatePod) -> None:
        meta = a.manifest["metadata"]
        assert not self.terminating, "nothing can be created in a terminating namespace"
        if meta["name"] in self.pods:
            return
        # An agent's number may come back once nothing of the old one is left; an attempt's never.
        again = meta["labels"][naming.LABEL_ROLE] != "agent" or any(k.value["pod"] == meta["name"] for k in self.names("settle").values())
        assert meta["name"] not in self.created or not again, f"pod {meta['name']} is made a second time"
        self._check_successor(meta["name"], meta["labels"])
        self.created.append(meta["name"])
        assert naming.EVIDENCE_FINALIZER in meta["finalizers"]
        owners = tuple(o["uid"] for o in meta.get("ownerReferences", []))
        uid = f"pod-uid-{next(self.counter)}"
        self.pods[meta["name"]] = Pod(
            meta["name"], uid, dict(meta["labels"]), owners, list(meta["finalizers"]), a.manifest["spec"].get("terminationGracePeriodSeconds", 30)
        )

    def _check_successor(self, name: str, labels: dict[str, str]) -> None:
        """F5: when an attempt starts, no older one of its writer can hold or get the lock."""
        if labels[naming.LABEL_ROLE] != "driver":
            return
        older = f"{NAMESPACE}.{name.rpartition('-')[0]}-"
        mine = f"{NAMESPACE}.{name}"
        assert not [a for a in self.names("admit") if a.startswith(older) and a != mine], f"{name} starts while an older attempt may register"
        for inc, key in self.names("writer").items():
            if key.value["attempt"].startswith(older) and key.value["attempt"] != mine:
                assert f"fence/{inc}" in self.kv, f"{name} starts while {key.value['attempt']} is not fenced (F5)"
                assert "lock" not in self.kv or self.kv["lock"].value["inc"] != inc, f"{name} starts while {key.value['attempt']} has the lock (F5)"

    def _do_DeletePod(self, a: act.DeletePod) -> None:
        assert a.grace_seconds > 0, "never force"
        pod = self.pods.get(a.name)
        if pod is not None and pod.uid == a.uid:
            self._mark_deleted(pod, a.grace_seconds)

    def _mark_deleted(self, pod: Pod, grace: float) -> None:
        if pod.deleting_since is None:
            pod.deleting_since, pod.delete_grace = self.now, grace
        else:
            pod.delete_grace = min(pod.delete_grace, self.now - pod.deleting_since + grace)
        self._remove_if_done(pod)

    def _remove_if_done(self, pod: Pod) -> None:
        done = pod.phase in TERMINAL or not pod.node
        if pod.deleting_since is not None and not pod.finalizers and done and self.pods.get(pod.name) is pod:
            del self.pods[pod.name]

    def _do_DropEvidence(self, a: act.DropEvidence) -> None:
        pod = self.pods.get(a.name)
        if pod is None or pod.uid != a.uid:
            return
        running = pod.process is not None and pod.process.alive
        assert not running, f"evidence of {a.name} dropped while its process runs"
        assert pod.uid not in unproven_uids(self.etcd_facts()), f"evidence of {a.name} dropped before its proof was written"
        if naming.EVIDENCE_FINALIZER in pod.finalizers:
            pod.finalizers.remove(naming.EVIDENCE_FINALIZER)
        self._remove_if_done(pod)

    def _do_DeleteObject(self, a: act.DeleteObject) -> None:
        pod = self.pods.get(a.name)
        if a.kind == "Pod" and pod is not None and pod.uid == a.uid:
            self._mark_deleted(pod, 30)

    def _do_EmitEvent(self, a: act.EmitEvent) -> None:
        self.events.append(a)

    def _do_PutGate(self, a: act.PutGate) -> None:
        if self.mod("gate") != a.expected_mod:
            raise ConflictError("gate")
        old = self.kv["gate"].value if "gate" in self.kv else None
        if old and any(old.get(k) != a.value.get(k) for k in ("mode", "lock")):
            writers = [k.value["attempt"] for i, k in self.names("writer").items() if k.value["role"] == "writer" and f"settle/{i}" not in self.kv]
            assert not writers, f"mode or durations changed under {writers} (F8)"
            assert old["state"] != "open", "mode or durations changed with an open gate (F8)"
        self.put("gate", a.value)

    def _do_PutAdmit(self, a: act.PutAdmit) -> None:
        fenced = any(k.value["attempt"] == a.attempt for k in self.names("settle").values())
        if fenced:
            raise ConflictError("fenced")
        if f"admit/{a.attempt}" not in self.kv:
            self.put(f"admit/{a.attempt}", {"attempt": a.attempt, "role": a.role})

    def _do_DeleteAdmit(self, a: act.DeleteAdmit) -> None:
        self.drop(f"admit/{a.attempt}")

    def _do_PutAssignment(self, a: act.PutAssignment) -> None:
        if a.value is None:
            self.drop("assignment")
        else:
            self.put("assignment", a.value)

    def _do_Fence(self, a: act.Fence) -> None:
        if f"fence/{a.inc}" in self.kv or (a.if_not_alive and f"alive/{a.inc}" in self.kv):
            raise ConflictError("fence")
        self.put(f"settle/{a.inc}", a.settle)
        self.put(f"fence/{a.inc}", {"inc": a.inc})
        self.drop(f"alive/{a.inc}")
        self.drop(f"admit/{a.attempt}")

    def _do_Adopt(self, a: act.Adopt) -> None:
        if self.mod("gate") != a.gate_mod or f"settle/{a.inc}" in self.kv or any(f"instant/{t}" in self.kv for t in a.settle["instants"]):
            raise ConflictError("adopt")
        assert self.kv["gate"].value["state"] == "closed", "instants are adopted behind the closed gate only (I7)"
        assert not self.beating & set(a.settle["instants"]), "an instant of a living writer is adopted (I7)"
        named = set((self.table or {})["spec"]["adoption"]["rollbackInstants"])
        assert set(a.settle["instants"]) <= named, "an instant that nobody has named is adopted (I7)"
        self.put(f"settle/{a.inc}", a.settle)
        self.put(f"fence/{a.inc}", {"inc": a.inc})
        for instant, item in a.settle["instants"].items():
            self.put(f"instant/{instant}", {"inc": a.inc, "action": item["action"], "state": "Pending"})

    def _do_UpdateSettle(self, a: act.UpdateSettle) -> None:
        if self.mod(f"settle/{a.inc}") != a.expected_mod:
            raise ConflictError("settle")
        before = settle.phase_of(self.kv[f"settle/{a.inc}"].value) if a.expected_mod else settle.Phase.Fenced
        after = settle.phase_of(a.value)
        assert after >= before or before >= settle.Phase.Unlocked, f"{a.inc}: {before.name} → {after.name}"
        if after >= settle.Phase.Draining and self.kv["gate"].value["mode"] == "PodTermination":
            self._check_dead(a.inc, f"phase {after.name}")
        if after is settle.Phase.Draining:
            self.proofs_seen_at.setdefault(a.inc, self.now)
        self.put(f"settle/{a.inc}", a.value)

    def _check_dead(self, inc: str, what: str) -> None:
        alive = [p for p in self.processes if p.inc == inc and p.alive]
        assert not alive, f"{what} of {inc} while its process runs in pod {alive[0].pod} (I1)"

    def _do_Unlock(self, a: act.Unlock) -> None:
        if "lock" not in self.kv or self.kv["lock"].create != a.create_revision or f"fence/{a.inc}" not in self.kv:
            raise ConflictError("unlock")
        assert self.kv["lock"].value["inc"] == a.inc
        if self.kv["gate"].value["mode"] == "PodTermination":
            self._check_dead(a.inc, "unlock")
            drain = self.kv["gate"].value["lock"]["drainSeconds"]
            assert self.now - self.proofs_seen_at[a.inc] >= drain, f"{a.inc} unlocked before it was drained (I1)"
        self.drop("lock")

    def _do_FinishSettle(self, a: act.FinishSettle) -> None:
        if self.mod(f"settle/{a.inc}") != a.expected_mod:
            raise ConflictError("settled")
        for instant, mod in a.instants:
            key = self.kv.get(f"instant/{instant}")
            if key is None or key.mod != mod:
                raise ConflictError("instant")
            assert key.value["inc"] == a.inc, "an instant of somebody else is forgotten (I7)"
            assert instant in self.completed or instant in self.rolled_back, f"{instant} is forgotten before it was settled (I4)"
        self.put(f"settle/{a.inc}", a.value)
        for instant, _ in a.instants:
            self.drop(f"instant/{instant}")
        self.drop(f"writer/{a.inc}")

    def _do_Collect(self, a: act.Collect) -> None:
        if self.mod(f"settle/{a.inc}") != a.expected_mod or f"writer/{a.inc}" in self.kv:
            raise ConflictError("collect")
        assert self.kv[f"settle/{a.inc}"].value["phase"] == "Settled", f"the fence of {a.inc} is collected before it is settled (I2)"
        self._check_dead(a.inc, "collect")
        self.drop(f"settle/{a.inc}")
        self.drop(f"fence/{a.inc}")

    def _do_DeleteReport(self, a: act.DeleteReport) -> None:
        self.drop(f"report/{a.kind}")

    def _do_PutRequest(self, a: act.PutRequest) -> None:
        if a.value is None:
            self.drop(f"request/{a.id}")
        else:
            self.put(f"request/{a.id}", a.value)

    def _do_StartTimer(self, a: act.StartTimer) -> None:
        self.timers.setdefault(a.name, self.now)

    def _do_StopTimer(self, a: act.StopTimer) -> None:
        self.timers.pop(a.name, None)

    # ---- the rest of the world

    def tick(self, seconds: float = 1.0) -> None:
        self.now += seconds
        for key in [k for k, v in self.kv.items() if v.lease and self._lease_is_over(v.lease)]:
            self.drop(key)
        for pod in list(self.pods.values()):
            self._kubelet(pod)
        for process in self.processes:
            if process.alive and not process.paused:
                self._keepalive(process)
            if process.alive and not process.paused and process.role != "executor":
                (self._agent if process.role == "agent" else self._writer)(process)
        for pod in list(self.pods.values()):
            self._kubelet_status(pod)

    def _lease_is_over(self, inc: str) -> bool:
        process = next((p for p in self.processes if p.inc == inc), None)
        return process is None or self.now - process.last_keepalive >= LEASE

    def _kubelet(self, pod: Pod) -> None:
        if not pod.node:
            if pod.deleting_since is not None:
                return
            if not self.schedulable:
                return
            pod.node = next((n.name for n in self.nodes.values() if n.ready), "")
            return
        node = self.nodes.get(pod.node)
        if node is None or not node.ready:
            return
        if pod.phase == "Pending" and pod.deleting_since is None:
            pod.phase = "Running"
            pod.process = self._start(pod)
        if pod.deleting_since is not None and pod.process is not None and pod.process.alive:
            over = self.now - pod.deleting_since >= pod.delete_grace
            if over or (not pod.process.ignores_sigterm and not pod.process.paused):
                self._sigterm_or_kill(pod.process)

    def _sigterm_or_kill(self, process: Process) -> None:
        clean = (process.role == "agent" and "lock" in self.kv and self.kv["lock"].value["inc"] != process.inc) or "lock" not in self.kv
        if process.role == "agent" and clean and not process.paused:
            self._clean_exit(process)
        self.kill(process, 143)

    def _kubelet_status(self, pod: Pod) -> None:
        node = self.nodes.get(pod.node)
        if node is None or not node.ready or pod.phase in TERMINAL:
            self._remove_if_done(pod)
            return
        if pod.phase == "Running" and pod.process is not None and not pod.process.alive and pod.exit_code is None:
            # The container's end is told a moment before the pod's.
            pod.exit_code = pod.process.exit_code if pod.process.exit_code is not None else 137
        elif pod.phase == "Running" and pod.process is not None and not pod.process.alive:
            pod.exit_code = pod.process.exit_code if pod.process.exit_code is not None else 137
            pod.phase = "Succeeded" if pod.exit_code == 0 else "Failed"
            pod.ended_at = f"2023-11-14T22:{13 + int(self.now) // 60:02d}:{20 + int(self.now) % 40:02d}Z"
        elif pod.phase == "Pending" and pod.deleting_since is not None:
            pod.phase = "Failed"
        self._remove_if_done(pod)

    def _start(self, pod: Pod) -> Process:
        role = pod.labels[naming.LABEL_ROLE]
        attempt = naming.attempt_id(NAMESPACE, pod.labels.get(naming.LABEL_DRIVER) or pod.name)
        process = Process(pod.name, pod.uid, role, attempt, f"inc-{next(self.counter)}", pod.node)
        if role == "driver":
            process.role, process.hang_at = "writer", self.writer_hang_at
            process.exit_code = self.exit_codes.pop(0) if self.exit_codes else None
            for number in range(self.executors_per_driver):
                self._make_executor(pod, number, process.inc)
        self.processes.append(process)
        return process

    def _make_executor(self, driver: Pod, number: int, inc: str) -> None:
        labels = {**driver.labels, naming.LABEL_ROLE: "executor", naming.LABEL_COMPONENT: "executor"}
        name = f"{driver.name}-exec-{number}"
        pod = Pod(name, f"pod-uid-{next(self.counter)}", labels, (driver.uid,), [naming.EVIDENCE_FINALIZER], 30, node=driver.node, phase="Running")
        pod.process = Process(name, pod.uid, "executor", "", inc, driver.node)
        self.processes.append(pod.process)
        self.pods[name] = pod

    def kill(self, process: Process, code: int = 137) -> None:
        if process.alive:
            process.alive, process.died_at = False, self.now
            if process.exit_code is None or code != 0:
                process.exit_code = code

    def _keepalive(self, process: Process) -> None:
        if not process.registered or process.role == "executor":
            return
        if f"fence/{process.inc}" in self.kv:
            self.kill(process, 15)
            return
        if self.now - process.last_keepalive >= 3:
            process.last_keepalive, process.n = self.now, process.n + 1
            self.put(f"alive/{process.inc}", {"inc": process.inc, "n": process.n}, lease=process.inc)

    def _register(self, process: Process) -> bool:
        if f"admit/{process.attempt}" not in self.kv or f"fence/{process.inc}" in self.kv:
            return False
        value = {
            "inc": process.inc,
            "attempt": process.attempt,
            "role": process.role,
            "pod": process.pod,
            "namespace": NAMESPACE,
            "podUid": process.pod_uid,
            "node": process.node,
            "bootId": self.nodes[process.node].boot_id,
            "wallClockMs": self.now_ms,
        }
        self.put(f"writer/{process.inc}", value)
        process.registered, process.last_keepalive = True, self.now
        self.put(f"alive/{process.inc}", {"inc": process.inc, "n": 1}, lease=process.inc)
        return True

    def _admits(self, process: Process) -> bool:
        gate = self.kv.get("gate")
        if gate is None or gate.value["state"] == "frozen":
            return False
        return gate.value["state"] == "open" or process.role == "agent" or process.attempt in gate.value["admitted"]

    def acquire(self, process: Process) -> bool:
        """The acquire transaction with its compares."""
        if "lock" in self.kv or f"fence/{process.inc}" in self.kv or f"alive/{process.inc}" not in self.kv or not self._admits(process):
            return False
        value = {"inc": process.inc, "attempt": process.attempt, "podUid": process.pod_uid, "nonce": "x", "sinceMs": self.now_ms}
        process.token = self.put("lock", value)
        return True

    def _clean_exit(self, process: Process) -> None:
        if f"fence/{process.inc}" not in self.kv:
            self.drop(f"alive/{process.inc}")
            self.drop(f"writer/{process.inc}")
        process.registered = False

    def holds(self, process: Process) -> bool:
        return "lock" in self.kv and self.kv["lock"].create == process.token and self.kv["lock"].value["inc"] == process.inc

    def _writer(self, process: Process) -> None:
        """register, acquire, record, check, PUT, release, clean exit: one step per tick."""
        if process.hang_at is not None and process.step >= process.hang_at:
            return
        if process.step == 0 and process.exit_code is not None:
            self._register(process)
            self._clean_exit(process)
            self.kill(process, process.exit_code)
            return
        if self._writer_step(process):
            process.step += 1

    def _writer_step(self, process: Process) -> bool:
        match process.step:
            case 0:
                if not self._register(process):
                    self.kill(process, 11)
                return process.alive
            case 1:
                return self.acquire(process)
            case 2:
                process.instant = f"2026010100000{next(self.counter):04d}"
                self.put(f"instant/{process.instant}", {"inc": process.inc, "action": "commit", "state": "Pending"})
                return True
            case 3:  # the check; the PUT leaves in the next step, however long that takes
                return self.holds(process)
            case 4:
                owner = self.kv["lock"].value["inc"] if "lock" in self.kv else ""
                assert owner == process.inc, "a commit landed while somebody else could hold the lock (I1)"
                self.completed.add(process.instant)
                return True
            case 5:
                self.drop("lock")
                self.drop(f"instant/{process.instant}")
                value = {"inc": process.inc, "records": 10, "commits": 1, "lastInstant": process.instant, "conflicts": []}
                self.put(f"report/attempt/{process.attempt}", value)
                return True
            case _:
                self._clean_exit(process)
                process.exit_code = 0
                self.kill(process, 0)
                return True

    def _agent(self, process: Process) -> None:
        if "assignment" not in self.kv:
            if process.registered:
                self._clean_exit(process)
            return
        if not process.registered:
            self._register(process)
            return
        report: dict[str, Any] = {"agentInc": process.inc, "exists": self.table_error is None, "pendingCount": len(self.names("instant"))}
        if self.table_error is not None:
            report["error"] = self.table_error
        left = {t: action for t, action in self.foreign.items() if t not in self.rolled_back and f"instant/{t}" not in self.kv}
        if left:
            report["foreign"] = [{"instant": t, "action": left[t], **({"beating": True} if t in self.beating else {})} for t in sorted(left)]
            gate = self.kv["gate"].value
            if not gate.get("adopted") and gate["state"] != "open":
                report["error"] = {"code": "PendingInstants", "message": "pending instants"}
        elif any(k.value["reason"] == "Adopted" and k.value["phase"] not in ("Swept", "Settled") for k in self.names("settle").values()):
            self._settle_all(process)
            return
        if "report/timeline" not in self.kv or self.kv["report/timeline"].value != report:
            self.put("report/timeline", report)
        self._settle_all(process)
        for id in self.names("request"):
            if id.startswith("savepoint-") and f"done/{id}" not in self.kv:
                self._savepoint(id)
        if "request/bootstrap" in self.kv:
            self._bootstrap(process, self.kv["request/bootstrap"].value)

    def _bootstrap(self, process: Process, request: dict[str, Any]) -> None:
        """Written ahead, acquire, record, PUT, release, done: one step per tick, each but the first only when nothing is left of another agent."""
        done = self.kv["done/bootstrap"].value if "done/bootstrap" in self.kv else {}
        if done.get("result") == "Completed" or (self.bootstrap_hang_at is not None and process.step >= self.bootstrap_hang_at):
            return
        gate = self.kv["gate"].value
        assert gate["state"] == "closed", "a bootstrap is asked for while the gate is open (R14)"
        assert not gate.get("adopted"), "a bootstrap is asked for after the gate was open (R14)"
        assert not [p for p in self.processes if p.role == "writer" and p.alive], "a bootstrap is asked for while a writer runs (R14)"
        base = {"tableUid": request["tableUid"], "mode": request["mode"], "source": request["path"], "beginMs": done.get("beginMs") or self.now_ms}
        if process.step == 0 and any(k.value["phase"] not in ("Swept", "Settled") for k in self.names("settle").values()):
            return
        if process.step == 0 and self.bootstrap_error:
            failures = int(done.get("failures") or 0) + 1
            self.put("done/bootstrap", {**base, "result": "Failed", "code": "SourceInvalid", "message": self.bootstrap_error, "failures": failures})
            return
        if process.step == 0 and not self.bootstrapped:
            self.put("done/bootstrap", {**base, "result": "Running", "failures": int(done.get("failures") or 0) + 1})
        if self.bootstrapped and not process.instant:  # of an agent that died before its word
            process.step = 5
        if self._bootstrap_step(process, base):
            process.step += 1

    def _bootstrap_step(self, process: Process, base: dict[str, Any]) -> bool:
        match process.step:
            case 1:
                return self.acquire(process)
            case 2:
                process.instant = f"2026010100000{next(self.counter):04d}"
                self.put(f"instant/{process.instant}", {"inc": process.inc, "action": "commit", "state": "Pending"})
            case 3:
                assert self.holds(process), "a commit landed while somebody else could hold the lock (I1)"
                assert not self.bootstrapped, "a table was bootstrapped twice"
                self.completed.add(process.instant)
                self.bootstrapped.append(process.instant)
            case 4:
                self.drop("lock")
                self.drop(f"instant/{process.instant}")
            case 5:
                counts = {"records": 7, "files": 2, "bytes": 100}
                self.put("done/bootstrap", {**base, **counts, "result": "Completed", "instant": self.bootstrapped[0], "endMs": self.now_ms, "failures": 0})
            case _:
                pass
        return True

    def _savepoint(self, id: str) -> None:
        gate = self.kv["gate"].value
        assert gate["state"] == "closed", f"{id} is asked for while the gate is open"
        assert not [a for a in gate["admitted"] if f"admit/{a}" in self.kv], f"{id} is asked for while an attempt may still register"
        assert not [p for p in self.processes if p.role == "writer" and p.alive and p.registered], f"{id} is asked for while a writer runs"
        if self.names("instant"):
            return  # a dead writer's: it is settled first
        instants = max(self.completed, default="")
        value = {"result": "Failed", "message": "no commit"}
        if instants:
            value = {"result": "Completed", "instant": instants, "completionTime": instants, "boundary": instants}
        self.put(f"done/{id}", {"name": id, "atMs": self.now_ms, **value})

    def _settle_all(self, process: Process) -> None:
        for inc, key in self.names("settle").items():
            if key.value["phase"] == "RollingBack":
                self._roll_back(process, inc, copy.deepcopy(key.value))

    def _roll_back(self, process: Process, inc: str, record: dict[str, Any]) -> None:
        for instant, key in self.names("instant").items():
            if key.value["inc"] != inc or (record["instants"].get(instant) or {}).get("outcome"):
                continue
            if self.kv["gate"].value["mode"] == "PodTermination":
                self._check_dead(inc, "rollback")
            outcome = "Completed" if instant in self.completed else "RolledBack"
            if outcome == "RolledBack":
                self.rolled_back.add(instant)
            record["instants"][instant] = {"action": "commit", "outcome": outcome, "failures": 0}
            self.put(f"settle/{inc}", record)
            if self.agent_hangs_at == "first outcome":
                self.agent_hangs_at = ""
                self.kill(process, 137)
                return
        self.put(f"settle/{inc}", {**record, "phase": "Swept"})

    # ---- driving

    def run(self, until: Any, seconds: int = 400, crash_every: int = 0) -> None:
        """Reconcile and tick until a condition holds; fails when it does not come to pass."""
        for number in range(seconds):
            if until(self):
                return
            crash = number % 17 if crash_every and number % crash_every == 0 else None
            self.reconcile(crash_after=crash)
            if until(self):
                return
            self.tick()
        raise AssertionError("did not come to pass; last: " + " | ".join(self.sentences[-5:]) + f"\n{self.summary()}")

    def settle_down(self, seconds: int = 200) -> None:
        """Run until nothing but timers is planned for 20 looks in a row: no livelock."""
        quiet = 0
        for _ in range(seconds):
            plan = self.reconcile()
            quiet = quiet + 1 if all(isinstance(a, act.StartTimer | act.StopTimer) for a in plan.actions) else 0
            if quiet >= 20:
                return
            self.tick()
        raise AssertionError("never comes to rest: " + " | ".join(self.sentences[-5:]))

    def summary(self) -> str:
        keys = {k: v.value.get("phase") or v.value.get("state") or "" for k, v in self.kv.items()}
        pods = {p.name: (p.phase, p.node, "deleting" if p.deleting_since is not None else "", p.finalizers) for p in self.pods.values()}
        return f"{keys}\n{pods}"

    def condition(self, obj: dict[str, Any] | None, kind: str) -> dict[str, Any]:
        for item in ((obj or {}).get("status") or {}).get("conditions") or []:
            if item["type"] == kind:
                return dict(item)
        return {"status": "Missing", "reason": "", "message": ""}

    def is_true(self, obj: dict[str, Any] | None, kind: str) -> bool:
        return bool(self.condition(obj, kind)["status"] == "True")

    def writer_process(self, name: str) -> Process | None:
        mine = [p for p in self.processes if p.role == "writer" and p.pod.startswith(name + "-")]
        return mine[-1] if mine else None

    def agent_process(self) -> Process | None:
        mine = [p for p in self.processes if p.role == "agent" and p.alive]
        return mine[-1] if mine else None

    def fail_node(self, name: str, *, processes_die: bool) -> None:
        self.nodes[name].ready = False
        for process in self.processes:
            if process.node == name and processes_die:
                self.kill(process)

    def reboot_node(self, name: str) -> None:
        for process in self.processes:
            if process.node == name:
                self.kill(process)
        node = self.nodes[name]
        node.ready, node.boot_id = True, node.boot_id + "+"

    def force_delete(self, pod: Pod) -> None:
        """A person force-deletes the pod and strips finalizers; the process lives on."""
        pod.finalizers.clear()
        del self.pods[pod.name]


def finished(name: str) -> Any:
    return lambda w: w.is_true(w.writers[name], "Finished")


def at_step(name: str, step: int) -> Any:
    def reached(world: World) -> bool:
        process = world.writer_process(name)
        return process is not None and process.alive and process.step >= step

    return reached


__all__ = ["NAMESPACE", "Node", "World", "at_step", "finished"]
