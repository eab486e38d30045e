"""Restore as the agent does it: what completed after the boundary goes and nothing else, alone,
once, and to its end whatever it dies in.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api.restore import Restore
from hudi_operator.plan.requests import restores as operators
from hudi_runtime.agent import restores
from hudi_runtime.agent.restores import Refused
from hudi_runtime.process import spark as sp
from hudi_runtime.settle.rollback import Step, decide
from hudi_runtime.table import timeline as tl
from tests.support.world.agent_contexts import look
from tests.support.world.fake_restores import ID, KEPT, ME, OTHER, UNDONE, Fake, T, keeper, records

REQUEST = operators.request(Restore("good", "n1"), ["good"]).to_json()


def serve(fake: Fake, request: dict[str, Any] | None = None, **writers: str) -> dict[str, Any]:
    keeper(fake).consider(look({ID: request or REQUEST}, records(fake, **writers)))
    return fake.done


def test_what_completed_after_the_boundary_goes_and_nothing_else() -> None:
    """Hudi's own plan would undo T[1], too: it completed after the commit that bears the savepoint,
    and the savepoint holds it.
    """
    fake = Fake([*KEPT, *UNDONE])
    done = serve(fake)
    assert (done["result"], done["boundary"], done["newest"], done["undone"]) == ("Completed", T[4], T[2], 2)
    assert (done["instant"], done["completionTime"], done["undoneInstants"]) == (T[20], T[25], [T[6], T[7]])
    assert fake.plan == [(T[6], "commit"), (T[7], "commit")], "last completed first"
    assert sorted(fake.names) == sorted([*KEPT, f"{T[20]}.restore.requested", f"{T[20]}_{T[25]}.restore"])
    assert [e.value["state"] for e in fake.range("instant/")] == ["Abandoned"], (
        "the rollbacks it was made of are given up"
    )
    serve(fake)
    assert fake.executions == 1, "once for each nonce"


def test_what_a_service_wrote_is_named_as_it_is_and_as_it_was() -> None:
    timeline = tl.parse([*KEPT, f"{T[6]}.compaction.requested", f"{T[6]}.compaction.inflight", f"{T[6]}_{T[9]}.commit"])
    found = restores.plan(timeline, timeline.savepoints[0])
    assert restores.entries(found.undone) == [(T[6], "commit"), (T[6], "compaction")]


def test_a_log_compaction_that_was_made_pending_again_is_removed_files_first() -> None:
    """Hudi's restore refuses its name."""
    log = tl.parse([*KEPT, f"{T[6]}.logcompaction.inflight", f"{T[6]}_{T[9]}.deltacommit"])
    assert restores.entries(restores.plan(log, log.savepoints[0]).undone) == [(T[6], "deltacommit")]
    fake = Fake(
        [*KEPT, f"{T[6]}.logcompaction.requested", f"{T[6]}.logcompaction.inflight", f"{T[20]}.restore.inflight"]
    )
    fake.put(f"instant/{T[20]}", {"inc": ME, "action": "restore", "state": "Pending"})
    fake.put(
        f"done/{ID}",
        {
            "nonce": "n1",
            "savepoint": "good",
            "result": "Running",
            "after": T[9],
            "boundary": T[4],
            "newest": T[2],
            "instant": T[20],
        },
    )
    fake.names_of_logs = [f"/t/a/.f_{T[6]}.log.1_0-1-1", f"/t/a/.f_{T[5]}.log.1_0-1-1"]
    assert serve(fake)["result"] == "Completed"
    assert not [name for name in fake.names if "logcompaction" in name]
    assert fake.names_of_logs == [f"/t/a/.f_{T[5]}.log.1_0-1-1"]


def test_one_that_fails_in_the_middle_is_executed_again_and_not_planned_again() -> None:
    fake = Fake([*KEPT, *UNDONE], fails_after=1)
    done = serve(fake)
    assert (done["result"], done["failures"], done["message"]) == ("Running", 1, "ValueError: the store has failed")
    assert f"{T[6]}_{T[9]}.commit" not in fake.names
    assert keeper(fake).between(records(fake)), "the table is between two states: nothing else is done to it"
    plan = list(fake.plan)
    done = serve(fake)
    assert (done["result"], done["instant"], done["undone"], done["boundary"]) == ("Completed", T[20], 2, T[4])
    assert fake.plan == plan
    assert not keeper(fake).between(records(fake))


def test_the_next_agent_waits_until_it_may_claim() -> None:
    fake = Fake([*KEPT, *UNDONE], fails_after=1)
    serve(fake)
    for key in (f"instant/{T[20]}", f"instant/{T[21]}"):
        fake.kv[key]["inc"] = OTHER
    assert serve(fake, **{OTHER: "agent"})["result"] == "Running"
    assert fake.executions == 1, "not beside an agent that is not proven dead"
    assert serve(fake)["message"] == f"restore {T[20]} is not claimed yet"
    assert fake.executions == 1
    fake.kv[f"instant/{T[20]}"]["claimedBy"] = ME
    assert serve(fake)["result"] == "Completed"


def test_one_whose_agent_died_before_its_word_is_found() -> None:
    fake = Fake([*KEPT, *UNDONE])
    done = serve(fake)
    fake.kv[f"done/{ID}"] = {**done, "result": "Running", "after": T[9], "completionTime": ""}
    done = serve(fake)
    assert (done["result"], done["completionTime"], fake.executions) == ("Completed", T[25], 1)


def test_nothing_after_the_savepoint_is_nothing_to_do() -> None:
    fake = Fake([*KEPT])
    done = serve(fake)
    assert (done["result"], done["undone"], fake.executions) == ("Completed", 0, 0)
    assert fake.metadata, "nothing was touched"


LATER = [*KEPT, *UNDONE, f"{T[7]}_{T[10]}.savepoint"]
REFUSALS: list[tuple[Fake, dict[str, Any], str]] = [
    (Fake([*KEPT, *UNDONE]), {"savepoint": "other"}, "this HudiTable has taken no savepoint other"),
    (Fake([*KEPT, *UNDONE], comments={T[2]: "lake/other: good"}), {}, "this HudiTable has taken no savepoint good"),
    (
        Fake(UNDONE, kv={"done/savepoint-good": {"result": "Completed", "instant": T[2]}}),
        {},
        "is no longer on the timeline",
    ),
    (Fake([KEPT[0], KEPT[2], *UNDONE]), {}, f"commit {T[2]} of the savepoint is no longer in the active timeline"),
    (Fake([*KEPT, *UNDONE, f"{T[11]}.inflight"]), {}, f"instant {T[11]} is pending and has no record in etcd"),
    (
        Fake([*KEPT, *UNDONE], archived=(tl.Instant(T[5], "commit", tl.State.COMPLETED, T[6]),)),
        {},
        f"instant {T[5]} completed after the savepoint and was",
    ),
    (Fake([*KEPT, *UNDONE], there={"a": ["f2"]}), {}, "file a/f1 of the savepoint is gone"),
    (Fake([*KEPT, *UNDONE], there={}), {}, "file a/f1 of the savepoint is gone"),
    (
        Fake(LATER, comments={T[2]: "lake/flights: good", T[7]: "lake/flights: later"}),
        {"savepoints": ["good", "later"]},
        "savepoint later is later",
    ),
    (
        Fake(LATER, comments={T[2]: "lake/flights: good", T[7]: "by hand"}),
        {},
        f"the savepoint of instant {T[7]} (by hand) is later and not",
    ),
]


@pytest.mark.parametrize(("fake", "changes", "why"), REFUSALS, ids=[why[:40] for _, _, why in REFUSALS])
def test_what_cannot_be_restored_is_refused_and_untouched(fake: Fake, changes: dict[str, Any], why: str) -> None:
    before = list(fake.names)
    done = serve(fake, {**REQUEST, **changes})
    assert done["result"] == "Failed"
    assert why in done["message"]
    assert fake.names == before
    assert fake.metadata
    serve(fake, {**REQUEST, **changes})
    assert done == fake.done, "and not tried again"


def test_later_savepoints_go_when_their_names_were_taken_away() -> None:
    fake = Fake(
        [*LATER, f"{T[7]}.savepoint.inflight"], comments={T[2]: "lake/flights: good", T[7]: "lake/flights: later"}
    )
    fake.put("done/savepoint-later", {"result": "Completed", "instant": T[7]})
    assert serve(fake)["result"] == "Completed"
    assert [name for name in fake.names if "savepoint" in name] == [KEPT[2]]
    assert "done/savepoint-later" not in fake.kv, "the name may be used again"


@pytest.mark.parametrize(
    "gate", [{"state": "open", "restoring": "n1"}, {"state": "closed"}, {"state": "closed", "restoring": "n0"}, {}]
)
def test_only_behind_the_gate_that_is_closed_for_it(gate: dict[str, Any]) -> None:
    fake = Fake([*KEPT, *UNDONE], gate=gate)
    assert serve(fake) == {}


def test_the_gate_says_which_one() -> None:
    fake = Fake([*KEPT, *UNDONE], kv={"done/restore-n0": {"result": "Failed"}})
    asked = {"restore-n0": {**REQUEST, "nonce": "n0"}, ID: REQUEST, "restore-n2": {**REQUEST, "nonce": "n2"}}
    keeper(fake).consider(look(asked, records(fake)))
    assert fake.done["result"] == "Completed"
    assert "done/restore-n2" not in fake.kv


def test_what_is_pending_is_waited_for() -> None:
    fake = Fake(
        [*KEPT, *UNDONE, f"{T[11]}.clean.requested"],
        kv={f"instant/{T[11]}": {"inc": ME, "action": "clean", "state": "Pending"}},
    )
    done = serve(fake)
    assert (done["result"], done["message"]) == ("Pending", f"instant {T[11]} (clean) is pending")


def test_errors_before_the_beginning_are_counted_and_afterwards_it_is_tried_until_it_is_done() -> None:
    fake = Fake([*KEPT, *UNDONE], there={"a": ["f1"]})
    fake.archived_instants = lambda: (_ for _ in ()).throw(ValueError("cannot list"))  # type: ignore[method-assign]
    fake.archived = (tl.Instant(T[0], "commit", tl.State.COMPLETED, T[0]),)
    one = keeper(fake)
    for result in ("Pending", "Pending", "Failed"):
        one._retry_at = 0.0
        one.consider(look({ID: REQUEST}, records(fake)))
        assert fake.done["result"] == result
    fake = Fake([*KEPT, *UNDONE], fails_at_request=9)
    one = keeper(fake)
    for _ in range(5):
        one._retry_at = 0.0
        one.consider(look({ID: REQUEST}, records(fake)))
        assert fake.done["result"] == "Running", "it may have begun: the gate stays closed"


def test_one_that_is_refused_after_its_agent_died_undid_nothing() -> None:
    """F507: it was written ahead, and its plan never reached the timeline."""
    fake = Fake([*KEPT, *UNDONE], fails_at_request=1)
    ahead = serve(fake)
    assert (ahead["result"], ahead["undone"], ahead["undoneInstants"]) == ("Running", 2, [T[6], T[7]])
    fake.names.append(f"{T[11]}.inflight")
    done = serve(fake)
    assert (done["result"], fake.executions) == ("Failed", 0)
    assert done["message"].startswith(f"instant {T[11]} is pending and has no record in etcd")
    assert not done.keys() & {"undone", "undoneInstants", "boundary", "newest", "after", "instant"}
    assert {f"{T[6]}_{T[9]}.commit", *KEPT} <= set(fake.names)


def test_the_savepoint_is_that_of_the_request_until_it_has_begun() -> None:
    """F525: one request that waited was taken back, and made again for another savepoint."""
    fake = Fake(
        [*KEPT, *UNDONE, f"{T[11]}.clean.requested"],
        kv={f"instant/{T[11]}": {"inc": ME, "action": "clean", "state": "Pending"}},
    )
    assert serve(fake, {**REQUEST, "savepoint": "other"})["savepoint"] == "other"
    fake.names.remove(f"{T[11]}.clean.requested")
    del fake.kv[f"instant/{T[11]}"]
    done = serve(fake)
    assert (done["result"], done["savepoint"]) == ("Completed", "good")


def test_what_is_refused_or_waits_is_what_was_requested() -> None:
    """F533: its record named the savepoint of a request that was taken back before."""
    fake = Fake(
        [*KEPT, *UNDONE, f"{T[11]}.clean.requested"],
        kv={f"instant/{T[11]}": {"inc": ME, "action": "clean", "state": "Pending"}},
    )
    other = {**REQUEST, "savepoint": "other"}
    assert serve(fake)["savepoint"] == "good"
    done = serve(fake, other)
    assert (done["result"], done["savepoint"]) == ("Pending", "other")
    fake.names.remove(f"{T[11]}.clean.requested")
    done = serve(fake, other)
    assert (done["result"], done["savepoint"]) == ("Failed", "other")
    assert done["message"] == "this HudiTable has taken no savepoint other"


COMMENTS = {T[2]: "lake/flights: good", T[7]: "lake/flights: later"}


def test_a_restore_without_a_plan_has_changed_nothing() -> None:
    """F507: later savepoints go when Hudi's plan is on the timeline, not before."""
    fake = Fake([*LATER], comments=COMMENTS, fails_at_request=1)
    fake.put("done/savepoint-later", {"result": "Completed", "instant": T[7]})
    assert serve(fake)["result"] == "Running"
    assert fake.names == LATER
    fake.names.append(f"{T[11]}.inflight")
    assert serve(fake)["result"] == "Failed"
    assert fake.names == [*LATER, f"{T[11]}.inflight"]
    assert "done/savepoint-later" in fake.kv
    assert fake.metadata


def test_the_next_agent_drops_the_later_savepoints() -> None:
    """The one before it died when the plan was on the timeline."""
    fake = Fake([*LATER, f"{T[20]}.restore.requested"], comments=COMMENTS)
    fake.put(f"instant/{T[20]}", {"inc": ME, "action": "restore", "state": "Pending"})
    ahead = {"nonce": "n1", "savepoint": "good", "result": "Running", "after": T[10], "boundary": T[4], "newest": T[2]}
    fake.put(f"done/{ID}", ahead)
    fake.plan = [(T[6], "commit"), (T[7], "commit")]
    assert serve(fake)["result"] == "Completed"
    assert [name for name in fake.names if "savepoint" in name] == [KEPT[2]]


@pytest.mark.parametrize("at", ["done/", ".hoodie/"])
def test_a_savepoint_goes_with_its_record_wherever_its_deletion_fails(at: str) -> None:
    """Otherwise its name would never take a savepoint again, and nobody would see it."""
    fake = Fake([*LATER], comments=COMMENTS, fails_at_deletion=at)
    fake.put("done/savepoint-later", {"result": "Completed", "instant": T[7]})
    assert serve(fake)["result"] == "Running"
    assert serve(fake)["result"] == "Completed"
    assert [name for name in fake.names if "savepoint" in name] == [KEPT[2]]
    assert "done/savepoint-later" not in fake.kv


def test_an_agent_whose_restore_has_lost_an_executor_ends() -> None:
    """F526: the next one sweeps what it may still write; the gate stays closed until then."""
    fake = Fake([*KEPT, *UNDONE], loses_an_executor=True)
    one = keeper(fake)
    one.consider(look({ID: REQUEST}, records(fake)))
    assert (fake.done["result"], one.unproven) == ("Completed", True)
    fake = Fake([*KEPT, *UNDONE])
    one = keeper(fake)
    one.consider(look({ID: REQUEST}, records(fake)))
    assert (fake.done["result"], one.unproven) == ("Completed", False)


def test_a_restore_that_failed_beside_a_loss_is_for_the_next_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sp, "lost_executors", lambda _spark: True)
    fake = Fake([*KEPT, *UNDONE], fails_after=1)
    one = keeper(fake)
    one.consider(look({ID: REQUEST}, records(fake)))
    assert (fake.done["result"], one.unproven) == ("Running", True)


def test_rollbacks_that_a_completed_restore_leaves_are_deleted() -> None:
    """F509: Hudi completes a restore before it deletes the rollbacks that it consisted of."""
    fake = Fake([*KEPT, *UNDONE], fails_at_the_end=True)
    assert serve(fake)["result"] == "Running"
    assert [name for name in fake.names if ".rollback." in name]
    assert serve(fake)["result"] == "Completed"
    assert not [name for name in fake.names if ".rollback." in name]
    assert [e.value["state"] for e in fake.range("instant/")] == ["Abandoned"]
    assert fake.executions == 1


def test_a_commit_that_a_restore_has_not_undone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """F534: a process without this lock wrote it meanwhile, and the next look took the restore for
    whole.
    """
    fake = Fake([*KEPT, *UNDONE])
    restore = fake.restore

    def beside_a_foreign_writer(*arguments: Any) -> None:
        restore(*arguments)
        fake.names.append(f"{T[22]}_{T[24]}.commit")

    monkeypatch.setattr(fake, "restore", beside_a_foreign_writer)
    done = serve(fake)
    assert done["result"] == "Running"
    assert f"instant {T[22]} is still on the timeline" in done["message"]
    done = serve(fake)
    assert done["result"] == "Completed"
    assert done["message"].startswith(f"1 commits after the savepoint are still there, the first one is {T[22]}")


def test_settling_claims_a_restore_with_everything_that_is_pending_and_leaves_it_to_its_execution() -> None:
    timeline = tl.parse([*KEPT, f"{T[6]}.inflight", f"{T[20]}.restore.inflight", f"{T[21]}.rollback.inflight"])
    victims = {T[6]: T[21]}
    assert decide(T[20], timeline, victims) == (Step.EXECUTE, T[20])
    assert decide(T[21], timeline, victims) == (Step.EXECUTE, T[20]), (
        "its victim was acknowledged, and belongs to nobody"
    )
    assert decide(T[2], timeline, victims) == (Step.KEEP, "")


def test_a_plan_needs_the_commit_that_is_kept() -> None:
    timeline = tl.parse([f"{T[2]}_{T[5]}.savepoint", *UNDONE])
    with pytest.raises(Refused, match="no longer in the active timeline"):
        restores.plan(timeline, timeline.savepoints[0])
