"""The session of one JVM: registration, heartbeat, the lock.

Everything that the Java module does in etcd, for writers and agents alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.model.rules import Configuration
from tests.support.model.state import GONE, LOST, Request, State
from tests.support.model.transactions import Step, call, passes

# Requests that name a token: where none of them can be late, all acquisitions of one incarnation
# may look alike.
TOKENS = frozenset({"acquire", "release", "unlock", "record-instant", "publish"})


def session(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Steps of incarnation `i` that concern its registration and its lease."""
    x = s.incs[i]
    if not x.driver:
        return
    if c.gate and x.pc in ("started", "idle") and x.own_gate != s.gate.rev and s.gate.open:
        yield (
            f"{c.names[i]} reads the gate: open, mode {'LeaseOnly' if s.gate.lease_only else 'PodTermination'}",
            s.inc(i, own_gate=s.gate.rev, own_mode=s.gate.lease_only),
        )
    if x.pc == "started":
        yield from _register(s, c, i)
    elif x.pc != "off":
        yield from _keep_alive(s, c, i)
    if x.pc == "asking":
        yield from _resolve(s, c, i)


def _register(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """One transaction: admitted, not fenced, put writer, put alive under a fresh lease (a late one
    is rejected whole, its lease is gone).
    """
    x = s.incs[i]
    if not x.own_lease:
        s = s.inc(i, lease=1, own_lease=1)
    elif not x.lease:
        # Its lease ran out before the answer came: it starts over as another incarnation, which is
        # nobody new to this model
        return
    yield from call(
        s,
        c,
        Request("register", i, lease=1),
        f"{c.names[i]} takes a lease and registers",
        lambda t: t.inc(i, pc="idle", own_alive=t.incs[i].alive),
        otherwise=lambda t: halt(t, i),
    )


def _keep_alive(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Lease unknown and not fenced: a new lease and alive again; a pause without consequences.

    Fenced: halt.
    """
    x = s.incs[i]
    if x.lease and x.own_alive:
        return
    if not x.lease:
        if x.own_lease > c.renewals:
            return
        s = s.inc(i, lease=x.own_lease + 1, own_lease=x.own_lease + 1, own_alive=0)
    yield from call(
        s,
        c,
        Request("keepalive", i, lease=s.incs[i].lease),
        f"{c.names[i]} finds its lease gone, takes a new one and puts alive again",
        lambda t: t.inc(i, own_alive=t.incs[i].alive),
        otherwise=lambda t: halt(t, i),
    )


def acquire(s: State, c: Configuration, i: int, pc: str) -> Iterator[Step]:
    """One transaction (I1, I2): the lock is free, not fenced, alive is the one that I put last, the
    gate is the one that I evaluated.

    With late acquires the answer is a separate step (program counter "asking"): see `_resolve` and
    `environment.late_requests`.
    """
    x = s.incs[i]
    if not x.own_alive or not x.own_gate:
        return
    q = Request(
        "acquire",
        i,
        alive=x.own_alive,
        gate=x.own_gate,
        token=x.nonce + 1 if c.late & TOKENS else 1,
        on_lease=x.own_mode,
    )
    if "acquire" in c.late and c.roles[i] == "writer":
        if x.nonce < c.max_acquires:
            yield (
                f"{c.names[i]} sends acquire {q.token}",
                s.inc(i, pc="asking", nonce=q.token)._replace(wire=tuple(sorted((*s.wire, q)))),
            )
        return
    if c.clock and s.time.now + s.time.skew[i] <= s.time.clock:
        return  # the clock guard waits until the local wall clock is past `clock`
    yield from call(
        s, c, q, f"{c.names[i]} acquires the lock", lambda t: t.inc(i, pc=pc, nonce=q.token, clock_read=t.time.clock)
    )


def _resolve(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """End an acquire with unknown outcome: mine, or put alive again so that the lost request can
    never succeed any more (I1).
    """
    x = s.incs[i]
    if passes(s, c, Request("acquire-resolve", i, token=x.nonce)):
        yield f"{c.names[i]} reads its own nonce in the lock: it is mine", s.inc(i, pc="held")
    elif not c.rules.renew_moves_alive:
        yield f"{c.names[i]} reads the lock back: not mine, so it takes its acquire for failed", s.inc(i, pc="idle")
    elif x.lease and x.lease == x.own_lease:
        puts = x.puts + 1
        yield (
            (
                f"{c.names[i]} does not find its nonce in the lock and puts alive again: the lost acquire can never "
                "succeed"
            ),
            s.inc(i, pc="idle", alive=puts, puts=puts, own_alive=puts),
        )
    elif not x.lease:
        yield (
            (
                f"{c.names[i]} learns that its lease is gone, and the alive key with it: the lost acquire can never "
                "succeed"
            ),
            s.inc(i, pc="idle", own_alive=0),
        )
    if not c.rules.resolve_before_exit:
        yield from leave(s, c, i)


def release(s: State, c: Configuration, i: int, pc: str, *, k: int = -1, done: bool = False) -> Iterator[Step]:
    """One transaction (I1): the lock is the very one that I acquired; retried until definite.

    A silent no-op for a lock that is not its own.
    """
    q = Request("release", i, token=s.incs[i].nonce, instant=k, done=done)

    def released(t: State) -> State:
        # The first design: the clock is written here, from the wall clock of this moment
        if c.clock and not c.rules.clock_ahead:
            t = t._replace(time=t.time._replace(clock=max(t.time.clock, t.time.now + t.time.skew[i])))
        return t.inc(i, pc=pc)

    yield from call(s, c, q, f"{c.names[i]} releases the lock", released, otherwise=lambda t: t.inc(i, pc=pc))


def leave(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Clean exit: no lock, no Pending instant, nothing unresolved.

    Alive and writer are deleted, the lease is revoked.
    """
    yield from call(
        s,
        c,
        Request("clean-exit", i),
        f"{c.names[i]} exits cleanly",
        lambda t: halt(t.inc(i, pc="exited", lease=0), i),
        otherwise=lambda t: halt(t, i),
    )


def halt(s: State, i: int) -> State:
    """The driver's process ends; executors end with it unless they were lost."""
    pc = s.incs[i].pc
    return s.end(i, pc if pc in ("exited", "started") else "dead", LOST if s.incs[i].executor == LOST else GONE)
