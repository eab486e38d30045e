"""The lock of an earlier attempt: this attempt reads its progress when it is free (F5).

The operator starts an attempt while the lock of the one before it is drained, so that pod, JVM and
Spark session come up meanwhile. Requests that the attempt had sent may land until its lock is
deleted, and none afterwards: it is fenced, so it never acquires again.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

from hudi_contract.keys import Kind
from hudi_contract.outcomes import FailureClass
from hudi_contract.table_keys import Lock
from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.process.etcd import Entry, read
from hudi_runtime.process.session import Session
from hudi_runtime.process.stopping import Stop

POLL_SECONDS = 0.2
UNKNOWN = "an unknown owner"


def owner_before(lock: Entry | None, attempt: str) -> str:
    """The other attempt of this attempt's writer that owns the lock; empty: none of them does.

    An owner that cannot be read may be one of them.
    """
    if lock is None:
        return ""
    owner = read(lock, Lock).attempt
    if not owner:
        return UNKNOWN
    mine, theirs = attempt.rpartition("-"), owner.rpartition("-")
    return owner if mine[0] == theirs[0] and owner != attempt else ""


def await_lock(
    session: Session,
    *,
    stop: Stop,
    closed: Callable[[], str],
    alive: Callable[[], bool],
    rehearse: Callable[[], None],
    seconds: float,
) -> float:
    """Wait until no earlier attempt of this writer owns the lock; the seconds that it took.

    `rehearse` runs meanwhile, once, on a separate thread; nobody waits for it, and its outcome is
    dropped. Raises RuntimeFailure on a requested stop, when the gate is closed, when the JVM has
    ended, and after `seconds`: longer than any drain (F438), so that only an operator that is away
    makes it last so long.
    """
    began, owner = time.monotonic(), _owner(session, "")
    if not owner:
        return 0.0
    print(f"waiting until the lock of {owner} is free", file=sys.stderr, flush=True)
    threading.Thread(target=_quietly, args=(rehearse,), daemon=True).start()
    while owner := _owner(session, owner):
        if stop.wait(POLL_SECONDS):
            raise RuntimeFailure(FailureClass.INFRASTRUCTURE, f"stopped while waiting for the lock of {owner}")
        if change := closed():
            raise RuntimeFailure(
                FailureClass.ENDED_FOR_CHANGE, f"ended before it began: the table's gate is closed for {change}"
            )
        if not alive():
            raise RuntimeFailure(FailureClass.INFRASTRUCTURE, "the driver's JVM has ended")
        if time.monotonic() - began > seconds:
            raise RuntimeFailure(
                FailureClass.INFRASTRUCTURE, f"the lock of {owner} was not free within {seconds:.0f} s"
            )
    return time.monotonic() - began


def _owner(session: Session, known: str) -> str:
    """See `owner_before`. Without an answer of etcd it is `known`, or unknown."""
    try:
        return owner_before(session.etcd.get(Kind.LOCK.of()), session.attempt)
    except Exception as error:
        print(f"cannot read the lock: {type(error).__name__}", file=sys.stderr, flush=True)
        return known or UNKNOWN


def _quietly(rehearse: Callable[[], None]) -> None:
    try:
        rehearse()
    except Exception as error:  # the run itself meets it again, and reports it
        print(f"the rehearsal ended early: {type(error).__name__}", file=sys.stderr, flush=True)
