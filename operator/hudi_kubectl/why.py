"""Why a writer does not write, or a table takes no writes: the chain of reasons to its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from hudi_contract.defaults import CONFIG_MAP
from hudi_kubectl.objects import (
    AS_ASKED,
    FAILED,
    INVALID_DEFAULTS,
    RUNNING,
    SCHEDULED,
    SUCCEEDED,
    JsonDict,
    Table,
    Thing,
    Writer,
    ago,
    span,
    when,
)

NORMAL_FALSE = ("Stalled", "AwaitingProofOfDeath", "RollbackPending", "ForeignWriters", "Degraded")
"""Conditions of a table that are False while all is well."""
NORMAL_TRUE = ("ServicesHealthy", "RecordsReadable", "ClocksAgree", "BrokerAnswers", "Bootstrapped")
"""Conditions of a table that are True while all is well."""
REFUSED = ("Stalled", "StartRefused", "ExecutorsMissing", "Late")
"""Conditions of a writer that are False while all is well, besides Ready."""


@dataclass(frozen=True)
class Reason:
    """A fact, its causes, and what a person can do.

    ``is_well``: it is as it was asked for, and nobody has to look.
    """

    fact: str
    causes: tuple[Reason, ...] = ()
    todo: str = ""
    is_well: bool = False


@dataclass(frozen=True)
class World:
    """Objects as read at one moment. ``pods`` by name; empty where they cannot be listed."""

    tables: Sequence[Table]
    writers: Sequence[Writer]
    pods: dict[str, JsonDict]
    at: datetime

    def table_of(self, writer: Writer) -> Table | None:
        """The HudiTable of a writer; None when there is none."""
        return next((t for t in self.tables if (t.namespace, t.name) == (writer.namespace, writer.table)), None)


def of_writer(writer: Writer, world: World) -> Reason:
    """Reasons that keep a writer from writing; a single fact when there are none."""
    causes = [*_not_looked_at(writer), *_of_writer(writer, world)]
    last = writer.status.get("lastCommit") or {}
    fact = f"HudiWriter {writer.name} is {writer.state}"
    if last.get("time"):
        fact += f"; its last commit was {ago(last['time'], world.at)} ago (instant {last.get('instant', '?')})"
    if not causes:
        causes = [_nothing_wrong(writer)]
    return Reason(fact, tuple(causes))


def _nothing_wrong(writer: Writer) -> Reason:
    if writer.state == RUNNING:
        return Reason("nothing keeps it from writing", is_well=True)
    if writer.state == SCHEDULED and writer.status.get("nextScheduleTime"):
        return Reason(f"its next run begins at {writer.status['nextScheduleTime']}", is_well=True)
    if writer.state == SUCCEEDED:
        return Reason("its input is written; `kubectl hudi restart` starts another run", is_well=True)
    ready = writer.condition("Ready")
    return Reason(ready.get("message") or f"the operator says no more than {ready.get('reason') or 'nothing'}")


def _not_looked_at(thing: Thing) -> Iterator[Reason]:
    if not thing.looked_at:
        seen = thing.status.get("observedGeneration") or "none"
        yield Reason(
            f"the operator has not looked at generation {thing.meta.get('generation')} of it yet (last: {seen})",
            todo="if this lasts: kubectl get pods -A -l app.kubernetes.io/name=hudi-operator",
        )


def _of_writer(writer: Writer, world: World) -> Iterator[Reason]:
    table = world.table_of(writer)
    if table is None:
        yield Reason(f"there is no HudiTable {writer.table} in namespace {writer.namespace}")
    if writer.spec.get("suspend"):
        by = ", ".join(writer.managers_of("suspend"))
        yield Reason(
            f"spec.suspend is true{f', set by {by}' if by else ''}",
            todo=f"kubectl hudi resume {writer.name}",
            is_well=writer.state in AS_ASKED,
        )
    for kind in REFUSED:
        if writer.is_(kind) and writer.condition(kind).get("reason") != FAILED:
            yield _of_condition(writer, kind, world)
    if writer.status.get("queue"):
        yield _of_queue(writer, table, world)
    yield from _of_attempts(writer, table, world)


def _of_queue(writer: Writer, table: Table | None, world: World) -> Reason:
    """Its place, and what it waits for: the operator's words, unless its table says more."""
    queue, behind = writer.status["queue"], list(_of_table(table, world)) if table is not None else []
    said = str(writer.condition("Admitted").get("message") or "")
    of_the_table = queue.get("blockedBy") == f"table {writer.table}"
    if said and not (of_the_table and behind):
        behind.insert(0, Reason(said))
    by = f": {queue['blockedBy']}" if queue.get("blockedBy") else ""
    place = f"as number {queue.get('position', '?')}"
    return Reason(f"it has waited {ago(queue.get('since'), world.at)} for admission {place}{by}", tuple(behind))


def _of_attempts(writer: Writer, table: Table | None, world: World) -> Iterator[Reason]:
    last = writer.attempt()
    if last is None:
        return
    retry, number = writer.status.get("nextRetryTime"), last.get("number")
    ended = f"attempt {number} ended as {last.get('class')}" + (f": {last['message']}" if last.get("message") else "")
    if retry:
        due = when(retry)
        left = span((due - world.at).total_seconds()) if due is not None and due > world.at else "a moment"
        yield Reason(f"it is repeated in {left}", (Reason(ended),))
    elif writer.state == FAILED:
        yield Reason(ended, todo=f"correct what it says; then kubectl hudi restart {writer.name}")
    elif not last.get("endTime"):
        yield from _of_pod(last, world)
        if table is not None and not writer.status.get("queue"):
            yield from _of_lock(table, world)
        yield from _of_deadlines(writer, last, world)
    conflicts = writer.status.get("recentConflicts") or []
    if conflicts and not last.get("endTime"):
        one = conflicts[-1]
        groups = ", ".join(one.get("fileGroups") or ()) or "no file group is named"
        yield Reason(
            f"{writer.status.get('conflicts')} of its commits were refused and repeated, the last one "
            f"{ago(one.get('time'), world.at)} ago because of {one.get('with', 'another writer')} ({groups})"
        )


def _of_deadlines(writer: Writer, attempt: JsonDict, world: World) -> Iterator[Reason]:
    """Reasons why a running attempt waits, and any lack of memory."""
    who, number = str(attempt.get("outOfMemory") or ""), attempt.get("number")
    if who and (writer.is_("Late") or writer.is_("ExecutorsMissing")):
        more = "give executors more memory (spec.executors.memory), or set retryPolicy.outOfMemory.maxExecutorMemory"
        yield Reason(f"executor {who} of attempt {number} has ended for lack of memory", todo=more)
    waits = writer.condition("Late")
    if attempt.get("waitingSince") and waits.get("reason") == "Waiting":
        since = ago(attempt["waitingSince"], world.at)
        yield Reason(f"attempt {number}, for {since}: {waits.get('message')}", is_well=True)


def _of_pod(attempt: JsonDict, world: World) -> Iterator[Reason]:
    pod = world.pods.get(str(attempt.get("pod")))
    if pod is not None:
        yield from of_pod(str(attempt.get("pod")), pod)


def of_pod(name: str, pod: JsonDict) -> Iterator[Reason]:
    """Reasons that keep a pod from starting."""
    status = pod.get("status") or {}
    for one in status.get("conditions") or []:
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            yield Reason(f"pod {name} is not scheduled: {one.get('message') or one.get('reason')}")
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in (None, "PodInitializing"):
            said = f"{waiting['reason']}: {waiting.get('message') or 'no message'}"
            yield Reason(f"container {container.get('name')} of pod {name} waits: {said}")


def of_table(table: Table, world: World) -> Reason:
    """Reasons that keep writers from a table or need a person; a single fact if there are none."""
    causes = [*_not_looked_at(table), *_of_table(table, world)]
    commits = table.commits()
    fact = f"HudiTable {table.name} is {'Ready' if table.is_('Ready') else 'not Ready'}"
    if commits:
        fact += f"; its last commit was {ago(commits[-1].get('completionTime'), world.at)} ago"
    return Reason(fact, tuple(causes) or (Reason("writers may write", is_well=True),))


def _of_table(table: Table, world: World) -> Iterator[Reason]:
    first = "Stalled" if table.is_("Stalled") else "Ready"
    if not table.is_("Ready"):
        yield _of_condition(table, first, world)
    if table.spec.get("suspend"):
        yield Reason(
            f"spec.suspend of HudiTable {table.name} is true", todo=f"kubectl hudi resume huditable/{table.name}"
        )
    yield from _of_lock(table, world)
    told = {first} if not table.is_("Ready") else set()
    if table.status.get("settling"):
        told.add("AwaitingProofOfDeath")
    for kind in NORMAL_FALSE:
        if table.is_(kind) and kind not in told:
            yield _of_condition(table, kind, world)
    for kind in NORMAL_TRUE:
        if table.is_(kind, "False"):
            yield _of_condition(table, kind, world)


def _of_lock(table: Table, world: World) -> Iterator[Reason]:
    """Dead writers that are being settled, and the owner of the lock if it does not release it."""
    settling = [
        Reason(
            f"pod {one.get('pod')} of attempt {one.get('attempt')} is {one.get('phase')} for "
            f"{ago(one.get('since'), world.at)} ({one.get('reason')})",
            (Reason(one["waitingFor"]),) if one.get("waitingFor") else (),
        )
        for one in table.status.get("settling") or []
    ]
    lock = table.status.get("lock")
    if lock:
        owner, held = lock.get("attempt") or lock.get("owner"), ago(lock.get("since"), world.at)
        yield Reason(f"attempt {owner} has held the lock for {held}", tuple(settling))
    else:
        yield from settling


def _of_condition(thing: Thing, kind: str, world: World) -> Reason:
    one = thing.condition(kind)
    if not one:
        return Reason(f"{thing.kind} {thing.name} has no condition {kind} yet")
    said = f"{thing.kind} {thing.name}: {kind}={one.get('status')}, {one.get('reason')}"
    since = ago(one.get("lastTransitionTime"), world.at)
    mends = f"kubectl edit configmap {CONFIG_MAP} -n {thing.namespace}"
    todo = mends if one.get("reason") == INVALID_DEFAULTS else ""
    return Reason(f"{said} for {since}", (Reason(one["message"]),) if one.get("message") else (), todo)


def lines(reason: Reason, prefix: str = "", last: bool = True, top: bool = True) -> Iterator[str]:
    """The chain as a tree of text."""
    yield reason.fact if top else f"{prefix}{'└─ ' if last else '├─ '}{reason.fact}"
    deeper = "" if top else prefix + ("   " if last else "│  ")
    if reason.todo:
        yield f"{deeper}   → {reason.todo}"
    for n, cause in enumerate(reason.causes):
        yield from lines(cause, deeper, n == len(reason.causes) - 1, top=False)


def in_short(reason: Reason, width: int = 100) -> str:
    """The first cause in a few words; nothing when all is well."""
    first = reason.causes[0]
    if first.is_well:
        return ""
    return first.fact if len(first.fact) <= width else f"{first.fact[: width - 1]}…"


def as_json(reason: Reason) -> JsonDict:
    """The same for programs."""
    found: JsonDict = {"fact": reason.fact, "causes": [as_json(one) for one in reason.causes]}
    return {**found, "todo": reason.todo} if reason.todo else found
