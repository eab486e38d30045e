"""What goes on in a simulated world beside the operator: time, kubelets, the JVMs
of drivers, agents.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from hudi_contract import naming
from hudi_operator.model.facts import PodName
from tests.support.world.simulated_store import LEASE, NAMESPACE, TERMINAL, Pod, Process, Store

SIDECAR_SECONDS = 8.0
"""How long a native sidecar takes to end."""


class Processes(Store):
    """`tick` lets time pass for everybody but the operator."""

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
        process = next((p for p in self.processes if p.inc == inc and p.role != "executor"), None)
        return process is None or self.now - process.last_keepalive >= LEASE

    def _kubelet(self, pod: Pod) -> None:
        if not pod.node:
            if pod.deleting_since is not None:
                return
            if not self.schedulable or self.gates:
                return
            pod.node = next((n.name for n in self.nodes.values() if n.ready), "")
            return
        node = self.nodes.get(pod.node)
        if node is None or not node.ready:
            return
        key = naming.spark_key_name(pod.name)
        if pod.phase == "Pending" and pod.deleting_since is None and (key not in pod.secrets or key in self.keys):
            pod.phase = "Running"
            pod.process = self._start(pod)
        if pod.deleting_since is not None and pod.process is not None and pod.process.alive:
            over = self.now - pod.deleting_since >= pod.delete_grace
            if over or (not pod.process.ignores_sigterm and not pod.process.paused):
                self._sigterm_or_kill(pod.process)

    def _sigterm_or_kill(self, process: Process) -> None:
        clean = (
            process.role == "agent" and "lock" in self.kv and self.kv["lock"].value["inc"] != process.inc
        ) or "lock" not in self.kv
        if process.role == "agent" and clean and not process.paused:
            self._clean_exit(process)
        self.kill(process, 143)

    def _kubelet_status(self, pod: Pod) -> None:
        node = self.nodes.get(pod.node)
        if node is None or not node.ready or pod.phase in TERMINAL:
            if pod.silent and pod.deleting_since is not None and node is not None and node.ready:
                self._kubelet_looks(pod)
            if pod.collected and node is not None and node.ready and pod.process is not None and not pod.process.alive:
                pod.exit_code, pod.beside_ended = 137, True
            self._remove_if_done(pod)
            return
        if pod.phase == "Running" and pod.process is not None and not pod.process.alive and pod.exit_code is None:
            # The container's end is told a moment before the pod's.
            pod.exit_code = pod.process.exit_code if pod.process.exit_code is not None else 137
        elif (
            pod.beside
            and not pod.beside_ended
            and pod.phase == "Running"
            and pod.process is not None
            and not pod.process.alive
        ):
            # The kubelet ends sidecars of its own kind and ephemeral containers with the last
            # ordinary one; an ordinary one only when the pod is deleted.
            own_kind = pod.beside != "container" and self.now - pod.process.died_at >= SIDECAR_SECONDS
            pod.beside_ended = own_kind or pod.deleting_since is not None
        elif pod.phase == "Running" and pod.process is not None and not pod.process.alive:
            pod.exit_code = pod.process.exit_code if pod.process.exit_code is not None else 137
            pod.phase = "Succeeded" if pod.exit_code == 0 else "Failed"
            pod.ended_at = f"2023-11-14T22:{13 + int(self.now) // 60:02d}:{20 + int(self.now) % 40:02d}Z"
        elif pod.phase == "Pending" and pod.deleting_since is not None:
            pod.phase = "Failed"
        self._remove_if_done(pod)

    def collect(self, pod: Pod) -> None:
        """The garbage collector of a lost node's pods: Failed and deleted, whatever runs.

        The finalizer keeps it; its kubelet tells when it is back.
        """
        pod.phase, pod.collected = "Failed", True
        self._mark_deleted(pod, 0)

    def refuse(self, pod: Pod) -> None:
        """The kubelet, perhaps restarted, does not admit the pod.

        What runs of it is ended later.
        """
        pod.phase, pod.silent = "Failed", True

    def _kubelet_looks(self, pod: Pod) -> None:
        """A refused pod was deleted: what runs is ended, then each container is reported."""
        if pod.process is None or not pod.process.alive:
            pod.silent = False
            pod.exit_code, pod.beside_ended = (None, False) if pod.process is None else (137, True)

    def _start(self, pod: Pod) -> Process:
        role = pod.labels[naming.LABEL_ROLE]
        attempt = naming.attempt_id(NAMESPACE, pod.labels.get(naming.LABEL_DRIVER) or pod.name)
        process = Process(pod.name, pod.uid, role, attempt, f"inc-{next(self.counter)}", pod.node)
        if role == "driver":
            process.role, process.hang_at = "writer", self.writer_hang_at
            process.endless = "streaming" in self.writers[pod.labels[naming.LABEL_WRITER]]["spec"]
            process.exit_code = self.exit_codes.pop(0) if self.exit_codes else None
        for number in range(self.executors_per_driver if role == "driver" else self.executors_per_agent):
            self._make_executor(pod, number, process.inc)
        self.processes.append(process)
        return process

    def _make_executor(self, driver: Pod, number: int, inc: str) -> None:
        labels = {
            **driver.labels,
            naming.LABEL_ROLE: "executor",
            naming.LABEL_COMPONENT: "executor",
            naming.LABEL_DRIVER: driver.name,
        }
        labels.pop(naming.LABEL_AGENT, None)
        if self.bare_executors:
            labels = {"spark-role": "executor"}
        name = f"{driver.name}-exec-{number}"
        pod = Pod(
            name,
            self.pod_uid(),
            labels,
            (driver.uid,),
            [naming.EVIDENCE_FINALIZER],
            30,
            node=driver.node,
            phase="Running",
            beside=self.beside,
            controller=PodName(driver.name, driver.uid),
        )
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
            "podUID": process.pod_uid,
            "node": process.node,
            "bootId": f"kernel-of-{process.pod}" if self.kernels else self.nodes[process.node].boot_id,
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
        if (
            "lock" in self.kv
            or f"fence/{process.inc}" in self.kv
            or f"alive/{process.inc}" not in self.kv
            or not self._admits(process)
        ):
            return False
        value = {
            "inc": process.inc,
            "attempt": process.attempt,
            "podUID": process.pod_uid,
            "nonce": "x",
            "sinceMs": self.now_ms,
        }
        process.token = self.put("lock", value)
        return True

    def _clean_exit(self, process: Process) -> None:
        if f"fence/{process.inc}" not in self.kv:
            self.drop(f"alive/{process.inc}")
            self.drop(f"writer/{process.inc}")
        process.registered = False

    def holds(self, process: Process) -> bool:
        return (
            "lock" in self.kv
            and self.kv["lock"].create == process.token
            and self.kv["lock"].value["inc"] == process.inc
        )

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
                if not process.registered and not self._register(process):
                    self.kill(process, 11)
                if not process.alive or self._waits_for_the_lock(process):
                    return False
                self._reads_progress(process)
                return True
            case 1:
                if (
                    process.endless
                    and self.kv["gate"].value["state"] == "closed"
                    and self.kv["gate"].value.get("closedFor")
                ):
                    self._end_at_boundary(process)
                    return True
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
                process.commits += 1
                value = {
                    "inc": process.inc,
                    "records": 10,
                    "commits": process.commits,
                    "lastInstant": process.instant,
                    "conflicts": [],
                }
                value["lastCompletionTime"] = str(int(process.instant) + 500)
                self.put(f"report/attempt/{process.attempt}", value)
                process.step = 0 if process.endless else process.step
                return True
            case _:
                self._clean_exit(process)
                process.exit_code = 0
                self.kill(process, 0)
                return True

    def _waits_for_the_lock(self, process: Process) -> bool:
        """Whether an earlier attempt of its writer owns the lock (predecessor.py)."""
        owner = self.kv["lock"].value["attempt"] if "lock" in self.kv else ""
        return owner != process.attempt and owner.rpartition("-")[0] == process.attempt.rpartition("-")[0]

    def _reads_progress(self, process: Process) -> None:
        """From now on it may compute rows, without what an earlier attempt commits later."""

    def _end_at_boundary(self, process: Process) -> None:
        """What a run with commit boundaries does when it sees the closed gate (run.py)."""
        pod = next(p for p in self.pods.values() if p.uid == process.pod_uid)
        pod.message = json.dumps(
            {
                "outcome": "Failed",
                "class": "EndedForChange",
                "message": f"the gate is closed for {self.kv['gate'].value['closedFor']}",
            }
        )
        self._clean_exit(process)
        self.kill(process, 12)

    def _agent(self, process: Process) -> None:
        if "assignment" not in self.kv:
            if process.registered:
                self._clean_exit(process)
            return
        if not process.registered:
            self._register(process)
            return
        report: dict[str, Any] = {
            "agentInc": process.inc,
            "exists": self.table_error is None,
            "pendingCount": len(self.names("instant")),
        }
        if self.table_error is not None:
            report["error"] = self.table_error
        left = {
            t: action
            for t, action in self.foreign.items()
            if t not in self.rolled_back and f"instant/{t}" not in self.kv
        }
        if left:
            report["foreign"] = [
                {"instant": t, "action": left[t], **({"beating": True} if t in self.beating else {})}
                for t in sorted(left)
            ]
            gate = self.kv["gate"].value
            if not gate.get("adopted") and gate["state"] != "open":
                report["error"] = {"code": "PendingInstants", "message": "pending instants"}
        elif any(
            k.value["reason"] == "Adopted" and k.value["phase"] not in ("Swept", "Settled")
            for k in self.names("settle").values()
        ):
            self._settle_all(process)
            return
        if "report/timeline" not in self.kv or self.kv["report/timeline"].value != report:
            self.put("report/timeline", report)
        self._settle_all(process)
        self._serve(process)

    def _serve(self, process: Process) -> None:
        for id in self.names("request"):
            if id.startswith("savepoint-") and f"done/{id}" not in self.kv:
                self._savepoint(id)
            if id.startswith("restore-"):
                self._restore(process, id)
        if "request/metadata" in self.kv:
            self._metadata(self.kv["request/metadata"].value)
        if "request/bootstrap" in self.kv:
            self._bootstrap(process, self.kv["request/bootstrap"].value)

    def _bootstrap(self, process: Process, request: dict[str, Any]) -> None:
        """Written ahead, acquire, record, PUT, release, done: one step per tick, each but the first
        only when nothing is left of another agent.
        """
        done = self.kv["done/bootstrap"].value if "done/bootstrap" in self.kv else {}
        if done.get("result") == "Completed" or (
            self.bootstrap_hang_at is not None and process.step >= self.bootstrap_hang_at
        ):
            return
        gate = self.kv["gate"].value
        if gate["state"] == "frozen":
            return  # as the real one does: nobody acquires, and the table may be another's soon
        assert gate["state"] == "closed", "a bootstrap is asked for while the gate is open (R14)"
        assert not gate.get("adopted"), "a bootstrap is asked for after the gate was open (R14)"
        assert not [p for p in self.processes if p.role == "writer" and p.alive], (
            "a bootstrap is asked for while a writer runs (R14)"
        )
        base = {
            "tableUID": request["tableUID"],
            "mode": request["mode"],
            "source": request["path"],
            "beginMs": done.get("beginMs") or self.now_ms,
        }
        if process.step == 0 and any(
            k.value["phase"] not in ("Swept", "Settled") for k in self.names("settle").values()
        ):
            return
        if process.step == 0 and self.bootstrap_error:
            failures = int(done.get("failures") or 0) + 1
            self.put(
                "done/bootstrap",
                {
                    **base,
                    "result": "Failed",
                    "code": "SourceInvalid",
                    "message": self.bootstrap_error,
                    "failures": failures,
                },
            )
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
                self.put(
                    "done/bootstrap",
                    {
                        **base,
                        **counts,
                        "result": "Completed",
                        "instant": self.bootstrapped[0],
                        "endMs": self.now_ms,
                        "failures": 0,
                    },
                )
            case _:
                pass
        return True

    def _savepoint(self, id: str) -> None:
        gate = self.kv["gate"].value
        assert gate["state"] == "closed", f"{id} is asked for while the gate is open"
        assert not [a for a in gate["admitted"] if f"admit/{a}" in self.kv], (
            f"{id} is asked for while an attempt may still register"
        )
        assert not [p for p in self.processes if p.role == "writer" and p.alive and p.registered], (
            f"{id} is asked for while a writer runs"
        )
        if self.names("instant"):
            return  # a dead writer's: it is settled first
        instants = max(self.completed, default="")
        value = {"result": "Failed", "message": "no commit"}
        if instants:
            value = {"result": "Completed", "instant": instants, "completionTime": instants, "boundary": instants}
        self.put(f"done/{id}", {"name": id, "atMs": self.now_ms, **value})

    def _restore(self, process: Process, id: str) -> None:
        """Written ahead, recorded, undone in two steps, done: one step per tick, alone, under the
        gate that is closed for it.
        """
        request, gate = self.kv[f"request/{id}"].value, self.kv["gate"].value
        done = self.kv[f"done/{id}"].value if f"done/{id}" in self.kv else {}
        over = done.get("result") in ("Completed", "Failed") or (
            self.restore_hang_at is not None and process.step >= self.restore_hang_at
        )
        if over or gate["state"] != "closed" or gate.get("restoring") != request["nonce"]:
            return
        assert not [a for a in gate["admitted"] if f"admit/{a}" in self.kv], (
            f"{id} is asked for while an attempt may still register"
        )
        assert not [p for p in self.processes if p.role == "writer" and p.alive and p.registered], (
            f"{id} is asked for while a writer runs"
        )
        unsettled = [
            k for k in self.names("settle").values() if k.value["phase"] not in ("RollingBack", "Swept", "Settled")
        ]
        begun = next((t for t, k in self.names("instant").items() if k.value["action"] == "restore"), "")
        if process.step == 0 and (unsettled or (self.names("instant") and not begun)):
            return
        if self._restore_step(process, id, {**request, **done}, begun):
            process.step += 1

    def _restore_step(self, process: Process, id: str, base: dict[str, Any], begun: str) -> bool:
        nonce = base["nonce"]
        saved = self.kv.get(f"done/savepoint-{base['savepoint']}")
        boundary = saved.value.get("instant", "") if saved is not None else ""
        match process.step:
            case 0:
                if not boundary:
                    self.put(f"done/{id}", {**base, "result": "Failed", "message": "no such savepoint"})
                    return False
                if not self.acquire(process):
                    return False
                process.instant = begun
            case 1:
                self.put(
                    f"done/{id}",
                    {
                        **base,
                        "result": "Running",
                        "boundary": boundary,
                        "undone": len([t for t in self.completed if t > boundary]),
                    },
                )
            case 2:
                if not process.instant and nonce not in self.restored:
                    process.instant = f"2026010100000{next(self.counter):04d}"
                    self.put(
                        f"instant/{process.instant}", {"inc": process.inc, "action": "restore", "state": "Pending"}
                    )
            case 3 | 4:
                assert self.holds(process), "commits are undone while somebody else could hold the lock (I1)"
                going = sorted(t for t in self.completed if t > boundary)
                for instant in going[-1:] if process.step == 3 else going:
                    self.completed.remove(instant)
                    self.undone.add(instant)
            case 5:
                self._restored(process, nonce)
            case 6:
                self.put(f"done/{id}", {**base, "result": "Completed"})
                process.step = -1
        return True

    def _restored(self, process: Process, nonce: str) -> None:
        if nonce not in self.restored:
            assert self.holds(process), "a restore is completed while somebody else could hold the lock (I1)"
            self.restored.append(nonce)
        self.drop("lock")
        if process.instant:
            self.drop(f"instant/{process.instant}")

    def _metadata(self, request: dict[str, Any]) -> None:
        """R16: nobody writes while it is changed, and nobody who keeps another one up
        comes after it.
        """
        done = self.kv["done/metadata"].value if "done/metadata" in self.kv else {}
        if (done.get("nonce"), done.get("result")) == (request["nonce"], "Completed"):
            return
        assert self.kv["gate"].value["state"] == "closed", "the metadata table is changed while the gate is open"
        assert not [p for p in self.processes if p.role == "writer" and p.alive and p.registered], (
            "the metadata table is changed while a writer runs"
        )
        if self.names("instant"):
            return
        told = (
            {"result": "Failed", "message": self.metadata_error, "failures": 1}
            if self.metadata_error
            else {"result": "Completed", "partitions": ["files"]}
        )
        self.put("done/metadata", {"nonce": request["nonce"], "atMs": self.now_ms, **told})

    def _settle_all(self, process: Process) -> None:
        for inc, key in self.names("settle").items():
            if key.value["phase"] == "RollingBack":
                self._roll_back(process, inc, copy.deepcopy(key.value))

    def _roll_back(self, process: Process, inc: str, record: dict[str, Any]) -> None:
        if any(key.value["inc"] == inc and key.value["action"] == "restore" for key in self.names("instant").values()):
            return  # it is claimed, and waits until it is completed
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
