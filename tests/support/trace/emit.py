"""Synthetic traces: random walks of the model, written in the format of the protocol log.

The log lines follow from the difference of two states, so the emitter knows nothing of the model's
program. A walk ends when everything is settled; its trace is what a real run of the same history
would have logged.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.support.model.invariants import settled
from tests.support.model.rules import Configuration
from tests.support.model.search import initial, steps
from tests.support.model.state import COLLECTED, DRAINING, NONE, PHASES, ROLLING_BACK, SETTLED, SWEPT, State
from tests.support.trace.events import Event

# Words of steps that are rarer than others: without this nearly every walk would end in
# its first steps.
FAULTS = ("runs out", "dies", "no answer", "Abandoned", "cut off", "held the lock for too long")


@dataclass
class Emitter:
    """Turns the steps of one walk into log lines."""

    c: Configuration
    random: random.Random
    table: str = "0123456789abcdef0123456789abcdef"
    rev: int = 10
    clock: int = 20260101000000000
    events: list[Event] = field(default_factory=list)
    tokens: dict[int, int] = field(default_factory=dict)
    instants: dict[int, str] = field(default_factory=dict)
    rollbacks: dict[int, str] = field(default_factory=dict)
    planners: dict[int, int] = field(default_factory=dict)
    """Per instant: the incarnation that recorded its rollback, until an outcome of that is written
    or its release removes the record.
    """
    finished: dict[int, str] = field(default_factory=dict)
    """Per incarnation: the instant that its next release calls completed."""

    told: set[int] = field(default_factory=set)
    """Instants whose outcome was written to a settle record."""

    def __post_init__(self) -> None:
        self.incs = [str(uuid.UUID(int=self.random.getrandbits(128), version=4)) for _ in self.c.roles]

    def begin(self, s: State) -> None:
        """Gate, admissions, and the registrations that the walk takes for granted."""
        self.operator("gate-put", key="gate", detail="closed")
        self.operator("gate-put", key="gate", detail="open")
        for i, x in enumerate(s.incs):
            if x.writer:
                self.admit(i)
                self.jvm(i, "register", attempt=self.attempt(i))
        for k, y in enumerate(s.instants):
            if y.record == "P":
                self.jvm(k, "acquire", nonce="first")
                self.tokens[k] = self.rev
                self.instants[k] = self.time()
                self.jvm(k, "record-instant", instant=self.instants[k], token=self.rev, detail="commit")
                self.jvm(k, "release", token=self.tokens[k])

    def admit(self, i: int) -> None:
        """Before its pod is created; a second JVM of an attempt needs no other admission."""
        if self.c.roles[i] != "twin":
            self.operator("admit", key=f"admit/{self.attempt(i)}")

    def attempt(self, i: int) -> str:
        """A second JVM shares the attempt of the first."""
        return f"ns.driver-{0 if self.c.roles[i] == 'twin' else i}"

    def operator(self, action: str, **more: Any) -> None:
        """One line of the operator."""
        self._write("operator", "operator", action, more)

    def jvm(self, i: int, action: str, **more: Any) -> None:
        """One line of a driver or an agent."""
        self._write(self.incs[i], "agent" if self.c.roles[i] == "agent" else "writer", action, more)

    def _write(self, actor: str, role: str, action: str, more: dict[str, Any]) -> None:
        ok = bool(more.pop("ok", True))
        write = bool(more.pop("write", ok))
        if write:
            self.rev += self.random.randint(1, 3)
        if action == "acquire" and ok:
            more["token"] = self.rev
        where = f"{actor[:8]}.log:{len(self.events) + 1}"
        self.events.append(
            Event(
                self.table,
                actor,
                role,
                action,
                self.rev if write or not ok else 0,
                ok,
                ts=1767225600000 + len(self.events),
                where=where,
                **more,
            )
        )

    def time(self) -> str:
        """A time past the clock."""
        self.clock += self.random.randint(1, 5000)
        return str(self.clock)

    def emit(self, s: State, t: State) -> None:
        """Log what happened between two states."""
        for k, (x, y) in enumerate(zip(s.instants, t.instants, strict=True)):
            if x.record == "-" and y.record == "P":
                self.instants[k] = self.time()
                self.jvm(k, "record-instant", instant=self.instants[k], token=self.tokens.get(k, 0), detail="commit")
            if x.record == "P" and y.record == "A":
                self.jvm(k, "abandon", instant=self.instants[k])
        for i in range(len(s.incs)):
            self._incarnation(i, s, t)
        self._rollbacks(s, t)
        self._lock(s, t)

    def _incarnation(self, i: int, s: State, t: State) -> None:
        x, y = s.incs[i], t.incs[i]
        if not x.writer and y.writer:
            self.admit(i)
            self.jvm(i, "register", attempt=self.attempt(i))
        elif not x.own_alive and y.own_alive:
            self.jvm(i, "keepalive")
        if x.pc == "metadata" and y.pc == "promised":
            self.finished[i] = self.instants[i]
            self.jvm(i, "publish", instant=self.instants[i], token=self.tokens[i], detail=self.time())
        if y.pc == "failing":
            self.finished.pop(i, None)
        if x.pc in ("sent", "creating") and y.pc == "unsure" and i in self.finished:
            self.jvm(i, "drain", token=self.tokens[i], detail=self.finished[i], write=False)
        if x.pc == "unsure" and y.pc in ("finishing", "failing") and i in self.instants:
            self.jvm(
                i,
                "drained",
                instant=self.instants[i],
                detail="Completed" if y.pc == "finishing" else "Absent",
                write=False,
            )
        if x.pc != "exited" and y.pc == "exited":
            self.jvm(i, "clean-exit")
            if not any(z.writer for j, z in enumerate(t.incs) if j != i and self.attempt(j) == self.attempt(i)):
                self.operator("delete-admit", key=f"admit/{self.attempt(i)}")
        self._settling(i, s, t)

    def _settling(self, i: int, s: State, t: State) -> None:
        """The phases of incarnation `i`."""
        x, y, key = s.incs[i], t.incs[i], f"settle/{self.incs[i]}"
        if x.phase == NONE and y.phase:
            self.operator("fence", key=f"fence/{self.incs[i]}", detail="Suspect")
        elif x.phase != y.phase and y.phase in (SETTLED, COLLECTED):
            self.operator("settled" if y.phase == SETTLED else "collect", key=key)
        elif x.phase != y.phase and y.phase == SWEPT and self.c.agents:
            for k in [k for k, planner in self.planners.items() if planner == i]:
                del self.planners[k]
                self.jvm(
                    self._agent(t),
                    "settle-update",
                    key=key,
                    detail="RollingBack",
                    instant=self.rollbacks[k],
                    outcome="Completed",
                )
            # Rolled back on its owner's word, which was fenced before that was done with
            for k, instant in enumerate(t.instants):
                if self.c.owner(k) == i and instant.record != "-" and instant.outcome and k not in self.told:
                    self._outcome(k, t)
            self.jvm(self._agent(t), "settle-update", key=key, detail="Swept")
        elif x.phase != y.phase:
            self.operator("settle-update", key=key, detail=PHASES[y.phase])

    def _agent(self, t: State) -> int:
        """An agent that can write the bookkeeping of this step.

        Raises Coarser when there is none.
        """
        for j in self.c.agents:
            if t.incs[j].driver and not t.incs[j].phase:
                return j
        raise Coarser

    def _outcome(self, k: int, t: State) -> None:
        """Record the outcome of an instant in its owner's settle record."""
        self.told.add(k)
        key = f"settle/{self.incs[self.c.owner(k)]}"
        self.jvm(
            self._agent(t),
            "settle-update",
            key=key,
            detail="RollingBack",
            instant=self.instants[k],
            outcome=t.instants[k].outcome,
        )

    def _rollbacks(self, s: State, t: State) -> None:
        """The instant of a rollback is recorded, claimed, published and completed by an agent."""
        for k, (x, y) in enumerate(zip(s.instants, t.instants, strict=True)):
            if not x.rolled and y.rolled:
                self.rollbacks[k] = self.time()
                self.planners[k] = y.roller
                self.jvm(
                    y.roller,
                    "record-instant",
                    instant=self.rollbacks[k],
                    token=self.tokens[y.roller],
                    detail="rollback",
                )
            elif x.rolled == 1 and y.roller != x.roller:
                self.jvm(y.roller, "claim", instant=self.rollbacks[k])
            if x.rolled == 1 and y.rolled == 2:
                if s.incs[y.roller].phase:
                    raise Coarser
                self.finished[y.roller] = self.rollbacks[k]
                self.jvm(
                    y.roller, "publish", instant=self.rollbacks[k], token=self.tokens[y.roller], detail=self.time()
                )
                first = self.planners[k]
                if first != y.roller:
                    del self.planners[k]
                    self.jvm(
                        y.roller,
                        "settle-update",
                        key=f"settle/{self.incs[first]}",
                        detail="RollingBack",
                        instant=self.rollbacks[k],
                        outcome="Reexecuted",
                    )
            owner = self.c.owner(k)
            if not x.outcome and y.outcome and owner >= 0 and t.incs[owner].phase == ROLLING_BACK:
                self._outcome(k, t)
            if x.record == "A" and y.record == "-" and t.incs[owner].phase == s.incs[owner].phase:
                self.jvm(self._agent(t), "done", instant=self.instants[k], detail="abandoned RolledBack", write=False)

    def _lock(self, s: State, t: State) -> None:
        if s.lock is None and t.lock is not None:
            i = t.lock.owner
            self.jvm(i, "acquire", nonce=f"{self.incs[i][:8]}-{self.rev}")
            self.tokens[i] = self.rev
        elif s.lock is not None and t.lock is None:
            i = s.lock.owner
            if s.incs[i].phase >= DRAINING:
                self.operator("unlock", key="lock", detail=self.incs[i], token=self.tokens[i])
            else:
                done = self.finished.pop(i, "")
                self.planners = {k: planner for k, planner in self.planners.items() if self.rollbacks[k] != done}
                self.jvm(i, "release", token=self.tokens[i], detail=done)
        elif s.lock is None and t.lock is None:
            self._refused(s, t)

    def _refused(self, s: State, t: State) -> None:
        for i, (x, y) in enumerate(zip(s.incs, t.incs, strict=True)):
            if x.driver and not y.driver and not x.own_alive and x.fence:
                self.jvm(i, "keepalive", ok=False)


class Coarser(Exception):
    """No trace is like this step: the model lets a fenced agent act until its death is proven, and
    a rollback's publication and file are one step.

    A real transaction of a fenced agent is refused.
    """


def walk(c: Configuration, seed: int, longest: int = 600) -> list[Event] | None:
    """The trace of one random walk to the end.

    None: it took too long, or no trace of real transactions is like it (Coarser).
    """
    choose = random.Random(seed)
    s = choose.choice(initial(c))
    emitter = Emitter(c, choose)
    emitter.begin(s)
    for _ in range(longest):
        possible = [(label, t) for label, t in steps(s, c) if t is not s and t != s]
        if not possible or (
            settled(s, c) and all(x.pc != "off" or c.roles[i] == "agent" for i, x in enumerate(s.incs))
        ):
            break
        t = choose.choices(
            [t for _, t in possible], [0.1 if any(word in label for word in FAULTS) else 1.0 for label, _ in possible]
        )[0]
        try:
            emitter.emit(s, t)
        except Coarser:
            return None
        s = t
    return emitter.events if settled(s, c) else None
