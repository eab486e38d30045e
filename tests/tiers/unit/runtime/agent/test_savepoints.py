"""Savepoints as the agent takes them: of the last commit, with nothing pending, once for each name
whatever it dies in.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_operator.plan.requests import savepoints
from hudi_runtime.agent.savepoints import Savepoints
from hudi_runtime.process.etcd import Entry
from hudi_runtime.settle.settle import Records
from tests.support.world.agent_contexts import NOTHING, context, look
from tests.support.world.fake_savepoints import COMMITS, T1, T2, T3, T4, T5, Fake

ME, OTHER = "agent-me", "agent-other"
IDLE: Any = SimpleNamespace(idle=True)
REQUESTS = {"savepoint-a": savepoints.request("a").to_json(), "service-clean": {"id": "service-clean"}}


def made(fake: Fake) -> Savepoints:
    session: Any = SimpleNamespace(
        inc=ME, etcd=fake, pending=fake.pending, begin_savepoint=fake.begin_savepoint, abandon=fake.abandon
    )
    table: Any = SimpleNamespace(
        timeline=fake.timeline,
        savepoint_with=fake.savepoint_with,
        savepoint_comment=fake.savepoint_comment,
        write_config=fake.write_config,
        locked=fake.locked,
        client=fake.client,
        storage=fake.store,
    )
    return Savepoints(
        context(table, session, gate=lambda: fake.gate, revision=lambda: fake.revision, name="flights"), after=IDLE
    )


def serve(fake: Fake, records: Records | None = None) -> dict[str, Any]:
    keeper = made(fake)
    keeper.consider(look(REQUESTS, records or NOTHING))
    return fake.done


def test_the_last_commit_is_kept_with_everything_that_completed_until_then() -> None:
    fake = Fake([*COMMITS])
    done = serve(fake)
    assert (done["result"], done["instant"], done["completionTime"], done["boundary"]) == ("Completed", T2, T5, T4)
    assert fake.comments == {T2: "lake/flights: a"}
    assert fake.log == ["lock", f"begin {T2}", "unlock"]
    serve(fake)
    assert fake.log == ["lock", f"begin {T2}", "unlock"], "once"


def test_one_that_was_taken_before_its_agent_died_is_found_again() -> None:
    fake = Fake([*COMMITS, f"{T2}_{T5}.savepoint"], {T2: "lake/flights: a"})
    assert serve(fake)["result"] == "Completed"
    assert fake.log == []


def test_one_that_was_begun_before_its_agent_died_is_taken_anew() -> None:
    fake = Fake([*COMMITS, f"{T2}.savepoint.inflight"])
    assert serve(fake)["result"] == "Completed"


def test_a_commit_that_is_kept_already_is_not_kept_twice() -> None:
    """A second completed file for one instant is what no reader of the timeline expects."""
    fake = Fake([*COMMITS, f"{T2}_{T5}.savepoint"], {T2: "by somebody else"})
    done = serve(fake)
    assert (done["result"], done["instant"]) == ("Completed", T2)
    assert fake.log == []


def test_what_is_pending_is_waited_for_and_what_is_nobodys_is_refused() -> None:
    """R52: it would be on neither side."""
    fake = Fake([*COMMITS, f"{T3}.commit.requested"])
    mine = Records({T3: Entry("", {"inc": "dead", "action": "commit", "state": "Pending"}, 1)}, {}, {}, {})
    assert serve(fake, mine)["result"] == "Pending"
    assert T3 in fake.done["message"]
    fake = Fake([*COMMITS, f"{T3}.commit.requested"])
    assert serve(fake)["result"] == "Failed"
    assert "has no record in etcd" in fake.done["message"]
    assert fake.log == []


def test_another_agent_that_may_still_do_something_is_waited_for() -> None:
    writers = {OTHER: Entry("", {"inc": OTHER, "role": "agent"}, 1)}
    fake = Fake([*COMMITS])
    assert serve(fake, Records({}, {}, writers, {}))["result"] == "Pending"
    assert OTHER in fake.done["message"]


def test_a_failure_is_tried_again_and_given_up_at_the_third() -> None:
    fake = Fake([*COMMITS], fails=3)
    keeper = made(fake)
    said = []
    for _ in range(4):
        keeper.consider(look(REQUESTS))
        said.append(fake.done["result"])
    assert said == ["Pending", "Pending", "Failed", "Failed"]
    assert "the store has failed" in fake.done["message"]
    assert fake.recorded == []
    assert fake.names == COMMITS


def test_a_table_without_a_commit_has_nothing_to_keep() -> None:
    assert serve(Fake([]))["result"] == "Failed"


def test_nothing_is_taken_while_the_gate_is_open() -> None:
    fake = Fake([*COMMITS], gate="open")
    assert serve(fake)["result"] == "Pending"
    assert "the closed gate" in fake.done["message"]
    assert fake.log == []
    fake.gate = "closed"
    assert serve(fake)["result"] == "Completed"


def test_one_whose_gate_was_put_meanwhile_is_begun_anew() -> None:
    """F435: the gate may have been open, and writers have committed."""
    fake = Fake([*COMMITS], reopens=1)
    keeper = made(fake)
    keeper.consider(look(REQUESTS))
    assert (fake.done["result"], fake.recorded, fake.names) == ("Pending", [], COMMITS)
    assert "the gate has changed" in fake.done["message"]
    abandoned = Records({T2: Entry("", {"inc": ME, "action": "savepoint", "state": "Abandoned"}, 1)}, {}, {}, {})
    for _ in range(4):
        keeper.consider(look(REQUESTS, abandoned))
    assert (fake.done["result"], len(fake.log)) == ("Pending", 3), "its former record is settled first"
    keeper.consider(look(REQUESTS))
    assert fake.done["result"] == "Completed"


def test_one_whose_gate_was_put_before_it_is_begun_is_chosen_anew() -> None:
    """F458: the lock was waited for, and a commit is later than the one that was chosen."""
    fake = Fake([*COMMITS], overtakes=f"{T3}_{T4}.commit")
    keeper = made(fake)
    keeper.consider(look(REQUESTS))
    assert (fake.done["result"], fake.recorded, fake.log) == ("Pending", [], ["lock"])
    assert "the gate has changed" in fake.done["message"]
    keeper.consider(look(REQUESTS))
    assert (fake.done["result"], fake.done["instant"]) == ("Completed", T3)


def test_one_that_failed_is_not_gone_on_with_behind_another_gate() -> None:
    fake = Fake([*COMMITS], fails=1)
    keeper = made(fake)
    keeper.consider(look(REQUESTS))
    assert fake.recorded == [T2]
    fake.revision += 2
    keeper.consider(look(REQUESTS))
    assert (fake.done["result"], fake.recorded, fake.names) == ("Pending", [], COMMITS)


def test_one_that_failed_and_was_withdrawn_leaves_nothing_pending() -> None:
    """Archival would wait for it."""
    fake = Fake([*COMMITS], fails=1)
    keeper = made(fake)
    keeper.consider(look(REQUESTS))
    assert fake.recorded == [T2]
    keeper.consider(look({"service-clean": {}}))
    assert (fake.recorded, fake.names) == ([], COMMITS)


# ---- deletions


KEPT = [*COMMITS, f"{T2}_{T5}.savepoint"]
MINE = {T2: "lake/flights: a"}


def taken(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "result": "Completed", "instant": T2, "completionTime": T5, "boundary": T4, **more}


def drop(fake: Fake, instant: str = T2, *, records: Records = NOTHING, **others: Any) -> dict[str, Any]:
    """As the operator asks for it."""
    keeper = made(fake)
    asked = {"unsavepoint-a": savepoints.deletion("a", instant).to_json(), **others}
    keeper.consider(look(asked, records))
    return fake.done


def test_one_is_deleted_beside_writers_under_the_lock_and_its_file_goes_first() -> None:
    fake = Fake([*KEPT, f"{T2}.savepoint.inflight"], dict(MINE), gate="open")
    fake.kv["done/savepoint-a"] = taken("a")
    done = drop(fake)
    assert (done["result"], done["instant"], done.get("message", "")) == ("Deleted", T2, "")
    assert (fake.names, fake.log) == (COMMITS, ["lock", f"read {T2}", "unlock"]), "no other savepoint is read"
    assert serve(fake)["result"] == "Deleted", "its name is not taken again"
    assert fake.names == COMMITS


def test_one_whose_agent_died_behind_its_file_is_deleted() -> None:
    fake = Fake([*KEPT], dict(MINE), fails_at_deletion=f"_{T5}.savepoint")
    fake.kv["done/savepoint-a"] = taken("a")
    assert drop(fake)["result"] == "Completed"
    assert fake.done["message"] == "not deleted yet: ValueError: the store has failed"
    fake.names = [*COMMITS]  # by an agent that died then
    assert drop(fake)["result"] == "Deleted"


def test_one_without_a_record_is_found_by_its_name() -> None:
    fake = Fake([*KEPT], dict(MINE))
    assert drop(fake)["result"] == "Deleted"
    assert fake.names == COMMITS


@pytest.mark.parametrize(
    ("instant", "why"),
    [
        (T1, f"not deleted: deleteInstant is {T1}, and savepoint a has instant {T2}"),
        (T4, f"not deleted: deleteInstant is {T4}, and savepoint a has instant {T2}"),
    ],
)
def test_a_slip_deletes_nothing_and_says_why(instant: str, why: str) -> None:
    fake = Fake([*KEPT], dict(MINE))
    fake.kv["done/savepoint-a"] = taken("a")
    done = drop(fake, instant)
    assert (done["result"], done["message"], fake.names) == ("Completed", why, KEPT)


def test_its_time_is_that_of_its_result() -> None:
    """People choose by it which savepoint to restore to."""
    fake = Fake([*KEPT], dict(MINE))
    fake.kv["done/savepoint-a"] = taken("a", atMs=5)
    assert drop(fake, T1)["message"]
    assert fake.done["atMs"] == 5
    assert drop(fake)["result"] == "Deleted"
    assert fake.done["atMs"] > 5


def test_one_that_was_never_taken_is_not_taken_for_it() -> None:
    fake = Fake([*KEPT], {T2: "lake/flights: b"})
    done = drop(fake)
    assert (done["result"], done["message"]) == ("Failed", "not deleted: this HudiTable has taken no savepoint a")
    assert fake.names == KEPT


def test_a_refusal_is_not_looked_at_again_by_this_process() -> None:
    fake = Fake([*KEPT], dict(MINE))
    fake.kv["done/savepoint-a"] = taken("a")
    keeper = made(fake)
    for _ in range(3):
        keeper.consider(look({"unsavepoint-a": savepoints.deletion("a", T1).to_json()}))
    assert fake.log == [], "no writer waits for it"
    keeper.consider(look({"unsavepoint-a": savepoints.deletion("a", T2).to_json()}))
    assert fake.done["result"] == "Deleted"


def test_the_commit_stays_for_another_name_and_for_somebody_else() -> None:
    fake = Fake([*KEPT], dict(MINE))
    fake.kv |= {"done/savepoint-a": taken("a"), "done/savepoint-b": taken("b")}
    assert drop(fake)["result"] == "Deleted"
    assert (fake.done["message"], fake.names) == ("savepoint b keeps the same commit", KEPT)
    fake = Fake([*KEPT], {T2: "by somebody else"})
    fake.kv["done/savepoint-a"] = taken("a")
    assert drop(fake)["message"] == "a savepoint of somebody else keeps the same commit: by somebody else"
    assert fake.names == KEPT
    fake = Fake([*KEPT], dict(MINE))
    fake.kv |= {"done/savepoint-a": taken("a"), "done/savepoint-b": taken("b", result="Deleted")}
    drop(fake)
    assert fake.names == COMMITS


def test_what_may_still_need_it_is_waited_for() -> None:
    fake = Fake([*KEPT], dict(MINE))
    fake.kv["done/savepoint-a"] = taken("a")
    assert drop(fake, **{"restore-n1": {"id": "restore-n1"}})["message"] == "not deleted yet: a restore is asked for"
    writers = {OTHER: Entry("", {"inc": OTHER, "role": "agent"}, 1)}
    assert OTHER in drop(fake, records=Records({}, {}, writers, {}))["message"]
    fake.kv["lock"] = {"inc": "writer"}
    drop(fake)
    assert (fake.names, fake.log) == (KEPT, []), "its step does not wait for the lock"
    del fake.kv["lock"]
    assert drop(fake)["result"] == "Deleted"
