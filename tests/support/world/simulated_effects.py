"""Effects of the operator's actions on a simulated world: their preconditions, and a check of each
against the truth.
"""

from __future__ import annotations

import copy
from typing import Any

from hudi_contract import naming, settle
from hudi_operator.model.facts import HeldConfigMap
from hudi_operator.plan.agent.agent_pods import unproven_uids
from hudi_operator.plan.core import actions as act
from tests.support import crds
from tests.support.world.simulated_store import NAMESPACE, ConflictError, Pod, Store

STATUS = {
    naming.TABLE_KIND: crds.schema("huditables", "status"),
    naming.WRITER_KIND: crds.schema("hudiwriters", "status"),
}


class Effects(Store):
    """`perform` does what an action says.

    Raises ConflictError when a precondition does not hold, AssertionError when a rule is broken.
    """

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
        assert not self.held, f"nobody will release {sorted(self.held)} (F200)"
        gate = self.kv.get("gate")
        if self.table is None or gate is None or gate.value["tableUID"] not in ("", self.table["metadata"]["uid"]):
            return
        assert "lock" not in self.kv, "the HudiTable went while the lock stood"
        for inc, key in self.names("writer").items():
            phase = self.kv[f"settle/{inc}"].value["phase"] if f"settle/{inc}" in self.kv else "none"
            assert phase in ("Unlocked", "RollingBack", "Swept", "Settled"), (
                f"the HudiTable went while {key.value['attempt']} was {phase}"
            )

    def _do_UpdateStatus(self, a: act.UpdateStatus) -> None:
        obj = self._target(a.kind, a.name)
        if obj["metadata"]["resourceVersion"] != a.resource_version:
            raise ConflictError("resourceVersion")
        assert obj.get("status") != a.status, "a status that has not changed is not written"
        assert crds.refused(a.status, STATUS[a.kind], "status") == []
        obj["status"] = copy.deepcopy(a.status)
        self._touch(obj)

    def _do_Apply(self, a: act.Apply) -> None:
        assert not self.terminating, "nothing can be created in a terminating namespace"
        self.applied.append(a.manifest)
        meta = a.manifest["metadata"]
        if a.manifest["kind"] == "ConfigMap" and naming.EVIDENCE_FINALIZER in meta.get("finalizers", ()):
            writer = meta["labels"].get(naming.LABEL_WRITER, "")
            self.held[meta["name"]] = HeldConfigMap(NAMESPACE, meta["name"], f"uid-of-{meta['name']}", writer)

    def _do_Ensure(self, a: act.Ensure) -> None:
        self._do_Apply(a)

    def _do_HoldConfigMap(self, a: act.HoldConfigMap) -> None:
        assert self.unheld[a.name].uid == a.uid
        self.held[a.name] = self.unheld.pop(a.name)

    def _do_ReleaseConfigMap(self, a: act.ReleaseConfigMap) -> None:
        pod = self.pods.get(a.name)
        assert pod is None or naming.EVIDENCE_FINALIZER not in pod.finalizers, (
            f"the executors of {a.name} are compared with nothing (F200)"
        )
        assert f"admit/{NAMESPACE}.{a.name}" not in self.kv, f"{a.name} may still get a pod (F200)"
        self.held.pop(a.name, None)

    def _do_CreatePod(self, a: act.CreatePod) -> None:
        meta = a.manifest["metadata"]
        assert not self.terminating, "nothing can be created in a terminating namespace"
        if meta["name"] in self.pods:
            return
        # An agent's number may come back once nothing of the old one is left; an attempt's never.
        again = meta["labels"][naming.LABEL_ROLE] != "agent" or any(
            k.value["pod"] == meta["name"] for k in self.names("settle").values()
        )
        assert meta["name"] not in self.created or not again, f"pod {meta['name']} is made a second time"
        self._check_successor(meta["name"], meta["labels"])
        self.created.append(meta["name"])
        assert naming.EVIDENCE_FINALIZER in meta["finalizers"]
        owners = tuple(o["uid"] for o in meta.get("ownerReferences", []))
        uid = self.pod_uid()
        grace = a.manifest["spec"].get("terminationGracePeriodSeconds", 30)
        self.pods[meta["name"]] = Pod(
            meta["name"], uid, dict(meta["labels"]), owners, list(meta["finalizers"]), grace, beside=self.beside
        )
        mounted = [v["secret"]["secretName"] for v in a.manifest["spec"]["volumes"] if "secret" in v]
        self.pods[meta["name"]].secrets = tuple(mounted)

    def _do_CreateKey(self, a: act.CreateKey) -> None:
        meta = a.manifest["metadata"]
        assert not self.terminating, "nothing can be created in a terminating namespace"
        (owner,) = meta["ownerReferences"]
        pod = self.pods.get(owner["name"])
        assert pod is not None
        assert (pod.uid, pod.phase) == (owner["uid"], "Pending"), "a key of a pod that has begun without one"
        self.keys.add(meta["name"])

    def _do_AskExecutors(self, a: act.AskExecutors) -> None:
        pod = self.pods.get(a.driver)
        assert pod is not None
        assert (pod.uid, a.attempt) == (a.uid, naming.attempt_id(a.namespace, a.driver))
        answer = self._answers().get(a.attempt)
        assert answer is None or answer.seconds == 0, "asked too often"
        self.asked.append((self.now, a.attempt))
        self.executor_answers[a.attempt] = self.executors_refused

    def _check_successor(self, name: str, labels: dict[str, str]) -> None:
        """F5: when an attempt starts, no older one of its writer can get the lock.

        One that holds it is proven dead, and the next one is no program.
        """
        if labels[naming.LABEL_ROLE] != "driver":
            return
        older = f"{NAMESPACE}.{name.rpartition('-')[0]}-"
        mine = f"{NAMESPACE}.{name}"
        assert not [a for a in self.names("admit") if a.startswith(older) and a != mine], (
            f"{name} starts while an older attempt may register"
        )
        for inc, key in self.names("writer").items():
            if key.value["attempt"].startswith(older) and key.value["attempt"] != mine:
                assert f"fence/{inc}" in self.kv, f"{name} starts while {key.value['attempt']} is not fenced (F5)"
                if "lock" in self.kv and self.kv["lock"].value["inc"] == inc:
                    phase = self.kv[f"settle/{inc}"].value["phase"]
                    assert phase == "Draining", f"{name} starts while {key.value['attempt']}, {phase}, has the lock"
                    spec = self.writers[labels[naming.LABEL_WRITER]]["spec"]
                    assert "application" not in spec, f"the program {name} starts while an older one has the lock (F5)"

    def _do_DeletePod(self, a: act.DeletePod) -> None:
        assert a.grace_seconds > 0, "never force"
        pod = self.pods.get(a.name)
        if pod is not None and pod.uid == a.uid:
            self._mark_deleted(pod, a.grace_seconds)

    def _do_DropEvidence(self, a: act.DropEvidence) -> None:
        pod = self.pods.get(a.name)
        if pod is None or pod.uid != a.uid:
            return
        running = pod.process is not None and pod.process.alive
        assert not running, f"evidence of {a.name} dropped while its process runs"
        assert pod.uid not in unproven_uids(self.etcd_facts()), (
            f"evidence of {a.name} dropped before its proof was written"
        )
        assert f"admit/{NAMESPACE}.{a.name}" not in self.kv, f"{a.name} may still be registered (F615)"
        if naming.EVIDENCE_FINALIZER in pod.finalizers:
            pod.finalizers.remove(naming.EVIDENCE_FINALIZER)
        self._remove_if_done(pod)

    def _do_DeleteObject(self, a: act.DeleteObject) -> None:
        pod = self.pods.get(a.name)
        if a.kind == "Pod" and pod is not None and pod.uid == a.uid:
            self._mark_deleted(pod, 30)

    def _do_Unbind(self, a: act.Unbind) -> None:
        assert not self.terminating, "they go with their namespace"
        going = self.table["metadata"]["uid"] if self.table is not None else ""
        assert a.going == going, "the accounts of a HudiTable that stays"

    def _do_EmitEvent(self, a: act.EmitEvent) -> None:
        self.events.append(a)

    def _do_PutGate(self, a: act.PutGate) -> None:
        if self.mod("gate") != a.expected_mod:
            raise ConflictError("gate")
        if a.unlocked and "lock" in self.kv:
            raise ConflictError("lock")
        old = self.kv["gate"].value if "gate" in self.kv else None
        if old and any(old.get(k) != a.value.get(k) for k in ("mode", "lock")):
            writers = [
                k.value["attempt"]
                for i, k in self.names("writer").items()
                if k.value["role"] == "writer" and f"settle/{i}" not in self.kv
            ]
            assert not writers, f"mode or durations changed under {writers} (F8)"
            assert old["state"] != "open", "mode or durations changed with an open gate (F8)"
            assert old.get("mode") == a.value.get("mode") or "lock" not in self.kv, "the mode changed under a lock"
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
        if a.value is None:  # at another agent: ``elsewhere/<agent>``
            self.drop(f"elsewhere/{a.agent}" if f"elsewhere/{a.agent}" in self.kv else "assignment")
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
        if (
            self.mod("gate") != a.gate_mod
            or f"settle/{a.inc}" in self.kv
            or any(f"instant/{t}" in self.kv for t in a.settle["instants"])
        ):
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
        before = (
            settle.SettleRecord.known(self.kv[f"settle/{a.inc}"].value).phase if a.expected_mod else settle.Phase.Fenced
        )
        after = settle.SettleRecord.known(a.value).phase
        assert after >= before or before >= settle.Phase.Unlocked, f"{a.inc}: {before.name} → {after.name}"
        if after >= settle.Phase.Draining and self.kv["gate"].value["mode"] == "PodTermination":
            self._check_dead(a.inc, f"phase {after.name}")
        if after is settle.Phase.Draining:
            self.proofs_seen_at.setdefault(a.inc, self.now)
        self.put(f"settle/{a.inc}", a.value)

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
            assert instant in self.completed or instant in self.rolled_back, (
                f"{instant} is forgotten before it was settled (I4)"
            )
        self.put(f"settle/{a.inc}", a.value)
        for instant, _ in a.instants:
            self.drop(f"instant/{instant}")
        self.drop(f"writer/{a.inc}")

    def _do_Collect(self, a: act.Collect) -> None:
        if self.mod(f"settle/{a.inc}") != a.expected_mod or f"writer/{a.inc}" in self.kv:
            raise ConflictError("collect")
        assert self.kv[f"settle/{a.inc}"].value["phase"] == "Settled", (
            f"the fence of {a.inc} is collected before it is settled (I2)"
        )
        self._check_dead(a.inc, "collect")
        self.drop(f"settle/{a.inc}")
        self.drop(f"fence/{a.inc}")

    def _do_DeleteReport(self, a: act.DeleteReport) -> None:
        self.drop(f"report/{a.kind}")

    def _do_DeleteDone(self, a: act.DeleteDone) -> None:
        if self.mod(f"done/{a.name}") != a.expected_mod:
            raise ConflictError("delete-done")
        self.drop(f"done/{a.name}")

    def _do_PutRequest(self, a: act.PutRequest) -> None:
        if a.value is None:
            self.drop(f"request/{a.id}")
        else:
            self.put(f"request/{a.id}", a.value)

    def _do_PutSeen(self, a: act.PutSeen) -> None:
        if a.value is None:
            self.drop(f"seen/{a.inc}")
        else:
            self.put(f"seen/{a.inc}", a.value)

    def _do_StartTimer(self, a: act.StartTimer) -> None:
        self.timers.setdefault(a.name, self.now)

    def _do_StopTimer(self, a: act.StopTimer) -> None:
        self.timers.pop(a.name, None)
