"""The agent: the only one that rolls back.

Looking and rolling back are one function; it acts on recorded instants alone (I4, I7).

One rollback: agent-look (under the lock: list the timeline afresh, decide, plan) → agent-leave →
agent-delete (outside the lock) → agent-ready → agent-finish (under the lock) → agent-leave →
agent-sweep.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.model import jvm
from tests.support.model.operator import rolling_back
from tests.support.model.rules import Configuration
from tests.support.model.service import service
from tests.support.model.state import GONE, NONE, ROLLING_BACK, Request, State
from tests.support.model.transactions import Step, call


def agent(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """The next steps of agent `i`."""
    x = s.incs[i]
    if x.pc == "off":
        first = s.incs[c.agents[0]]
        if first.fence or not first.alive or not first.driver:
            yield (
                f"{c.names[i]} starts because the first agent is suspect",
                s.inc(i, pc="idle", driver=True, writer=True, lease=1, own_lease=1, alive=1, own_alive=1),
            )
    if not x.driver:
        return
    yield from jvm.session(s, c, i)
    if x.pc == "idle":
        for k in range(len(s.instants)):
            if _target(s, c, i, k):
                yield from jvm.acquire(s.inc(i, work=k), c, i, "agent-look")
        yield from _bookkeeping(s, c)
    elif x.pc.startswith("agent-"):
        yield from _STEPS[x.pc](s, c, i)
    if c.compaction:
        yield from service(s, c, i)


def _target(s: State, c: Configuration, i: int, k: int) -> bool:
    """Whether this agent may settle the instant.

    It may settle those recorded for a settled incarnation, or Abandoned by their owner, and no
    others (I7).
    """
    y, owner = s.instants[k], c.owner(k)
    if y.outcome or c.is_compaction(k):
        return False
    if y.rolled == 1 and y.roller != i and c.rules.claims and not rolling_back(s, y.roller):
        return False  # a rollback belongs to its claimant until that one is settled (I12)
    if not c.rules.proof_before_rollback and owner >= 0 and not s.incs[owner].alive and y.record == "P":
        return True
    if not c.rules.chosen_by_record and y.requested and not y.completed:
        return owner < 0 or not s.incs[owner].alive or s.incs[owner].pc == "failed"
    if owner < 0:
        return False
    if y.record == "A":
        return y.rolled != 2 or _nobody_writes(s, c, owner)
    return y.record == "P" and rolling_back(s, owner)


def _nobody_writes(s: State, c: Configuration, owner: int) -> bool:
    """Whether no executor of the owner of an Abandoned instant can write any more: all proven
    terminated (F4).
    """
    x = s.incs[owner]
    return not c.rules.sweep_after_lost or (x.executor == GONE and (x.phase == NONE or rolling_back(s, owner)))


def _bookkeeping(s: State, c: Configuration) -> Iterator[Step]:
    """Swept: every instant and every rollback of the incarnation has its outcome.

    Archival passes only what is settled (I5).
    """
    for j, x in enumerate(s.incs):
        if x.phase == ROLLING_BACK and all(_has_outcome(s, c, j, k) for k in range(len(s.instants))):
            yield from call(
                s,
                c,
                Request("settle-update", j, seen=ROLLING_BACK),
                f"the agent reports that everything of {c.names[j]} is swept",
                lambda t: t,
            )
    if c.archival:
        for k, y in enumerate(s.instants):
            if y.rolled == 2 and not y.archived and (y.record == "-" or not c.rules.sweep_after_lost):
                yield (
                    f"the agent archives the timeline past {c.names[c.owner(k)]}'s rolled-back instant",
                    s.instant(k, archived=True),
                )


def _has_outcome(s: State, c: Configuration, j: int, k: int) -> bool:
    y = s.instants[k]
    if c.is_compaction(k):
        # "settled" deletes the record: not before it was executed again
        return bool(y.completed) or j not in (y.claim, c.owner(k))
    return (c.owner(k) != j or y.record == "-" or bool(y.outcome)) and not (y.rolled == 1 and y.roller == j)


def _look(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Under the lock: list the timeline; completed → keep; gone → nothing.

    Pending → plan the rollback. An error means keep (I4, I11).
    """
    k = s.incs[i].work
    y, who = s.instants[k], c.names[i]
    whose = f"{c.names[c.owner(k)]}'s instant" if c.owner(k) >= 0 else "the foreign instant"
    completed = bool(y.completed) and c.rules.fresh_look  # else: as loaded when the agent started
    if y.rolled == 2:
        yield f"{who} finds the rollback of {whose} finished", s.inc(i, pc="agent-leave")
    elif y.rolled == 1 and c.rules.finish_pending_rollback:
        if y.roller == i:
            yield f"{who} goes on with its rollback of {whose}", s.inc(i, pc="agent-leave")
        else:
            q = Request("claim", i, instant=k, seen=y.roller + 1)
            yield from call(
                s,
                c,
                q,
                f"{who} claims the pending rollback of {whose}",
                lambda t: t.inc(i, pc="agent-leave"),
                otherwise=lambda t: t.inc(i, pc="agent-leave", work=-1),
            )
    elif completed:
        yield (
            f"{who} sees that {whose} is completed and keeps it",
            s.instant(k, outcome="Completed", fixed=1).inc(i, pc="agent-leave"),
        )
    elif not y.requested or y.rolled == 1:
        yield (
            f"{who} sees no file of {whose}: nothing to roll back",
            s.instant(k, outcome="Gone", fixed=0 if y.fixed < 0 else y.fixed).inc(i, pc="agent-leave"),
        )
    else:
        yield f"{who} sees that {whose} is not completed and plans its rollback", _plan(s, c, i, k)
    if (c.failing_lists and not completed and y.rolled == 0) or (c.failing_lists and y.completed):
        if c.rules.failed_look_keeps:
            yield (
                f"{who} cannot list the timeline: it keeps everything and tries again later",
                s.inc(i, pc="agent-leave", work=-1),
            )
        else:
            yield f"{who} cannot list the timeline and takes that for an empty one", _plan(s, c, i, k)


def _plan(s: State, c: Configuration, i: int, k: int) -> State:
    fixed = s.instants[k].fixed
    return s.instant(k, rolled=1, roller=i, fixed=0 if fixed < 0 else fixed).inc(
        i, pc="agent-leave" if c.rules.proof_before_rollback else "agent-delete"
    )


def _leave(s: State, c: Configuration, i: int) -> Iterator[Step]:
    k = s.incs[i].work
    y = s.instants[k] if k >= 0 else None
    if y is None or y.outcome:
        pc = "idle"
    elif y.rolled == 1:
        pc = "agent-delete"
    else:
        pc = "agent-sweep"
    keep = k if pc != "idle" else -1
    yield from jvm.release(s.inc(i, work=keep), c, i, pc)


def _delete(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Outside the lock.

    Hudi does nothing (and returns False) while a heartbeat file of this rollback is left over from
    a killed agent (F9).
    """
    k = s.incs[i].work
    if s.instants[k].beat:
        if c.rules.beats_removed:
            yield f"{c.names[i]} removes the left-over heartbeat file of the rollback", s.instant(k, beat=False)
        return
    pc = "agent-ready" if c.rules.proof_before_rollback else "agent-finish"
    yield f"{c.names[i]} deletes the data files of the instant", s.instant(k, data=-1).inc(i, pc=pc)


def _ready(s: State, c: Configuration, i: int) -> Iterator[Step]:
    yield from jvm.acquire(s, c, i, "agent-finish")


def _finish(s: State, c: Configuration, i: int) -> Iterator[Step]:
    k = s.incs[i].work
    metadata = s.instants[k].metadata and not c.rules.sweep_metadata
    yield (
        f"{c.names[i]} finishes the rollback: the instant's files leave the timeline and the metadata table",
        s.instant(k, rolled=2, requested=False, metadata=metadata).inc(i, pc="agent-leave"),
    )


def _sweep(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Late files that bear the instant are removed.

    The sweep of an Abandoned one is repeated when no executor is left (F4, I5).
    """
    k = s.incs[i].work
    y, owner = s.instants[k], c.owner(k)
    again = y.record == "A" and owner >= 0 and not _nobody_writes(s, c, owner)
    text = f"{c.names[i]} sweeps late files of the instant"
    yield (
        f"{text}; it will do so again when the lost executors are proven terminated" if again else text,
        s.instant(k, stray=False, outcome="" if again else "RolledBack").inc(i, pc="idle", work=-1),
    )


_STEPS = {
    "agent-look": _look,
    "agent-leave": _leave,
    "agent-delete": _delete,
    "agent-ready": _ready,
    "agent-finish": _finish,
    "agent-sweep": _sweep,
}
