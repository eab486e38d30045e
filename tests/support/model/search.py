"""Breadth-first search of every reachable state, and the backward search for states from which
nothing can be settled any more.

Breadth first: the first state that breaks an invariant is reached by a shortest counter-example.
Backward: I6 demands that from *every* reachable state a settled one can still be reached ("AG EF
settled"); a state from which none can be reached is a counter-example to I6.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.model.agent import agent
from tests.support.model.environment import environment
from tests.support.model.invariants import INVARIANTS, settled
from tests.support.model.operator import operator, urgent
from tests.support.model.rules import Configuration
from tests.support.model.state import RUNNING, Inc, Instant, State, Time, swapped
from tests.support.model.transactions import Step
from tests.support.model.writer import writer


@dataclass
class Result:
    """Result of one search."""

    states: int
    seconds: float
    complete: bool
    """False: stopped at the limit of states, or as soon as all that was looked for
    had been found.
    """
    counter_examples: dict[str, list[str]] = field(default_factory=dict)
    """Invariant → the shortest list of steps that breaks it."""


def initial(c: Configuration) -> list[State]:
    """One initial state per alternative of file groups."""
    incs = []
    for i, role in enumerate(c.roles):
        later = role in ("next", "twin") or (role == "agent" and i != c.agents[0])
        if later:
            incs.append(Inc("off", driver=False, own_gate=1))
        elif c.program == "lock" and (role == "writer" or c.gate):
            incs.append(Inc("started", own_gate=0 if c.gate else 1))
        else:
            incs.append(
                Inc(
                    "idle",
                    lease=1,
                    own_lease=1,
                    alive=1,
                    own_alive=1,
                    puts=1,
                    own_gate=1,
                    writer=True,
                    executor=RUNNING if role == "writer" and c.lost_executors else 0,
                )
            )
    instants = [Instant() for role in c.roles if role != "agent"] if c.program == "commit" else []
    if c.begun:
        incs[0] = incs[0]._replace(pc="writing")
        instants[0] = Instant(record="P", requested=True)
    if c.foreign:
        instants.append(Instant(requested=True))
    if c.compaction:
        instants.append(Instant(record="P", requested=True, claim=c.agents[0]))
    skew = (1,) + (0,) * (len(c.roles) - 1) if c.clock else ()
    start = State(tuple(incs), tuple(instants), (), time=Time(now=2, skew=skew) if c.clock else Time())
    if c.gate:
        start = start._replace(gate=start.gate._replace(lease_only=True))
    return [start._replace(files=files if instants else ()) for files in c.files]


def steps(s: State, c: Configuration) -> Iterator[Step]:
    """Every step that anybody can take in state `s`; of urgent ones only the first."""
    first = list(urgent(s, c))
    if first:
        yield from first
        return
    for i, role in enumerate(c.roles):
        if role == "agent":
            yield from agent(s, c, i)
        else:
            yield from writer(s, c, i)
    yield from operator(s, c)
    yield from environment(s, c)


def explore(c: Configuration, *, until: frozenset[str] = frozenset(), limit: int = 2_000_000) -> Result:
    """Search configuration `c`.

    With `until`, stop when all those invariants are broken (I6 needs the complete graph).
    """
    began = time.process_time()
    gc.disable()  # millions of tuples, no cycles
    try:
        return _explore(c, until, limit, began)
    finally:
        gc.enable()


def _explore(c: Configuration, until: frozenset[str], limit: int, began: float) -> Result:
    number: dict[State, int] = {}
    order: list[State] = []
    parent: list[tuple[int, str]] = []
    before: list[list[int]] = []
    first: dict[str, int] = {}
    checks = list(INVARIANTS.items())

    def visit(s: State, origin: int, label: str) -> None:
        n = number.setdefault(s, len(order))  # one hash of the whole state
        if n == len(order):
            order.append(s)
            parent.append((origin, label))
            before.append([])
            broken = [name for name, holds in checks if not holds(s, c)]
            for name in broken:
                first[name] = n
            if broken:
                checks[:] = [x for x in checks if x[0] not in first]
        if origin >= 0:
            before[n].append(origin)

    for s in initial(c):
        visit(_canonical(s, c), -1, "")
    done = 0
    stop = bool(until) and "I6" not in until
    while done < len(order) and len(order) < limit and not (stop and until <= first.keys()):
        s = order[done]
        for label, t in steps(s, c):
            if t is not s:
                visit(_canonical(t, c), done, label)
        done += 1
    complete = done == len(order)
    if complete:
        stuck = _stuck(order, before, c)
        if stuck is not None:
            first["I6"] = stuck
    examples = {name: _path(parent, n) for name, n in sorted(first.items(), key=lambda x: int(x[0][1:]))}
    return Result(len(order), time.process_time() - began, complete, examples)


def _canonical(s: State, c: Configuration) -> State:
    """The representative of states that differ only in the numbers of two equal writers."""
    return min(s, swapped(s), key=_rank) if c.symmetric else s


def _rank(s: State) -> tuple[object, ...]:
    lock = s.lock.owner if s.lock else -1
    return (s.files, s.incs, s.instants, lock, s.wire)


def _stuck(order: list[State], before: list[list[int]], c: Configuration) -> int | None:
    """The first state (in order of distance) from which no settled state can be reached (I6)."""
    good = bytearray(len(order))
    todo = [n for n, s in enumerate(order) if settled(s, c)]
    for n in todo:
        good[n] = 1
    while todo:
        for m in before[todo.pop()]:
            if not good[m]:
                good[m] = 1
                todo.append(m)
    n = good.find(0)
    return None if n < 0 else n


def _path(parent: list[tuple[int, str]], n: int) -> list[str]:
    path: list[str] = []
    while parent[n][0] >= 0:
        n, label = parent[n][0], parent[n][1]
        path.append(label)
    return path[::-1]
