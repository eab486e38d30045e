"""The operator and real sessions over an etcd that is set back, away, or full (protocol.md,
Assumptions; I1, I11).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.plan.gate.trust import UNFREEZE_ANNOTATION
from tests.support.harness.etcd_members import answers
from tests.support.harness.operator_world import World
from tests.support.harness.servers import Cluster, Etcd, wait_for
from tests.support.harness.writer_process import WriterProcess

HEARTBEAT_LOST = 16
NOTES, PULSES = "etcd-revision.hudioperator.io/", "etcd-pulse.hudioperator.io/"

QUOTA = 16 * 2**20


@pytest.fixture
def world(cluster: Cluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """A namespace and an etcd of its own, which the test may break.

    Its revisions go back, so no trace is replayed on the model.
    """
    (tmp_path / "etcd").mkdir()
    etcd = Etcd(tmp_path / "etcd", f"--quota-backend-bytes={QUOTA}")
    etcd.start()
    made = World(
        cluster, etcd, tmp_path, "t-" + request.node.name.removeprefix("test_").replace("_", "-")[:40].rstrip("-")
    )
    try:
        etcd.set_up_users()
        yield made
    finally:
        made.close()
        etcd.stop()
        print(made.logs())


def two_writers(world: World) -> tuple[str, dict[str, Any], WriterProcess]:
    """A HudiTable whose gate is open, and the first attempts of two HudiWriters that commit."""
    table_id, _, _ = world.running_table(lock={"leaseSeconds": 5, "keepAliveSeconds": 1, "rpcTimeoutSeconds": 2})
    pods = {}
    for name in ("one", "two"):
        world.writer(name)
        pods[name] = world.pod("driver", number=1, writer=name)
        world.run_pod(pods[name])
    writers = WriterProcess(world.etcd, world.directory, table_id, pods)
    writers.commit_on(3)
    return table_id, pods, writers


def gate(world: World, table_id: str) -> dict[str, Any]:
    return world.etcd.read(f"/hudi/control/{table_id}/gate")[f"/hudi/control/{table_id}/gate"]


def noted_revision(world: World, notes: str = NOTES) -> int:
    """The highest revision that the leader has left for its successor."""
    lease = (
        world.cluster.request(
            "GET", f"/apis/coordination.k8s.io/v1/namespaces/{world.operator_namespace}/leases/hudi-operator-leader"
        )
        or {}
    )
    annotations = (lease.get("metadata") or {}).get("annotations") or {}
    return max((int(value) for key, value in annotations.items() if key.startswith(notes)), default=0)


def stalled(world: World, reason: str) -> dict[str, Any] | None:
    found = world.condition("huditables", "flights", "Stalled")
    return found if found is not None and found["status"] == "True" and found["reason"] == reason else None


def test_an_etcd_restored_from_a_backup_freezes_the_table_until_a_person_has_looked(world: World) -> None:
    operator = world.start_operator()
    table_id, pods, writers = two_writers(world)
    data, backup = world.etcd.directory / "data", world.etcd.directory / "backup"
    world.etcd.stop()
    shutil.copytree(data, backup)
    world.etcd.start()
    writers.commit_on(10)
    revision = noted_revision(world)
    annotate(world, "0")  # an event, so that the operator looks at once
    wait_for("a note of what came after the backup", lambda: noted_revision(world) > revision + 20)
    # Nobody watches while it is restored: what the next operator knows is in the Lease.
    operator.kill(signal.SIGTERM)
    world.etcd.stop()
    shutil.rmtree(data)
    shutil.copytree(backup, data)
    committed = writers.committed()
    world.etcd.start()
    wait_for(
        "the writers have ended", lambda: all(w.get("halted") == HEARTBEAT_LOST for w in writers.writers().values())
    )
    assert writers.committed() == committed, "nobody has committed on what etcd forgot"
    reasons = [w["haltedFor"] for w in writers.writers().values()]
    assert all("went back from" in reason for reason in reasons), reasons
    writers.kill()
    assert gate(world, table_id)["state"] == "open", "as it was in the backup"
    world.start_operator()
    message = wait_for("Frozen", lambda: stalled(world, "Frozen"))["message"]
    assert "went back from" in message or "knows nothing any more of its revision" in message
    assert gate(world, table_id)["state"] == "frozen"
    for pod in pods.values():
        world.end_pod(pod, exit_code=HEARTBEAT_LOST)
    # Another attempt would find the gate frozen; none is made.
    settled(world, table_id)
    assert [len(world.pods("driver", writer=name)) for name in pods] == [1, 1]
    # A person has looked.
    word = re.search(rf"{UNFREEZE_ANNOTATION}=([\d-]+)", message)
    assert word is not None
    annotate(world, word[1])
    wait_for("open", lambda: gate(world, table_id)["state"] == "open")
    wait_for(
        "not stalled", lambda: (c := world.condition("huditables", "flights", "Stalled")) and c["status"] == "False"
    )
    seconds = {name: world.pod("driver", number=2, writer=name) for name in pods}
    for pod in seconds.values():
        world.run_pod(pod)
    again = WriterProcess(world.etcd, world.directory, table_id, seconds)
    again.commit_on(3)
    assert again.together == 0
    again.kill()


def test_an_etcd_set_back_below_a_higher_revision_freezes_the_table(world: World) -> None:
    """F620: the pulse of the leader tells, which it has noted in its Lease. No writer runs."""
    operator = world.start_operator()
    table_id, _, _ = world.running_table()
    data, backup = world.etcd.directory / "data", world.etcd.directory / "backup"
    first = wait_for("a pulse is noted", lambda: noted_revision(world, PULSES))
    world.etcd.stop()
    shutil.copytree(data, backup)
    world.etcd.start()
    wait_for("a later one", lambda: noted_revision(world, PULSES) > first)
    operator.kill(signal.SIGTERM)
    seen = noted_revision(world)
    world.etcd.stop()
    shutil.rmtree(data)
    shutil.copytree(backup, data)
    world.etcd.start()
    wait_for("it answers", lambda: answers(world.etcd))
    while world.etcd.revision() <= seen + 10:
        world.etcd.put("/hudi/tables/filler", {"n": 1})
    assert gate(world, table_id)["state"] == "open", "as it was in the backup"
    world.start_operator()
    message = wait_for("Frozen", lambda: stalled(world, "Frozen"))["message"]
    assert "knows nothing any more of its revision" in message
    assert gate(world, table_id)["state"] == "frozen"


def settled(world: World, table_id: str) -> None:
    """Both incarnations are settled; the agent, which is played, finds what they left."""
    prefix = f"/hudi/tables/{table_id}/settle/"

    def step() -> bool:
        records = {key.removeprefix(prefix): value for key, value in world.etcd.read(prefix).items()}
        for inc, record in records.items():
            if record["phase"] == "RollingBack":
                world.sweep(table_id, inc)
        return len(records) == 2 and all(record["phase"] == "Settled" for record in records.values())

    wait_for("settled", step, seconds=60)
    assert not world.etcd.read(f"/hudi/tables/{table_id}/lock")


def annotate(world: World, word: str) -> None:
    patch = {"metadata": {"annotations": {UNFREEZE_ANNOTATION: word}}}
    world.cluster.request("PATCH", world.path("huditables", "flights"), patch, "application/merge-patch+json")


@pytest.mark.extra
def test_without_etcd_no_writer_commits_and_nobody_is_suspected(world: World) -> None:
    world.start_operator()
    table_id, pods, writers = two_writers(world)
    seconds = float(os.environ.get("OUTAGE_SECONDS", "15"))
    world.etcd.pause()
    time.sleep(1)  # what was allowed before may still be written
    committed = writers.committed()
    try:
        wait_for(
            "EtcdUnavailable",
            lambda: (c := world.condition("huditables", "flights", "Ready")) and c["reason"] == "EtcdUnavailable",
        )
        time.sleep(seconds)
        assert writers.committed() == committed
        assert not any("halted" in w for w in writers.writers().values()) or seconds > 45
    finally:
        world.etcd.resume()
    writers.commit_on(3)
    assert writers.together == 0
    wait_for(
        "Ready again",
        lambda: (c := world.condition("huditables", "flights", "Ready")) and c["status"] == "True",
        seconds=60,
    )
    assert world.etcd.read(f"/hudi/tables/{table_id}/settle/") == {}
    assert [len(world.pods("driver", writer=name)) for name in pods] == [1, 1]
    writers.kill()


@pytest.mark.extra
def test_a_full_etcd_is_told_and_work_goes_on_when_there_is_room(world: World) -> None:
    world.start_operator()
    table_id, pods, writers = two_writers(world)
    for n in range(30):
        done = world.etcd.ctl("root", "put", f"/filler/{n}", stdin="x" * 900_000)
        if done.returncode:
            break
    assert "space exceeded" in done.stderr, done.stderr
    wait_for("writers are told", lambda: all("space exceeded" in w["error"] for w in writers.writers().values()))
    committed = writers.committed()
    assert all(w["state"] == "LIVE" for w in writers.writers().values()), "heartbeats need no room"
    world.end_pod(pods["two"], exit_code=HEARTBEAT_LOST)
    event = wait_for("an event", lambda: next((e for e in events(world) if e["reason"] == "ActionRefused"), None))
    assert "space exceeded" in event["note"]
    assert "make room" in event["note"]
    assert writers.committed() == committed
    assert world.etcd.read(f"/hudi/tables/{table_id}/settle/") == {}
    # As docs/operate/operations.md says.
    assert world.etcd.ctl("root", "del", "--prefix", "/filler/").returncode == 0
    revision = json.loads(world.etcd.ctl("root", "endpoint", "status", "-w", "json").stdout)[0]["Status"]["header"][
        "revision"
    ]
    for command in (("compaction", str(revision), "--physical"), ("defrag",), ("alarm", "disarm")):
        done = world.etcd.ctl("root", *command)
        assert done.returncode == 0, done.stderr
    wait_for("fenced", lambda: world.etcd.read(f"/hudi/tables/{table_id}/settle/"))
    wait_for("the other one commits", lambda: writers.committed() > committed + 3)
    writers.kill()


def events(world: World) -> list[dict[str, Any]]:
    found = world.cluster.request("GET", f"/apis/events.k8s.io/v1/namespaces/{world.namespace}/events") or {}
    return [e for e in found["items"] if e["regarding"]["kind"] == naming.TABLE_KIND]
