"""Operators that end at bad moments: after every step of settling, and as leaders."""

from __future__ import annotations

import signal
import time

from tests.support.harness.operator_world import Operator, World
from tests.support.harness.servers import wait_for

STEPS = (
    "fence",
    "settle-update/Terminating",
    "settle-update/Draining",
    "unlock",
    "settle-update/Unlocked",
    "settle-update/RollingBack",
)
HAND_OVER_SECONDS = 20.0


def test_an_operator_killed_after_each_step_of_settling_changes_nothing_but_time(world: World) -> None:
    operator = world.start_operator(leader_election=False)
    table_id, _, _ = world.running_table()
    pod, inc = world.running_writer(table_id)
    world.lock(table_id, inc, pod)
    world.instant(table_id, inc, "20260101000000000")
    world.end_pod(pod, exit_code=137)
    for step in STEPS:
        operator.kill_after(step)
        operator = world.start_operator(leader_election=False, wait=False)
    world.sweep(table_id, inc)
    operator.kill_after("settled")
    operator = world.start_operator(leader_election=False)
    record = world.phase(table_id, inc, "Settled")
    assert list(record["proofs"]) == [pod["metadata"]["uid"]]
    at = [
        record["times"][phase]
        for phase in ("Fenced", "Terminating", "Draining", "Unlocked", "RollingBack", "Swept", "Settled")
    ]
    assert at == sorted(at)
    assert at[3] - at[2] >= 1000, "the drain starts again after a failover"
    assert not world.etcd.read(world.key(table_id, "instant/"))
    assert not world.etcd.read(world.key(table_id, "lock"))
    world.pod("driver", number=2, writer="load", seconds=30)
    steps = [step for each in world.operators for step in each.steps()]
    assert [steps.count(step) for step in ("fence", "unlock", "settled")] == [1, 1, 1]
    numbers = [p["metadata"]["labels"]["hudioperator.io/attempt"] for p in world.pods("driver", writer="load")]
    assert sorted(numbers) in (["1", "2"], ["2"]), "one pod per attempt"


def _leader(*replicas: Operator) -> Operator | None:
    leading = [replica for replica in replicas if replica.process.poll() is None and replica.leading]
    assert len(leading) <= 1, "two leaders"
    return leading[0] if leading else None


def test_a_frozen_a_killed_and_a_stopped_leader_are_followed_in_time(world: World) -> None:
    world.forks = None  # exit codes count
    first = world.start_operator()
    wait_for("leader", lambda: first.leading)
    second = world.start_operator()
    assert not second.leading
    assert second.get("/readyz")[0] == 200, "a follower is ready"
    table_id, _, _ = world.running_table()
    # Frozen: the lease runs out, the other one takes over; the sleeper ends the moment it wakes up.
    first.kill(signal.SIGSTOP)
    frozen = time.monotonic()
    wait_for("second leads", lambda: second.leading, seconds=HAND_OVER_SECONDS)
    took = time.monotonic() - frozen
    world.writer("one")
    world.run_pod(world.pod("driver", number=1, writer="one"))
    first.kill(signal.SIGCONT)
    assert first.process.wait(timeout=15) == 70
    assert second.leading
    # Killed.
    third = world.start_operator()
    second.kill()
    killed = time.monotonic()
    wait_for("third leads", lambda: third.leading, seconds=HAND_OVER_SECONDS)
    print(f"hand-over: frozen {took:.1f} s, killed {time.monotonic() - killed:.1f} s")
    world.writer("two")
    world.pod("driver", number=1, writer="two")
    # Stopped in order: the lease is given back, nobody waits for it to run out.
    fourth = world.start_operator()
    third.kill(signal.SIGTERM)
    assert third.process.returncode == 0
    wait_for("fourth leads", lambda: fourth.leading, seconds=HAND_OVER_SECONDS / 2)
    assert len(world.pods("driver")) == 2, "one pod per attempt"
    assert len(world.pods("agent")) == 1
    assert world.etcd.read(f"/hudi/control/{table_id}/gate")


def test_without_etcd_nothing_is_decided_and_the_table_says_so(world: World) -> None:
    operator = world.start_operator()
    table_id, _, _ = world.running_table()
    pod, inc = world.running_writer(table_id)
    wait_for("Ready", lambda: (c := world.condition("huditables", "flights", "Ready")) and c["status"] == "True")
    world.etcd.pause()
    try:
        condition = wait_for(
            "EtcdUnavailable",
            lambda: (c := world.condition("huditables", "flights", "Ready")) and c["reason"] == "EtcdUnavailable" and c,
            seconds=40,
        )
        assert condition["status"] != "True"
        assert operator.get("/healthz")[0] == 200, "an operator without etcd is not restarted"
        assert world.pods("driver")[0]["metadata"].get("deletionTimestamp") is None
    finally:
        world.etcd.resume()
    wait_for(
        "Ready again",
        lambda: (c := world.condition("huditables", "flights", "Ready")) and c["status"] == "True",
        seconds=60,
    )
    assert world.settle(table_id, inc) is None
    assert world.pods("driver")[0]["metadata"]["uid"] == pod["metadata"]["uid"]
