"""Settling, phase by phase, from one moment each: the next step and no further one, whatever came
before (I1, I2, I4, I6, I7, F4, F7, F14).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_contract import keys, naming
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.fencing import settling
from tests.support.world.scene import ATTEMPT_POD, INC, Scene
from tests.support.world.simulated_store import START_MS

PROVEN = {f"uid-of-{ATTEMPT_POD}": {"kind": "PodTerminated", "detail": "", "atMs": START_MS}}
T1 = "20260101000000001"


def planned(scene: Scene) -> tuple[act.Action, ...]:
    return settling.plan_settling(scene.view).actions


def moved(actions: tuple[act.Action, ...]) -> list[str]:
    """Phases that the plan moves records to."""
    return [str(a.value["phase"]) for a in actions if isinstance(a, act.UpdateSettle | act.FinishSettle)]


def of(actions: tuple[act.Action, ...], *kinds: type) -> list[Any]:
    return [a for a in actions if isinstance(a, kinds)]


def scene_in(phase: str, *, lock: bool = True, pod: str | None = "Running", **record: Any) -> tuple[Scene, int, int]:
    """An incarnation in a phase with or without lock, its pod in that state.

    With the record's revision and the lock's.
    """
    scene = Scene()
    if pod is not None:
        scene.pod(phase=pod)
    scene.incarnation(alive=False)
    token = scene.lock() if lock else 0
    return scene, scene.fenced(phase, **record), token


@pytest.mark.parametrize("phase", ["Fenced", "Terminating", "Draining", "RollingBack"])
def test_the_lock_is_deleted_in_no_phase_before_proof_and_drain_are_over(phase: str) -> None:
    scene, _, _ = scene_in(phase)
    assert not of(planned(scene), act.Unlock)


def test_a_fenced_one_is_terminated_next() -> None:
    scene, revision, _ = scene_in("Fenced")
    (update,) = planned(scene)
    assert isinstance(update, act.UpdateSettle)
    assert (update.value["phase"], update.expected_mod) == ("Terminating", revision)


def test_its_pod_is_deleted_with_grace_and_by_uid() -> None:
    scene, _, _ = scene_in("Terminating")
    actions = planned(scene)
    (kill,) = of(actions, act.DeletePod)
    assert (kill.name, kill.uid, kill.grace_seconds) == (
        ATTEMPT_POD,
        f"uid-of-{ATTEMPT_POD}",
        settling.KILL_GRACE_SECONDS,
    )
    assert kill.grace_seconds > 0, "a forced deletion proves nothing"
    assert not of(actions, act.DropEvidence)
    assert "Draining" not in moved(actions)


def test_a_proof_is_written_and_the_finalizer_dropped_after_it() -> None:
    """F14: in the order of the actions.

    Draining comes in a later look, when the proof is on record.
    """
    scene, revision, _ = scene_in("Terminating", pod="Failed")
    actions = planned(scene)
    (update,) = of(actions, act.UpdateSettle)
    (drop,) = of(actions, act.DropEvidence)
    assert (update.value["phase"], update.expected_mod) == ("Terminating", revision)
    assert update.value["proofs"][drop.uid]["kind"] == "PodTerminated"
    assert actions.index(update) < actions.index(drop)


def test_executors_are_listed_once_more_after_the_drivers_proof() -> None:
    """F4: one that comes to light with the proof keeps the drain away until it is proven itself."""
    scene, _, _ = scene_in(
        "Terminating",
        pod="Failed",
        proofs=PROVEN,
        pods={f"uid-of-{ATTEMPT_POD}": {"name": ATTEMPT_POD, "node": "n1", "evidence": True}},
    )
    assert moved(planned(scene)) == ["Draining"]
    executor = scene.pod("load-0000-1-exec-1", role=naming.ROLE_EXECUTOR, owner=ATTEMPT_POD)
    actions = planned(scene)
    (update,) = of(actions, act.UpdateSettle)
    assert (update.value["phase"], set(update.value["pods"])) == (
        "Terminating",
        {f"uid-of-{ATTEMPT_POD}", executor.uid},
    )
    assert [kill.uid for kill in of(actions, act.DeletePod)] == [executor.uid]


def test_more_executors_than_a_record_can_name() -> None:
    """F616: they are ended, nothing is concluded, and a person is told; then their proofs fit."""
    scene, _, _ = scene_in("Terminating", pod="Failed")
    executors = [
        scene.pod(f"{'e' * 58}{number:04d}", role=naming.ROLE_EXECUTOR, owner=ATTEMPT_POD, node="n" * 60)
        for number in range(1500)
    ]
    for number, pod in enumerate(executors):
        pod.uid = f"{number:036d}"
    actions = planned(scene)
    assert not of(actions, act.UpdateSettle, act.DropEvidence, act.Unlock)
    assert len(of(actions, act.DeletePod)) == len(executors)
    (inc,) = scene.view.incs
    assert "1500 pods that are not proven dead" in settling.awaiting_proof(scene.view, inc)
    for pod in executors:
        pod.phase, pod.exit_code = "Failed", 137
    (update,) = of(planned(scene), act.UpdateSettle)
    assert set(update.value["proofs"]) == {f"uid-of-{ATTEMPT_POD}", *(pod.uid for pod in executors)}
    assert not update.value["pods"]
    assert len(json.dumps(update.value, separators=(",", ":"))) <= keys.Kind.SETTLE.max_value_bytes
    scene.put(f"settle/{INC}", update.value)
    assert settling.awaiting_proof(scene.view, scene.view.incs[0]) == ""


def test_a_pod_that_is_gone_is_not_proven() -> None:
    scene, _, _ = scene_in("Terminating", pod=None)
    actions = planned(scene)
    assert not moved(actions)
    assert [t.name for t in of(actions, act.StartTimer)] == [f"proof/{INC}"]
    (said,) = settling.plan_settling(scene.view).summary
    assert f"waiting for proof of death of {ATTEMPT_POD}" in said


@pytest.mark.parametrize(("age", "unlocks"), [(None, False), (0.0, False), (9.9, False), (10.0, True)])
def test_the_drain_is_measured_by_this_process_alone(age: float | None, unlocks: bool) -> None:
    """F7: without a timer of its own it begins anew, whatever the record's times say."""
    scene, _, token = scene_in("Draining", pod="Failed", proofs=PROVEN, times={"Draining": START_MS - 3_600_000})
    if age is not None:
        scene.timers[f"drain/{INC}"] = scene.now - age
    actions = planned(scene)
    unlocked = of(actions, act.Unlock)
    assert bool(unlocked) == unlocks
    if unlocks:
        assert (unlocked[0].inc, unlocked[0].create_revision) == (INC, token)
        assert not moved(actions), "the phase moves when a later read says that the lock is gone"
    if age is None:
        assert [t.name for t in of(actions, act.StartTimer)] == [f"drain/{INC}"]


@pytest.mark.parametrize(("age", "over"), [(None, False), (9.9, False), (10.0, True)])
def test_who_has_no_lock_is_drained_before_its_instants_are_rolled_back(age: float | None, over: bool) -> None:
    """F17: a file that it has sent may land as late as one of the lock's owner."""
    scene, _, _ = scene_in("Draining", lock=False, pod="Failed", proofs=PROVEN)
    scene.put(f"instant/{T1}", {"inc": INC, "action": "commit", "state": "Pending"})
    if age is not None:
        scene.timers[f"drain/{INC}"] = scene.now - age
    assert moved(planned(scene)) == (["Unlocked"] if over else [])


def test_the_longer_drain_counts() -> None:
    """A table whose spec has a shorter one than the gate under which the dead one wrote."""
    scene, _, _ = scene_in("Draining", pod="Failed", proofs=PROVEN)
    scene.timers[f"drain/{INC}"] = scene.now - 10
    scene.kv["gate"].value["lock"]["drainSeconds"] = 200
    assert not of(planned(scene), act.Unlock)


def test_somebody_elses_lock_stays() -> None:
    scene, _, _ = scene_in("Draining", lock=False, pod="Failed", proofs=PROVEN)
    scene.incarnation("inc-2", pod="other-0000-1")
    scene.lock("inc-2", pod="other-0000-1")
    scene.timers[f"drain/{INC}"] = scene.now - 10
    actions = planned(scene)
    assert (of(actions, act.Unlock), moved(actions)) == ([], ["Unlocked"])


def test_who_holds_the_lock_again_is_settled_from_the_start() -> None:
    """I2 forbids it; if it is so, the lock goes after proof and drain only."""
    for phase in ("Unlocked", "RollingBack", "Swept"):
        scene, _, _ = scene_in(phase, pod="Failed", proofs=PROVEN)
        actions = planned(scene)
        assert (of(actions, act.Unlock), of(actions, act.FinishSettle), moved(actions)) == ([], [], ["Terminating"]), (
            phase
        )


@pytest.mark.parametrize(
    ("left", "next_phase"),
    [({}, "Settled"), ({f"instant/{T1}": {"inc": INC, "action": "commit", "state": "Pending"}}, "RollingBack")],
    ids=["nothing", "an instant"],
)
def test_what_it_has_left_goes_to_the_agent(left: dict[str, Any], next_phase: str) -> None:
    scene, _, _ = scene_in("Unlocked", lock=False, pod="Failed", proofs=PROVEN)
    for key, value in left.items():
        scene.put(key, value)
    assert moved(planned(scene)) == [next_phase]


@pytest.mark.parametrize(
    "left",
    [
        {f"instant/{T1}": {"inc": "inc-other", "claimedBy": INC, "action": "clean", "state": "Pending"}},
        {f"done/abandoned-{INC}": {"inc": INC, "instants": [T1]}},
    ],
    ids=["claimed", "abandoned"],
)
def test_what_it_has_claimed_or_abandoned_is_looked_at_too(left: dict[str, Any]) -> None:
    """F3, F4: an instant that it executed for somebody else, and files of one that it gave up."""
    scene, _, _ = scene_in("Unlocked", lock=False, pod="Failed", proofs=PROVEN)
    for key, value in left.items():
        scene.put(key, value)
    assert moved(planned(scene)) == ["RollingBack"]


def test_abandoned_instants_are_told_to_the_agent() -> None:
    scene, _, _ = scene_in("Unlocked", lock=False, pod="Failed", proofs=PROVEN)
    scene.instant(T1, state="Abandoned")
    (update,) = of(planned(scene), act.UpdateSettle)
    assert update.value["abandoned"] is True


def test_rolling_back_is_the_agents() -> None:
    scene, _, _ = scene_in("RollingBack", lock=False, pod="Failed", proofs=PROVEN)
    scene.instant(T1)
    assert planned(scene) == ()


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("RolledBack", "Settled"),
        ("Completed", "Settled"),
        ("Gone", "Settled"),
        (None, "RollingBack"),
        ("missing", "RollingBack"),
    ],
)
def test_an_instant_is_forgotten_with_an_outcome_only(outcome: str | None, expected: str) -> None:
    """I4, I7: Swept without it goes back to the agent."""
    items = {} if outcome == "missing" else {T1: {"action": "commit", "outcome": outcome, "failures": 0}}
    scene, revision, _ = scene_in("Swept", lock=False, pod="Failed", proofs=PROVEN, instants=items)
    scene.instant(T1)
    actions = planned(scene)
    assert moved(actions) == [expected]
    finished = of(actions, act.FinishSettle)
    assert bool(finished) == (expected == "Settled")
    if finished:
        assert (finished[0].expected_mod, finished[0].instants) == (revision, ((T1, scene.mod(f"instant/{T1}")),))


def test_somebody_elses_instants_are_not_forgotten() -> None:
    scene, _, _ = scene_in("Swept", lock=False, pod="Failed", proofs=PROVEN)
    scene.instant(T1, inc="inc-other")
    (finish,) = of(planned(scene), act.FinishSettle)
    assert finish.instants == ()


def test_a_settled_one_is_left_alone() -> None:
    scene, _, _ = scene_in("Settled", lock=False, pod="Failed", proofs=PROVEN)
    scene.drop(f"writer/{INC}")
    assert planned(scene) == ()


def test_without_proofs_mode_lease_only_unlocks_at_once() -> None:
    """What it is for is shown as unsafe; the pods are killed, and nobody waits for them."""
    scene, _, token = scene_in("Fenced")
    scene.kv["gate"].value["mode"] = "LeaseOnly"
    actions = planned(scene)
    assert [u.create_revision for u in of(actions, act.Unlock)] == [token]
    assert [k.name for k in of(actions, act.DeletePod)] == [ATTEMPT_POD]


def test_the_mode_is_the_gates_not_the_specs() -> None:
    """F8: a HudiTable that was changed to LeaseOnly settles by proof until its gate has changed."""
    scene = Scene(fencing={"mode": "LeaseOnly"})
    scene.pod()
    scene.incarnation(alive=False)
    scene.lock()
    scene.fenced("Fenced")
    assert moved(planned(scene)) == ["Terminating"]


@pytest.mark.parametrize(
    ("reason", "locked", "table", "grace"),
    [
        ("Deleted", False, False, settling.HAND_OVER_SECONDS),
        ("HeldTooLong", True, False, settling.LOCKED_HAND_OVER_SECONDS),
        ("LeaseGone", False, False, settling.KILL_GRACE_SECONDS),
        ("ClockSkew", False, False, settling.KILL_GRACE_SECONDS),
        ("Deleted", False, True, settling.KILL_GRACE_SECONDS),
    ],
    ids=["hands over", "writers wait", "lost its lease", "wrong clock", "of one table"],
)
def test_how_long_an_agent_may_hand_over(reason: str, locked: bool, table: bool, grace: int) -> None:
    """F48: only one that is well and serves other tables."""
    scene = Scene()
    pod = scene.pod("hudi-agent-x-1", role=naming.ROLE_AGENT)
    if table:
        pod.labels[naming.LABEL_TABLE] = "flights"
    scene.incarnation(pod=pod.name, role="agent", alive=False)
    if locked:
        scene.lock(pod=pod.name)
    scene.fenced("Terminating", pod=pod.name, role="agent", reason=reason)
    (kill,) = of(planned(scene), act.DeletePod)
    assert kill.grace_seconds == grace


@pytest.mark.parametrize(
    ("age", "node_ready", "told"),
    [
        (0.0, True, False),
        (settling.PROOF_EXPECTED_SECONDS + settling.KILL_GRACE_SECONDS, True, True),
        (0.0, False, True),
    ],
)
def test_a_person_is_told_when_no_proof_comes(age: float, node_ready: bool, told: bool) -> None:
    scene, _, _ = scene_in("Terminating")
    scene.timers[f"proof/{INC}"] = scene.now - age
    scene.nodes["n1"].ready = node_ready
    view = scene.view
    (inc,) = view.incs
    text = settling.awaiting_proof(view, inc)
    assert bool(text) == told
    assert not told or (ATTEMPT_POD in text and "n1" in text), text


def test_one_that_nobody_knows_is_attested_by_its_name() -> None:
    """An instant whose owner no registration, pod or status names: only a person's word about that
    incarnation is a proof.
    """
    scene = Scene()
    scene.instant(T1, inc="inc-unknown")
    scene.fenced("Terminating", inc="inc-unknown", pod="", podUID="", attempt="", node="", bootId="")
    view = scene.view
    (inc,) = view.incs
    ((subject, pod),) = settling.proofs_missing(view, inc)
    assert (subject.uid, pod) == ("inc-unknown", None)
    assert not moved(planned(scene))
