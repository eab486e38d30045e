"""Savepoints as the agent takes them: of the last commit, with nothing pending, once for each name
whatever it dies in.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hudi_operator.plan.requests import savepoints
from hudi_runtime.agent.savepoints import Savepoints
from hudi_runtime.process.etcd import Entry
from hudi_runtime.settle.settle import Records
from tests.support.world.agent_contexts import NOTHING, context, look
from tests.support.world.fake_savepoints import COMMITS, T2, T3, T4, T5, Fake

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
        write_config=fake.write_config,
        locked=fake.locked,
        client=fake.client,
        storage=fake,
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
