"""A closed gate beside runs that do not end by themselves (F44): they end for the change, and go on
after it; nobody waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.world.simulated_world import World, all_settled, at_step, finished, ready_world

Change = Callable[[World], None]


def edited(**spec: Any) -> Change:
    def change(world: World) -> None:
        assert world.table is not None
        world.edit(world.table, **spec)

    return change


def newer_protocol(world: World) -> None:
    """The gate was left by an operator of the next protocol version."""
    gate = world.kv["gate"].value
    world.put("gate", {**gate, "protocolVersion": gate["protocolVersion"] + 1})


CHANGES: dict[str, Change] = {
    "drainSeconds": edited(fencing={"drainSeconds": 20}),
    "fencing mode": edited(fencing={"mode": "LeaseOnly"}),
    "lock durations": edited(lock={"leaseSeconds": 20}),
    "concurrency": edited(concurrency={"mode": "SingleWriter"}),
    "insertConflicts": edited(concurrency={"insertConflicts": "Partition"}),
    "hudiVersion": edited(hudiVersion="1.2.1"),
    "savepoint": edited(savepoints=[{"name": "first"}, {"name": "second"}]),
    "restore": edited(restore={"savepoint": "first", "nonce": "back"}),
    "metadata table": edited(metadataTable={"enabled": False}),
    "protocol version": newer_protocol,
}
GRACE = 5


def streaming(*, name: str = "live", table: dict[str, Any] | None = None, **writer: Any) -> World:
    """A table with a savepoint and a writer that has committed three batches and never
    ends by itself.
    """
    world = ready_world(**(table or {}))
    assert world.table is not None
    world.make_writer("load")
    world.run(finished("load"))
    world.edit(world.table, savepoints=[{"name": "first"}])
    world.run(lambda w: "done/savepoint-first" in w.kv and w.kv["gate"].value["state"] == "open")
    world.make_writer(name, streaming={"intervalSeconds": 1}, stop={"graceSeconds": GRACE}, **writer)
    world.run(lambda w: commits(w, name) >= 3)
    return world


def commits(world: World, name: str) -> int:
    process = world.writer_process(name)
    return process.commits if process is not None else 0


def attempts(world: World, name: str = "live") -> list[dict[str, Any]]:
    return list(world.writers[name]["status"]["attempts"])


def waited(world: World, name: str = "other", **spec: Any) -> float:
    """How long another writer takes from its creation to its end, in simulated seconds."""
    began = world.now
    world.make_writer(name, priority=10, **spec)
    world.run(finished(name), seconds=500)
    assert world.is_true(world.writers[name], "Succeeded")
    return world.now - began


def goes_on(world: World) -> bool:
    """Whether the endless writer commits again, in its second attempt."""
    return len(attempts(world)) == 2 and commits(world, "live") >= 1


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_change_beside_an_endless_writer_keeps_nobody_waiting(change: str) -> None:
    world = streaming(retryPolicy={"limit": 0})
    before = dict(world.kv["gate"].value)
    CHANGES[change](world)
    assert waited(world) < 60
    world.run(goes_on)
    assert attempts(world)[0]["class"] == "EndedForChange"
    assert attempts(world)[0]["run"] == attempts(world)[1]["run"], "the run goes on"
    assert not world.names("settle"), "it has ended by itself: nothing is to be settled"
    (told,) = [e for e in world.events if e.reason == "AttemptEndedForChange"]
    assert told.type == "Normal"
    gate = world.kv["gate"].value
    assert gate["state"] == "open"
    assert "closedFor" not in gate
    same = [
        name for name in ("mode", "lock", "concurrency", "insertConflicts", "hudiVersion") if gate[name] == before[name]
    ]
    assert len(same) == (5 if change in ("savepoint", "restore", "metadata table", "protocol version") else 4)


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_a_change_beside_a_scheduled_run_keeps_nobody_waiting(change: str) -> None:
    """A run of a schedule with many commits ends between two, and its next attempt ends the run."""
    world = ready_world()
    assert world.table is not None
    world.edit(world.table, savepoints=[{"name": "first"}])
    world.run(lambda w: "done/savepoint-first" in w.kv and w.kv["gate"].value["state"] == "open")
    world.make_writer("live", schedule={"cron": "* * * * *"}, retryPolicy={"limit": 0})
    world.run(at_step("live", 1), seconds=200)
    process = world.writer_process("live")
    assert process is not None
    process.endless = True
    world.run(lambda w: commits(w, "live") >= 3)
    CHANGES[change](world)
    assert waited(world) < 60
    world.run(lambda w: len(attempts(w)) >= 2 and attempts(w)[1].get("class") == "Succeeded", seconds=200)
    assert attempts(world)[0]["class"] == "EndedForChange"
    assert attempts(world)[0]["run"] == attempts(world)[1]["run"], "the run goes on"
    world.run(lambda w: len(attempts(w)) >= 3, seconds=200)
    assert attempts(world)[2]["run"] != attempts(world)[1]["run"], "the next one begins at its time"


def test_the_gate_says_what_it_is_closed_for() -> None:
    world = streaming()
    assert world.table is not None
    world.edit(world.table, fencing={"drainSeconds": 20}, concurrency={"mode": "SingleWriter"})
    world.reconcile()
    assert world.kv["gate"].value["closedFor"] == "a change of concurrency, lock"
    world.run(goes_on)
    assert "closed for a change of concurrency, lock" in attempts(world)[0]["message"]


@pytest.mark.parametrize(("step", "ignores"), [(1, False), (1, True), (3, True)])
def test_a_run_that_hangs_is_ended_when_its_time_is_over(step: int, ignores: bool) -> None:
    """Without the lock and with it, whether it listens to SIGTERM or not."""
    world = streaming(table={"concurrency": {"changeTimeoutSeconds": 300}}, retryPolicy={"limit": 0})
    hung = world.writer_process("live")
    assert hung is not None
    hung.hang_at, hung.ignores_sigterm = step, ignores
    world.run(lambda w: hung.step >= step)
    CHANGES["drainSeconds"](world)
    took = waited(world)
    assert 300 <= took < 300 + GRACE + 60
    world.run(lambda w: len(attempts(w)) == 2 and commits(w, "live") >= 1)
    assert attempts(world)[0]["class"] == "EndedForChange", "no failure: retryPolicy.limit is 0"
    if step == 3:
        assert world.rolled_back == {hung.instant}
        assert {k.value["reason"] for k in world.names("settle").values()} <= {"EndedForChange", "PodTerminated"}


def test_a_batch_that_fits_into_its_time_is_waited_for() -> None:
    world = streaming()
    slow = world.writer_process("live")
    assert slow is not None
    slow.hang_at = 2
    world.run(lambda w: slow.step >= 2)
    slow.instant = ""
    CHANGES["drainSeconds"](world)
    world.pass_time(500)  # less than maxHoldSeconds
    assert slow.alive
    slow.hang_at = None
    assert waited(world) < 60
    assert slow.instant in world.completed


def test_a_long_run_without_boundaries_ends_by_itself() -> None:
    """One commit: it is the longest batch, and nobody stops it before its time."""
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("load")
    world.run(at_step("load", 1))
    world.writer_hang_at = None
    CHANGES["drainSeconds"](world)
    load = world.writer_process("load")
    assert load is not None
    world.pass_time(3000)
    load.hang_at = None
    world.run(finished("load"))
    assert [a["class"] for a in attempts(world, "load")] == ["Succeeded"]


def test_an_application_gets_its_grace() -> None:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer(
        "program",
        source=None,
        application={"mainFile": "local:///app.py"},
        stop={"graceSeconds": GRACE},
        retryPolicy={"limit": 0},
    )
    world.run(at_step("program", 1))
    program = world.writer_process("program")
    assert program is not None
    program.ignores_sigterm, world.writer_hang_at = True, None
    CHANGES["savepoint"](world)
    assert waited(world) < GRACE + 60
    world.run(finished("program"))
    assert [a["class"] for a in attempts(world, "program")] == ["EndedForChange", "Succeeded"]


def test_a_pod_that_is_never_scheduled_keeps_no_change_waiting() -> None:
    world = ready_world()
    world.schedulable = False
    world.make_writer("big", retryPolicy={"limit": 0})
    world.run(lambda w: any(n.startswith("big-") for n in w.pods))
    CHANGES["lock durations"](world)
    world.run(lambda w: w.kv["gate"].value["lock"]["leaseSeconds"] == 20, seconds=60)
    world.schedulable = True
    world.run(finished("big"))
    assert [a["class"] for a in attempts(world, "big")] == ["EndedForChange", "Succeeded"]


def test_an_attempt_that_has_no_pod_yet_gets_none() -> None:
    world = ready_world()
    world.make_writer("early")
    while not (world.writers["early"].get("status") or {}).get("attempts"):
        world.reconcile(crash_after=3)  # dies when the attempt stands in status, before anything is made
    assert not [n for n in world.created if n.startswith("early-")]
    CHANGES["drainSeconds"](world)
    world.reconcile(crash_after=1)
    assert world.kv["gate"].value["state"] == "closed"
    world.run(finished("early"))
    assert [a["class"] for a in attempts(world, "early")] == ["EndedForChange", "Succeeded"]
    assert [n.rsplit("-", 1)[1] for n in world.created if n.startswith("early-")] == ["2"]


def test_a_failure_beside_a_change_is_a_failure() -> None:
    world = streaming(retryPolicy={"limit": 0})
    live = world.writer_process("live")
    assert live is not None
    live.hang_at = 1
    world.run(lambda w: live.step == 1)
    CHANGES["drainSeconds"](world)
    for _ in range(3):
        world.reconcile()
        world.tick()
    world.drop(f"alive/{live.inc}")
    world.drop(f"writer/{live.inc}")
    world.kill(live, 10)
    world.run(finished("live"))
    assert attempts(world)[0]["class"] == "UserError"
    assert world.condition(world.writers["live"], "Finished")["reason"] == "Failed"


def test_a_change_that_is_taken_back_leaves_the_run_alone() -> None:
    world = streaming(table={"concurrency": {"changeTimeoutSeconds": 60}})
    live = world.writer_process("live")
    assert live is not None
    live.hang_at = 1
    world.run(lambda w: live.step == 1)
    CHANGES["drainSeconds"](world)
    for _ in range(50):
        world.reconcile()
        world.tick()
    assert [name for name in world.timers if name.startswith("change/")]
    edited(fencing={"drainSeconds": 10})(world)
    world.run(lambda w: w.kv["gate"].value["state"] == "open", seconds=5)
    for _ in range(100):
        world.reconcile()
        world.tick()
    assert live.alive
    assert not [name for name in world.timers if name.startswith("change/")]


def test_a_suspended_writer_is_suspended_not_ended_for_the_change() -> None:
    world = streaming()
    live = world.writer_process("live")
    assert live is not None
    live.ignores_sigterm, live.hang_at = True, 3
    world.run(lambda w: live.step == 3)
    CHANGES["drainSeconds"](world)
    world.edit(world.writers["live"], suspend=True)
    world.run(lambda w: w.is_true(w.writers["live"], "Suspended"))
    assert attempts(world)[0]["class"] == "Cancelled"
    world.run(all_settled)
    assert {k.value["reason"] for k in world.names("settle").values()} <= {"Suspended", "PodTerminated"}


def test_a_run_whose_kubelet_is_away_is_fenced_for_the_change() -> None:
    """Its heartbeat goes on, so the change alone is the reason.

    The proof comes when the kubelet is back.
    """
    world = streaming(table={"concurrency": {"changeTimeoutSeconds": 300}})
    hung = world.writer_process("live")
    assert hung is not None
    hung.hang_at, hung.ignores_sigterm = 3, True
    world.run(lambda w: hung.step == 3)
    before = set(world.names("settle"))
    CHANGES["drainSeconds"](world)
    world.nodes[hung.node].ready = False
    world.run(lambda w: bool(set(w.names("settle")) - before), seconds=600)
    assert [k.value["reason"] for name, k in world.names("settle").items() if name not in before] == ["EndedForChange"]
    world.nodes[hung.node].ready = True
    world.run(all_settled)


@pytest.mark.parametrize("every", [50, 130])
def test_the_time_to_a_boundary_does_not_begin_anew_with_each_operator(every: int) -> None:
    """F71: timers die with an operator, so one that was restarted more often than the time-out
    would never have ended a run that hangs.
    """
    world = streaming(table={"concurrency": {"changeTimeoutSeconds": 300}}, retryPolicy={"limit": 0})
    hung = world.writer_process("live")
    assert hung is not None
    hung.hang_at = 1
    world.run(lambda w: hung.step >= 1)
    CHANGES["drainSeconds"](world)
    for second in range(1, 400):
        world.reconcile()
        world.tick()
        if second % every == 0:
            world.timers.clear()
        if not hung.alive:
            break
    assert 300 <= second <= 300 + GRACE + 60
    world.run(lambda w: len(attempts(w)) == 2 and commits(w, "live") >= 1)
    assert attempts(world)[0]["class"] == "EndedForChange"
    assert "closedForMs" not in world.kv["gate"].value


def test_another_change_gives_no_more_time() -> None:
    world = streaming(table={"concurrency": {"changeTimeoutSeconds": 300}}, retryPolicy={"limit": 0})
    hung = world.writer_process("live")
    assert hung is not None
    assert world.table is not None
    hung.hang_at = 1
    world.run(lambda w: hung.step >= 1)
    CHANGES["drainSeconds"](world)
    world.reconcile()
    since = world.kv["gate"].value["closedForMs"]
    for _ in range(100):
        world.tick()
    world.edit(
        world.table, fencing={"drainSeconds": 20}, concurrency={"mode": "SingleWriter", "changeTimeoutSeconds": 300}
    )
    world.reconcile()
    assert world.kv["gate"].value["closedFor"] == "a change of concurrency, lock"
    assert world.kv["gate"].value["closedForMs"] == since


def unread(world: World, name: str = "live", **spec: Any) -> None:
    """The spec is one that this version of the operator cannot read any more."""
    world.edit(world.writers[name], operation="OfAnotherVersion", **spec)


def test_a_run_whose_spec_cannot_be_read_any_more_is_ended_when_its_time_is_over() -> None:
    """F433: an upgrade reads more strictly, and changes the protocol."""
    world = streaming(table={"concurrency": {"changeTimeoutSeconds": 300}})
    hung = world.writer_process("live")
    assert hung is not None
    hung.hang_at = 1
    world.run(lambda w: hung.step >= 1)
    world.reconcile()  # its last commit is in status
    before = attempts(world)
    unread(world)
    world.run(lambda w: w.is_true(w.writers["live"], "Stalled"))
    assert attempts(world) == before, "what is in status stays"
    CHANGES["protocol version"](world)
    took = waited(world)
    assert 300 <= took < 300 + 60 + 60, "the grace period is the default"
    assert attempts(world)[0]["class"] == "EndedForChange"
    assert len(attempts(world)) == 1, "nothing is started from it"
    world.edit(world.writers["live"], operation="Upsert")
    world.run(lambda w: len(attempts(w)) == 2 and commits(w, "live") >= 1)


@pytest.mark.parametrize("end", ["suspend", "deletion"])
def test_a_run_whose_spec_cannot_be_read_is_stopped_when_a_person_says_so(end: str) -> None:
    world = streaming()
    unread(world)
    world.run(lambda w: w.is_true(w.writers["live"], "Stalled"))
    process = world.writer_process("live")
    assert process is not None
    assert process.alive, "it runs on"
    if end == "suspend":
        unread(world, suspend=True)
        world.run(lambda w: bool(attempts(w)[0].get("class")), seconds=200)
        assert attempts(world)[0]["class"] == "Cancelled"
    else:
        world.delete(world.writers["live"])
        world.run(lambda w: "live" not in w.writers, seconds=300)
    assert not process.alive


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"savepoints": [{"name": "a"}]}, id="savepoint"),
        pytest.param({"restore": {"savepoint": "before", "nonce": "n"}}, id="restore"),
        pytest.param({"metadataTable": {"enabled": False}}, id="metadata table"),
        pytest.param({"lock": {"leaseSeconds": 20}}, id="lease"),
    ],
)
def test_no_attempt_begins_in_the_look_that_closes_the_gate(change: dict[str, Any]) -> None:
    """F572: it began, and was stopped at once, for it could not acquire."""
    world = ready_world()
    world.make_writer("w")
    world.run(finished("w"))
    world.change(savepoints=[{"name": "before"}])
    world.run(
        lambda w: (w.status("savepoints") or [{}])[0].get("outcome") == "Completed" and w.is_true(w.table, "Ready")
    )
    world.change(**change)
    world.edit(world.writers["w"], restartNonce="again")
    world.run(lambda w: len(w.writers["w"]["status"]["attempts"]) == 2)
    world.run(finished("w"))
    assert [(each["number"], each["class"]) for each in world.writers["w"]["status"]["attempts"]] == [
        (1, "Succeeded"),
        (2, "Succeeded"),
    ]
