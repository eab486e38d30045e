"""What does not need a history: bad objects, unreadable etcd, allow-lists, status."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_operator.model import clocks
from hudi_operator.model.config import OperatorConfig
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.gate.stalled import path_problem
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_world import CONFIG, World, finished, ready_world

DEAD = {"u": {"kind": "PodTerminated"}}
NOBODY = "ffffffff-0000-0000-0000-000000000000"
"""The uid of a pod that never was."""


def statuses(plan: act.Plan, kind: str) -> list[dict[str, Any]]:
    return [a.status for a in plan.actions if isinstance(a, act.UpdateStatus) and a.kind == kind]


def reason(status: dict[str, Any], kind: str) -> str:
    return str(next(c["reason"] for c in status["conditions"] if c["type"] == kind))


def test_unknown_is_not_empty() -> None:
    """I11: without etcd nothing is decided, and what is known stays in status."""
    world = ready_world()
    before = dict((world.table or {})["status"])
    plan = plan_table(replace(world.observe(), etcd=None, etcd_error="connection refused"), CONFIG)
    (status,) = statuses(plan, "HudiTable")
    assert len(plan.actions) == 1
    assert reason(status, "Ready") == "EtcdUnavailable"
    assert "connection refused" in str(status["conditions"])
    assert status["timeline"] == before["timeline"]


def test_a_spec_that_cannot_be_read() -> None:
    world = ready_world()
    assert world.table is not None
    world.edit(world.table, lock="none")
    plan = plan_table(world.observe(), CONFIG)
    (status,) = statuses(plan, "HudiTable")
    assert reason(status, "Stalled") == "InvalidSpec"
    assert "spec.lock" in plan.sentence


@pytest.mark.parametrize(
    ("writers", "concurrency", "told"),
    [
        ({"a": {"operation": "Insert"}, "b": {"operation": "Upsert"}}, {}, ("False", "NobodyAllows", "")),
        ({"a": {"operation": "Insert", "duplicates": "Drop"}}, {}, ("False", "NobodyAllows", "")),
        (
            {"a": {"operation": "BulkInsert", "duplicates": "Allow"}, "b": {"operation": "Insert"}},
            {},
            ("True", "AllowedByWriter", "in HudiWriter a: a key"),
        ),
        (
            {"a": {"operation": "InsertOverwrite", "duplicates": "Allow"}},
            {},
            ("True", "AllowedByWriter", "in HudiWriter a: a key"),
        ),
        (
            {"a": {"source": None, "application": {"mainFile": "local:///a.py"}}},
            {},
            ("False", "NobodyAllows", ""),
        ),
        (
            {"a": {"source": None, "application": {"mainFile": "local:///a.py"}, "duplicates": "Allow"}},
            {},
            ("True", "AllowedByWriter", "in HudiWriter a: a key"),
        ),
        (
            {},
            {"insertConflicts": "Ignore"},
            ("True", "InsertConflictsIgnored", "concurrency.insertConflicts is Ignore"),
        ),
    ],
)
def test_one_writer_that_allows_duplicates_voids_the_promise(
    writers: dict[str, Any], concurrency: dict[str, Any], told: tuple[str, str, str]
) -> None:
    """F62: it is shown at the table, whoever else looks keys up."""
    world = ready_world(concurrency=concurrency)
    for name, spec in writers.items():
        world.make_writer(name, **spec)
    (status,) = statuses(plan_table(world.observe(), CONFIG), "HudiTable") or [(world.table or {})["status"]]
    found = next(c for c in status["conditions"] if c["type"] == "DuplicatesAllowed")
    assert (found["status"], found["reason"]) == told[:2]
    assert told[2] in found["message"]


def test_credentials_that_cannot_change_are_told() -> None:
    """F151."""
    for refs, told in (
        ([], ("True", "FilesOrIdentity", "")),
        ([{"name": "a", "as": "S3"}, {"name": "b", "as": "Files"}], ("True", "FilesOrIdentity", "")),
        (
            [{"name": "a", "as": "S3"}, {"name": "b", "as": "Env", "prefix": "APP_"}],
            ("False", "InEnvironment", "as Env: b: a change"),
        ),
    ):
        world = ready_world(storage={"secretRefs": refs})
        found = world.condition(world.table, "CredentialsRenewed")
        assert (found["status"], found["reason"]) == told[:2]
        assert told[2] in found["message"]


def test_one_bad_writer_does_not_stop_the_others() -> None:
    world = ready_world()
    world.make_writer("bad", priority="high")
    world.make_writer("good")
    world.run(finished("good"))
    assert world.condition(world.writers["bad"], "Stalled")["reason"] == "InvalidSpec"


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"hudiOptions": {"hoodie.write.lock.provider": "x.Y"}}, "hoodie.write.lock.provider"),
        ({"sparkConf": {"spark.plugins": "x.Y"}}, "spark.plugins"),
    ],
)
def test_options_that_are_not_allowed(spec: dict[str, Any], word: str) -> None:
    world = ready_world()
    world.make_writer("bad", **spec)
    world.run(lambda w: w.is_true(w.writers["bad"], "Stalled"), seconds=5)
    stalled = world.condition(world.writers["bad"], "Stalled")
    assert stalled["reason"] == "OptionNotAllowed"
    assert word in stalled["message"]
    assert "x.Y" in stalled["message"]
    assert not any(n.startswith("bad") for n in world.created)
    world.edit(world.writers["bad"], hudiOptions={}, sparkConf={})
    world.run(finished("bad"))


@pytest.mark.parametrize(
    ("path", "prefixes", "allowed"),
    [
        ("s3a://lake/t", {}, True),
        ("s3://lake/t", {}, True),
        ("file:///tmp/t", {}, False),
        ("/tmp/t", {}, False),
        ("s3a://lake", {}, False),
        ("s3a:///t", {}, False),
        ("hdfs:///t", {}, False),
        ("http://169.254.169.254/latest/meta-data", {}, False),
        ("hdfs://nn:8020/t", {}, True),
        ("gs://lake/t", {}, True),
        ("abfss://c@a.dfs.core.windows.net/t", {}, False),
        ("s3a://key:secret@lake/t", {}, False),
        ("s3a://lake/../t", {}, False),
        ("s3a://lake/%2e%2e/t", {}, False),
        ("s3a://lake%2Ft", {}, False),
        ("s3a://lake/t?x", {}, False),
        ("s3a://lake/t", {"lake": ("s3a://lake",)}, True),
        ("s3a://lake/t", {"lake": ("s3://lake/t/",)}, True),
        ("s3a://lake/t2", {"lake": ("s3a://lake/t",)}, False),
        ("s3a://other/t", {"lake": ("s3a://lake/",)}, False),
        ("s3a://other/t", {"lake": ()}, False),
        ("s3a://other/t", {"elsewhere": ("s3a://lake/",)}, True),
    ],
)
def test_paths(path: str, prefixes: dict[str, tuple[str, ...]], allowed: bool) -> None:
    problem = path_problem(path, "lake", OperatorConfig(path_prefixes=prefixes))
    assert (problem == "") is allowed, problem


def test_a_scheme_that_no_test_has_run_on_is_allowed_by_word_only() -> None:
    path = "abfs://lake@account.dfs.core.windows.net/t"
    assert "scheme abfs is not allowed; allowed: s3a, hdfs, gs" in path_problem(path, "lake", OperatorConfig())
    assert not path_problem(path, "lake", OperatorConfig(allowed_schemes=("s3a", "abfs")))


def test_a_path_that_is_not_allowed_gets_nothing() -> None:
    world = World()
    world.make_table(path="file:///tmp/t")
    for _ in range(5):
        world.reconcile()
    assert world.condition(world.table, "Stalled")["reason"] == "PathNotAllowed"
    assert not world.kv
    assert not world.pods
    assert world.table is not None
    world.delete(world.table)
    world.reconcile()
    assert world.table is None


def test_conditions_are_there_from_the_first_status() -> None:
    world = World()
    world.make_table()
    world.make_writer("w")
    world.run(lambda w: bool(w.table.get("status")) and bool(w.writers["w"].get("status")), seconds=3)
    assert {"Ready", "Reconciling", "Stalled"} <= {c["type"] for c in world.table["status"]["conditions"]}  # type: ignore[index]
    kinds = {c["type"] for c in world.writers["w"]["status"]["conditions"]}
    assert {"Ready", "Admitted", "Running", "Finished", "Succeeded", "Suspended", "Reconciling", "Stalled"} <= kinds


def test_the_timeline_is_shown_and_foreign_instants_are_named() -> None:
    """I7: an instant without record is reported, never touched."""
    world = ready_world()
    agent = world.agent_process()
    assert agent is not None
    report = {
        "agentInc": agent.inc,
        "exists": True,
        "lastInstant": "20260101000000000",
        "lastCompletionTime": "20260102030405000",
        "pendingCount": 2,
        "activeLength": 7,
        "pending": [{"instant": "20260101000001000", "action": "commit", "state": "INFLIGHT"}],
        "foreign": [{"instant": "20260101000001000", "action": "commit"}],
    }
    world.put("report/timeline", report)
    plan = world.reconcile()
    assert not [a for a in plan.actions if isinstance(a, act.Fence | act.UpdateSettle | act.FinishSettle)]
    timeline = world.table["status"]["timeline"]  # type: ignore[index]
    assert timeline["lastCommitTime"] == "2026-01-02T03:04:05Z"
    assert timeline["pendingCount"] == 2
    assert timeline["activeLength"] == 7
    assert world.is_true(world.table, "ForeignWriters")
    assert "20260101000001000" in world.condition(world.table, "ForeignWriters")["message"]


def test_a_status_is_written_only_when_it_changes() -> None:
    world = ready_world()
    world.settle_down()
    assert not [a for a in plan_table(world.observe(), CONFIG).actions if isinstance(a, act.UpdateStatus)]


def test_an_attempt_is_in_status_before_anything_of_it_exists() -> None:
    """I6: write-ahead. Status, then ConfigMap, admission, pod."""
    world = ready_world()
    world.make_writer("w")
    world.reconcile()
    plan = plan_table(world.observe(), CONFIG)
    kinds = [type(a).__name__ for a in plan.actions]
    status = next(i for i, a in enumerate(plan.actions) if isinstance(a, act.UpdateStatus) and a.kind == "HudiWriter")
    assert plan.actions[status].status["attempts"][0]["number"] == 1  # type: ignore[attr-defined]
    assert status < kinds.index("Apply") < kinds.index("PutAdmit") < kinds.index("CreatePod")


def test_a_fast_clock_is_fenced() -> None:
    """F19"""
    world = ready_world()
    agent = world.agent_process()
    assert agent is not None
    world.put(f"writer/{agent.inc}", {**world.kv[f"writer/{agent.inc}"].value, "wallClockMs": world.now_ms + 3_600_000})
    plan = world.reconcile()
    assert [a.settle["reason"] for a in plan.actions if isinstance(a, act.Fence)] == ["ClockSkew"]


@pytest.mark.parametrize("wrong", ["operator_clock_ms", "api_clock_ms"])
@pytest.mark.parametrize("by_ms", [-3_600_000, 3_600_000])
def test_nobody_is_fenced_because_of_one_clock(wrong: str, by_ms: int) -> None:
    """F47: the operator's, or the API server's, against the other one and the host's."""
    world = ready_world()
    setattr(world, wrong, by_ms)
    world.make_writer("w")
    for _ in range(20):
        plan = world.reconcile()
        assert not [a for a in plan.actions if isinstance(a, act.Fence)]
        world.tick()
    assert world.table is not None
    shown = world.condition(world.table, "ClocksAgree")
    behind = (by_ms < 0) == (wrong == "operator_clock_ms")
    assert (shown["status"], shown["message"]) == (
        "False",
        f"the operator's clock is more than 5 s {'behind' if behind else 'ahead of'} the API server's",
    )


def test_nobody_is_fenced_while_only_the_operators_clock_is_known() -> None:
    assert not clocks.ahead(10_000, now_ms=1, api_now_ms=None, skew_seconds=5)
    assert clocks.ahead(10_000, now_ms=1, api_now_ms=1, skew_seconds=5)


def test_who_waits_for_the_lock_is_nobody_else() -> None:
    """A ticket's name has a nonce with hyphens behind the incarnation, as the JVM writes it."""
    world = ready_world()
    agent = world.agent_process()
    assert agent is not None
    world.put(
        f"queue/{agent.inc}-eddea38b-f834-45b4-8568-0123456789ab",
        {"inc": agent.inc, "priority": 0, "overtaken": 0, "sinceMs": 0},
    )
    for _ in range(60):
        assert not [a for a in world.reconcile().actions if isinstance(a, act.Fence)]
        world.tick()


def test_an_old_registration_is_no_slow_clock() -> None:
    world = ready_world()
    for key in [k for k in world.kv if k.startswith("alive/")]:
        world.put(key, {"n": 1}, lease=world.kv[key].lease)
    for _ in range(60):
        world.tick()
    world.timers.clear()
    plan = world.reconcile()
    assert not [a for a in plan.actions if isinstance(a, act.Fence)]


def test_a_lost_lease_is_fenced_only_while_it_is_lost() -> None:
    """F29"""
    world = ready_world()
    agent = world.agent_process()
    assert agent is not None
    agent.paused = True
    plan = world.reconcile()
    while not any(isinstance(a, act.Fence) for a in plan.actions):
        world.tick()
        plan = plan_table(world.observe(), CONFIG)
        for action in plan.actions:
            if isinstance(action, act.StartTimer):
                world.perform(action)
    (fence,) = [a for a in plan.actions if isinstance(a, act.Fence)]
    assert fence.settle["reason"] == "LeaseGone"
    assert fence.if_not_alive, "an incarnation that renewed its lease is not fenced"


def test_an_incarnation_that_only_the_lock_names_is_a_suspect() -> None:
    """F15"""
    world = ready_world()
    world.put("lock", {"inc": "ghost", "attempt": "", "podUID": NOBODY, "nonce": "n"})
    world.run(lambda w: w.is_true(w.table, "AwaitingProofOfDeath"), seconds=60)
    assert NOBODY in world.condition(world.table, "AwaitingProofOfDeath")["message"]
    assert world.table["status"]["blockedBy"].startswith("incarnation ghost")  # type: ignore[index]
    word = {"podUID": NOBODY, "node": "x", "statement": "never was", "attestedBy": "ann", "at": "2026-01-01T00:00:00Z"}
    assert world.table is not None
    world.edit(world.table, fencing={"attestations": [word]})
    world.run(lambda w: "lock" not in w.kv, seconds=60)


def test_a_lock_is_shown_when_it_is_held_long() -> None:
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("w")
    world.run(lambda w: "lock" in w.kv)
    world.reconcile()
    assert "lock" not in world.table["status"]  # type: ignore[index]
    for _ in range(8):
        world.reconcile()
        world.tick()
    assert world.table["status"]["lock"]["attempt"].startswith("lake.w-")  # type: ignore[index]


def test_a_refused_agent_pod_does_not_keep_status_and_writers_waiting() -> None:
    world = ready_world()
    agent = world.agent_process()
    assert agent is not None
    world.kill(agent)
    world.tick()
    world.make_writer("w")
    world.reconcile()
    kinds = [
        (type(a).__name__, getattr(a, "kind", ""))
        for a in plan_table(replace(world.observe(), now_ms=world.now_ms + 60_000), CONFIG).actions
    ]
    assert kinds.index(("UpdateStatus", "HudiWriter")) < kinds.index(("CreatePod", ""))


def test_an_instant_without_an_outcome_goes_back_to_the_agent() -> None:
    """I4: Swept is the agent's word about the instants that it has seen.

    One that it has not seen is not forgotten.
    """
    world = ready_world()
    record = {
        "inc": "dead",
        "attempt": "lake.w-1",
        "podUID": "u",
        "phase": "Swept",
        "instants": {"t1": {"outcome": "RolledBack"}},
        "proofs": DEAD,
    }
    world.put("settle/dead", record)
    world.put("fence/dead", {"inc": "dead"})
    world.put("instant/t1", {"inc": "dead", "state": "Pending"})
    world.put("instant/t2", {"inc": "dead", "state": "Pending"})
    plan = plan_table(world.observe(), CONFIG)
    assert not [a for a in plan.actions if isinstance(a, act.FinishSettle)]
    assert [a.value["phase"] for a in plan.actions if isinstance(a, act.UpdateSettle)] == ["RollingBack"]


def test_only_its_own_instants_go_with_an_incarnation() -> None:
    """I7"""
    world = ready_world()
    record = {
        "inc": "dead",
        "attempt": "lake.w-1",
        "podUID": "u",
        "phase": "Swept",
        "instants": {"t1": {"outcome": "Completed"}},
        "proofs": DEAD,
    }
    world.put("settle/dead", record)
    world.put("fence/dead", {"inc": "dead"})
    world.put("instant/t1", {"inc": "dead", "state": "Pending"})
    world.put("instant/t2", {"inc": "other", "claimedBy": "dead", "state": "Pending"})
    plan = plan_table(world.observe(), CONFIG)
    (finish,) = [a for a in plan.actions if isinstance(a, act.FinishSettle) and a.inc == "dead"]
    assert [t for t, _ in finish.instants] == ["t1"]


def test_given_up_instants_are_swept_once_more_by_the_agent() -> None:
    """F4: what a writer gave up while it lived is swept again after its pods are proven dead."""
    world = ready_world()
    world.put(
        "settle/dead",
        {"inc": "dead", "attempt": "lake.w-1", "podUID": "u", "phase": "Unlocked", "instants": {}, "proofs": DEAD},
    )
    world.put("fence/dead", {"inc": "dead"})
    world.put("done/abandoned-dead", {"inc": "dead", "instants": ["t1"]})
    plan = plan_table(world.observe(), CONFIG)
    assert [a.value["phase"] for a in plan.actions if isinstance(a, act.UpdateSettle)] == ["RollingBack"]


@pytest.mark.parametrize(("lock", "phases"), [(True, ["Terminating"]), (False, [])])
def test_a_lock_that_comes_back_after_unlock_is_not_deleted_without_proof(lock: bool, phases: list[str]) -> None:
    """I2 forbids it; if it happens all the same, settling starts again."""
    world = ready_world()
    world.put(
        "settle/dead",
        {"inc": "dead", "attempt": "lake.w-1", "podUID": "u", "phase": "RollingBack", "instants": {}, "proofs": {}},
    )
    world.put("fence/dead", {"inc": "dead"})
    if lock:
        world.put("lock", {"inc": "dead", "attempt": "lake.w-1"})
    plan = plan_table(world.observe(), CONFIG)
    assert not [a for a in plan.actions if isinstance(a, act.Unlock)]
    assert [a.value["phase"] for a in plan.actions if isinstance(a, act.UpdateSettle)] == phases
