"""State of the model.

Every object is an immutable named tuple, so that a state can be hashed and compared.

A state describes one table: its keys in etcd, its timeline in storage, and the processes around it.
Nothing forces a process to take its next step: a process that is paused, frozen or cut off simply
does not move while others do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# settle/<inc>: phases in their order; 0 means that there is no settle record. There is none in
# COLLECTED, either: the search remembers the past.
NONE, FENCED, TERMINATING, DRAINING, UNLOCKED, ROLLING_BACK, SWEPT, SETTLED, COLLECTED = range(9)
PHASES = ("-", "Fenced", "Terminating", "Draining", "Unlocked", "RollingBack", "Swept", "Settled", "collected")

# Executors of an incarnation.
GONE, RUNNING, LOST = 0, 1, 2  # LOST: runs, but the driver counts it as dead (a partition)

EVERY_SERVER = 3
"""Bit set: the two servers of the store."""

# The program counters between "the lock is mine" and "I ask for its release": only here may a
# process change the timeline.
CRITICAL = frozenset(
    {
        "held",
        "held1",
        "recorded",
        "creating",
        "held2",
        "metadata",
        "promised",
        "sent",
        "unsure",
        "agent-look",
        "agent-finish",
        "service-held",
        "service-sent",
    }
)


class Request(NamedTuple):
    """A transaction on its way to etcd.

    It may be executed long after its client gave up, or never.
    """

    name: str
    inc: int
    alive: int = 0  # acquire: the mod revision of alive/<inc> that the client put last
    gate: int = 0  # acquire: the mod revision of the gate that it evaluated
    # acquire: its nonce; others: the nonce of the lock that they are about (stands for
    # the create revision)
    token: int = 0
    lease: int = 0  # the lease under which alive is put
    instant: int = -1
    seen: int = 0  # mod revision seen: a settle record's phase, an instant's claimant + 1
    reason: str = ""  # fence: why
    on_lease: bool = False  # acquire: the gate said LeaseOnly
    done: bool = False  # release: the instant was completed in this cycle


class Lock(NamedTuple):
    """The key `lock`. (owner, nonce) stands for its create revision: no pair ever comes twice."""

    owner: int
    nonce: int
    on_lease: bool = False  # LeaseOnly: hangs on the owner's lease
    after_fence: bool = False  # history: taken although the owner was fenced


class Gate(NamedTuple):
    """The key `gate`."""

    rev: int = 1
    lease_only: bool = False
    open: bool = True


class Inc(NamedTuple):
    """One incarnation: its JVM, its pods, and the keys that carry its id."""

    pc: str  # where its program stands
    driver: bool = True  # the process of the driver exists (paused or not)
    executor: int = GONE
    # what the JVM believes
    own_lease: int = 0
    own_alive: int = 0
    own_gate: int = 0
    own_mode: bool = False  # the gate that it read said LeaseOnly
    nonce: int = 0  # acquires sent
    base: int = 0  # bit set: instants completed when it read the source's progress
    compared: int = 0  # bit set: instants whose inserted keys it has compared with its own
    given_back: int = 0  # how often it gave the lock back to compare keys outside
    clock_read: int = 0  # clock as read at acquire
    work: int = -1  # agents: the instant at hand
    puts: int = 0  # how often alive was put (counted only where late acquires make it matter)
    # what etcd says
    lease: int = 0  # 0: does not exist
    alive: int = 0  # mod revision, 0: absent
    admit: bool = True
    writer: bool = False
    fence: bool = False
    phase: int = NONE  # settle/<inc>
    # its credentials (only in the mode Credentials)
    revoked: int = 0  # how often the identity service has forgotten them
    known: int = EVERY_SERVER  # bit set: servers of the store that still accept them
    said: bool = False  # the broker has told the operator that they are revoked

    @property
    def accepted(self) -> bool:
        """Whether some server of the store still accepts a request of it."""
        return self.known > 0


class Instant(NamedTuple):
    """One instant: its record in etcd, its files in storage, its rollback."""

    record: str = "-"  # instant/<t>: "-" absent, "P" Pending, "A" Abandoned
    claim: int = -1  # claimedBy
    requested: bool = False  # the requested or inflight file exists
    data: int = 0  # its data files: 0 none, -1 deleted, k + 1 written by incarnation k
    metadata: bool = False  # the metadata table has its delta commit
    completed: int = 0  # the completed file: 0 absent, k + 1 put there by incarnation k
    acked: bool = False  # its writer was told of the success
    seen: int = 0  # bit set: instants completed when this one was requested
    wire: str = "-"  # a PUT on its way: "r" requested, "i" inflight, "m" metadata table, "c" completed
    sender: int = -1  # the incarnation that sent it
    rolled: int = 0  # its rollback: 0 none, 1 planned, 2 finished
    roller: int = -1  # the agent that owns or claimed that rollback
    beat: bool = False  # a heartbeat file of the rollback is left over from a killed agent
    outcome: str = ""  # in the settle record
    stray: bool = False  # a file of this instant was written after its rollback had listed the files
    archived: bool = False  # the timeline was archived past it
    # history: value of completed when nobody could change it any more (Unlocked, or
    # seen after Abandoned)
    fixed: int = -1


class Time(NamedTuple):
    """Wall clocks, only moved in the configuration `clock`."""

    now: int = 0
    skew: tuple[int, ...] = ()
    stepped: bool = False
    clock: int = 0  # the key `clock`
    high: int = 0  # history: the largest time in the timeline
    disorder: bool = False  # history: a time was used that is not past all earlier ones


class State(NamedTuple):
    """One table and everybody around it."""

    incs: tuple[Inc, ...]
    instants: tuple[Instant, ...]
    files: tuple[int, ...]  # per instant: bit set of the file groups that it changes
    lock: Lock | None = None
    gate: Gate = Gate()
    wire: tuple[Request, ...] = ()
    time: Time = Time()

    def inc(self, i: int, **changes: Any) -> State:
        """The same state with incarnation `i` changed."""
        incs = self.incs
        return self._replace(incs=(*incs[:i], incs[i]._replace(**changes), *incs[i + 1 :]))

    def instant(self, k: int, **changes: Any) -> State:
        """The same state with instant `k` changed."""
        all_ = self.instants
        return self._replace(instants=(*all_[:k], all_[k]._replace(**changes), *all_[k + 1 :]))

    def end(self, i: int, pc: str, executor: int) -> State:
        """The driver's process ends and with it all that the JVM believed (so that states which
        differ only in that are one).
        """
        return self.inc(
            i,
            pc=pc,
            driver=False,
            executor=executor,
            own_lease=0,
            own_alive=0,
            own_gate=0,
            own_mode=False,
            nonce=0,
            base=0,
            compared=0,
            given_back=0,
            clock_read=0,
            work=-1,
        )

    def completed(self) -> int:
        """Bit set of the completed instants."""
        return sum(1 << k for k, x in enumerate(self.instants) if x.completed)

    def owns(self, i: int) -> bool:
        """Whether the key `lock` names incarnation `i`."""
        return self.lock is not None and self.lock.owner == i

    def token(self, i: int) -> bool:
        """Whether the lock key is the very one that incarnation `i` acquired last."""
        return self.lock is not None and self.lock.owner == i and self.lock.nonce == self.incs[i].nonce


def swapped(s: State) -> State:
    """The same state with writers 0 and 1 (and their instants) exchanged.

    Used only where nobody else refers to them by number.
    """

    def other(x: int) -> int:
        return 1 - x if 0 <= x <= 1 else x

    def bits(b: int) -> int:
        return (b & ~3) | (b & 1) << 1 | (b & 2) >> 1

    def mirror(x: Instant) -> Instant:
        return x._replace(
            seen=bits(x.seen),
            claim=other(x.claim),
            sender=other(x.sender),
            data=other(x.data - 1) + 1 if x.data > 0 else x.data,
            completed=other(x.completed - 1) + 1 if x.completed else 0,
        )

    incs = tuple(x._replace(base=bits(x.base), work=other(x.work)) if x.base or x.work >= 0 else x for x in s.incs)
    instants = tuple(mirror(x) for x in s.instants)
    return s._replace(
        incs=(incs[1], incs[0], *incs[2:]),
        instants=(instants[1], instants[0], *instants[2:]),
        files=(s.files[1], s.files[0], *s.files[2:]),
        lock=s.lock and s.lock._replace(owner=other(s.lock.owner)),
        wire=tuple(sorted(q._replace(inc=other(q.inc), instant=other(q.instant)) for q in s.wire)),
    )
