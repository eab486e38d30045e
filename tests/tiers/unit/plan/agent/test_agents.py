"""The agent of a table: its number is spent only by a pod that was there, and its
failure is told.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from hudi_contract import naming, settle
from hudi_operator.model.facts import ContainerFacts, Observed, PodFacts
from hudi_operator.plan import table_status
from hudi_operator.plan.agent import agents
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_world import CONFIG, World, at_step, ready_world


def _created(plan: act.Plan) -> list[str]:
    return [a.manifest["metadata"]["name"] for a in plan.actions if isinstance(a, act.CreatePod)]


def test_a_refused_agent_pod_keeps_its_number() -> None:
    world = World()
    world.make_table()
    world.reconcile()
    world.reconcile()
    first = plan_table(world.observe(), CONFIG)
    assert len(_created(first)) == 1
    for action in first.actions:
        if not isinstance(action, act.CreatePod):  # the API server refuses the pod: nothing after it is done
            world.perform(action)
    again = plan_table(world.observe(), CONFIG)
    assert _created(again) == _created(first)


def test_a_failed_agent_is_quoted_in_the_condition() -> None:
    world = World()
    world.make_table()
    world.reconcile()
    world.reconcile()
    observed = world.observe()
    plan = plan_table(observed, CONFIG)
    made = next(a.manifest for a in plan.actions if isinstance(a, act.CreatePod))
    word = json.dumps({"outcome": "Failed", "class": "Infrastructure", "message": "no route to etcd"})
    ended = ContainerFacts(
        "agent",
        started=True,
        terminated=True,
        exit_code=11,
        reason="Error",
        message=word,
        finished_at="2026-01-01T00:00:00Z",
    )
    pod = PodFacts(
        namespace=made["metadata"]["namespace"],
        name=made["metadata"]["name"],
        uid="u",
        labels=made["metadata"]["labels"],
        phase="Failed",
        node="n",
        deleting=False,
        finalizers=(),
        containers=(ended,),
    )
    plan = plan_table(replace(observed, pods=(pod,)), CONFIG)
    status = next(a.status for a in plan.actions if isinstance(a, act.UpdateStatus))
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert ready["reason"] == "AgentNotReady"
    assert f"{pod.name} failed: no route to etcd" in ready["message"]


@pytest.mark.parametrize(("ahead", "failures"), [(0, 1), (3600, 1), (3600, 4), (-20, 2)])
def test_the_next_agent_does_not_wait_for_the_kubelets_clock(ahead: int, failures: int) -> None:
    """F57: how long the operator waits is its own affair, at most the back-off.

    A container beside the agent's is no second failure.
    """
    world = ready_world()
    pods = [p for p in world.observe().pods if p.labels.get(naming.LABEL_ROLE) == naming.ROLE_AGENT]
    world.pods.clear()
    at = datetime.fromtimestamp(world.now_ms / 1000 + ahead, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = tuple(
        ContainerFacts(name, started=True, terminated=True, exit_code=11, finished_at=at) for name in ("agent", "proxy")
    )
    dead = tuple(
        replace(pods[0], uid=f"u{n}", name=f"{pods[0].name}{n}", phase="Failed", containers=ended)
        for n in range(failures)
    )
    began = world.now
    for _ in range(100):
        plan = plan_table(replace(world.observe(), pods=dead), CONFIG)
        if any(isinstance(a, act.CreatePod) for a in plan.actions):
            break
        for action in plan.actions:
            if isinstance(action, act.StartTimer | act.StopTimer):
                world.perform(action)
        world.now += 0.5
    delay = agents.FIRST_BACKOFF_SECONDS * 2 ** (failures - 1)
    assert max(0.0, delay + min(ahead, 0)) <= world.now - began <= delay + 1


@pytest.mark.parametrize(
    ("reason", "own", "locked", "grace"),
    [
        ("Deleted", False, False, 120),
        ("HeldTooLong", False, True, 30),
        ("HeldTooLong", True, True, 5),
        ("LeaseGone", False, False, 5),
        ("ClockSkew", False, True, 5),
    ],
)
def test_an_agent_that_is_fenced_for_one_table_has_time_for_the_others(
    reason: str, own: bool, locked: bool, grace: int
) -> None:
    """F48: its pod is ended in order, and the next agent does not wait for that.

    With the lock it has less time; of a table's own agent nobody else depends.
    """
    world = ready_world(**({"agent": {"memory": "1Gi"}} if own else {}))
    agent = world.agent_process()
    assert agent is not None
    agent.paused = agent.ignores_sigterm = True  # as one that works: it comes to its end when it is killed
    if locked:
        world.put("lock", {"inc": agent.inc, "attempt": agent.attempt, "nonce": "n"})
    who = {"attempt": agent.attempt, "role": "agent", "namespace": "lake", "pod": agent.pod, "pod_uid": agent.pod_uid}
    record = settle.SettleRecord.of(inc=agent.inc, reason=reason, now_ms=world.now_ms, **who).to_json()
    world._do_Fence(
        act.Fence(table_id="", inc=agent.inc, attempt=agent.attempt, settle=record, if_not_alive=False, lease=0)
    )
    ended: act.DeletePod | None = None
    while ended is None:
        plan = world.reconcile()
        ended = next((a for a in plan.actions if isinstance(a, act.DeletePod) and a.name == agent.pod), None)
        world.tick()
        assert world.now < 300
    assert ended.grace_seconds == grace
    assert f"settle/{agent.inc}" in world.kv
    world.run(lambda w: (current := w.agent_process()) is not None and current.inc != agent.inc, seconds=20)
    assert agent.alive or grace == 5, "the next one waits for its end"
    if grace == 120:
        world.run(lambda w: w.is_true(w.table, "Ready"), seconds=30)
        assert agent.alive, "the table waits for the end of what other tables are at"
    if locked and agent.alive:
        assert "lock" in world.kv, "no lock without proof"
    world.run(lambda w: "lock" not in w.kv and w.names("settle")[agent.inc].value["phase"] == "Settled")
    assert not agent.alive


def _copied(world: World, **facts: str) -> list[str]:
    """What is copied of the gateway's authority while the agent is there."""
    plan = plan_table(replace(world.observe(), **facts), CONFIG)
    return [
        a.manifest["data"]["ca.crt"]
        for a in plan.actions
        if isinstance(a, act.Apply) and a.manifest["metadata"]["name"] == "hudi-operator-etcd"
    ]


def test_pods_that_run_are_told_of_another_authority_of_the_gateway() -> None:
    """F274: also where no pod starts any more; once."""
    world = ready_world()
    assert _copied(world, etcd_authority="old and new", copied_authority="old") == ["old and new"]
    assert _copied(world, etcd_authority="old") == ["old"], "this process has copied none yet"
    assert _copied(world, etcd_authority="old", copied_authority="old") == []
    assert _copied(world) == [], "etcd without TLS"
    world.terminating = True
    assert _copied(world, etcd_authority="old") == []


@pytest.mark.parametrize(("drain", "agents_drain"), [(1, 60), (90, 90)])
def test_the_agent_has_the_durations_of_the_gate(drain: int, agents_drain: int) -> None:
    """F437: writers that run under a longer drain may leave something to be rolled back."""
    world = ready_world(fencing={"drainSeconds": 60})
    world.writer_hang_at = 3
    world.make_writer("running")
    world.run(at_step("running", 3))
    assert world.table is not None
    world.edit(world.table, fencing={"drainSeconds": drain}, lock={"maxClockSkewSeconds": 9})
    for _ in range(5):
        world.reconcile()
        world.tick()
    observed = world.observe()
    assert observed.etcd is not None
    assert observed.etcd.assignment is not None
    lock = observed.etcd.assignment.value["lock"]
    assert (lock["drainSeconds"], lock["maxClockSkewSeconds"]) == (agents_drain, 5)
    process = world.writer_process("running")
    assert process is not None
    process.hang_at, world.writer_hang_at = None, None
    world.run(lambda w: w.kv["gate"].value["state"] == "open" and w.kv["gate"].value["lock"]["drainSeconds"] == drain)
    world.reconcile()
    now = world.observe().etcd
    assert now is not None
    assert now.assignment is not None
    assert now.assignment.value["lock"] == world.kv["gate"].value["lock"]


def test_no_agent_gets_a_table_whose_status_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """F585."""
    world = ready_world()

    def broken(*_: Any, **__: Any) -> None:
        raise AssertionError("a defect")

    def unassigned() -> Observed:
        observed = world.observe()
        assert observed.etcd is not None
        return replace(observed, etcd=replace(observed.etcd, assignment=None))

    seen = unassigned()
    assert given(plan_table(seen, CONFIG)), "it was in status before"
    assert world.table is not None
    world.edit(world.table, image="another")
    changed = unassigned()
    assert given(plan_table(changed, CONFIG))
    monkeypatch.setattr(table_status, "table_status", broken)
    assert given(plan_table(seen, CONFIG)), "status names it"
    assert not given(plan_table(changed, CONFIG))


def given(plan: act.Plan) -> list[act.Action]:
    """What gives the table to an agent."""
    return [a for a in plan.actions if isinstance(a, act.PutAssignment) and a.value]


def test_a_table_is_withdrawn_from_every_other_agent() -> None:
    """F585: its predecessor's finalizer was removed by hand, and another agent has room now."""
    world = World()
    world.make_table()
    world.reconcile()
    world.reconcile()
    world.put("elsewhere/hudi-agent-old", {"T": "T"})
    plan = plan_table(world.observe(), CONFIG)
    assert [a.agent for a in plan.actions if isinstance(a, act.PutAssignment) and a.value is None] == ["hudi-agent-old"]
    world.run(lambda w: w.is_true(w.table, "Ready"))
    assert not world.names("elsewhere")


def test_an_agent_is_told_of_a_table_once_status_names_it() -> None:
    """Which agent has room is not the same at each look: what was chosen is written first."""
    world = World()
    world.make_table()
    world.reconcile()
    world.reconcile()
    names = list[str]()
    for image in ("", "another"):
        if image:
            assert world.table is not None
            world.edit(world.table, image=image)
        observed = world.observe()
        assert observed.etcd is not None
        plan = plan_table(replace(observed, etcd=replace(observed.etcd, assignment=None)), CONFIG)
        said = next(n for n, a in enumerate(plan.actions) if isinstance(a, act.UpdateStatus) and "agent" in a.status)
        told = next(n for n, a in enumerate(plan.actions) if isinstance(a, act.PutAssignment) and a.value)
        admitted = next(n for n, a in enumerate(plan.actions) if isinstance(a, act.PutAdmit))
        assert said < told < admitted
        update, assignment = plan.actions[said], plan.actions[told]
        assert isinstance(update, act.UpdateStatus)
        assert isinstance(assignment, act.PutAssignment)
        assert update.status["agent"] == assignment.agent
        names.append(assignment.agent)
        world.reconcile()
    assert len(set(names)) == 2
