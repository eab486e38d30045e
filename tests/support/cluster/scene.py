"""A table with two writers, one of which has a fault while the other goes on: shared by the tests
of faults on real pods.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
from demo import cluster
from demo.lake import Lake, data_files, moment
from demo.protocol import Settling
from demo.world import table_id

from tests.support.cluster.node import HOST
from tests.support.cluster.space import OPERATOR_NAMESPACE, OUT, Space, suspend, wait_for, written
from tests.support.harness.s3proxy import Held, Proxy, Wanted

EXECUTOR = {
    "memory": "512Mi",
    "javaOptions": ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
    "resources": {"requests": {"cpu": "50m"}},
}


MILLION = 1_000_000
LIVE_ROWS = 10
DRAIN_SECONDS = 10.0
"""Default of spec.fencing.drainSeconds."""
NAMES = {"Draining": "proven"}
ORDER = ("Fenced", "Draining", "Unlocked", "Swept", "Settled")


class Scene:
    """A table `name` behind the S3 proxy with the writers `<name>-victim` and `<name>-live`.

    `live` commits again and again until `finish`.
    """

    def __init__(
        self,
        space: Space,
        proxy: Proxy,
        name: str,
        *,
        batches: int = 1,
        rows: int = 20,
        delay: float = 0.3,
        victim: dict[str, Any] | None = None,
        **table: Any,
    ) -> None:
        self.space, self.proxy, self.name = space, proxy, name
        self.victim, self.live = f"{name}-victim", f"{name}-live"
        self._batches, self._rows = batches, rows
        self._seen: set[str] = set()
        storage = space.table(name, apply=False)["spec"]["storage"]
        storage["options"]["fs.s3a.endpoint"] = f"http://{HOST}:{proxy.port}"
        space.table(name, storage=storage, **table)
        space.writer(self.victim, name, batches=batches, rows=rows, delay=delay, **(victim or {}))
        space.writer(self.live, name, batches=MILLION // LIVE_ROWS, rows=LIVE_ROWS, delay=0.5, first=MILLION)
        self.path = space.path(name)
        self.table_id = table_id(self.path)

    # ---- the victim

    def inflight(self) -> tuple[str, str]:
        """(instant, driver pod) of the victim's next instant that is inflight."""

        def probe() -> tuple[str, str] | None:
            found = self.space.inflight(self.victim, self.name)
            return found if found and found[0] not in self._seen else None

        instant, pod = wait_for(f"{self.victim} to have an instant inflight", probe, seconds=400, every=0.2)
        self._seen.add(instant)
        return instant, pod

    def hold(self, wanted: Wanted, instant: str, *, answer: bool = False) -> Held:
        """Hold the next wanted request that names the instant, or the answer to it.

        Returns when it is held.
        """
        hold = self.proxy.hold_answer if answer else self.proxy.hold_next
        held = hold(lambda line: wanted(line) and instant in line)
        assert held.arrived.wait(120), f"{instant} did not come so far"
        return held

    def holds_lock(self, pod: str) -> bool:
        """The lock in etcd is the incarnation's of this driver pod."""
        lock = self.space.watch.latest(f"/{self.table_id}/lock")
        return any(value.get("attempt") == f"{self.space.namespace}.{pod}" for value in lock.values())

    def attempt(self, pod: str) -> dict[str, Any]:
        """The victim's attempt with this driver pod, as status tells it; waits for its end."""

        def ended() -> dict[str, Any] | None:
            attempts = self.space.get("hudiwriter", self.victim).get("status", {}).get("attempts", [])
            return next((a for a in attempts if a.get("pod") == pod and a.get("class")), None)

        return wait_for(f"the end of {pod}", ended, seconds=120)

    def pid(self, pod: str) -> int:
        """Process id of the pod's JVM, as this machine sees it."""
        return wait_for(f"JVM of {pod}", lambda: cluster.jvm_pid(self.space.namespace, pod), seconds=30)

    def wait_phase(self, pod: str, *phases: str, seconds: float = 90) -> Settling:
        """The settle record of the pod's incarnation, as soon as it has been in one
        of the phases.
        """

        def probe() -> Settling | None:
            record = self.space.settling(pod)
            return record if record and set(phases) & record.phases.keys() else None

        return wait_for(f"{pod} to be {' or '.join(phases)}", probe, seconds=seconds, every=0.1)

    def settled(self, what: str, pod: str, at: float, *, seconds: float = 180) -> Settling:
        """Wait until it is settled.

        Tells the seconds since `at` (Unix seconds), and keeps them in build/e2e/phases.jsonl.
        """
        record = self.space.wait_settled(pod, seconds=seconds)
        took = {
            NAMES.get(phase, phase.lower()): round(record.phases[phase] - at, 1)
            for phase in ORDER
            if phase in record.phases
        }
        print(f"\n{what}: " + ", ".join(f"{phase} {took[phase]:.1f}" for phase in took) + " s")
        with (OUT / "phases.jsonl").open("a") as out:
            out.write(
                json.dumps(
                    {
                        "what": what,
                        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)),
                        **took,
                        "outcomes": record.outcomes,
                    }
                )
                + "\n"
            )
        return record

    def record(self, pod: str) -> dict[str, Any]:
        """The newest settle record of the pod's incarnation, as it stands in etcd."""
        found = [
            c.value
            for c in self.space.watch.changes(f"/{self.table_id}/settle/")
            if c.value and c.value.get("pod") == pod
        ]
        assert found, f"no settle record of {pod}"
        return found[-1]

    def assert_gone(self, instant: str) -> None:
        """Nothing of the instant is on the timeline or among the files (the audit would also accept
        a living one).
        """
        assert instant not in {i.requested for i in self.space.lake.timeline(self.path)}
        assert not [f for f in data_files(self.space.lake.files(self.path)) if f.instant == instant]

    def published(self, wanted: Wanted, instant: str) -> list[str]:
        """Requests about the instant that came to the proxy."""
        return [line for line in self.proxy.lines if wanted(line) and instant in line]

    # ---- the other writer

    def commits(self, start: float, end: float) -> int:
        """Commits of the live writer that were completed between two times, Unix seconds."""
        mine = self.space.instants(self.live)
        times = [
            moment(i.completed).timestamp()
            for i in self.space.lake.timeline(self.path)
            if i.completed and i.requested in mine
        ]
        return sum(start < at < end for at in times)

    def goes_on(self, since: float) -> None:
        """Wait for a commit of the live writer that was completed after `since`."""
        wait_for(f"a commit of {self.live}", lambda: self.commits(since, time.time() + MILLION) or None, seconds=150)

    def assert_blocked(self, at: float, record: Settling) -> None:
        """Assert that no commit completed while the dead one's lock stood, which ended after proof
        and drain (I1), and that one completed afterwards.
        """
        assert "Draining" in record.phases, f"unlocked without proof of death: {record}"
        drained = record.phases["Unlocked"] - record.phases["Draining"]
        assert drained > DRAIN_SECONDS - 1, f"drained for {drained:.1f} s only"
        assert self.commits(at, record.phases["Unlocked"]) == 0
        self.goes_on(record.phases["Unlocked"])

    # ---- the end

    def suspend(self, writer: str) -> None:
        """As `space.suspend`, in its namespace."""
        suspend(writer, self.space.namespace)

    def finish(self, *, batches: int | None = None, end: str = "Finished") -> None:
        """Stop the live writer, let the victim end.

        Then every acknowledged row is there once, and the audit finds nothing.

        `batches`: how many the victim has committed when it did not succeed; `end`: the condition
        that says that it has ended.
        """
        self.suspend(self.live)
        batches = self._batches if batches is None else batches
        self.space.wait(f"hudiwriter/{self.victim}", end, seconds=240)
        victim = self.space.get("hudiwriter", self.victim)
        assert cluster.is_true(victim, "Succeeded") == (batches == self._batches), victim["status"]
        wait_for(f"the end of {self.live}", self._live_ended, seconds=120)
        wanted = [written(batches=batches, rows=self._rows)] if batches else []
        records = int(self.space.get("hudiwriter", self.live)["status"].get("records", 0))
        if records:
            wanted.append(written(batches=records // LIVE_ROWS, rows=LIVE_ROWS, first=MILLION))
        wait_for(
            "the end of settling",
            lambda: not self.space.get("huditable", self.name)["status"].get("settling"),
            seconds=120,
        )
        self.space.audited(self.name, pd.concat(wanted))

    def _live_ended(self) -> bool:
        ended = all(pod["status"].get("phase") in {"Succeeded", "Failed"} for pod in self.space.drivers(self.live))
        return ended and cluster.is_true(self.space.get("hudiwriter", self.live), "Suspended")


def kill_container(space: Space, pod: str) -> None:
    """SIGKILL the first process of a pod's container, and everything in it with that."""
    first = [pid for pid in cluster.host_pids(space.namespace, pod) if inner_pid(pid) == 1]
    assert len(first) == 1, f"{pod} has {len(first)} containers"
    os.kill(first[0], signal.SIGKILL)


def inner_pid(pid: int) -> int:
    """The process id that a process has in its own container; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status") as status:
            return next((int(line.split()[-1]) for line in status if line.startswith("NSpid:")), 0)
    except OSError:
        return 0


def etcd_addresses() -> list[str]:
    """Addresses at which drivers reach etcd: each gateway by its pod and by its own Service."""
    pods = cluster.items("pods", "-n", OPERATOR_NAMESPACE)
    found = [pod["status"]["podIP"] for pod in pods if pod["metadata"]["name"].startswith(_GATEWAY)]
    services = cluster.items("services", "-n", OPERATOR_NAMESPACE)
    found += [one["spec"]["clusterIP"] for one in services if one["metadata"]["name"].startswith(_GATEWAY)]
    assert len(found) >= 2, found
    return found


_GATEWAY = "hudi-operator-gateway-"


@contextmanager
def past_services(proxy: Proxy, space: Space) -> Iterator[None]:
    """Storage by the address of its pod: of a node that is not ready the Services
    have no endpoints.
    """
    pods = cluster.items("pods", "-n", "storage", "-l", "app.kubernetes.io/name=s3")
    address, server, lake = pods[0]["status"]["podIP"], proxy.server, space.lake
    proxy.server = (address, 9000)
    space.lake = Lake(f"http://{address}:9000", lake.access_key, lake.secret_key)
    try:
        yield
    finally:
        proxy.server, space.lake = server, lake


def awaiting_proof(space: Space, table: str) -> str | None:
    found = space.condition("huditable", table, "AwaitingProofOfDeath")
    return str(found["message"]) if found.get("status") == "True" else None


def stuck(scene: Scene, pod: str) -> dict[str, Any]:
    """Wait until the table says that the proof of the pod's death is missing.

    Nothing has gone on then, and nothing does.
    """
    space = scene.space
    message = wait_for("AwaitingProofOfDeath", lambda: awaiting_proof(space, scene.name), seconds=120)
    node = next(d["spec"]["nodeName"] for d in space.drivers(scene.victim) if d["metadata"]["name"] == pod)
    assert pod in message, message
    assert f"node {node}" in message, message
    assert "attest" in message, message
    time.sleep(15)  # longer than the drain
    assert scene.holds_lock(pod), "the lock of a writer on a lost node was taken away without proof"
    record = scene.record(pod)
    assert record["phase"] == "Terminating", record
    return record


def executors(space: Space, driver: str) -> dict[str, str]:
    """Name and uid of a driver's executor pods."""
    pods = cluster.items(
        "pods", "-n", space.namespace, "-l", f"hudioperator.io/driver={driver},hudioperator.io/role=executor"
    )
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}
