"""Processes of a simulated world besides the operator: time, kubelets, the JVMs of drivers.

Agents are in `simulated_agent.py`. The pod statuses that kubelets write here pass the contract of
the real one (`tests/support/harness/kubelet_words.py`), and a writer's report is compared with the
runtime's (`tests/tiers/unit/halves/test_simulated_agent.py`).

A writer here cannot do everything that a real one can: fail or be slow at the store, lose a race,
repeat a commit in its process, be refused or left without an answer by etcd, act on an old look,
take turns, abandon an instant. It has no rows and no files, reports only what it has committed, and
waits for the lock in no queue.
"""

from __future__ import annotations

import json

from hudi_contract import naming
from hudi_contract.outcomes import Ending, FailureClass
from hudi_contract.reports import AttemptReport, TerminationMessage
from hudi_contract.words import Stage
from hudi_operator.model.facts import PodName
from tests.support.world.simulated_store import LEASE, NAMESPACE, TERMINAL, Author, Pod, Process, Store

SIDECAR_SECONDS = 8.0
"""Seconds that a native sidecar takes to end."""
CLEANING_SECONDS = 5.0
"""Seconds from the end of a deleted pod's last container to the kubelet's last request for its
deletion.
"""
ROWS = 10
"""Records of each commit of a writer."""


class Processes(Store):
    """`tick` lets time pass for everybody but the operator."""

    def tick(self, seconds: float = 1.0) -> None:
        self.now += seconds
        self._nodes_become_ready()
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
                pod.exit_code, pod.beside_ended, pod.unreported = 137, True, False
            if node is not None and node.ready and pod.deleting_since is not None and not pod.final:
                self._kubelet_cleans(pod)
            self._remove_if_done(pod)
            return
        if pod.phase == "Running" and pod.process is not None and not pod.process.alive and pod.exit_code is None:
            # The container's end is reported a moment before the pod's.
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
            pod.phase, pod.exit_code, pod.unlocated, pod.beside_ended = "Failed", 137, True, True
        self._remove_if_done(pod)

    def _kubelet_cleans(self, pod: Pod) -> None:
        """It takes the pod's volumes away, and then asks for the deletion once more, at once."""
        pod.cleaned_since = self.now if pod.cleaned_since is None else pod.cleaned_since
        pod.final = self.now - pod.cleaned_since >= CLEANING_SECONDS

    def collect(self, pod: Pod) -> None:
        """The garbage collector of a lost node's pods: Failed and deleted, whatever runs.

        The finalizer keeps it; its kubelet tells when it is back.
        """
        pod.phase, pod.collected = "Failed", True
        self._mark_deleted(pod, 0)

    def refuse(self, pod: Pod) -> None:
        """The kubelet, perhaps restarted, does not admit the pod.

        Its running containers are ended later.
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
                process.instant = self.record(process, records=ROWS)
                return True
            case 3:  # the check; the PUT leaves in the next step, however long that takes
                if self.holds(process):
                    self.move_clock(self.completion(process.instant))
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
                self.put(f"report/attempt/{process.attempt}", self.attempt_report(process).to_json())
                process.step = 0 if process.endless else process.step
                return True
            case _:
                self._clean_exit(process)
                process.exit_code = 0
                self.kill(process, 0)
                return True

    def record(self, process: Process, *, records: int) -> str:
        """A new instant with its owner."""
        instant = self.new_time()
        pod = self.pods.get(process.pod)
        writer = pod.labels.get(naming.LABEL_WRITER, "") if pod is not None else ""
        self.authors[instant] = Author(f"{NAMESPACE}/{writer}" if writer else "", process.attempt, records)
        self.put(f"instant/{instant}", {"inc": process.inc, "action": "commit", "state": "Pending"})
        return instant

    def move_clock(self, to: str) -> None:
        """Each publication does, before its file (I10)."""
        if "clock" not in self.kv or self.kv["clock"].value["value"] < to:
            self.put("clock", {"value": to})

    def attempt_report(self, process: Process) -> AttemptReport:
        """Report on its commits."""
        return AttemptReport(
            attempt=process.attempt,
            inc=process.inc,
            at_ms=self.now_ms,
            stage=Stage.COMMITTED,
            commits=process.commits,
            records=ROWS * process.commits,
            last_instant=process.instant,
            last_completion_time=self.completion(process.instant),
        )

    def _waits_for_the_lock(self, process: Process) -> bool:
        """Whether an earlier attempt of its writer owns the lock (predecessor.py)."""
        owner = self.kv["lock"].value["attempt"] if "lock" in self.kv else ""
        return owner != process.attempt and owner.rpartition("-")[0] == process.attempt.rpartition("-")[0]

    def _reads_progress(self, process: Process) -> None:
        """From now on it may compute rows, without what an earlier attempt commits later."""

    def _end_at_boundary(self, process: Process) -> None:
        """End a run with commit boundaries that sees the closed gate (run.py)."""
        pod = next(p for p in self.pods.values() if p.uid == process.pod_uid)
        told = self.attempt_report(process) if process.commits else AttemptReport()
        message = TerminationMessage(
            outcome=Ending.FAILED,
            class_=FailureClass.ENDED_FOR_CHANGE,
            message=f"the gate is closed for {self.kv['gate'].value['closedFor']}",
            commits=told.commits,
            records=told.records,
            last_instant=told.last_instant,
            last_completion_time=told.last_completion_time,
        )
        pod.message = json.dumps(message.to_json())
        self._clean_exit(process)
        self.kill(process, 12)

    def _agent(self, process: Process) -> None:
        """One step of an agent (`simulated_agent.py`)."""
        raise NotImplementedError
