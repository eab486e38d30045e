"""I1–I13 as named predicates.

Each returns True while the invariant holds. I6 is a property of the whole state graph: `settled` is
its goal.

The wording of each is that of docs/design/protocol.md; the comparison is in the code.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.support.model.rules import Configuration
from tests.support.model.state import COLLECTED, CRITICAL, DRAINING, GONE, SETTLED, State

Predicate = Callable[[State, Configuration], bool]


def i1_one_owner(s: State, c: Configuration) -> bool:
    """At most one incarnation owns the lock.

    The next starts only after a release with nothing on the wire, or after proof and drain.

    Broken when a process is inside the critical section without owning the key, when one owns the
    key while another has a timeline PUT on the wire, and when the key was taken for nobody: its
    owner has concluded that it does not hold it. In the mode LeaseOnly nothing is promised.
    """
    lock = s.lock
    if s.gate.lease_only:
        return True
    for i, x in enumerate(s.incs):
        if x.pc in CRITICAL and x.driver and x.accepted and (lock is None or i != lock.owner):
            return False
    if lock is None:
        return True
    for y in s.instants:
        if y.wire in ("r", "m", "c") and y.sender != lock.owner:
            return False
    x = s.incs[lock.owner]
    return not (x.driver and x.pc in ("idle", "ready") and not any(q.inc == lock.owner for q in s.wire))


def i2_fenced_never_acquires(s: State, c: Configuration) -> bool:
    """Fenced ⇒ never acquires: not while the fence stands, and not after settling."""
    return s.lock is None or not (s.lock.after_fence or s.incs[s.lock.owner].phase >= SETTLED)


def i3_completed_is_fixed(s: State, c: Configuration) -> bool:
    """After Unlocked (or once looked at as Abandoned) "completed(t)" never changes."""
    return all(y.fixed < 0 or y.fixed == bool(y.completed) for y in s.instants)


def i4_no_delete_of_completed(s: State, c: Configuration) -> bool:
    """Deletes happen only after seeing "not completed": no completed instant is without the files
    that its publisher wrote.
    """
    return all(not y.completed or y.data == y.completed for y in s.instants)


def i5_nothing_stays(s: State, c: Configuration) -> bool:
    """After "rolled back" no file of that instant stays in the metadata table, and none in storage
    when the timeline is archived past it.
    """
    return all(not (y.archived and y.stray) and not (y.outcome == "RolledBack" and y.metadata) for y in s.instants)


def i7_only_recorded(s: State, c: Configuration) -> bool:
    """Only instants of a settled (proven, drained) incarnation, or Abandoned ones, are rolled back.

    A foreign instant is never touched.
    """
    for k, y in enumerate(s.instants):
        if y.rolled:
            owner = c.owner(k)
            if owner < 0 or not (s.incs[owner].phase > DRAINING or y.record == "A" or y.outcome or y.archived):
                return False
    return True


def i8_acknowledged_stays(s: State, c: Configuration) -> bool:
    """An acknowledged commit stays readable: completed, with its files and its metadata."""
    return all(not y.acked or (y.completed and y.data > 0 and y.metadata) for y in s.instants)


def i9_no_overlap(s: State, c: Configuration) -> bool:
    """If two commits overlap on a file group, one started after the other completed.

    The same source rows are committed once.
    """
    for k, y in enumerate(s.instants):
        for j in range(k):
            x = s.instants[j]
            if x.completed and y.completed:
                if s.files[j] & s.files[k] and not y.seen >> j & 1 and not x.seen >> k & 1:
                    return False
                if c.same_rows(j, k):
                    return False
    return True


def i10_times_increase(s: State, c: Configuration) -> bool:
    """Instants and completion times increase with tokens."""
    return not s.time.disorder


def i11_proofs_are_true(s: State, c: Configuration) -> bool:
    """No destructive decision from a cache, an event or a failed read: a recorded proof means that
    every process has ended, or that the store accepts nothing of it any more; a planned rollback
    means that the instant was not completed.
    """
    for x in s.incs:
        if x.phase >= DRAINING and x.accepted and (x.driver or x.executor != GONE):
            return False
    return all(not (y.rolled == 1 and y.completed and y.data > 0) for y in s.instants)


def i12_one_executor(s: State, c: Configuration) -> bool:
    """One executor per service instant and per rollback at any time."""
    executors = sum(x.driver and x.pc.startswith("service-") for x in s.incs)
    work = [x.work for x in s.incs if x.driver and x.pc in ("agent-delete", "agent-ready", "agent-finish")]
    return executors <= 1 and len(work) == len(set(work))


def i13_one_record(s: State, c: Configuration) -> bool:
    """No two completed commits, of which neither saw the other, have inserted the same key."""
    for k, y in enumerate(s.instants):
        for j in range(k):
            x = s.instants[j]
            if x.completed and y.completed and c.same_keys(j, k) and not y.seen >> j & 1 and not x.seen >> k & 1:
                return False
    return True


INVARIANTS: dict[str, Predicate] = {
    "I1": i1_one_owner,
    "I2": i2_fenced_never_acquires,
    "I3": i3_completed_is_fixed,
    "I4": i4_no_delete_of_completed,
    "I5": i5_nothing_stays,
    "I7": i7_only_recorded,
    "I8": i8_acknowledged_stays,
    "I9": i9_no_overlap,
    "I10": i10_times_increase,
    "I11": i11_proofs_are_true,
    "I12": i12_one_executor,
    "I13": i13_one_record,
}


def settled(s: State, c: Configuration) -> bool:
    """I6, the goal that must stay reachable from every state: nobody is left, no lock, no record,
    no pending instant, everybody had a turn.
    """
    if c.clock and s.time.now == c.clock:
        return True  # the model's time is over; who waits for a later wall clock waits in vain
    if s.lock is not None:
        return False
    for i, x in enumerate(s.incs):
        if c.roles[i] == "agent" and x.driver and x.pc == "idle" and x.phase == 0:
            continue
        running = x.driver and x.accepted and x.pc != "started"
        if x.writer or x.phase not in (0, SETTLED, COLLECTED) or running:
            return False
    ours = (y for k, y in enumerate(s.instants) if c.owner(k) >= 0)
    return not any(y.record != "-" or (y.requested and not y.completed) for y in ours)
