"""When the finalizers of HudiTable and HudiWriter go, from one moment each: with nobody left who
can hold the lock, and not before (F14, I11).
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.keys import Kind
from hudi_contract.naming import SETTLE_FINALIZER
from hudi_operator.model.status import attempt_entries
from hudi_operator.plan import deletion
from hudi_operator.plan import table as planner
from hudi_operator.plan.agent import agents
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.fencing import suspects
from hudi_operator.plan.requests import catalogs
from hudi_operator.plan.writers.runs import Progress
from tests.support.world.scene import INC, Scene
from tests.support.world.simulated_store import CONFIG, NAMESPACE

GONE = "2026-01-02T00:00:00Z"


def of_writer(scene: Scene) -> PartialPlan:
    view = scene.view
    (writer,) = view.writers
    return deletion.plan_writer(view, writer, Progress(entries=attempt_entries(writer.status)))


def freed(step: PartialPlan) -> list[tuple[str, str]]:
    return [(a.kind, a.remove) for a in step.actions if isinstance(a, act.PatchFinalizers)]


def deleted_writer(**entry: Any) -> tuple[Scene, str]:
    """A deleted HudiWriter whose only attempt has ended, and the attempt's pod."""
    scene = Scene()
    pod = scene.writer()
    scene.writers["load"]["metadata"]["deletionTimestamp"] = GONE
    scene.writers["load"]["status"]["attempts"][0] |= {"class": "Cancelled", **entry}
    return scene, pod


def test_a_writer_goes_when_nothing_is_left() -> None:
    scene, _ = deleted_writer()
    assert freed(of_writer(scene)) == [(naming.WRITER_KIND, SETTLE_FINALIZER)]


def test_one_that_nobody_deletes_stays() -> None:
    scene, _ = deleted_writer()
    del scene.writers["load"]["metadata"]["deletionTimestamp"]
    assert of_writer(scene).actions == ()


def test_it_stays_while_an_attempt_is_being_stopped() -> None:
    scene, _ = deleted_writer()
    del scene.writers["load"]["status"]["attempts"][0]["class"]
    step = of_writer(scene)
    assert (freed(step), step.summary) == ([], ("deletion of load waits: attempt 1 is being stopped",))


def test_it_stays_while_an_attempt_may_register() -> None:
    scene, pod = deleted_writer()
    scene.put(f"admit/{naming.attempt_id(NAMESPACE, pod)}", {"attempt": "", "role": "writer"})
    assert freed(of_writer(scene)) == []


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize(
    ("phase", "stays"),
    [
        ("Fenced", True),
        ("Terminating", True),
        ("Draining", True),
        ("Unlocked", False),
        ("RollingBack", False),
        ("Swept", False),
    ],
)
def test_it_waits_for_unlocked_and_not_for_a_rollback(phase: str, stays: bool, registered: bool) -> None:
    """A namespace may be deleted although no agent can run in it any more.

    The settle record stays in etcd.
    """
    scene, pod = deleted_writer()
    if registered:
        scene.incarnation(pod=pod, alive=False)
        scene.instant("20260101000000001")
    scene.fenced(phase, pod=pod)
    assert bool(freed(of_writer(scene))) != stays
    if not stays:
        scene.lock(pod=pod)
        assert freed(of_writer(scene)) == [], "it holds the lock, whatever its record says"


def test_it_stays_while_a_pod_is_not_proven_dead() -> None:
    scene, pod = deleted_writer()
    scene.pod(pod)
    step = of_writer(scene)
    assert (freed(step), step.summary) == ([], (f"deletion of load waits: pod {pod} is not proven dead",))
    scene.pods[pod].finalizers.clear()
    assert freed(of_writer(scene))


def test_an_executor_keeps_it_too() -> None:
    scene, pod = deleted_writer()
    executor = scene.pod(f"{pod}-exec-1", role=naming.ROLE_EXECUTOR, owner=pod)
    executor.labels[naming.LABEL_WRITER] = "load"
    assert freed(of_writer(scene)) == []


# ---- HudiTable


def deleted_table(*, released: bool = True, **spec: Any) -> Scene:
    """A deleted HudiTable; `released`: its gate is given back."""
    scene = Scene(**spec)
    assert scene.table is not None
    scene.table["metadata"] |= {"deletionTimestamp": GONE, "finalizers": [SETTLE_FINALIZER]}
    if released:
        scene.kv["gate"].value |= {"state": "frozen", "table": "", "tableUID": ""}
    return scene


def of_table(scene: Scene) -> PartialPlan:
    return deletion.plan_table(scene.view)


def test_the_gate_is_given_back_first() -> None:
    scene = deleted_table(released=False)
    step = of_table(scene)
    (gate,) = [a for a in step.actions if isinstance(a, act.PutGate)]
    assert freed(step) == []
    assert gate.expected_mod == scene.mod("gate")


def test_a_table_goes_when_nobody_can_hold_the_lock() -> None:
    assert freed(of_table(deleted_table())) == [(naming.TABLE_KIND, SETTLE_FINALIZER)]


@pytest.mark.parametrize(
    ("phase", "stays"), [("Terminating", True), ("Draining", True), ("Unlocked", False), ("RollingBack", False)]
)
def test_a_table_waits_for_unlocked_of_everybody(phase: str, stays: bool) -> None:
    scene = deleted_table()
    scene.incarnation(alive=False)
    scene.instant("20260101000000001")
    scene.fenced(phase)
    assert bool(freed(of_table(scene))) != stays


def test_a_lock_of_whomever_keeps_it() -> None:
    scene = deleted_table()
    scene.fenced("Settled")
    scene.put("lock", {"inc": INC, "attempt": "", "podUID": "", "nonce": "n", "sinceMs": 0})
    assert freed(of_table(scene)) == []


@pytest.mark.parametrize("role", [naming.ROLE_DRIVER, naming.ROLE_EXECUTOR])
def test_evidence_keeps_it(role: str) -> None:
    """Nobody would drop the finalizers of these pods afterwards."""
    scene = deleted_table()
    pod = scene.pod("left-0000-1", role=role)
    step = of_table(scene)
    assert (freed(step), step.summary) == ([], (f"deletion waits for {pod.name}",))


def test_the_agent_is_told_to_leave_when_no_writer_is_left() -> None:
    scene = deleted_table()
    agent = f"{NAMESPACE}.hudi-agent-x-1"
    scene.put("assignment", {"T": "x"})
    scene.put(f"admit/{agent}", {"attempt": agent, "role": "agent"})
    actions = of_table(scene).actions
    assert [a.attempt for a in actions if isinstance(a, act.DeleteAdmit)] == [agent]
    assert [a.value for a in actions if isinstance(a, act.PutAssignment)] == [None]
    scene.incarnation(alive=False)
    scene.fenced("Terminating")
    assert not [a for a in of_table(scene).actions if isinstance(a, act.DeleteAdmit | act.PutAssignment)], (
        "it may have to settle for that one"
    )


def test_an_agent_that_had_the_table_before_is_told_to_leave() -> None:
    """F585: the spec was changed while the HudiTable was being deleted."""
    scene = deleted_table()
    scene.put("elsewhere/hudi-agent-old", {"T": "x"})
    withdrawn = [a for a in of_table(scene).actions if isinstance(a, act.PutAssignment)]
    assert [(a.agent, a.value) for a in withdrawn] == [("hudi-agent-old", None)]


def test_a_restore_that_has_begun_comes_to_its_end_first() -> None:
    """Half a restore is no table for anybody.

    A namespace that is being deleted has no agent any more, and does not wait.
    """
    scene = deleted_table(released=False)
    scene.put("done/restore-n1", {"nonce": "n1", "savepoint": "good", "result": "Running"})
    step = of_table(scene)
    assert (step.actions, step.summary) == ((), ("deletion waits for restore n1, which has begun",))
    scene.terminating = True
    assert of_table(scene).actions


URI = "thrift://metastore.catalogs.svc:9083"


def listed_table(report: dict[str, Any] | None, on_delete: str = "Drop") -> Scene:
    """A deleted HudiTable that is in a catalog; its gate is closed, and nobody is left."""
    wanted = {"hiveMetastore": {"uris": [URI]}, "timeoutSeconds": 30, "onDelete": on_delete}
    scene = deleted_table(released=False, catalog=wanted)
    assert scene.table is not None
    scene.kv["gate"].value |= {"state": "closed"}
    if report is not None:
        target = f"{URI} default.flights {scene.table['metadata']['uid']}"
        scene.put("report/catalog", {"inc": "agent", "target": target, **report})
    return scene


SHOWN = {"instant": "20260101000000001", "completionTime": "20260101000000002"}


def drop_timer(scene: Scene) -> str:
    assert scene.table is not None
    return f"drop/{scene.table['metadata']['uid']}"


def told(step: PartialPlan) -> list[tuple[str, str, str]]:
    return [(a.type, a.reason, a.message) for a in step.actions if isinstance(a, act.EmitEvent)]


def released(step: PartialPlan) -> bool:
    return any(isinstance(a, act.PutGate) for a in step.actions)


def test_a_catalogs_entry_is_awaited_for_a_time() -> None:
    scene = listed_table(SHOWN)
    step = of_table(scene)
    assert step.actions == (act.StartTimer(drop_timer(scene)),)
    assert (step.summary, step.requeue) == (("deletion waits up to 120 s for the entry in the catalog",), 2.0)
    scene.timers[drop_timer(scene)] = scene.now - 119.0
    assert of_table(scene).actions == ()
    condition = next(c for c in catalogs.synced(scene.view))
    assert (condition.status, condition.reason) == ("Unknown", "Dropping")
    scene.timers[drop_timer(scene)] = scene.now - 120.0
    step = of_table(scene)
    assert released(step)
    assert told(step) == [
        (
            "Warning",
            "CatalogEntryKept",
            f"default.flights in the Hive Metastore at {URI} is not dropped within 120 s and stays: its agent did not "
            "answer. Drop it there",
        )
    ]


def test_the_next_huditable_of_the_name_has_its_own_time() -> None:
    """F607: and what its predecessor has left is stopped, or the table is looked at for ever."""
    scene = listed_table(SHOWN)
    scene.timers["drop/of-another"] = scene.now - 500.0
    assert not released(of_table(scene))
    assert act.StopTimer("drop/of-another") in suspects.plan_suspects(scene.view, changing=False, asked=False).actions
    scene.timers[drop_timer(scene)] = scene.now
    assert (
        act.StopTimer(drop_timer(scene)) not in suspects.plan_suspects(scene.view, changing=False, asked=False).actions
    )


def test_the_agent_stays_for_the_entry_and_is_told_to_drop_it() -> None:
    scene = listed_table(SHOWN)
    assert scene.table is not None
    order = agents.assignment(scene.view.table, 0)["catalog"]
    assert order["drop"] is True
    scene.table["spec"]["services"] = {"clean": {"retainCommits": 10}}
    assert agents.assignment(scene.view.table, 0)["services"] == {}
    assert catalogs.dropping(scene.view)
    assert catalogs.may_need_agent(scene.view.table), "other HudiTables of its namespace leave its pod alone"
    del scene.table["metadata"]["deletionTimestamp"]
    assert "drop" not in agents.assignment(scene.view.table, 0)["catalog"]
    assert "clean" in agents.assignment(scene.view.table, 0)["services"]
    assert not catalogs.may_need_agent(scene.view.table)


@pytest.mark.parametrize(
    ("report", "event"),
    [
        ({"dropped": True}, ("Normal", "CatalogEntryDropped", "is dropped; the data stays")),
        (
            {"dropped": True, "message": "table flights stays: another HudiTable has made it"},
            ("Warning", "CatalogEntryKept", ": table flights stays: another HudiTable has made it"),
        ),
    ],
)
def test_a_catalogs_entry_that_is_dropped_lets_it_go(report: dict[str, Any], event: tuple[str, str, str]) -> None:
    step = of_table(listed_table({**SHOWN, **report}))
    assert released(step)
    ((kind, reason, message),) = told(step)
    assert (kind, reason, message.endswith(event[2])) == (event[0], event[1], True)


def test_a_catalog_that_refuses_is_named_when_the_time_is_over() -> None:
    scene = listed_table({"failures": 3, "reason": "ConnectionFailed", "message": "no answer"})
    assert not released(of_table(scene)), "a failed try may have made the entry"
    scene.timers[drop_timer(scene)] = scene.now - 500.0
    step = of_table(scene)
    assert released(step)
    assert "stays: no answer. Drop it there" in told(step)[0][2]


@pytest.mark.parametrize(
    ("report", "on_delete"),
    [(SHOWN, "Keep"), (None, "Drop"), ({}, "Drop"), ({**SHOWN, "target": "of another catalog"}, "Drop")],
)
def test_nothing_is_awaited_without_an_entry_to_drop(report: dict[str, Any] | None, on_delete: str) -> None:
    step = of_table(listed_table(report, on_delete))
    assert (released(step), told(step)) == (True, [])


def test_a_namespace_that_goes_does_not_wait_for_a_catalog() -> None:
    scene = listed_table(SHOWN)
    scene.terminating = True
    step = of_table(scene)
    assert (released(step), told(step)) == (True, [])


def test_another_tables_gate_drops_nothing() -> None:
    scene = listed_table(SHOWN)
    scene.kv["gate"].value |= {"table": f"{NAMESPACE}/other", "tableUID": "uid-of-other"}
    assert not catalogs.dropping(scene.view)


def test_the_table_of_another_objects_path_goes_at_once() -> None:
    """A duplicate has never had anything."""
    scene = deleted_table(released=False)
    scene.kv["gate"].value |= {"table": f"{NAMESPACE}/other", "tableUID": "uid-of-other"}
    assert freed(of_table(scene)) == [(naming.TABLE_KIND, SETTLE_FINALIZER)]


# ---- the rights of accounts


def test_requests_and_reports_go_with_the_table() -> None:
    """F619: the next HudiTable of the path gave no such order, and had no such error."""
    scene = deleted_table()
    agent, settled, unsettled = (f"{NAMESPACE}.{name}-1" for name in ("hudi-agent-x", "load-a", "load-b"))
    scene.put(f"admit/{agent}", {"attempt": agent, "role": "agent"})
    scene.put("request/service-clean", {"kind": "service", "nonce": "n"})
    scene.put("done/service-clean", {"nonce": "m", "result": "Completed"})
    scene.put("report/timeline", {"agentInc": "", "exists": False, "error": {"code": "Forbidden", "message": "no"}})
    scene.put(f"report/attempt/{settled}", {"attempt": settled})
    scene.fenced("RollingBack", pod="load-b-1")
    scene.put(f"report/attempt/{unsettled}", {"attempt": unsettled})
    pod = scene.pod("left-0000-1")
    assert not [a for a in of_table(scene).actions if isinstance(a, act.PutRequest | act.DeleteReport)]
    pod.finalizers.clear()
    step = of_table(scene)
    assert [(a.id, a.value) for a in step.actions if isinstance(a, act.PutRequest)] == [("service-clean", None)]
    reports = {a.kind for a in step.actions if isinstance(a, act.DeleteReport)}
    assert reports == {"timeline", f"attempt/{settled}"}
    kinds = [type(a) for a in step.actions]
    assert kinds.index(act.DeleteAdmit) < kinds.index(act.DeleteReport) < kinds.index(act.PatchFinalizers), (
        "the agent may write a report until its admission is gone, and nobody looks after the finalizer is gone"
    )


def test_records_that_nobody_needs_go_with_the_table() -> None:
    """F648: each HudiTable that was made and deleted left what its agent had put, for good."""
    scene = deleted_table()
    scene.fenced("Settled", pod="load-b-1")
    (inc,) = (key.removeprefix("settle/") for key in scene.kv if key.startswith("settle/"))
    singles = {*(name for name in Kind.DONE.names if name[-1] != "-")}
    wanted = {*singles, f"abandoned-{inc}", "savepoint-there", "savepoint-perhaps"}
    needless = {"hold-a", "junk", "savepoint-failed", "savepoint-deleted"}
    results = {"there": "Completed", "failed": "Failed", "deleted": "Deleted"}
    for name in sorted(wanted | needless):
        scene.put(f"done/{name}", {"result": results.get(name.removeprefix("savepoint-"))})
    for number in range(deletion.KEPT + 5):
        scene.put(f"done/restore-{number}", {"nonce": str(number), "result": "Completed"})
        scene.put(f"done/abandoned-gone-{number}", {"inc": f"gone-{number}"})
    step = of_table(scene)
    gone = [a for a in step.actions if isinstance(a, act.DeleteDone)]
    old = {f"{kind}{number}" for kind in ("restore-", "abandoned-gone-") for number in range(5)}
    assert {a.name for a in gone} == needless | old
    assert all(a.expected_mod == scene.kv[f"done/{a.name}"].mod for a in gone)
    assert freed(step) == [(naming.TABLE_KIND, SETTLE_FINALIZER)]


def test_many_records_go_before_the_table() -> None:
    """A look takes a bounded time."""
    scene = deleted_table()
    for number in range(deletion.DELETED_AT_ONCE + 1):
        scene.put(f"done/junk-{number}", {})
    step = of_table(scene)
    assert len([a for a in step.actions if isinstance(a, act.DeleteDone)]) == deletion.DELETED_AT_ONCE
    assert freed(step) == []


def unbound(step: PartialPlan) -> list[str]:
    return [a.going for a in step.actions if isinstance(a, act.Unbind)]


def test_the_rights_of_its_accounts_go_right_before_the_table() -> None:
    """With the last step only: a driver that is still ending needs them until it is gone."""
    scene = deleted_table()
    assert scene.table is not None
    pod = scene.pod("left-0000-1")
    assert unbound(of_table(scene)) == []
    pod.finalizers.clear()
    step = of_table(scene)
    assert unbound(step) == [scene.table["metadata"]["uid"]]
    assert [type(a) for a in step.actions][-2:] == [act.Unbind, act.PatchFinalizers]
    scene.terminating = True
    assert freed(of_table(scene))
    assert unbound(of_table(scene)) == [], "they go with the namespace"


def test_the_rights_of_a_table_without_a_gate_go_too() -> None:
    scene = deleted_table()
    scene.drop("gate")
    assert scene.table is not None
    assert unbound(of_table(scene)) == [scene.table["metadata"]["uid"]]


def test_the_look_after_the_deletion_asks_once_more() -> None:
    """Of two HudiTables that went at once each has counted for the other one."""
    scene = Scene()
    scene.table = None
    assert planner.plan_table(scene.observe(), CONFIG).actions == (act.Unbind(CONFIG.driver_role),)
    scene.terminating = True
    assert planner.plan_table(scene.observe(), CONFIG).actions == ()
