"""What the watches bring, and what a live look makes of it."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace
from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.control.memory import GONE_SECONDS, Memory
from hudi_operator.control.telling import only_tells
from hudi_operator.model.facts import PodFacts, PodName
from hudi_operator.plan.core import actions as act
from tests.support.world.simulated_world import World, all_settled, at_step, finished
from tests.support.world.watched_world import (
    NAMESPACE,
    TABLE,
    Event,
    Hears,
    Watched,
    at_once,
    late,
    never,
    no_deletions,
    objects,
    pod,
)

MINE = {naming.LABEL_TABLE: naming.label_value(TABLE[1]), naming.LABEL_ROLE: naming.ROLE_DRIVER}
RESYNC_SECONDS = 260


def writer(name: str, table: str = "flights", uid: str = "", version: str = "1") -> dict[str, Any]:
    meta = {"namespace": NAMESPACE, "name": name, "uid": uid or f"uid-{name}", "resourceVersion": version}
    return {"metadata": meta, "spec": {"tableRef": {"name": table}}}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def remembered(memory: Memory) -> tuple[set[str], set[str]]:
    """Names of writers and uids of pods."""
    seen = memory.recall(TABLE)
    assert seen is not None
    return {w["metadata"]["name"] for w in seen.writers}, {p.uid for p in seen.pods}


def looked(memory: Memory, *writers: dict[str, Any], pods: tuple[PodFacts, ...] = (), began: float) -> None:
    memory.learn(TABLE, replace(objects(*writers), pods=pods), began=began)


def test_a_table_has_its_own_objects_and_the_agents_of_its_namespace() -> None:
    memory = Memory(clock=Clock())
    assert memory.recall(TABLE) is None, "nothing is known before the first look"
    looked(memory, began=1.0)
    agent = {naming.LABEL_ROLE: naming.ROLE_AGENT, naming.LABEL_AGENT: "hudi-agent-a"}
    for found in (
        pod("mine-1", "mine", **MINE),
        pod("x-1", "other", **{**MINE, naming.LABEL_TABLE: "other"}),
        pod("hudi-agent-a-1", "agent", **agent),
        replace(pod("hudi-agent-a-1", "elsewhere", **agent), namespace="other"),
    ):
        memory.pod(found, deleted=False)
    for obj in (writer("mine"), writer("other", "other")):
        memory.writer(obj, deleted=False)
    assert remembered(memory) == ({"mine"}, {"mine", "agent"})
    memory.writer(writer("mine", "other"), deleted=False)
    memory.pod(pod("mine-1", "mine", **MINE), deleted=True)
    assert remembered(memory) == (set(), {"agent"})


def test_what_a_look_does_not_find_is_gone() -> None:
    """An event that is lost stays lost; so do pods without labels of ours, which no watch tells."""
    clock = Clock()
    memory = Memory(clock=clock)
    memory.writer(writer("gone"), deleted=False)
    memory.pod(pod("gone-1", "gone", **MINE), deleted=False)
    bare = replace(pod("bare-1", "bare"), labels={"spark-role": "executor"}, controller=PodName("mine-1", "mine"))
    clock.now = 10.0
    looked(memory, writer("there"), pods=(pod("there-1", "there", **MINE), bare), began=10.0)
    assert remembered(memory) == ({"there"}, {"there", "bare"})
    looked(memory, writer("there"), pods=(pod("there-1", "there", **MINE),), began=20.0)
    assert remembered(memory) == ({"there"}, {"there"})


def test_what_was_heard_during_a_look_stands() -> None:
    """The look may have read it before."""
    clock = Clock()
    memory = Memory(clock=clock)
    old, here = writer("here", version="1"), pod("here-1", "here", **MINE)
    clock.now = 11.0
    memory.writer(writer("here", version="2"), deleted=False)
    memory.pod(pod("new-1", "new", **MINE), deleted=False)
    memory.pod(here, deleted=True)
    looked(memory, old, pods=(here,), began=10.0)
    assert remembered(memory) == ({"here"}, {"new"})
    seen = memory.recall(TABLE)
    assert seen is not None
    assert seen.writers[0]["metadata"]["resourceVersion"] == "2"
    clock.now = 12.0
    looked(memory, old, pods=(here,), began=12.0)
    assert remembered(memory)[1] == {"here"}, "it was made again under its name, or the deletion was of a former one"


def test_the_deletion_of_a_predecessor_is_none_of_its_successor() -> None:
    clock = Clock()
    memory = Memory(clock=clock)
    looked(memory, began=0.0)
    memory.pod(pod("a-1", "second", **MINE), deleted=False)
    memory.pod(pod("a-1", "first", **MINE), deleted=True)
    assert remembered(memory)[1] == {"second"}
    clock.now = GONE_SECONDS + 1
    memory.pod(pod("b-1", "b", **MINE), deleted=True)
    assert len(memory._pods._gone) == 1, "deletions are not remembered for ever"


def test_nothing_is_parsed_twice() -> None:
    memory = Memory(clock=Clock())
    look = objects(writer("a"), table={"metadata": {"namespace": NAMESPACE, "name": TABLE[1], "managedFields": []}})
    memory.learn(TABLE, look, began=1.0)
    seen = memory.recall(TABLE)
    assert seen is not None
    assert seen.objects is look.objects
    assert "managedFields" not in (seen.table or {})["metadata"]
    memory.forget(TABLE)
    assert memory.recall(TABLE) is None


# ---- the whole loop, with watches that fail


def whole(hears: Hears) -> Watched:
    """A table with a stream that runs and has nothing to do for the operator."""
    world = World()
    world.make_table()
    world.make_writer("stream")
    made = Watched(world, hears)
    world.writer_hang_at = 1
    made.run(lambda w: w.is_true(w.writers["stream"], "Running"))
    made.at_rest()
    return made


HEARS = [
    pytest.param(at_once, id="all events"),
    pytest.param(never, id="frozen"),
    pytest.param(no_deletions, id="deletions are lost"),
    pytest.param(late, id="old events"),
]


def test_a_table_at_rest_costs_nothing() -> None:
    """F264: events that change nothing, and those of other tables, lead to no live look."""
    made = whole(at_once)
    live, glances = made.observer.live, made.observer.glances
    running = made.world.pod_facts(next(p for p in made.world.pods.values() if p.name.startswith("stream-")))
    for number in range(20):
        made.hear(Event("pod", running.name, running, deleted=False))
        made.hear(Event("pod", "y", pod("y-1", f"y-{number}", **{naming.LABEL_TABLE: "other"}), deleted=False))
        made._due = made.world.now  # an event has enqueued the table
        made._keys.clear()
        made.second()
    assert made.observer.live - live <= 1, "the one that is due"
    assert made.observer.glances - glances >= 19


@pytest.mark.parametrize("hears", HEARS)
def test_a_killed_writer_is_settled_and_followed_whatever_is_heard(hears: Hears) -> None:
    """I1, I11: what is old is never acted upon; what is missed is found by etcd or a later look."""
    made = whole(hears)
    world = made.world
    world.writer_hang_at = None
    process = world.writer_process("stream")
    assert process is not None
    world.kill(process)
    assert made.run(all_settled) < RESYNC_SECONDS + 120
    made.run(finished("stream"))
    assert len(world.names("fence")) == 1
    assert [name for name in world.created if name.startswith("stream-")] == [process.pod, process.pod[:-1] + "2"]


@pytest.mark.parametrize("hears", HEARS)
def test_nobody_is_fenced_for_what_was_not_heard(hears: Hears) -> None:
    """I11: another operator has started a writer; of it only etcd tells."""
    made = whole(hears)
    world = made.world
    world.make_writer("second")
    for _ in range(8):  # the other operator
        world.reconcile()
        world.tick()
    made.executor.done.clear()
    made.run(lambda w: w.is_true(w.writers["second"], "Running"), seconds=RESYNC_SECONDS + 60)
    for _ in range(60):
        made.second()
    assert world.names("fence") == {}
    withdrawn = [a.attempt for a in made.executor.done if isinstance(a, act.DeleteAdmit)]
    assert not [attempt for attempt in withdrawn if "second-" in attempt]
    assert len([name for name in world.created if name.startswith("second-")]) == 1


@pytest.mark.parametrize("hears", HEARS)
def test_what_was_not_heard_is_found_after_a_few_minutes(hears: Hears) -> None:
    """A new writer, and the deletion of one."""
    made = whole(hears)
    world = made.world
    world.make_writer("second")
    assert made.run(lambda w: w.is_true(w.writers["second"], "Running")) < RESYNC_SECONDS + 60
    made.at_rest()
    world.delete(world.writers["stream"])
    assert made.run(lambda w: "stream" not in w.writers) < RESYNC_SECONDS + 120
    made.at_rest()
    seen = made.memory.recall(TABLE)
    assert seen is not None
    assert {p.name for p in seen.pods} <= world.pods.keys(), "an object whose deletion was lost is forgotten"


def test_a_glance_asks_etcd_and_nobody_else() -> None:
    """etcd's keys are never remembered: a lease that has ended is seen at once."""
    made = whole(never)
    seen = asyncio.run(made.observer.glance(TABLE))
    assert seen is not None
    assert seen.etcd is not None
    before = copy.deepcopy(seen.etcd.alive)
    process = made.world.writer_process("stream")
    assert process is not None
    made.world.drop(f"alive/{process.inc}")
    again = asyncio.run(made.observer.glance(TABLE))
    assert again is not None
    assert again.etcd is not None
    assert again.etcd.alive.keys() == before.keys() - {process.inc}


def test_a_pod_that_etcd_names_and_nobody_has_heard_of_is_read() -> None:
    made = whole(never)
    made.memory._pods.read([("table", NAMESPACE, MINE[naming.LABEL_TABLE])], {}, float("inf"))
    assert asyncio.run(made.observer.glance(TABLE)) is None


def test_at_step_is_reached() -> None:
    """The world of these tests hangs where it is told to."""
    assert at_step("stream", 1)(whole(at_once).world)


def reported(made: Watched, records: int) -> None:
    """The stream has committed again, and says so."""
    process = made.world.writer_process("stream")
    assert process is not None
    instant = f"2026010100000{records}000"
    report = {"inc": process.inc, "records": records, "commits": 1, "lastInstant": instant, "atMs": made.world.now_ms}
    made.world.put(f"report/attempt/{process.attempt}", report)
    made.second()


def test_a_commit_of_a_table_at_rest_is_told_without_a_live_look() -> None:
    """F266"""
    made = whole(at_once)
    live = made.observer.live
    for records in (1, 2, 3):
        reported(made, records)
        made.second()  # its own write is heard
        assert made.world.writers["stream"]["status"]["records"] == records
    assert made.observer.live - live <= 1, "the one that is due"
    assert {type(action) for action in made.executor.done[-3:]} == {act.UpdateStatus}


def test_what_is_told_from_an_old_object_is_refused_and_told_by_a_live_look() -> None:
    """F266: the object has changed, and this operator has not heard of it."""
    made = whole(never)
    live = made.observer.live
    for records in (1, 2):
        reported(made, records)
    made.run(lambda w: w.writers["stream"]["status"]["records"] == 2, seconds=5)
    assert 1 <= made.observer.live - live <= 3


def test_what_else_a_status_says_is_decided_live() -> None:
    """I11: an attempt, its end, a condition, an outcome of a request."""
    entry = {"number": 1, "podUID": "u", "records": 1}
    status = {"attempts": [entry], "records": 1, "conditions": [{"type": "Running", "status": "True"}]}
    seen = objects({**writer("w"), "status": status}, table={"metadata": {"name": "flights"}, "status": {}}).objects

    def told(kind: str, name: str, **changed: Any) -> bool:
        known = status if kind == naming.WRITER_KIND else {}
        return only_tells([act.UpdateStatus(kind, NAMESPACE, name, "1", {**known, **changed})], seen)

    committed = {"type": "Committed", "status": "True"}
    assert told(naming.WRITER_KIND, "w", records=2, attempts=[{**entry, "records": 2, "instants": ["1"]}])
    assert told(naming.WRITER_KIND, "w", conditions=[*status["conditions"], committed])
    assert told(naming.TABLE_KIND, "flights", timeline={"lastInstant": "1"})
    assert not told(naming.WRITER_KIND, "w", attempts=[{**entry, "class": "Succeeded"}])
    assert not told(naming.WRITER_KIND, "w", attempts=[entry, {"number": 2}])
    assert not told(naming.WRITER_KIND, "w", conditions=[{"type": "Finished", "status": "True"}])
    assert not told(naming.WRITER_KIND, "w", state="Succeeded")
    assert not told(naming.TABLE_KIND, "flights", agent="another")
    assert not told(naming.WRITER_KIND, "unknown", records=1, attempts=[])
    assert not only_tells([], seen)
    assert not only_tells([act.StopTimer("t")], seen)
