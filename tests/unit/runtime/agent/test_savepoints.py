"""Savepoints as the agent takes them: of the last commit, with nothing pending, once for each name whatever it dies in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hudi_operator.plan.requests import savepoints
from hudi_runtime.agent.savepoints import Savepoints
from hudi_runtime.process.etcd import Entry
from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl

T1, T2, T3, T4, T5 = (f"2026010100000000{n}" for n in range(1, 6))
ME, OTHER = "agent-me", "agent-other"
REQUESTS = {"savepoint-a": savepoints.request("a"), "service-clean": {"id": "service-clean"}}
COMMITS = [f"{T1}_{T4}.commit", f"{T2}_{T3}.commit"]


@dataclass
class Fake:
    """Table, session and etcd in one: what happens to the timeline is what Hudi does."""

    names: list[str]
    comments: dict[str, str] = field(default_factory=dict)
    kv: dict[str, dict[str, Any]] = field(default_factory=dict)
    recorded: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    fails: int = 0
    gate: str = "closed"

    # etcd
    def get(self, key: str) -> Entry | None:
        return Entry(key, self.kv[key], 1) if key in self.kv else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        self.kv[key] = dict(value)

    # session
    def pending(self) -> list[str]:
        return list(self.recorded)

    def begin_savepoint(self, instant: str) -> None:
        assert self.log[-1:] == ["lock"], "under the lock"
        self.log.append(f"begin {instant}")
        self.recorded.append(instant)

    def abandon(self, instant: str) -> bool:
        self.recorded.remove(instant)
        return True

    # table
    def timeline(self) -> tl.Timeline:
        return tl.parse(self.names)

    def savepoint_with(self, timeline: tl.Timeline, comment: str) -> tl.Instant | None:
        return next((s for s in timeline.savepoints if not s.pending and self.comments.get(s.requested) == comment), None)

    def write_config(self, name: str, options: dict[str, str]) -> str:
        return name

    @contextmanager
    def locked(self, config: Any) -> Iterator[None]:
        self.log.append("lock")
        yield
        self.log.append("unlock")

    @contextmanager
    def client(self, config: Any) -> Iterator[Any]:
        yield self

    def savepoint(self, instant: str, user: str, comment: str) -> None:
        assert instant in self.recorded, "not without its record"
        if f"{instant}.savepoint.inflight" in self.names:
            raise ValueError("the savepoint was begun before")
        self.names.append(f"{instant}.savepoint.inflight")
        if self.fails:
            self.fails -= 1
            raise ValueError("the store has failed")
        self.names.append(f"{instant}_{T5}.savepoint")
        self.comments[instant] = comment
        self.recorded.remove(instant)

    def delete(self, path: str) -> None:
        name = path.rpartition("/")[2]
        assert name.partition(".")[0] in self.recorded, "only what is ours"
        self.names.remove(name)

    @property
    def done(self) -> dict[str, Any]:
        return self.kv.get("done/savepoint-a", {})


def serve(fake: Fake, records: Records | None = None) -> dict[str, Any]:
    session: Any = SimpleNamespace(inc=ME, etcd=fake, pending=fake.pending, begin_savepoint=fake.begin_savepoint, abandon=fake.abandon)
    table: Any = SimpleNamespace(
        timeline=fake.timeline, savepoint_with=fake.savepoint_with, write_config=fake.write_config, locked=fake.locked, client=fake.client, storage=fake
    )
    keeper = Savepoints(table, session, "flights", "lake/flights", {}, lambda: fake.gate)
    keeper.serve(REQUESTS, records or Records({}, {}, {}, {}))
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
    assert "nobody's here" in fake.done["message"]
    assert fake.log == []


def test_another_agent_that_may_still_do_something_is_waited_for() -> None:
    writers = {OTHER: Entry("", {"inc": OTHER, "role": "agent"}, 1)}
    fake = Fake([*COMMITS])
    assert serve(fake, Records({}, {}, writers, {}))["result"] == "Pending"
    assert OTHER in fake.done["message"]


def test_a_failure_is_tried_again_and_given_up_at_the_third() -> None:
    fake = Fake([*COMMITS], fails=3)
    session: Any = SimpleNamespace(inc=ME, etcd=fake, pending=fake.pending, begin_savepoint=fake.begin_savepoint, abandon=fake.abandon)
    table: Any = SimpleNamespace(
        timeline=fake.timeline, savepoint_with=fake.savepoint_with, write_config=fake.write_config, locked=fake.locked, client=fake.client, storage=fake
    )
    keeper = Savepoints(table, session, "flights", "lake/flights", {}, lambda: fake.gate)
    said = []
    for _ in range(4):
        keeper.serve(REQUESTS, Records({}, {}, {}, {}))
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
