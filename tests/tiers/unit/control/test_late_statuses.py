"""Statuses that only tell how a driver starts wait for the one that says that it is registered."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.control.executor import Executor
from hudi_operator.control.late_statuses import LATE_SECONDS, LateStatuses
from hudi_operator.control.timers import Timers
from hudi_operator.model import conditions
from hudi_operator.model.facts import Nodes, Observed
from hudi_operator.model.objects import Objects
from hudi_operator.model.ports import Fatal, LeaseLost, Refused, Retryable
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.writers.starting_status import only_starts
from tests.support.world.simulated_world import World
from tests.support.world.watched_world import Watched, at_once

JsonDict = dict[str, Any]
KEY = ("ns", "t")


class Written(World):
    """Keeps the statuses of HudiWriters as they are written."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses: list[JsonDict] = []

    def _do_UpdateStatus(self, a: act.UpdateStatus) -> None:
        super()._do_UpdateStatus(a)
        if a.kind == naming.WRITER_KIND:
            self.statuses.append(copy.deepcopy(a.status))


def started(hang_at: int | None = None, **writer: Any) -> tuple[Watched, Written]:
    """A table that is Ready, and the HudiWriter `load`, of which nothing is known yet."""
    world = Written()
    world.make_table()
    made = Watched(world, at_once)
    made.run(lambda w: w.is_true(w.table, "Ready"))
    world.writer_hang_at = hang_at
    world.make_writer("load", **writer)
    return made, world


def entry(status: JsonDict) -> JsonDict:
    return dict(status["attempts"][0])


def told(world: World) -> JsonDict:
    return entry({"attempts": [{}], **(world.writers["load"].get("status") or {})})


def test_an_attempt_has_two_statuses_until_it_runs() -> None:
    """F23: the number is there before the pod; the rest comes with the registration."""
    made, world = started(hang_at=1)
    made.run(lambda w: "load" in w.writers and w.is_true(w.writers["load"], "Running"))
    first, second = world.statuses
    assert not {"podUID", "runningTime", "readyTime"} & entry(first).keys()
    (pod,) = (pod for pod in world.pods.values() if pod.name.startswith("load-"))
    assert entry(second)["podUID"] == pod.uid
    ran, ready = (conditions.from_rfc3339(entry(second)[name]) for name in ("runningTime", "readyTime"))
    assert ran is not None
    assert ready is not None
    assert ran <= ready


def test_when_a_driver_ran_is_remembered_and_not_when_it_was_written() -> None:
    made, world = started(hang_at=0)
    made.run(lambda w: bool(w.processes) and any(p.role == "writer" for p in w.processes))
    made.second()
    seen = world.now_ms
    for _ in range(10):
        made.second()
    assert len(world.statuses) == 1
    process = world.writer_process("load")
    assert process is not None
    process.hang_at = 1
    made.run(lambda w: w.is_true(w.writers["load"], "Running"))
    ran = conditions.from_rfc3339(entry(world.statuses[-1])["runningTime"])
    assert ran is not None
    assert ran <= seen + 1000


def test_a_driver_that_takes_long_is_told_of() -> None:
    made, world = started(hang_at=0)
    waited = made.run(lambda w: "podUID" in told(w))
    assert LATE_SECONDS <= waited <= LATE_SECONDS + 5
    assert "runningTime" in told(world)
    for _ in range(60):
        made.second()
    assert len(world.statuses) == 2, "once"


def test_a_deadline_that_counts_from_it_is_in_status_at_once() -> None:
    made, world = started(hang_at=0, readyDeadlineSeconds=60)
    assert made.run(lambda w: "runningTime" in told(w)) < 10
    assert "podUID" in told(world)


def test_another_operator_notes_the_same_again() -> None:
    made, world = started(hang_at=0)
    made.run(lambda w: any(p.role == "writer" for p in w.processes))
    made.second()
    assert "podUID" not in told(world)
    (pod,) = (pod for pod in world.pods.values() if pod.name.startswith("load-"))
    other = Watched(world, at_once)
    other.run(lambda w: "podUID" in told(w))
    assert told(world)["podUID"] == pod.uid
    assert [name for name in world.created if name.startswith("load-")] == [pod.name]


@pytest.mark.parametrize("waits", [True, False])
def test_a_pod_that_somebody_takes_away_meanwhile_is_not_made_again(waits: bool) -> None:
    """F23: this process knows its uid, whether or not it is in status."""
    made, world = started(hang_at=0, **({} if waits else {"readyDeadlineSeconds": 600}))
    made.run(lambda w: any(p.role == "writer" for p in w.processes))
    made.second()
    assert ("podUID" not in told(world)) is waits
    (pod,) = (pod for pod in world.pods.values() if pod.name.startswith("load-"))
    world.force_delete(pod)
    made.run(lambda w: len([name for name in w.created if name.startswith("load-")]) > 1)
    assert [name for name in world.created if name.startswith("load-")] == [pod.name, pod.name[:-1] + "2"]


# ---- which statuses wait

CONDITIONS = [
    {"type": kind, "status": "False", "reason": "Starting", "message": "", "lastTransitionTime": "t"}
    for kind in ("Ready", "Running", "StartRefused", "Late")
]
BEFORE = {
    "state": "Starting",
    "attempt": 2,
    "attempts": [{"number": 1, "class": "Killed"}, {"number": 2, "pod": "load-2"}],
    "conditions": CONDITIONS,
}


def after(**changes: Any) -> JsonDict:
    return {**copy.deepcopy(BEFORE), **changes}


def last(**more: Any) -> JsonDict:
    return after(attempts=[BEFORE["attempts"][0], {**BEFORE["attempts"][1], **more}])  # type: ignore[index]


def condition(at: int, **changes: Any) -> JsonDict:
    return after(conditions=[{**one, **changes} if n == at else one for n, one in enumerate(CONDITIONS)])


@pytest.mark.parametrize(
    ("new", "waits"),
    [
        (last(podUID="u"), True),
        (last(podUID="u", runningTime="t"), True),
        (condition(0, message="ContainerCreating"), True),
        (condition(1, message="0/3 nodes are available"), True),
        (last(readyTime="t"), False),
        (last(gated=True), False),
        (last(stoppedFor="StartDeadlineExceeded"), False),
        (last(incarnation="i"), False),
        ({**last(podUID="u"), "state": "Running"}, False),
        (after(attempt=3), False),
        (after(attempts=[{"number": 2, "pod": "load-2"}]), False),
        (after(attempts=[{"number": 1, "class": "Evicted"}, {"number": 2, "pod": "load-2"}]), False),
        (after(attempts=[*BEFORE["attempts"], {"number": 3}]), False),  # type: ignore[has-type,misc]
        (condition(0, reason="Stalled"), False),
        (condition(1, status="True"), False),
        (condition(2, message="Forbidden: quota"), False),
        (condition(3, status="True", message="late"), False),
        (after(conditions=CONDITIONS[:-1]), False),
    ],
)
def test_what_may_wait(new: JsonDict, waits: bool) -> None:
    assert only_starts(BEFORE, new, ready_deadline=False) is waits


def test_what_is_there_already_is_no_addition() -> None:
    assert not only_starts(last(podUID="u"), last(podUID="v"), ready_deadline=False)
    assert only_starts(last(), last(podUID="u"), ready_deadline=True)
    assert not only_starts(last(podUID="u"), last(podUID="u", runningTime="t"), ready_deadline=True)


# ---- how they wait


def update(version: str = "1", *, waits: bool = True, name: str = "w", **status: Any) -> act.UpdateStatus:
    return act.UpdateStatus(naming.WRITER_KIND, "ns", name, version, status, waits)


def writer(version: str, name: str = "w") -> JsonDict:
    return {"metadata": {"namespace": "ns", "name": name, "resourceVersion": version}, "status": {"old": 1}}


def test_an_object_that_was_changed_meanwhile_is_seen_as_it_is() -> None:
    late = LateStatuses(lambda: 0.0)
    assert late.may_wait(KEY, update(new=1))
    assert [obj["status"] for obj in late.known(KEY, [writer("1")])] == [{"new": 1}]
    assert [obj["status"] for obj in late.known(KEY, [writer("2")])] == [{"old": 1}]
    assert late.left(KEY) is None, "it is forgotten"
    assert [obj["status"] for obj in late.known(KEY, [writer("1")])] == [{"old": 1}]


def test_a_writer_that_is_gone_is_forgotten() -> None:
    late = LateStatuses(lambda: 0.0)
    assert late.may_wait(KEY, update(new=1))
    assert list(late.known(KEY, [])) == []
    assert late.left(KEY) is None


def test_it_waits_once_and_not_longer_with_each_addition() -> None:
    now = [0.0]
    late = LateStatuses(lambda: now[0])
    assert late.may_wait(KEY, update(new=1))
    now[0] = LATE_SECONDS - 1
    assert late.may_wait(KEY, update(new=2))
    assert late.left(KEY) == 1.0
    now[0] = LATE_SECONDS
    (due,) = late.due(KEY)
    assert due.status == {"new": 2}
    assert not late.may_wait(KEY, due)
    late.written(KEY, due)
    assert late.due(KEY) == []


def test_a_status_that_does_not_wait_replaces_what_waited() -> None:
    now = [0.0]
    late = LateStatuses(lambda: now[0])
    assert late.may_wait(KEY, update(new=1))
    final = update(waits=False, new=2)
    assert not late.may_wait(KEY, final)
    assert [obj["status"] for obj in late.known(KEY, [writer("1")])] == [{"new": 1}], "its write may fail"
    late.written(KEY, final)
    now[0] = 2 * LATE_SECONDS
    assert late.due(KEY) == []


def attempted(version: str, *, number: int = 1, **fields: Any) -> JsonDict:
    attempts = [{"number": number, "startTime": "2026-01-01T00:00:00Z", **fields}]
    return {**writer(version), "status": {"attempts": attempts}}


def test_the_pod_of_an_attempt_outlives_a_change_of_the_object() -> None:
    """F625: the pod may be gone at the next look, and nobody else has its uid."""
    now = [0.0]
    late = LateStatuses(lambda: now[0])
    noted = attempted("1", podUID="uid-1", runningTime="2026-01-01T00:00:05Z")["status"]
    assert late.may_wait(KEY, update(**noted))
    now[0] = LATE_SECONDS - 1
    (changed,) = late.known(KEY, [attempted("2")])
    assert changed["status"] == attempted("2", podUID="uid-1")["status"]
    assert late.left(KEY) == 1.0, "who changes it again and again does not put it off"
    now[0] = LATE_SECONDS
    (due,) = late.due(KEY)
    assert (due.resource_version, due.status) == ("2", changed["status"])
    another = attempted("3", number=2)
    assert list(late.known(KEY, [another])) == [another], "another attempt has another pod"
    assert late.left(KEY) is None


class Statuses:
    """An API server that takes statuses."""

    def __init__(self, refuses: str = "", fails: bool = False) -> None:
        self.taken: list[tuple[str, JsonDict]] = []
        self._refuses = refuses
        self.fails = fails

    async def replace_status(
        self, _kind: str, _namespace: str, name: str, *, resource_version: str, status: Any
    ) -> None:
        if name == self._refuses:
            raise Refused("a webhook does not answer", reason="Invalid")
        if self.fails:
            raise Retryable("no answer")
        self.taken.append((f"{name}@{resource_version}", status))

    async def put_seen(self, *_: Any, **__: Any) -> None:
        raise Retryable("etcd has no leader")


def executor(port: Statuses, late: LateStatuses, *, leads: bool = True) -> Executor:
    def check() -> None:
        if not leads:
            raise LeaseLost("lost")

    ports: Any = port
    return Executor(kubernetes=ports, etcd=ports, timers=Timers(), check_leader=check, late=late)


def seen(*writers: JsonDict) -> Observed:
    return Observed(Objects(None, writers), (), Nodes(), None)


def perform(made: Executor, found: Observed, *actions: act.Action) -> list[act.Action]:
    return asyncio.run(made.perform(KEY, found, act.Plan("x", actions)))


def test_what_nothing_follows_is_written_when_its_time_is_over() -> None:
    now, port = [0.0], Statuses()
    late = LateStatuses(lambda: now[0])
    made, waiting = executor(port, late), update(new=1)
    assert perform(made, seen(writer("1")), waiting) == []
    assert made.statuses.late_in(KEY) == LATE_SECONDS
    now[0] = LATE_SECONDS
    known = seen(*late.known(KEY, [writer("1")]))
    assert perform(made, known) == [waiting], "each look has it already"
    assert port.taken == [("w@1", {"new": 1})]
    assert perform(made, known) == []
    assert made.statuses.late_in(KEY) is None


def test_a_status_whose_write_fails_is_not_forgotten() -> None:
    """F625: what was noted before is known until it is in the object."""
    port = Statuses(fails=True)
    late = LateStatuses(lambda: 0.0)
    made = executor(port, late)
    perform(made, seen(writer("1")), update(new=1))
    with pytest.raises(Retryable):
        perform(made, seen(*late.known(KEY, [writer("1")])), update(waits=False, new=2))
    assert [obj["status"] for obj in late.known(KEY, [writer("1")])] == [{"new": 1}]
    port.fails = False
    perform(made, seen(*late.known(KEY, [writer("1")])), update(waits=False, new=2))
    assert port.taken == [("w@1", {"new": 2})]
    assert late.left(KEY) is None


def test_what_fails_at_each_look_keeps_no_status_that_is_due() -> None:
    """F625: an etcd that reads but takes no writes."""
    now, port = [0.0], Statuses()
    late = LateStatuses(lambda: now[0])
    assert late.may_wait(KEY, update(new=1))
    now[0] = LATE_SECONDS
    with pytest.raises(Retryable):
        perform(executor(port, late), seen(*late.known(KEY, [writer("1")])), act.PutSeen("t", "inc", {}))
    assert port.taken == [("w@1", {"new": 1})]


def test_a_former_leader_writes_nothing_late() -> None:
    now, port = [0.0], Statuses()
    late = LateStatuses(lambda: now[0])
    assert late.may_wait(KEY, update(new=1))
    now[0] = LATE_SECONDS
    with pytest.raises(LeaseLost):
        perform(executor(port, late, leads=False), seen(writer("1")))
    assert port.taken == []


def test_a_late_status_that_is_refused_keeps_no_other_one() -> None:
    now, port = [0.0], Statuses(refuses="w")
    late = LateStatuses(lambda: now[0])
    assert late.may_wait(KEY, update(new=1))
    assert late.may_wait(KEY, update("7", name="x", new=2))
    now[0] = LATE_SECONDS
    with pytest.raises(Fatal, match="webhook"):
        perform(executor(port, late), seen(writer("1"), writer("7", "x")))
    assert port.taken == [("x@7", {"new": 2})]
