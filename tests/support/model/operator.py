"""The operator: it fences, proves, drains, unlocks and settles.

It keeps nothing in memory: every step starts from etcd and the cluster (I6).

So a crash, a second operator and an upgrade in the middle of settling are all the same thing:
somebody else takes the next step, and a transaction of the earlier one may still be on the wire
(`Configuration.late`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.model.rules import Configuration
from tests.support.model.state import (
    COLLECTED,
    DRAINING,
    EVERY_SERVER,
    FENCED,
    GONE,
    NONE,
    ROLLING_BACK,
    SETTLED,
    SWEPT,
    TERMINATING,
    UNLOCKED,
    Inc,
    Request,
    State,
)
from tests.support.model.transactions import Step, call


def operator(s: State, c: Configuration) -> Iterator[Step]:
    """All steps that an operator, or a second one, may take now."""
    for i, x in enumerate(s.incs):
        if c.rules.proof_before_rollback:
            yield from _settle(s, c, i, x)
        if x.phase == NONE and not x.driver and x.pc == "started" and not x.writer:
            yield from _never_registered(s, c, i)
        if c.collects and _may_collect(s, c, i, x):
            yield from call(
                s,
                c,
                Request("collect", i, seen=x.phase),
                f"the operator collects record and fence of {c.names[i]}",
                lambda t: t,
            )
    yield from _abandoned(s, c)
    if c.gate:
        yield from _gate(s, c)


def _may_collect(s: State, c: Configuration, i: int, x: Inc) -> bool:
    """It is settled, and what an operator may have sent about it has landed or died: an operator
    waits COLLECT_SECONDS (the model: looks itself).
    """
    if c.rules.collect_waits and any(q.inc == i for q in s.wire):
        return False
    return x.phase == SETTLED or (not c.rules.collects_settled and FENCED <= x.phase < SETTLED)


def urgent(s: State, c: Configuration) -> Iterator[Step]:
    """Partial-order reduction: steps of settling that may be taken before all others
    without losing anything.

    If no request is late, each of these steps only enables: a process that can move before it can
    move after it, to the same effect. The states in between differ from the later ones in the phase
    alone, and no invariant tells them apart while the process is dead and nothing of it is on the
    wire. So the search need not interleave them with everybody else's steps. (`upgrade`, `session`,
    `requests` and `late writes` do.)
    """
    if c.late or not c.reduced or not c.rules.proof_before_rollback:
        return
    for i, x in enumerate(s.incs):
        dead = not x.driver and x.executor == GONE
        quiet = dead and not any(y.wire != "-" and y.sender == i for y in s.instants)
        if x.phase in (FENCED, UNLOCKED) or (x.phase == TERMINATING and dead) or (x.phase == DRAINING and quiet):
            yield from _settle(s, c, i, x)
            return


def _named(s: State, c: Configuration, i: int) -> bool:
    """Suspects are all incarnations named by writer/*, lock or instant/* (F15)."""
    if s.incs[i].writer:
        return True
    recorded = any(y.record == "P" and c.owner(k) == i for k, y in enumerate(s.instants))
    return c.rules.suspects_from_lock and (s.owns(i) or recorded)


def _settle(s: State, c: Configuration, i: int, x: Inc) -> Iterator[Step]:
    if x.phase == NONE:
        yield from _fence(s, c, i, x)
    elif x.phase == FENCED:
        yield from _advance(s, c, i, "deletes the pods of")
    elif x.phase == TERMINATING:
        if not c.rules.live_proof:
            yield from _advance(s, c, i, "force-deletes, and takes the missing pod objects for a proof of death of")
        elif not x.driver and x.pc != "buried" and (x.executor == GONE or not c.rules.executors_in_proof):
            yield from _advance(s, c, i, "sees every container terminated, records the proof of death of")
        elif has_credentials(c, i):
            yield from _revoke(s, c, i, x)
    elif x.phase == DRAINING:
        yield from _unlock(s, c, i)
    elif x.phase == UNLOCKED:
        yield from _advance(s, c, i, "asks the agent to roll back what is pending of")
    elif x.phase == ROLLING_BACK and not c.agents:
        yield from _advance(s, c, i, "hears from the agent that nothing is pending of")
    elif x.phase == SWEPT:
        q = Request("settled", i, seen=SWEPT)
        yield from call(s, c, q, f"the operator removes the records of {c.names[i]}: Settled", lambda t: t)


def _fence(s: State, c: Configuration, i: int, x: Inc) -> Iterator[Step]:
    """One transaction: settle record, fence, alive and admission deleted.

    For the reason "lease gone" only while alive is absent (F29).
    """
    if not _named(s, c, i):
        return
    reasons = (
        ("LeaseGone", not x.alive, "its lease is gone"),
        ("Terminated", not x.driver, "its driver has terminated"),
        ("HoldLimit", i in c.hold_limit and s.owns(i), "it has held the lock for too long"),
        ("Requested", i in c.hold_limit and not s.owns(i), "a person asks for it"),
    )
    for reason, true, why in reasons:
        if true:
            yield from call(
                s, c, Request("fence", i, reason=reason), f"the operator fences {c.names[i]}: {why}", lambda t: t
            )
            if reason != "LeaseGone" or "fence" not in c.late:
                return


def _advance(s: State, c: Configuration, i: int, what: str) -> Iterator[Step]:
    """The next phase, by compare-and-set on the settle record."""
    yield from call(
        s,
        c,
        Request("settle-update", i, seen=s.incs[i].phase),
        f"the operator {what} {c.names[i]}",
        lambda t: _history(t, c, i),
    )


def has_credentials(c: Configuration, i: int) -> bool:
    """Whether the operator can have the credentials of this incarnation revoked: agents keep
    theirs.
    """
    return c.credentials and c.roles[i] == "writer" and i == 0


def _revoke(s: State, c: Configuration, i: int, x: Inc) -> Iterator[Step]:
    """Have the credentials revoked, and see the store refuse them (mode Credentials).

    The broker's answer is no proof: it may answer and have done nothing.
    """
    who = c.names[i]
    if not x.revoked:
        gone = s.inc(i, revoked=1, said=True)
        yield f"the broker revokes the credentials of {who}", gone
        yield f"the broker revokes the credentials of {who}, its answer is lost", gone.inc(i, said=x.said)
    if not x.said:
        true = "" if x.revoked else ", which is not true"
        yield f"the broker says that the credentials of {who} are revoked{true}", s.inc(i, said=True)
        return
    if not c.rules.revocation_verified:
        yield from _advance(s, c, i, "believes the broker about the credentials of")
    elif not c.rules.own_credentials_asked:
        yield from _advance(s, c, i, "sees other credentials refused than those of")
    elif x.known == 0 or (x.known < EVERY_SERVER and not c.rules.identity_cache_waited):
        yield from _advance(s, c, i, "sees the store refuse the credentials of")


def _unlock(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Draining: D has passed, so nothing of this incarnation is on the wire any more.

    Then the lock is deleted, if it owns it (I1, I3).
    """
    must = c.rules.drain and (c.rules.drain_always or s.owns(i))
    if must and any(y.wire != "-" and y.sender == i for y in s.instants):
        return
    if s.owns(i):
        q = Request("unlock", i, token=s.lock.nonce if s.lock else 0)
        yield from call(s, c, q, f"the operator has waited D and deletes the lock of {c.names[i]}", lambda t: t)
    else:
        yield from _advance(s, c, i, "has waited D and sees that the lock is not owned by")


def _history(s: State, c: Configuration, i: int) -> State:
    """From Unlocked on, "completed" of this incarnation's instants may not change any more (I3)."""
    if s.incs[i].phase == UNLOCKED:
        for k, y in enumerate(s.instants):
            if c.owner(k) == i and not c.is_compaction(k) and y.fixed < 0:
                s = s.instant(k, fixed=1 if y.completed else 0)
    return s


def _never_registered(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """An attempt without incarnation is settled by proof alone: withdraw its admission, read
    writer/* once more, drop the pod's finalizer.
    """
    if s.incs[i].admit and c.rules.admit_withdrawn:
        yield (
            f"the operator withdraws the admission of {c.names[i]}, which died before registering",
            s.inc(i, admit=False),
        )
    else:
        yield f"the operator finds no registration of {c.names[i]} and lets its pod go", s.inc(i, pc="buried")


def _abandoned(s: State, c: Configuration) -> Iterator[Step]:
    """The record of an Abandoned instant of a living writer is removed when the agent has swept it.

    The registration stays.
    """
    for k, y in enumerate(s.instants):
        if y.record == "A" and y.outcome and s.incs[c.owner(k)].phase in (NONE, SETTLED, COLLECTED):
            yield (
                f"the operator removes the record of {c.names[c.owner(k)]}'s Abandoned instant",
                s.instant(k, record="-"),
            )


def _gate(s: State, c: Configuration) -> Iterator[Step]:
    """Mode changes only through the gate: close it, wait until no writer/* is left, change the
    mode, open it (I1).
    """
    gate = s.gate
    if not gate.lease_only:
        return
    if gate.open:
        yield "the operator closes the gate", s._replace(gate=gate._replace(rev=gate.rev + 1, open=False))
    elif not c.rules.gate_waits or not any(x.writer for x in s.incs):
        yield (
            "the operator changes the mode from LeaseOnly to PodTermination and opens the gate",
            s._replace(gate=gate._replace(rev=gate.rev + 1, open=True, lease_only=False)),
        )


def rolling_back(s: State, i: int) -> bool:
    """Whether the agent may touch what incarnation `i` left pending: fenced, proven, drained and
    unlocked (I7).
    """
    return i >= 0 and s.incs[i].phase >= ROLLING_BACK
