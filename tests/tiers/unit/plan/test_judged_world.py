"""The judge of the random worlds: each of its rules is broken by hand, and it says so.

Histories: a seed is always the same one; a failed one gets short.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hudi_contract import settle
from hudi_operator.plan.core import actions as act
from tests.support import seeds
from tests.support.world import histories
from tests.support.world.histories import History
from tests.support.world.judged_world import OPERATOR, JudgedWorld
from tests.support.world.simulated_store import Process
from tests.support.world.simulated_world import at_step


class Scene:
    """A writer that is about to publish, with the lock and a recorded instant."""

    def __init__(self) -> None:
        self.world = JudgedWorld()
        self.world.make_table(fencing={"drainSeconds": 3}, lock={"suspectSeconds": 2, "maxHoldSeconds": 40})
        self.world.run(lambda w: w.is_true(w.table, "Ready"))
        self.world.writer_hang_at = 4
        self.world.make_writer("w")
        self.world.run(at_step("w", 4))
        process = self.world.writer_process("w")
        assert process is not None
        self.writer: Process = process
        self.inc, self.instant = process.inc, process.instant

    def by(self, actor: str) -> JudgedWorld:
        self.world.actor = actor
        return self.world

    def fenced(self) -> None:
        self.world.kill(self.writer)
        self.world.fenced.add(self.inc)

    def record(self) -> dict[str, object]:
        return settle.SettleRecord.of(
            inc=self.inc,
            attempt=self.writer.attempt,
            role="writer",
            namespace="lake",
            pod=self.writer.pod,
            pod_uid=self.writer.pod_uid,
            boot_id="",
            node="n1",
            app_id="",
            reason="LeaseGone",
            now_ms=0,
        ).to_json()


def unlocked_while_it_runs(s: Scene) -> None:
    s.by(OPERATOR).drop("lock")


def unlocked_before_the_drain(s: Scene) -> None:
    s.world.kill(s.writer)
    s.by(OPERATOR).drop("lock")


def unlocked_by_another(s: Scene) -> None:
    s.by("somebody").drop("lock")


def acquired_beside_the_wire(s: Scene) -> None:
    s.world.wire_seconds = 2
    s.world.kill(s.writer)
    s.by("another").put("lock", {"inc": "another"})


def acquired_after_the_fence(s: Scene) -> None:
    s.fenced()
    s.by(s.inc).put("lock", {"inc": s.inc})


def beats_after_the_fence(s: Scene) -> None:
    s.fenced()
    s.by(s.inc).put(f"alive/{s.inc}", {"n": 9})


def lands_after_unlocked(s: Scene) -> None:
    s.by(OPERATOR).put(f"settle/{s.inc}", {"phase": "Unlocked"})
    s.world.completed.add(s.instant)


def rolls_back_what_is_completed(s: Scene) -> None:
    s.world.completed.add(s.instant)
    s.fenced()
    s.world.rolled_back.add(s.instant)


def forgets_without_an_outcome(s: Scene) -> None:
    s.by(OPERATOR).drop(f"instant/{s.instant}")


def lands_after_it_was_rolled_back(s: Scene) -> None:
    s.fenced()
    s.world.rolled_back.add(s.instant)
    s.world.completed.add(s.instant)


def rolls_back_the_living(s: Scene) -> None:
    s.world.rolled_back.add(s.instant)


def rolls_back_what_nobody_has_recorded(s: Scene) -> None:
    s.world.rolled_back.add("20260101000000000")


def rolls_back_beside_the_wire(s: Scene) -> None:
    s.world.wire_seconds = 2
    s.fenced()
    s.world.rolled_back.add(s.instant)


def undoes_what_was_acknowledged(s: Scene) -> None:
    s.world.completed.add(s.instant)
    s.world.completed.remove(s.instant)


def starts_beside_its_predecessor(s: Scene) -> None:
    s.world.writer_uids["uid-2"] = s.world.writer_uids[s.writer.pod_uid]
    s.world._check_alone(replace(s.writer, pod="w-2", pod_uid="uid-2", inc="inc-2"))


def reads_progress_beside_the_lock_of_its_predecessor(s: Scene) -> None:
    s.fenced()
    s.world.writer_uids["uid-2"] = s.world.writer_uids[s.writer.pod_uid]
    s.world._reads_progress(replace(s.writer, pod="w-2", pod_uid="uid-2", inc="inc-2", alive=True))


def reads_progress_beside_the_wire(s: Scene) -> None:
    s.world.wire_seconds = 2
    s.fenced()
    s.world.kv.pop("lock")
    s.world.writer_uids["uid-2"] = s.world.writer_uids[s.writer.pod_uid]
    s.world._reads_progress(replace(s.writer, pod="w-2", pod_uid="uid-2", inc="inc-2", alive=True))


def fences_the_living(s: Scene) -> None:
    s.world.perform(act.Fence("t", s.inc, s.writer.attempt, dict(s.record()), if_not_alive=False))


def deletes_the_pod_of_the_living(s: Scene) -> None:
    s.world.perform(act.DeletePod("lake", s.writer.pod, s.writer.pod_uid, 5))


def drops_evidence_before_it_is_settled(s: Scene) -> None:
    s.world.kill(s.writer)
    s.world.perform(act.DropEvidence("lake", s.writer.pod, s.writer.pod_uid))


def drops_evidence_before_its_proof(s: Scene) -> None:
    s.world.kill(s.writer)
    s.world.kv[f"settle/{s.inc}"] = s.world.kv["gate"]
    s.by(OPERATOR).put(f"settle/{s.inc}", dict(s.record()))
    s.world.perform(act.DropEvidence("lake", s.writer.pod, s.writer.pod_uid))


OFFENCES: dict[Callable[[Scene], None], str] = {
    unlocked_while_it_runs: "I1",
    unlocked_before_the_drain: "I1",
    unlocked_by_another: "I1",
    acquired_beside_the_wire: "I1",
    acquired_after_the_fence: "I2",
    beats_after_the_fence: "I2",
    lands_after_unlocked: "I3",
    rolls_back_beside_the_wire: "I3",
    rolls_back_what_is_completed: "I4",
    forgets_without_an_outcome: "I4",
    lands_after_it_was_rolled_back: "I5",
    rolls_back_the_living: "I7",
    rolls_back_what_nobody_has_recorded: "I7",
    undoes_what_was_acknowledged: "I8",
    starts_beside_its_predecessor: "I9",
    reads_progress_beside_the_lock_of_its_predecessor: "I9",
    reads_progress_beside_the_wire: "I9",
    fences_the_living: "is well",
    deletes_the_pod_of_the_living: "is well",
    drops_evidence_before_it_is_settled: "F14",
    drops_evidence_before_its_proof: "F14",
}


@pytest.mark.parametrize("offence", OFFENCES, ids=lambda offence: offence.__name__)
def test_what_is_broken_is_said(offence: Callable[[Scene], None]) -> None:
    with pytest.raises(AssertionError, match=OFFENCES[offence]):
        offence(Scene())


def test_an_ordinary_life_breaks_nothing() -> None:
    scene = Scene()
    scene.world.wire_seconds = 2
    scene.world.kill(scene.writer)
    scene.world.writer_hang_at = None
    scene.world.run(lambda w: w.is_true(w.writers["w"], "Finished"))
    assert scene.instant in scene.world.acknowledged, "it landed while its owner was drained"
    assert scene.inc in scene.world.fenced


def test_a_seed_is_a_history() -> None:
    assert histories.drawn(7) == histories.drawn(7)
    assert histories.drawn(7) != histories.drawn(8)
    for seed in range(50):
        history = histories.drawn(seed)
        assert History.read(history.text()) == history
        assert history.kind in histories.KINDS


def test_every_step_can_be_played() -> None:
    assert set(histories.STEPS) == {name for seed in range(400) for name, _ in histories.drawn(seed).steps}


def test_a_failed_history_gets_short_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a rule that breaks when a node is lost after a writer was made, these two are left."""

    def wrong(history: History) -> str:
        names = [name for name, _ in history.steps]
        return (
            "both (I0)"
            if "writer_is_made" in names and "node_is_lost" in names[names.index("writer_is_made") :]
            else ""
        )

    monkeypatch.setattr(histories, "wrong", wrong)
    seed = next(seed for seed in range(1000) if len(histories.drawn(seed).steps) > 20 and wrong(histories.drawn(seed)))
    assert [name for name, _ in histories.shortened(histories.drawn(seed)).steps] == ["writer_is_made", "node_is_lost"]
    with pytest.raises(AssertionError, match=rf"seed {seed}: both \(I0\)") as told:
        histories.walk(seed, worlds=1)
    assert wrong(History.read(str(told.value).splitlines()[-1]))


def test_the_seed_of_a_run_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(seeds.VARIABLE, raising=False)
    assert len({seeds.drawn() for _ in range(5)}) > 1
    monkeypatch.setenv(seeds.VARIABLE, "17")
    assert seeds.drawn() == 17
    monkeypatch.setenv(seeds.VARIABLE, "-1")
    with pytest.raises(ValueError, match="RANDOM_SEED=-1: must be a whole number"):
        seeds.drawn()
