"""Killed and frozen writers and agents, on a real node."""

from __future__ import annotations

import os
import signal
import statistics
import time

import pytest
from demo import cluster
from demo.cluster import kubectl
from demo.lake import data_files
from demo.world import table_id

from tests.support.cluster.node import HOST
from tests.support.cluster.space import Space, wait_for, written
from tests.support.harness import s3proxy
from tests.support.harness.s3proxy import Proxy

KILLS = int(os.environ.get("KILLS", "2"))
"""How many; phase times are published from five and more."""


BOUNDS = {"Fenced": 10.0, "Unlocked": 60.0, "Settled": 120.0}
"""Seconds from the kill, many times what a quiet machine needs (docs/results/kills.md: at most 1.3,
13.4 and 31).
"""


def ready_table(space: Space, name: str) -> None:
    if not cluster.exists("huditable", name, "-n", space.namespace):
        space.table(name)
    space.wait(f"huditable/{name}", "Ready", seconds=300)


def assert_gone(space: Space, table: str, instant: str) -> None:
    """Nothing of the instant is on the timeline or among the files (the audit would also accept a
    living one).
    """
    path = space.path(table)
    assert instant not in {i.requested for i in space.lake.timeline(path)}
    assert not [f for f in data_files(space.lake.files(path)) if f.instant == instant]


def _is_left_alone(space: Space, table: str, instant: str) -> None:
    """A pending instant of nobody is named in a condition and stays; then the test removes it."""

    def told() -> str:
        found = space.condition("huditable", table, "ForeignWriters")
        return found["message"] if found.get("status") == "True" else ""

    wait_for(f"{instant} to be shown", lambda: instant in told(), seconds=90)
    path = space.path(table)
    assert instant in {i.requested for i in space.lake.timeline(path) if not i.completed}, "I7: it is nobody's"
    assert not space.watch.changes(f"/instant/{instant}"), "somebody has claimed it"
    assert not [c for c in space.watch.changes("/settle/") if c.value and instant in (c.value.get("instants") or {})]
    space.lake.remove(f"{path}/.hoodie/timeline/{instant}.deltacommit.requested")
    wait_for(f"{instant} to be forgotten", lambda: instant not in told(), seconds=90)


@pytest.mark.timeout(300 + 120 * KILLS)
def test_each_kill_is_settled(space: Space) -> None:
    """Each attempt is killed while its instant is inflight.

    The last attempt finishes, and every row is there once. A pending instant of nobody is shown and
    left alone meanwhile (I7).
    """
    ready_table(space, "kills")
    space.writer("victim", "kills", batches=KILLS + 1, rows=20, delay=0.25)
    times: dict[str, list[float]] = {}
    pod, killed, foreign = "", set[str](), ""
    for turn in range(KILLS):
        instant, pod = space.wait_inflight("victim", "kills", not_pod=pod)
        assert instant not in killed, "a new attempt has a new instant (RFC-22)"
        killed.add(instant)
        if turn == KILLS - 1:
            foreign = str(int(instant) + 1)
            space.lake.mark(f"{space.path('kills')}/.hoodie/timeline/{foreign}.deltacommit.requested")
        space.signal(pod, signal.SIGKILL)
        at = time.time()
        record = space.wait_settled(pod)
        assert record.outcomes.get(instant) in {"RolledBack", "Completed"}, record
        if record.outcomes[instant] == "RolledBack":
            assert_gone(space, "kills", instant)
            times.setdefault("rolled back", []).append(record.rolled_back[instant] - at)
        for phase, seen in record.phases.items():
            times.setdefault(phase, []).append(seen - at)
    _is_left_alone(space, "kills", foreign)
    print(f"\nseconds after the kill, {KILLS} kills (median, max):")
    for phase, seconds in sorted(times.items(), key=lambda pair: statistics.median(pair[1])):
        print(f"  {phase:12s} {statistics.median(seconds):6.1f} {max(seconds):6.1f}")
        assert max(seconds) < BOUNDS.get(phase, 120.0), f"{phase} took {max(seconds):.1f} s"
    space.wait("hudiwriter/victim", "Finished", seconds=300)
    writer = space.get("hudiwriter", "victim")
    assert cluster.is_true(writer, "Succeeded"), writer["status"]
    assert (
        len([i for i in space.lake.timeline(space.path("kills")) if i.completed and i.action == "deltacommit"])
        == KILLS + 1
    )
    space.audited("kills", written(batches=KILLS + 1, rows=20))


@pytest.mark.extra
def test_a_force_deleted_pod_is_proven_by_its_kubelet(space: Space) -> None:
    """The pod object of a living driver is force-deleted: it is settled when the kubelet says that
    its process has ended; the next one writes its rows.
    """
    ready_table(space, "forced")
    space.writer("forced", "forced", rows=40, delay=0.5)
    _, pod = space.wait_inflight("forced", "forced")
    kubectl("delete", "pod", pod, "-n", space.namespace, "--force", "--grace-period=0", "--wait=false")
    space.wait_settled(pod)
    proofs = [
        p
        for c in space.watch.changes("/settle/")
        if c.value and c.value.get("pod") == pod
        for p in (c.value.get("proofs") or {}).values()
    ]
    assert proofs, "settled without proof"
    assert {proof["kind"] for proof in proofs} == {"PodTerminated"}, proofs
    space.wait("hudiwriter/forced", "Finished", seconds=300)
    assert cluster.is_true(space.get("hudiwriter", "forced"), "Succeeded")
    space.audited("forced", written(batches=1, rows=40))


def test_agent_killed_while_it_settles_is_replaced(space: Space, proxy: Proxy) -> None:
    """Before that its listings fail: it deletes nothing and decides nothing from a read that failed
    (I11). The next agent settles (I6).
    """
    storage = space.table("orphaned", apply=False)["spec"]["storage"]
    storage["options"]["fs.s3a.endpoint"] = f"http://{HOST}:{proxy.port}"
    space.table("orphaned", storage=storage)
    space.wait("huditable/orphaned", "Ready", seconds=300)
    path = space.path("orphaned")
    folder = path.rpartition("/")[2]
    space.writer("orphan", "orphaned", rows=40, delay=0.5)
    instant, pod = space.wait_inflight("orphan", "orphaned")
    space.signal(pod, signal.SIGKILL)

    def reached(phase: str) -> bool:
        record = space.settling(pod)
        return record is not None and phase in record.phases

    wait_for("Draining", lambda: reached("Draining"), seconds=90, every=0.05)
    before = len(proxy.lines)
    refused = proxy.refuse(lambda line: s3proxy.listing(line) and folder in line)
    wait_for("RollingBack", lambda: reached("RollingBack"), seconds=90, every=0.05)
    wait_for("three refused listings", lambda: len(refused.lines) >= 3, seconds=90, every=0.05)
    time.sleep(3)
    # The keys that a POST deletes are in its body; nobody else deletes through the proxy meanwhile.
    deleted = [line for line in proxy.lines[before:] if s3proxy.deletion(line) and (folder in line or "POST" in line)]
    assert deleted == [], "something was deleted after a listing that failed"
    assert instant in {i.requested for i in space.lake.timeline(path) if not i.completed}
    record = space.settling(pod)
    assert record is not None
    assert not record.outcomes, "decided from a listing that failed"
    assert not {"Swept", "Settled"} & record.phases.keys()

    def agent_of_table() -> str:
        """The newest agent that has registered at the table."""
        changes = space.watch.changes(f"/{table_id(path)}/writer/")
        return next((str(c.value["pod"]) for c in reversed(changes) if c.value and c.value.get("role") == "agent"), "")

    agent = agent_of_table()
    assert agent
    space.signal_all(agent, signal.SIGKILL)
    refused.stop()
    space.wait_settled(pod, seconds=300)
    assert_gone(space, "orphaned", instant)
    wait_for("another agent", lambda: agent_of_table() not in ("", agent), seconds=60)
    space.wait("hudiwriter/orphan", "Finished", seconds=300)
    assert cluster.is_true(space.get("hudiwriter", "orphan"), "Succeeded")
    space.audited("orphaned", written(batches=1, rows=40))
