"""Steps that no process decides: leases run out, processes die, requests on the wire are executed
late or never, clocks step, executors write on.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.model.rules import Configuration
from tests.support.model.state import EVERY_SERVER, GONE, LOST, RUNNING, TERMINATING, State
from tests.support.model.transactions import Step, apply, passes


def environment(s: State, c: Configuration) -> Iterator[Step]:
    """Everything that may happen to the processes, the requests and the clocks."""
    for i in range(len(s.incs)):
        yield from _lease(s, c, i)
        yield from _processes(s, c, i)
    yield from late_requests(s, c)
    for k in range(len(s.instants)):
        yield from _storage(s, c, k)
    if c.clock:
        yield from _time(s, c)
    if c.credentials:
        yield from _credentials(s, c)


def _lease(s: State, c: Configuration, i: int) -> Iterator[Step]:
    x = s.incs[i]
    # For a dead one it matters to late requests only
    if x.lease and ((i in c.leases and (x.driver or c.late)) or (x.fence and c.late)):
        t = s.inc(i, lease=0, alive=0)
        if t.lock is not None and t.lock.owner == i and t.lock.on_lease:
            yield f"{c.names[i]}'s lease runs out, and its lock hangs on it", t._replace(lock=None)
        else:
            yield f"{c.names[i]}'s lease runs out", t


def _processes(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Processes die by accident (bounded by the configuration) or because the operator deleted
    their pods.
    """
    x = s.incs[i]
    if x.driver and x.phase >= TERMINATING and not (c.credentials and i == 0):
        yield f"{c.names[i]}'s driver is terminated by its kubelet", _dead(s, i)
    elif x.driver and i in c.deaths and x.pc != "exited":
        yield f"{c.names[i]}'s driver dies", _dead(s, i)
    if x.executor == RUNNING and x.driver and c.lost_executors:
        yield f"an executor of {c.names[i]} is cut off and counted as lost", s.inc(i, executor=LOST)
    if x.executor and not x.driver and (x.phase >= TERMINATING or x.pc == "exited"):
        yield f"the executors of {c.names[i]} are terminated", s.inc(i, executor=GONE)
    elif x.executor == LOST and x.driver:
        yield f"the lost executor of {c.names[i]} is terminated", s.inc(i, executor=GONE)


def _credentials(s: State, c: Configuration) -> Iterator[Step]:
    """A server of the store forgets what the identity service no longer knows.

    A request for credentials that an earlier operator has sent reaches the broker.
    """
    x = s.incs[0]
    for server in (1, 2):
        if x.revoked and x.known & server:
            yield (
                f"server {server} of the store no longer accepts {c.names[0]}'s credentials",
                s.inc(0, known=x.known & ~server),
            )
    if x.revoked == 1 and not x.known and not c.rules.no_new_credentials:
        yield f"the broker gives {c.names[0]}'s attempt new credentials", s.inc(0, known=EVERY_SERVER, revoked=2)


def _dead(s: State, i: int) -> State:
    """A driver that dies while it executes a rollback leaves the rollback's heartbeat
    file behind (F9).
    """
    for k, y in enumerate(s.instants):
        if y.rolled == 1 and y.roller == i:
            s = s.instant(k, beat=True)
    pc = s.incs[i].pc
    return s.end(i, pc if pc in ("exited", "started") else "dead", s.incs[i].executor)


def late_requests(s: State, c: Configuration) -> Iterator[Step]:
    """A transaction on the wire is executed.

    Its answer is heard only by a JVM that still waits for this very acquire.
    """
    for q in s.wire:
        rest = s._replace(wire=tuple(w for w in s.wire if w != q))
        ok = passes(rest, c, q)
        t = apply(rest, c, q) if ok else rest
        what = "succeeds" if ok else "is refused"
        yield f"a late {q.name} of {c.names[q.inc]} is executed and {what}; nobody hears the answer", t
        x = s.incs[q.inc]
        if q.name == "acquire" and x.driver and x.pc == "asking" and x.nonce == q.token:
            yield (
                f"{c.names[q.inc]}'s acquire {q.token} {what}; it hears the answer",
                t.inc(q.inc, pc="held" if ok else "idle"),
            )


def _storage(s: State, c: Configuration, k: int) -> Iterator[Step]:
    """PUTs on the wire land or die.

    Executors beyond control write late files of an instant that was already rolled back.
    """
    x = s.instants[k]
    if x.wire != "-":
        name, landed = _LANDING[x.wire]
        value = x.sender + 1 if x.wire == "c" else True
        yield f"the PUT of {c.names[x.sender]}'s {name} lands", s.instant(k, wire="-", **{landed: value})
        yield f"the PUT of {c.names[x.sender]}'s {name} dies on the wire", s.instant(k, wire="-")
    owner = c.owner(k)
    if owner >= 0 and x.rolled and not x.stray:
        e = s.incs[owner]
        if (
            e.executor == LOST
            or (e.executor == RUNNING and not e.driver)
            or (e.driver and e.pc in ("writing", "ready") and x.record == "P")
        ):
            yield f"an executor of {c.names[owner]} writes a file of the rolled-back instant", s.instant(k, stray=True)


_LANDING = {
    "r": ("requested file", "requested"),
    "i": ("inflight file", "requested"),
    "m": ("metadata table commit", "metadata"),
    "c": ("completed file", "completed"),
}


def _time(s: State, c: Configuration) -> Iterator[Step]:
    time = s.time
    if time.now < c.clock:
        yield "time passes", s._replace(time=time._replace(now=time.now + 1))
    if not time.stepped:
        skew = (time.skew[0] - 2, *time.skew[1:])
        yield (
            f"the wall clock of {c.names[0]}'s host steps back by two",
            s._replace(time=time._replace(skew=skew, stepped=True)),
        )
