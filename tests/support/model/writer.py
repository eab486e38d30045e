"""The life of a writer: two lock cycles of one Hudi commit, as Hudi 1.2.0 does them, through the
lock provider and the storage wrapper.

cycle 1   idle → held1 → recorded → (creating) → born → writing the instant is recorded, then
          requested; data are written outside the lock
cycle 2   ready → held2 → metadata → promised → sent → finishing → done conflicts, metadata table,
          publication under the lock … → unsure: a PUT of unknown outcome; failing → failed →
          abandoned: the instant is left behind

If keys are modelled, they are compared in `ready`, without the lock, and in `held2`, where the lock
may be given back once for another comparison outside.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.model import jvm
from tests.support.model.rules import Configuration
from tests.support.model.state import EVERY_SERVER, RUNNING, Request, State
from tests.support.model.transactions import Step, call


def writer(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """The next steps of writer `i`'s program."""
    x = s.incs[i]
    if x.pc == "off":
        yield from _start(s, c, i)
    if not x.driver:
        return
    yield from jvm.session(s, c, i)
    if c.credentials and x.pc in _SENDS and x.known < EVERY_SERVER:
        yield f"{c.names[i]} is refused by the store", s.inc(i, pc="failing")
        if not x.accepted:
            return
    step = _LOCK_STEPS.get(x.pc) if c.program == "lock" or c.roles[i] == "plain" else _STEPS.get(x.pc)
    if step is not None:
        yield from step(s, c, i)
    if c.abandon and x.pc in ("ready", "held2", "metadata") and s.instants[i].record == "P":
        yield from _abandon(s, c, i, x.pc, "a second thread of ")


# ---------------------------------------------------------------- lock cycles only
def _lock_idle(s: State, c: Configuration, i: int) -> Iterator[Step]:
    nonce = s.incs[i].nonce
    if nonce < (1 if c.roles[i] == "plain" else c.max_acquires):
        yield from jvm.acquire(s, c, i, "held")
    if nonce or (c.gate and not s.gate.open):
        yield from jvm.leave(s, c, i)


_LOCK_STEPS = {
    "idle": _lock_idle,
    "held": lambda s, c, i: iter([(f"{c.names[i]} has done its work under the lock", s.inc(i, pc="leaving"))]),
    "leaving": lambda s, c, i: jvm.release(s, c, i, "idle"),
}


# ---------------------------------------------------------------- start of a later attempt, or of a
# second JVM
def _start(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Start of the next attempt: possible when the old one is fenced, or has left.

    Its JVM comes up and registers; its next step is `_standby`. A second JVM of the old attempt has
    nobody to wait for.
    """
    old = s.incs[0]
    if c.roles[i] == "next":
        if old.fence or old.pc == "exited" or not (c.rules.next_attempt_after_fence or old.alive):
            yield f"{c.names[i]} starts and registers", _registered(s, i, pc="standby")
    elif old.writer and old.admit:  # the admission of an attempt goes with the fence of any of its incarnations
        what = "starts beside it (the container was restarted in place)"
        yield _reads_progress(s, c, i, what, _registered(s, i))


def _registered(s: State, i: int, **changes: str) -> State:
    return s.inc(i, driver=True, writer=True, lease=1, own_lease=1, alive=1, own_alive=1, **changes)


def _standby(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """The next attempt reads its progress when the lock is not the old one's (F5): at once, the
    earliest reading is the most dangerous one (I9).
    """
    if not s.owns(0):
        yield _reads_progress(s, c, i, "sees that the lock is not the old attempt's", s)
    elif not c.rules.next_attempt_waits:
        yield _reads_progress(s, c, i, "does not look at the lock", s)


def _reads_progress(s: State, c: Configuration, i: int, what: str, then: State) -> Step:
    done = any(x.completed for k, x in enumerate(s.instants) if c.same_rows(i, k))
    text = (
        f"{c.names[i]} {what} and reads the progress: "
        f"{'the rows are committed, nothing to do' if done else 'the rows are not committed'}"
    )
    return text, then.inc(i, pc="done" if done else "idle", base=s.completed())


# ---------------------------------------------------------------- cycle 1
def _idle(s: State, c: Configuration, i: int) -> Iterator[Step]:
    yield from jvm.acquire(s, c, i, "held1")


def _held1(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Before the requested file: txn on the token; put instant/<t> Pending and clock := t.

    Refuses a time not past the clock (I7, I10).
    """
    t, late = _wall(s, c, i), c.clock and c.rules.clock_ahead and _wall(s, c, i) <= s.incs[i].clock_read
    if late:
        yield f"{c.names[i]} refuses to create an instant: its time {t} is not past the clock", s.inc(i, pc="failing")
        return
    if not c.rules.record_ahead:
        yield f"{c.names[i]} goes on without a record of its instant", _requested_at(s, c, i, t)
        return
    yield from call(
        s,
        c,
        Request("record-instant", i, token=s.incs[i].nonce, instant=i),
        f"{c.names[i]} records its instant",
        lambda n: _requested_at(n, c, i, t),
        otherwise=lambda n: n.inc(i, pc="failing"),
    )


def _requested_at(s: State, c: Configuration, i: int, t: int) -> State:
    return _promise(s, c, t).inc(i, pc="recorded").instant(i, seen=s.completed())


def _recorded(s: State, c: Configuration, i: int) -> Iterator[Step]:
    if "r" in c.unknown:
        yield (
            f"{c.names[i]} sends the PUT of the requested file",
            s.inc(i, pc="creating").instant(i, wire="r", sender=i),
        )
    else:
        yield f"{c.names[i]} creates the requested file", s.inc(i, pc="born").instant(i, requested=True)


def _creating(s: State, c: Configuration, i: int) -> Iterator[Step]:
    if s.instants[i].requested:
        yield f"{c.names[i]} hears that the requested file is created", s.inc(i, pc="born")
    yield f"{c.names[i]} gets no answer for the requested file; Hudi fails", s.inc(i, pc="unsure")


def _born(s: State, c: Configuration, i: int) -> Iterator[Step]:
    if not c.rules.record_ahead and s.token(i):
        s = s.instant(i, record="P")
    yield from jvm.release(s, c, i, "writing")


def _writing(s: State, c: Configuration, i: int) -> Iterator[Step]:
    y = s.instants[i]
    written = s.inc(i, pc="ready").instant(i, data=y.data if y.data < 0 else i + 1)
    if "i" in c.unknown and y.wire == "-":
        yield (
            f"{c.names[i]} sends the inflight file outside the lock, its executors write data",
            written.instant(i, wire="i", sender=i),
        )
    else:
        yield f"{c.names[i]}'s executors write the data files", written


# ---------------------------------------------------------------- cycle 2
def _ready(s: State, c: Configuration, i: int) -> Iterator[Step]:
    if s.instants[i].wire == "-":  # Hudi has heard of its inflight file before it commits
        if c.keys and c.rules.insert_check and s.incs[i].compared != s.completed():
            yield from _compare_outside(s, c, i)
        yield from jvm.acquire(s, c, i, "held2")


def _compare_outside(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Compare inserted keys with those of completed instants, without the lock (I13)."""
    if any(_inserted_meanwhile(s, c, i, k) for k in range(len(s.instants))):
        yield f"{c.names[i]} finds a key of its own in a commit that it has not seen, and fails", s.inc(i, pc="failed")
    else:
        yield f"{c.names[i]} compares its keys outside the lock", s.inc(i, compared=s.completed())


def _inserted_meanwhile(s: State, c: Configuration, i: int, k: int) -> bool:
    """Whether instant k has completed since instant i was requested, with a key of it."""
    return k != i and bool(s.instants[k].completed) and not s.instants[i].seen >> k & 1 and c.same_keys(i, k)


def _held2(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """The conflict strategy, under the lock: overlapping commits, and progress made by another
    incarnation of the same writer (I9); the same new keys (I13).
    """
    mine, x = s.instants[i], s.incs[i]
    others = [(k, y) for k, y in enumerate(s.instants) if k != i and y.completed]
    late = [k for k, _ in others if not x.compared >> k & 1] if c.rules.insert_check else []
    if c.keys and late and not x.given_back:
        given_back = s.inc(i, given_back=1)
        yield from jvm.release(given_back, c, i, "ready")
    conflict = c.rules.conflict_check and any(not mine.seen >> k & 1 and s.files[k] & s.files[i] for k, _ in others)
    if c.rules.inserts_compared_under_lock:
        conflict = conflict or any(_inserted_meanwhile(s, c, i, k) for k in late)
    moved = c.rules.progress_check and any(c.same_rows(i, k) and not x.base >> k & 1 for k, _ in others)
    if conflict or moved:
        yield (
            f"{c.names[i]} sees {'a conflicting commit' if conflict else 'that its progress has moved'} and fails",
            s.inc(i, pc="failing"),
        )
        return
    if not mine.requested:
        yield f"{c.names[i]} misses its inflight file and fails", s.inc(i, pc="failing")
        return
    if "m" in c.unknown:
        yield (
            f"{c.names[i]} sees no conflict and sends the commit of the metadata table",
            s.inc(i, pc="metadata").instant(i, wire="m", sender=i),
        )
    else:
        yield (
            f"{c.names[i]} sees no conflict and commits to the metadata table",
            s.inc(i, pc="metadata").instant(i, metadata=True),
        )


def _metadata(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Before the completed file: txn on the token, instant mine and Pending, not fenced.

    Clock := completion time (I3, I10).
    """
    if not s.instants[i].metadata:
        yield f"{c.names[i]} gets no answer for the metadata table; Hudi fails", s.inc(i, pc="unsure")
        return
    t = _wall(s, c, i)
    if c.clock and c.rules.clock_ahead and t <= s.incs[i].clock_read:
        yield f"{c.names[i]} refuses to publish: {t} is not past the clock", s.inc(i, pc="failing")
        return
    yield from call(
        s,
        c,
        Request("publish", i, token=s.incs[i].nonce, instant=i),
        f"{c.names[i]} asks for leave to publish",
        lambda n: _promise(n, c, t).inc(i, pc="promised"),
        otherwise=lambda n: n.inc(i, pc="failing"),
    )


def _promised(s: State, c: Configuration, i: int) -> Iterator[Step]:
    if "c" in c.unknown:
        yield f"{c.names[i]} sends the PUT of the completed file", s.inc(i, pc="sent").instant(i, wire="c", sender=i)
    else:
        yield (
            f"{c.names[i]} creates the completed file",
            s.inc(i, pc="finishing").instant(i, completed=i + 1, acked=True),
        )


def _sent(s: State, c: Configuration, i: int) -> Iterator[Step]:
    if s.instants[i].completed:
        yield f"{c.names[i]} hears that the completed file is created", s.inc(i, pc="finishing").instant(i, acked=True)
    yield f"{c.names[i]} gets no answer for the completed file; Hudi throws and unlocks", s.inc(i, pc="unsure")


def _unsure(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Never release while a publication is unknown (I1, I3): wait D, list the timeline
    afresh, then release.
    """
    if not c.rules.release_waits:
        yield f"{c.names[i]} takes the exception for a failure", s.inc(i, pc="failing")
    elif s.instants[i].wire == "-":
        if s.instants[i].completed:
            yield (
                f"{c.names[i]} has waited D and sees its instant completed",
                s.inc(i, pc="finishing").instant(i, acked=True),
            )
        else:
            yield f"{c.names[i]} has waited D and sees its instant not completed", s.inc(i, pc="failing")


def _finishing(s: State, c: Configuration, i: int) -> Iterator[Step]:
    yield from jvm.release(s, c, i, "done", k=i, done=True)


def _failing(s: State, c: Configuration, i: int) -> Iterator[Step]:
    yield from jvm.release(s, c, i, "failed")


def _failed(s: State, c: Configuration, i: int) -> Iterator[Step]:
    if c.abandon and s.instants[i].record == "P":
        yield from _abandon(s, c, i, "abandoned", "")
    elif s.instants[i].record == "-" or c.abandon:
        yield from jvm.leave(s, c, i)
    else:
        yield f"{c.names[i]} ends, leaving its instant Pending", jvm.halt(s, i)


def _abandon(s: State, c: Configuration, i: int, pc: str, who: str) -> Iterator[Step]:
    """The owner's word that it will not publish: a proof for the rollback, because the wrapper
    never publishes an Abandoned instant (I7).

    Like a release it waits until every PUT of that instant has a definite outcome.
    """
    if c.rules.release_waits and s.instants[i].wire != "-":
        return
    yield from call(
        s,
        c,
        Request("abandon", i, instant=i),
        f"{who}{c.names[i]} declares its instant Abandoned",
        lambda n: n.inc(i, pc=pc),
        otherwise=(lambda n: n.inc(i, pc=pc)) if pc == "abandoned" else None,
    )


def _leave(s: State, c: Configuration, i: int) -> Iterator[Step]:
    yield from jvm.leave(s, c, i)


_STEPS = {
    "standby": _standby,
    "idle": _idle,
    "held1": _held1,
    "recorded": _recorded,
    "creating": _creating,
    "born": _born,
    "writing": _writing,
    "ready": _ready,
    "held2": _held2,
    "metadata": _metadata,
    "promised": _promised,
    "sent": _sent,
    "unsure": _unsure,
    "finishing": _finishing,
    "failing": _failing,
    "failed": _failed,
    "done": _leave,
    "abandoned": _leave,
}


_SENDS = frozenset({"recorded", "writing", "held2", "promised"})
"""States in which a writer's next step is a request to the store, authorised when it is sent: a
request on the wire lands or dies, whatever happens to the credentials.
"""


# ---------------------------------------------------------------- the clock
def _wall(s: State, c: Configuration, i: int) -> int:
    return s.time.now + s.time.skew[i] if c.clock else 0


def _promise(s: State, c: Configuration, t: int) -> State:
    """A time is promised to the timeline; written ahead it also moves `clock`."""
    if not c.clock:
        return s
    time = s.time
    return s._replace(
        time=time._replace(
            clock=max(time.clock, t) if c.rules.clock_ahead else time.clock,
            high=max(time.high, t),
            disorder=time.disorder or t <= time.high,
        )
    )


def running_executors(c: Configuration) -> int:
    """Executors are modelled only where they can be lost or outlive their driver."""
    return RUNNING if c.lost_executors else 0
