"""Who is fenced, why and when, from one moment each; and who is not (F15, F19, F21, F29, F47)."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.fencing import settling, suspects
from tests.support.world.scene import ATTEMPT_POD, INC, Scene
from tests.support.world.simulated_store import NAMESPACE

ATTEMPT = naming.attempt_id(NAMESPACE, ATTEMPT_POD)


def planned(scene: Scene, *, asked: bool = False) -> tuple[act.Action, ...]:
    return suspects.plan_suspects(scene.view, changing=False, asked=asked).actions


def fences(scene: Scene, *, asked: bool = False) -> list[act.Fence]:
    return [a for a in planned(scene, asked=asked) if isinstance(a, act.Fence)]


def reasons(scene: Scene, *, asked: bool = False) -> list[tuple[str, str]]:
    return [(fence.inc, str(fence.settle["reason"])) for fence in fences(scene, asked=asked)]


def timers(scene: Scene) -> tuple[set[str], set[str]]:
    """Timers that are started and stopped."""
    actions = planned(scene)
    return {a.name for a in actions if isinstance(a, act.StartTimer)}, {
        a.name for a in actions if isinstance(a, act.StopTimer)
    }


def healthy(**incarnation: Any) -> Scene:
    """A running driver with its heartbeat."""
    scene = Scene(lock={"suspectSeconds": 5, "maxHoldSeconds": 60})
    scene.pod()
    scene.incarnation(**incarnation)
    return scene


def test_who_is_well_is_left_alone() -> None:
    scene = healthy()
    scene.lock()
    scene.instant("20260101000000001")
    assert reasons(scene) == []


@pytest.mark.parametrize(("age", "fenced"), [(None, False), (4.9, False), (5.0, True)])
def test_a_lost_lease_is_waited_for(age: float | None, fenced: bool) -> None:
    """The timer is this process's own: an operator that has just started has seen nothing yet."""
    scene = healthy(alive=False)
    if age is None:
        assert timers(scene)[0] == {f"alive/{INC}"}
    else:
        scene.timers[f"alive/{INC}"] = scene.now - age
    assert reasons(scene) == ([(INC, "LeaseGone")] if fenced else [])


def test_the_fence_of_a_lost_lease_compares_the_heartbeat() -> None:
    """F29: who came back meanwhile is not fenced.

    For every other reason it is, living or not, and its lease is revoked.
    """
    scene = healthy(alive=False)
    scene.timers[f"alive/{INC}"] = scene.now - 5
    (fence,) = fences(scene)
    assert (fence.if_not_alive, fence.lease, fence.attempt) == (True, 0, ATTEMPT)
    scene = healthy(clock_ahead=6)
    (fence,) = fences(scene)
    assert (fence.settle["reason"], fence.if_not_alive, bool(fence.lease)) == ("ClockSkew", False, True)


def test_a_heartbeat_that_is_back_stops_the_timer() -> None:
    scene = healthy()
    scene.timers[f"alive/{INC}"] = scene.now - 4
    assert (reasons(scene), timers(scene)[1]) == ([], {f"alive/{INC}"})


def test_the_end_of_its_container_is_certain() -> None:
    """At once, and called that, although its lease is over too."""
    scene = healthy(alive=False)
    scene.timers[f"alive/{INC}"] = scene.now - 100
    scene.pods[ATTEMPT_POD].phase, scene.pods[ATTEMPT_POD].exit_code = "Failed", 137
    assert reasons(scene) == [(INC, "PodTerminated")]


def test_a_pod_that_is_gone_is_waited_for() -> None:
    scene = healthy()
    del scene.pods[ATTEMPT_POD]
    assert (reasons(scene), timers(scene)[0]) == ([], {f"gone/{INC}"})
    scene.timers[f"gone/{INC}"] = scene.now - 5
    assert reasons(scene) == [(INC, "PodGone")]


@pytest.mark.parametrize(
    ("ahead", "operator_ahead_ms", "fenced"), [(4.0, 0, False), (6.0, 0, True), (6.0, 6000, False), (-3600.0, 0, False)]
)
def test_a_clock_that_is_ahead(ahead: float, operator_ahead_ms: int, fenced: bool) -> None:
    """F19, F47: ahead of the API server and of the operator. One that is behind harms nobody."""
    scene = healthy(clock_ahead=ahead)
    scene.operator_clock_ms = operator_ahead_ms
    assert reasons(scene) == ([(INC, "ClockSkew")] if fenced else [])


@pytest.mark.parametrize(("age", "fenced"), [(59.0, False), (60.0, True)])
def test_the_lock_is_held_too_long(age: float, fenced: bool) -> None:
    scene = healthy()
    token = scene.lock()
    scene.timers[f"hold/{token}"] = scene.now - age
    assert reasons(scene) == ([(INC, "HeldTooLong")] if fenced else [])


def test_another_hold_is_another_timer() -> None:
    scene = healthy()
    first = scene.lock()
    scene.timers[f"hold/{first}"] = scene.now - 100
    scene.drop("lock")
    second = scene.lock()
    assert reasons(scene) == []
    assert timers(scene) == ({f"hold/{second}"}, {f"hold/{first}"})


@pytest.mark.parametrize(
    ("role", "state", "asked", "fenced"),
    [
        ("agent", "closed", True, False),
        ("agent", "closed", False, True),
        ("agent", "open", True, True),
        ("writer", "closed", True, True),
    ],
)
def test_an_agent_may_hold_it_for_hours_behind_the_closed_gate(
    role: str, state: str, asked: bool, fenced: bool
) -> None:
    """F21: it makes the table, or its index. F457: when that is asked of it."""
    scene = Scene(lock={"maxHoldSeconds": 60})
    pod = "hudi-agent-x-1" if role == "agent" else ATTEMPT_POD
    scene.pod(pod, role=naming.ROLE_AGENT if role == "agent" else naming.ROLE_DRIVER)
    scene.incarnation(pod=pod, role=role)
    scene.kv["gate"].value["state"] = state
    scene.timers[f"hold/{scene.lock(pod=pod)}"] = scene.now - 3600
    assert bool(reasons(scene, asked=asked)) == fenced


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lock", {"inc": "inc-x", "attempt": "", "podUID": "", "nonce": "n", "sinceMs": 0}),
        ("instant/20260101000000001", {"inc": "inc-x", "action": "commit", "state": "Pending"}),
        ("queue/inc-x-abcdefabcdef", {"inc": "inc-x", "priority": 0, "overtaken": 0, "sinceMs": 0}),
    ],
    ids=["lock", "instant", "ticket"],
)
def test_whoever_a_key_names_without_a_registration_is_a_suspect(key: str, value: dict[str, Any]) -> None:
    """F15."""
    scene = Scene()
    scene.put(key, value)
    assert timers(scene)[0] >= {"alive/inc-x"}
    scene.timers["alive/inc-x"] = scene.now - 100
    assert reasons(scene) == [("inc-x", "LeaseGone")]


def test_whoever_is_being_settled_is_not_fenced_again() -> None:
    scene = healthy(alive=False)
    scene.fenced("Terminating")
    scene.timers[f"alive/{INC}"] = scene.now - 100
    assert reasons(scene) == []


def test_a_fence_without_its_record_gets_one() -> None:
    """I6: only a person can have parted them."""
    scene = healthy()
    scene.put(f"fence/{INC}", {"inc": INC, "reason": "?"})
    (update,) = [a for a in planned(scene) if isinstance(a, act.UpdateSettle)]
    assert (update.inc, update.value["phase"], update.expected_mod) == (INC, "Fenced", 0)
    assert reasons(scene) == []


@pytest.mark.parametrize(("age", "fenced"), [(29.0, False), (30.0, True)])
def test_a_writer_that_was_asked_to_stop_has_its_grace(age: float, fenced: bool) -> None:
    scene = Scene()
    pod = scene.writer()
    scene.writers["load"]["spec"] |= {"suspend": True, "stop": {"graceSeconds": 30}}
    scene.pod(pod)
    scene.incarnation(pod=pod)
    scene.timers[f"stop/{naming.attempt_id(NAMESPACE, pod)}"] = scene.now - age
    assert reasons(scene) == ([(INC, "Suspended")] if fenced else [])


@pytest.mark.parametrize(("age", "fenced"), [(29.0, False), (30.0, True)])
def test_an_agent_leaves_a_table_that_is_deleted_or_is_fenced(age: float, fenced: bool) -> None:
    scene = Scene()
    assert scene.table is not None
    scene.table["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    scene.pod("hudi-agent-x-1", role=naming.ROLE_AGENT)
    scene.incarnation(pod="hudi-agent-x-1", role="agent")
    scene.timers[f"leave/{INC}"] = scene.now - age
    assert reasons(scene) == ([(INC, "Deleted")] if fenced else [])
    scene.put("assignment", {"T": "x"})
    assert reasons(scene) == [], "it was not told yet"


@pytest.mark.parametrize(("age", "fenced"), [(899.0, False), (900.0, True)])
def test_an_agent_leaves_a_table_of_another_agent_or_is_fenced(age: float, fenced: bool) -> None:
    """F528: it stays while an instant is its own, which only the next agent may end."""
    scene = Scene()
    agent = scene.view.agent
    for pod in ("hudi-agent-x-1", f"{agent}-1"):
        scene.pod(pod, role=naming.ROLE_AGENT)
    scene.incarnation(pod="hudi-agent-x-1", role="agent")
    assert timers(scene)[0] == {f"leave/{INC}"}
    scene.timers[f"leave/{INC}"] = scene.now - age
    assert reasons(scene) == ([(INC, "Reassigned")] if fenced else [])
    scene.kv.clear()
    scene.incarnation(pod=f"{agent}-1", role="agent")
    assert reasons(scene) == []
    assert timers(scene)[1] == {f"leave/{INC}"}


def test_timers_of_nobody_are_stopped() -> None:
    scene = healthy()
    kept = {f"alive/{INC}", "drain/other", "somebody/else"}
    scene.timers |= dict.fromkeys([*kept, "gone/other", "stop/lake.gone-1"], 0.0)
    assert timers(scene)[1] == {f"alive/{INC}", "drain/other", "gone/other", "stop/lake.gone-1"}


def test_the_record_says_everything_that_settling_needs() -> None:
    scene = healthy(alive=False, appId="app-1")
    scene.timers[f"alive/{INC}"] = scene.now - 5
    (fence,) = fences(scene)
    wanted = {
        "inc": INC,
        "attempt": ATTEMPT,
        "role": "writer",
        "namespace": NAMESPACE,
        "pod": ATTEMPT_POD,
        "podUID": f"uid-of-{ATTEMPT_POD}",
    }
    wanted |= {"node": "n1", "bootId": "boot-1", "appId": "app-1", "phase": "Fenced"}
    assert fence.settle.items() >= wanted.items()


def test_a_report_names_no_agents_pod() -> None:
    """F537: hostile code in an agent had the operator delete the pods of another one, by an instant
    and a report of nobody.
    """
    scene = Scene(lock={"suspectSeconds": 5})
    other = f"hudi-agent-{'b' * 32}-3"
    scene.pod(other, role=naming.ROLE_AGENT)
    scene.instant("20260101000000001", inc="ghost")
    scene.put(f"report/attempt/{naming.attempt_id(NAMESPACE, other)}", {"inc": "ghost"})
    scene.timers["alive/ghost"] = scene.now - 6
    (fence,) = fences(scene)
    assert (fence.inc, fence.settle["pod"], fence.settle["podUID"]) == ("ghost", "", "")


@pytest.mark.parametrize("phase", ["", "Terminating"])
def test_an_incarnation_is_of_the_pod_that_it_registered_from(phase: str) -> None:
    """F612: an API server that was set back gives the number, and the pod's name, once more."""
    scene = Scene()
    name = scene.writer()
    scene.pod(name, phase="Failed")
    scene.incarnation(pod=name, podUID="uid-of-the-first")
    if phase:
        scene.fenced(phase, pod=name, podUID="uid-of-the-first")
        scene.drop(f"writer/{INC}")
    (inc,) = scene.view.incs
    assert inc.pod_uid == "uid-of-the-first"
    found = [
        *settling.plan_settling(scene.view).actions,
        *suspects.plan_suspects(scene.view, changing=False, asked=False).actions,
    ]
    assert not any(a.value["proofs"] for a in found if isinstance(a, act.UpdateSettle))
    assert not any(a.settle["reason"] == "PodTerminated" for a in found if isinstance(a, act.Fence))


def test_a_lock_names_its_owner_and_nothing_else() -> None:
    """F538: a driver's word about its node was taken for a proof of its death, and as an agent it
    kept its credentials.
    """
    scene = Scene(fencing={"trustNodeDeletion": True})
    scene.pod()
    scene.lock()
    said = {**scene.kv["lock"].value, "node": "made-up", "role": "agent", "bootId": "b", "appId": "a"}
    scene.put("lock", said)
    scene.timers[f"alive/{INC}"] = scene.now - 6
    (fence,) = fences(scene)
    told = {name: fence.settle[name] for name in ("role", "node", "bootId", "appId", "podUID")}
    assert told == {"role": "writer", "node": "n1", "bootId": "", "appId": "", "podUID": f"uid-of-{ATTEMPT_POD}"}
    scene.put(f"writer/{INC}", {"inc": INC, "attempt": ATTEMPT, "podUID": f"uid-of-{ATTEMPT_POD}", "node": "n2"})
    scene.put(f"alive/{INC}", {"inc": INC, "n": 3}, lease=INC)
    (inc,) = scene.view.incs
    assert inc.node == "n1", "where its pod is"
