"""Trace conformance: `python -m tests.support.trace.conform FILE…` replays the protocol log of a
real run and rejects every step that the protocol forbids.

A step whose answer was lost may or may not have been executed, at any later time: the replay then
keeps every state that is still possible, and rejects a step when it is forbidden in all of them.
A process that is killed between etcd's answer and the line about it leaves no line at all: the last
step of each fenced incarnation may be missing (`unlogged.py`). Exit status 1 on a rejection, 2 when
there is no protocol line at all.

--complete    the run has ended in order: at the end nobody may be left registered, holding, fenced
              but not settled, or with a pending instant
--lease-only  the table runs in the mode LeaseOnly: the lock may vanish
--missing operator, --missing jvms  those logs are not there (tests of one part, logs that begin
                                    late): what these did is assumed to be allowed
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.trace.events import WRITES, Event, in_order, read_files, short, with_lost_acquires
from tests.support.trace.rules import step
from tests.support.trace.state import TableState
from tests.support.trace.unlogged import unlogged

MANY = 256
"""Possible states kept at one time; more would mean that nearly every answer of a run was lost."""


@dataclass
class Verdict:
    """Result of the replay of one table."""

    table: str
    steps: int = 0
    rejections: list[str] = field(default_factory=list)


def check(
    events: Iterable[Event], *, complete: bool = False, lease_only: bool = False, missing: Collection[str] = ()
) -> list[Verdict]:
    """Replay the events of all tables.

    After its first rejection a table is not replayed further: what follows would only be its echo.
    """
    tables: dict[str, list[Event]] = defaultdict(list)
    for e in events:
        tables[e.table].append(e)
    start = TableState(lease_only=lease_only, no_operator="operator" in missing, no_jvms="jvms" in missing)
    return [
        _check_table(table, with_lost_acquires(in_order(some)), complete, start.copy())
        for table, some in sorted(tables.items())
    ]


def _check_table(table: str, events: list[Event], complete: bool, start: TableState) -> Verdict:
    """A verdict without what killed processes could not log, if that makes a rejection go, and with
    it the whole trace is replayed.
    """
    verdict = _replay(table, events, complete, start.copy())
    told = verdict
    filled: set[str] = set()
    while verdict.rejections and verdict.steps:
        found = next(
            (
                (lost.actor, with_it, after)
                for lost, with_it in unlogged(events, events[verdict.steps - 1])
                if lost.actor not in filled
                and _gets_further(after := _replay(table, with_it, complete, start.copy()), verdict)
            ),
            None,
        )
        if found is None:
            return told
        actor, events, verdict = found
        filled.add(actor)
    return verdict


def _gets_further(after: Verdict, before: Verdict) -> bool:
    """With one step more."""
    return not after.rejections or after.steps > before.steps + 1


def _replay(table: str, events: list[Event], complete: bool, start: TableState) -> Verdict:
    verdict = Verdict(table)
    notes = [e for e in events if e.role != "operator" and e.action == "settle-update" and e.detail == "RollingBack"]
    start.outcomes_logged = not notes or any(e.outcome for e in notes)
    states = [start]
    written = 0
    for e in events:
        verdict.steps += 1
        wrong = ""
        if e.ok and e.rev and e.action in WRITES:
            if e.rev == written:
                wrong = "two transactions cannot have written at one revision"
            written = e.rev
        if not wrong:
            states, wrong = _advance(states, e)
        if wrong:
            verdict.rejections.append(f"{e.where}: {e.said()}: {wrong}")
            return verdict
    if complete:
        # A request that is still without an answer at the end may have been executed nevertheless.
        left = [_unfinished(t) for s in states for t in (_closure(s, events[-1]) if s.maybe else [s])]
        if all(left):
            verdict.rejections.append(f"at the end of the trace: {left[0]}")
    return verdict


def _advance(states: list[TableState], e: Event) -> tuple[list[TableState], str]:
    """Every state that is possible after the event.

    If there is none, why the event was forbidden.
    """
    if len(states) == 1 and not states[0].maybe and not e.unknown:  # nothing is in doubt: no copies
        return states, step(states[0], e)
    after: list[TableState] = []
    reason = ""
    for s in states:
        if e.unknown:
            t = s.copy()
            t.maybe.append(e)
            after.append(t)
            continue
        for t in _closure(s, e):
            wrong = step(t, e)
            if wrong:
                reason = reason or wrong
            else:
                _forget(t, e)
                after.append(t)
    unique = {repr(t): t for t in after}
    return list(unique.values())[:MANY], "" if after else reason


def _closure(s: TableState, e: Event) -> list[TableState]:
    """The state, and what it may have become by lost requests that etcd has executed since."""
    found = [s.copy()]
    for n, lost in enumerate(s.maybe):
        for variant in _executions(s, lost, e):
            t = s.copy()
            del t.maybe[n]
            if not step(t, variant):
                found += _closure(t, e)
    return found


def _executions(s: TableState, lost: Event, now: Event) -> list[Event]:
    """Possible forms of the lost request: its log line lacks details that only the answer has."""
    known = now.actor == lost.actor and now.action == lost.action  # the same client asks again, and says for what
    if lost.action == "settle-update":
        details = ["Terminating", "Draining", "Unlocked", "RollingBack", "Swept"]
    elif lost.action == "gate-put":
        details = ["open", "closed", "frozen"]
    elif lost.action == "unlock":
        details = [s.owner]
    elif lost.action == "release":
        details = ["", ",".join(t for t, r in sorted(s.instants.items()) if r.token == s.token and r.promised)]
        return [replace(lost, ok=True, rev=now.rev, token=s.token, detail=d) for d in dict.fromkeys(details)]
    elif lost.action in ("record-instant", "publish"):
        return [replace(now, ok=True)] if known else []
    else:
        details = [now.detail if known else ""]
    return [
        replace(lost, ok=True, rev=now.rev, detail=d, attempt=now.attempt if known else lost.attempt) for d in details
    ]


def _forget(s: TableState, e: Event) -> None:
    """A definite answer ends the uncertainty of the same client's earlier requests of that kind."""
    s.maybe = [
        x
        for x in s.maybe
        if not (x.actor == e.actor and x.action == e.action and x.key == e.key and x.instant == e.instant)
    ]


def _unfinished(s: TableState) -> str:
    """Remains of a run that should have ended in order; empty: none.

    Without the operator's log the sweep is the end of a dead incarnation: the removal of its keys
    after that is a step of the operator.
    """
    if s.owner:
        return f"{short(s.owner)} still holds the lock (I6)"
    swept = {inc for inc, phase in s.settles.items() if s.no_operator and phase == "Swept"}
    for inc, phase in s.settles.items():
        if phase != "Settled" and inc not in swept:
            return f"{short(inc)} is not settled, its phase is {phase} (I6)"
    for inc in s.writers:
        if s.roles.get(inc) != "agent" and inc not in swept:
            return f"{short(inc)} is still registered (I6)"
    for attempt in sorted(s.admits - set(s.writers.values())):
        return f"the attempt {attempt} is still admitted (I6)"
    known = {t for inc, t in s.outcomes if inc in swept}
    for t, r in s.instants.items():
        if t not in known and not (r.owner in swept and not s.outcomes_logged):
            return f"the record of {t} is left, owned by {short(r.owner)} (I6)"
    return ""


def assert_conform(
    paths: Iterable[Path],
    *,
    complete: bool = False,
    lease_only: bool = False,
    missing: Collection[str] = (),
    tables: Collection[str] | None = None,
) -> int:
    """For tests: the logs of a run conform; returns the number of steps.

    Raises AssertionError with the sentences of all rejections.

    `tables` are the ids of the tables that are looked at; None: all.
    """
    events = [e for e in read_files(paths) if tables is None or e.table in tables]
    verdicts = check(events, complete=complete, lease_only=lease_only, missing=missing)
    rejections = [f"table {v.table}: {text}" for v in verdicts for text in v.rejections]
    if rejections:
        raise AssertionError("the protocol log does not conform: " + "; ".join(rejections))
    if not events:
        raise AssertionError("no protocol line in the logs")
    return len(events)


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.trace.conform", description="Replay protocol logs and reject forbidden steps."
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--complete", action="store_true", help="the run has ended in order: nothing may be left")
    parser.add_argument("--lease-only", action="store_true", help="the mode LeaseOnly: the lock may vanish")
    parser.add_argument(
        "--missing", action="append", choices=("operator", "jvms"), default=[], help="logs that are not there"
    )
    options = parser.parse_args(arguments)
    try:
        events = read_files(options.files)
    except ValueError as error:
        print(f"REJECTED {error}")
        return 1
    verdicts = check(events, complete=options.complete, lease_only=options.lease_only, missing=options.missing)
    for v in verdicts:
        print(f"table {v.table}: {v.steps} steps, {'rejected' if v.rejections else 'conform'}")
        for text in v.rejections:
            print(f"  REJECTED {text}")
    if not events:
        print("no protocol line found")
        return 2
    return 1 if any(v.rejections for v in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
