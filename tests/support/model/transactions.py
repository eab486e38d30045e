"""The transactions of the protocol: their compares (the very strings of protocol.json), the meaning
of each compare, and their changes.

The search evaluates these strings, so a compare that is missing here is missing in the search.
`test_transactions.py` holds this table and `operator/hudi_contract/protocol.json` together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from tests.support.model.rules import Configuration, Rules
from tests.support.model.state import COLLECTED, FENCED, SETTLED, Instant, Lock, Request, State

# name -> compares. All must hold (etcd joins them by AND).
TRANSACTIONS: dict[str, tuple[str, ...]] = {
    "register": ("version(admit/<attempt>) > 0", "version(fence/<inc>) = 0"),
    "keepalive": ("version(fence/<inc>) = 0", "version(writer/<inc>) > 0"),
    "acquire": ("version(lock) = 0", "version(fence/<inc>) = 0", "mod(alive/<inc>) = m", "mod(gate) = g"),
    "acquire-resolve": ("value(lock) = mine",),
    "enqueue": ("version(fence/<inc>) = 0", "mod(alive/<inc>) = m"),
    "record-instant": ("create(lock) = token", "version(instant/<t>) = 0"),
    "record-savepoint": ("create(lock) = token", "version(instant/<t>) = 0"),
    "publish": (
        "create(lock) = token",
        "mod(instant/<t>) = mine and Pending",
        "version(fence/<inc>) = 0",
        "mod(clock) = seen",
    ),
    "abandon": ("mod(instant/<t>) = mine and Pending",),
    "claim": ("mod(instant/<c>) = seen", "version(fence/<inc>) = 0"),
    "release": ("create(lock) = token",),
    "clean-exit": ("version(fence/<inc>) = 0",),
    "gate-put": (
        "mod(gate) = seen",
        "mod(gate of T2) = seen for each T2 whose folder overlaps, until the gate was open",
        "version(lock) = 0 when the mode changes",
    ),
    "admit": ("version(admit/<attempt>) = 0",),
    "delete-admit": (),
    "claim-unrecorded": ("version(instant/<t>) = 0",),
    "done": ("mod(instant/<c>) = seen",),
    "adopt": ("mod(gate) = seen", "version(settle/<inc>) = 0", "version(instant/<t>) = 0"),
    "fence": ("version(fence/<inc>) = 0", "version(alive/<inc>) = 0 when the reason is LeaseGone"),
    "settle-update": ("mod(settle/<inc>) = seen",),
    "unlock": ("create(lock) = seen and lock owned by inc", "version(fence/<inc>) > 0"),
    "settled": ("mod(settle/<inc>) = seen",),
    "collect": ("mod(settle/<inc>) = seen", "version(writer/<inc>) = 0"),
}

# Effects of the model in the branch "then" (and else), in the words of protocol.json.
EFFECTS: dict[str, tuple[str, ...]] = {
    "register": ("put writer/<inc>", "put alive/<inc> lease L"),
    "keepalive": ("put alive/<inc> lease L",),
    "acquire": ("put lock", "get clock"),
    "acquire-resolve": ("get lock", "get clock"),
    "enqueue": ("put queue/<ticket> lease L",),
    "record-instant": ("put instant/<t> Pending", "put clock t"),
    "record-savepoint": ("put instant/<t> Pending",),
    "publish": ("put clock completion",),
    "abandon": ("put instant/<t> Abandoned",),
    "claim": ("put instant/<c> claimedBy inc",),
    "release": ("delete lock", "delete instant/<t> for each completed t"),
    "clean-exit": ("delete alive/<inc>", "delete writer/<inc>"),
    "gate-put": ("put gate",),
    "admit": ("put admit/<attempt>",),
    "delete-admit": ("delete admit/<attempt>",),
    "claim-unrecorded": ("put instant/<t> Abandoned claimedBy inc",),
    "done": ("delete instant/<t>",),
    "adopt": ("put settle/<inc> Fenced", "put fence/<inc>", "put instant/<t> Pending for each t named"),
    "fence": ("put settle/<inc> Fenced", "put fence/<inc>", "delete alive/<inc>", "delete admit/<attempt>"),
    "settle-update": ("put settle/<inc>",),
    "unlock": ("delete lock",),
    "settled": ("put settle/<inc> Settled", "delete instant/<t> of inc", "delete writer/<inc>"),
    "collect": ("delete settle/<inc>", "delete fence/<inc>"),
}

NOT_SEARCHED = {
    "adopt": (
        "the search begins with a table of ours; what was adopted is settled like the instants of any dead writer "
        "(checked in traces)"
    ),
    "record-savepoint": (
        "the agent alone does it, behind the closed gate, about a commit that stays completed whatever follows "
        "(checked in traces)"
    ),
    "enqueue": "the queue is for fairness: the acquire transaction alone decides (its compares are checked in traces)",
    "gate-put": (
        "a change of the gate is one step of the search; two operators that change it at once are for the traces"
    ),
    "delete-admit": (
        "only what nobody will use any more is deleted; a registration that comes too late is refused like one "
        "that was never admitted"
    ),
    "claim-unrecorded": (
        "the search keeps the record of an Abandoned instant; that it goes and comes back is for the traces"
    ),
    "done": "the search keeps the record of an Abandoned instant; that it goes is for the traces",
    "admit": "the search begins after the admissions were put; a second put would change nothing (checked in traces)",
}

Compare = Callable[[State, Request], bool]


def _mine(s: State, q: Request) -> bool:
    return s.lock is not None and s.lock.owner == q.inc and s.lock.nonce == q.token


def _mine_and_pending(s: State, q: Request) -> bool:
    x = s.instants[q.instant]
    return x.record == "P" and x.claim in (-1, q.inc)


def _unclaimed_since(s: State, q: Request) -> bool:
    """The record's mod revision: of a rollback (its roller) or of a compaction (its claimant)."""
    x = s.instants[q.instant]
    return (x.roller if x.rolled else x.claim) + 1 == q.seen


COMPARES: dict[str, Compare] = {
    "version(admit/<attempt>) > 0": lambda s, q: s.incs[q.inc].admit,
    "version(admit/<attempt>) = 0": lambda s, q: not s.incs[q.inc].admit,
    "version(fence/<inc>) = 0": lambda s, q: not s.incs[q.inc].fence,
    "version(fence/<inc>) > 0": lambda s, q: s.incs[q.inc].fence,
    "version(writer/<inc>) > 0": lambda s, q: s.incs[q.inc].writer,
    "version(writer/<inc>) = 0": lambda s, q: not s.incs[q.inc].writer,
    "version(lock) = 0": lambda s, q: s.lock is None,
    "mod(alive/<inc>) = m": lambda s, q: s.incs[q.inc].alive == q.alive,
    "mod(gate) = g": lambda s, q: s.gate.rev == q.gate,
    "value(lock) = mine": _mine,
    "create(lock) = token": _mine,
    "create(lock) = seen and lock owned by inc": _mine,
    "version(instant/<t>) = 0": lambda s, q: s.instants[q.instant].record == "-",
    "mod(instant/<t>) = mine and Pending": _mine_and_pending,
    "mod(instant/<c>) = seen": _unclaimed_since,
    "mod(clock) = seen": lambda s, q: True,  # each request is executed once here
    "mod(gate) = seen": lambda s, q: s.gate.rev == q.gate,
    # The search knows one table.
    "mod(gate of T2) = seen for each T2 whose folder overlaps, until the gate was open": lambda s, q: True,
    # The search does not change the mode.
    "version(lock) = 0 when the mode changes": lambda s, q: True,
    "version(alive/<inc>) = 0 when the reason is LeaseGone": lambda s, q: (
        q.reason != "LeaseGone" or s.incs[q.inc].alive == 0
    ),
    "version(settle/<inc>) = 0": lambda s, q: not s.incs[q.inc].phase,
    "mod(settle/<inc>) = seen": lambda s, q: s.incs[q.inc].phase == q.seen,
}


@lru_cache(maxsize=1024)
def _compares(rules: Rules, name: str) -> tuple[Compare, ...]:
    return tuple(COMPARES[text] for text in TRANSACTIONS[name] if (name, text) not in rules.without)


def passes(s: State, c: Configuration, q: Request) -> bool:
    """Whether etcd executes the branch "then" of request `q` in state `s`.

    A put under a lease that is gone is rejected whole.
    """
    if q.lease and s.incs[q.inc].lease != q.lease:
        return False
    return all(holds(s, q) for holds in _compares(c.rules, q.name))


def put_alive(s: State, c: Configuration, i: int) -> State:
    """Put `alive/<inc>`: its mod revision moves (counted only where late acquires
    make it matter).
    """
    if "acquire" not in c.late:
        return s.inc(i, alive=1)
    puts = s.incs[i].puts + 1
    return s.inc(i, alive=puts, puts=puts)


def apply(s: State, c: Configuration, q: Request) -> State:
    """The state after the branch "then" of request `q`."""
    return _APPLY[q.name](s, c, q)


def _acquire(s: State, c: Configuration, q: Request) -> State:
    on_lease = q.on_lease or not c.rules.lock_without_lease
    return s._replace(lock=Lock(q.inc, q.token, on_lease, s.incs[q.inc].fence))


def _release(s: State, c: Configuration, q: Request) -> State:
    if q.done:
        s = s.instant(q.instant, record="-")
    return s._replace(lock=None)


def _fence(s: State, c: Configuration, q: Request) -> State:
    return s.inc(q.inc, fence=True, phase=FENCED, alive=0, admit=False)


def _unlock(s: State, c: Configuration, q: Request) -> State:
    return s._replace(lock=None)


def _phase(s: State, c: Configuration, q: Request) -> State:
    return s.inc(q.inc, phase=q.seen + 1)


def _settled(s: State, c: Configuration, q: Request) -> State:
    """The records of this incarnation's instants go.

    Its knowledge about completion is fixed forever.
    """
    for k, x in enumerate(s.instants):
        if c.owner(k) == q.inc and x.record != "-":
            s = s.instant(k, record="-")
    return s.inc(q.inc, phase=SETTLED, writer=False)


def _claim(s: State, c: Configuration, q: Request) -> State:
    x: Instant = s.instants[q.instant]
    return s.instant(q.instant, roller=q.inc) if x.rolled else s.instant(q.instant, claim=q.inc)


_APPLY: dict[str, Callable[[State, Configuration, Request], State]] = {
    "register": lambda s, c, q: put_alive(s.inc(q.inc, writer=True), c, q.inc),
    "keepalive": lambda s, c, q: put_alive(s, c, q.inc),
    "acquire": _acquire,
    "acquire-resolve": lambda s, c, q: s,
    "record-instant": lambda s, c, q: s.instant(q.instant, record="P"),
    "publish": lambda s, c, q: s,
    "abandon": lambda s, c, q: s.instant(q.instant, record="A"),
    "claim": _claim,
    "release": _release,
    "clean-exit": lambda s, c, q: s.inc(q.inc, writer=False, alive=0),
    "gate-put": lambda s, c, q: s._replace(gate=s.gate._replace(rev=s.gate.rev + 1)),
    "fence": _fence,
    "settle-update": _phase,
    "unlock": _unlock,
    "settled": _settled,
    "collect": lambda s, c, q: s.inc(q.inc, phase=COLLECTED, fence=False),
}

Step = tuple[str, State]


def call(
    s: State,
    c: Configuration,
    q: Request,
    text: str,
    then: Callable[[State], State],
    *,
    otherwise: Callable[[State], State] | None = None,
) -> Iterator[Step]:
    """A client sends `q` and waits.

    It hears the answer, or gives up and will ask again while the first request stays on the wire.
    """
    if passes(s, c, q):
        yield text, then(apply(s, c, q))
    elif otherwise is not None:
        yield f"{text}: refused", otherwise(s)
    if (
        q.name in c.late
        and q.name != "acquire"
        and q not in s.wire
        and sum(w.name != "acquire" for w in s.wire) < c.max_late
    ):
        yield f"{text}: no answer; the request stays on the wire", s._replace(wire=tuple(sorted((*s.wire, q))))
