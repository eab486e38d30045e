"""Waits before a write, which avoid work that would lose its conflict (RFC-22 R23, R42).

Fairness only; safety does not depend on it: conflicts are found at the commit.

One wait, at the beginning of a write, with four reasons:

* the last try yielded to a pending write of higher priority: wait until that write has ended;
* the last try stopped at the marker of a pending write (early conflict detection): wait until that
  write has ended, and until the own last try is rolled back, whose markers would stop
  this one again;
* this writer has lost `after` consecutive races to the same other writer: it requests a turn, and
  waits until the current write of the other has ended;
* another writer requests a turn against this one, whose priority is not higher: wait until the
  other has committed.

A writer's report in etcd contains its stage and its request for a turn. Each writer first reports
"Writing" and then reads the requests of others, or first puts its request and then reads which
writers are "Writing": of two writers at least one sees the other. No wait exceeds `WAIT_SECONDS`.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from hudi_contract import metadata
from hudi_contract.keys import Kind, attempt_report
from hudi_contract.reports import AttemptReport, Turn
from hudi_contract.table_keys import InstantRecord, Registration
from hudi_contract.words import Stage
from hudi_runtime.process.etcd import Etcd, now_ms
from hudi_runtime.process.result import Reporter
from hudi_runtime.process.session import Conflict, Session
from hudi_runtime.process.stopping import Stop
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import Table

MAX_YIELDS = 3
"""Number of times that a batch yields to writers of higher priority; after that it competes like
all others, so that it does not starve.
"""
WAIT_SECONDS = 600
"""Upper bound of one wait."""
POLL_SECONDS = 1.0
TURNS = 8
"""Number of commits for which two writers take turns; then they try without turns again."""


def writer_of(attempt: str) -> str:
    """Id of the HudiWriter: the attempt's id without its number."""
    return attempt.rpartition("-")[0]


@dataclass(frozen=True)
class _Other:
    """A living attempt of another writer.

    Its report and the report's revision, its priority, its Pending instants.
    """

    writer: str
    report: AttemptReport
    revision: int
    priority: int
    instants: tuple[str, ...]

    @property
    def wish(self) -> Turn:
        """Its request for a turn."""
        return self.report.turn or Turn()

    @property
    def work(self) -> frozenset[tuple[str, int]]:
        """Its current work: its Pending instants, and the write that it is about to begin.

        An application does not report the latter.
        """
        begins = (
            {("report", self.revision)}
            if self.report.stage == Stage.WRITING and self.report.turn is not None
            else set()
        )
        return frozenset(begins | {(instant, 0) for instant in self.instants})


@dataclass(frozen=True)
class _Snapshot:
    """State in etcd: this attempt's own priority, and the other attempts."""

    priority: int
    others: tuple[_Other, ...]

    @classmethod
    def now(cls, etcd: Etcd, inc: str) -> _Snapshot:
        """Read the state, all of it at one revision.

        Raises the error of the JVM when etcd does not answer.
        """
        told, living, recorded, writers = etcd.ranges(
            Kind.REPORT.of(attempt_report("")), Kind.ALIVE.every, Kind.INSTANT.every, Kind.WRITER.every
        )
        reports = {entry.name: entry for entry in told}
        alive = {entry.name for entry in living}
        pending: dict[str, list[str]] = {}
        for entry in recorded:
            record = entry.read(InstantRecord)
            if record.pending:
                pending.setdefault(record.inc, []).append(entry.name)
        mine, others = 0, []
        for entry in writers:
            writer = entry.read(Registration)
            if entry.name == inc:
                mine = writer.priority
            elif entry.name in alive and writer.attempt in reports:
                report = reports[writer.attempt]
                instants = tuple(pending.get(entry.name, ()))
                others.append(
                    _Other(
                        writer_of(writer.attempt),
                        report.read(AttemptReport),
                        report.mod_revision,
                        writer.priority,
                        instants,
                    )
                )
        return cls(mine, tuple(others))


class Fairness:
    """The waits of one attempt, one batch after the other."""

    def __init__(
        self, session: Session, table: Table, reporter: Reporter, stop: Stop, *, after: int, early: bool = False
    ) -> None:
        self._session = session
        self._table = table
        self._reporter = reporter
        self._stop = stop
        self._after = after
        self._early = early
        self._me = writer_of(session.attempt)
        self._yields = 0
        self._first: frozenset[str] = frozenset()
        """Instants that must end before this writer's next one."""
        self._opponent = ""
        self._lost = 0
        self._turns_left = 0

    # -- events of a batch -------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a new batch."""
        self._yields, self._first = 0, frozenset()
        self._reporter.turn = Turn()
        if self._turns_left > 0:
            self._ask()

    def lost(self, conflict: Conflict) -> None:
        """Record that the batch has lost a race, or yielded."""
        self._first = frozenset({conflict.instant} if self._early else ())
        if conflict.yielded or conflict.early:
            self._yields += conflict.yielded
            self._first |= {conflict.other}
            return
        winner = self._winner(conflict.other) if self._after > 0 else ""
        self._lost = self._lost + 1 if winner == self._opponent else 1
        self._opponent = winner
        if winner and self._lost >= self._after:
            self._turns_left = TURNS
            self._ask()

    def committed(self) -> None:
        """Record that the batch is committed: writers that wait for this one continue."""
        self._turns_left = max(0, self._turns_left - 1)
        # After the turns, a single lost race is enough to return to them.
        self._lost = self._after - 1 if self._turn.against else 0
        self._reporter.turn = Turn()

    def _ask(self) -> None:
        self._reporter.turn = Turn(against=self._opponent, since_ms=self._turn.since_ms or now_ms())

    @property
    def _turn(self) -> Turn:
        """This writer's request for a turn."""
        return self._reporter.turn or Turn()

    # -- the wait ----------------------------------------------------------------------------------

    def wait(self) -> bool:
        """Wait before a write as the rules require. True: a stop of this attempt was requested."""
        self._session.may_yield(MAX_YIELDS - self._yields)
        self._reporter.stage(Stage.WRITING)
        look = self._look()
        # Wait only for the current work of the opponent.
        at_work = frozenset(
            work
            for other in look.others
            if self._turn.against and other.writer == self._opponent
            for work in other.work
        )
        names = self._in_the_way(look, at_work)
        end = time.monotonic() + WAIT_SECONDS
        while names and time.monotonic() < end:
            if self._reporter.last_stage is not Stage.YIELDING:
                print(f"waits before it writes: {', '.join(names)}", file=sys.stderr, flush=True)
                self._reporter.stage(Stage.YIELDING)
            if self._stop.wait(POLL_SECONDS):
                return True
            names = self._in_the_way(self._look(), at_work)
            if not names:
                self._reporter.stage(Stage.WRITING)
                names = self._in_the_way(self._look(), at_work)
        if self._reporter.last_stage is not Stage.WRITING:
            self._reporter.stage(Stage.WRITING)
        self._first = frozenset()
        return False

    def _look(self) -> _Snapshot:
        """Treat other writers as absent while etcd is unreachable: that must not fail a write."""
        if self._after > 0:
            try:
                return _Snapshot.now(self._session.etcd, self._session.inc)
            except Exception as error:
                print(f"cannot read the state of other writers: {type(error).__name__}", file=sys.stderr, flush=True)
        return _Snapshot(0, ())

    def _in_the_way(self, look: _Snapshot, at_work: frozenset[tuple[str, int]]) -> list[str]:
        """Descriptions of the writes to wait for; empty: the write may begin."""
        pending = {i.requested for i in self._table.timeline().pending} if self._first else set()
        names = [f"instant {instant}" for instant in sorted(self._first & pending)]
        names.extend(f"{o.writer}, which is writing" for o in look.others if at_work & o.work)
        names.extend(
            f"{o.writer}, whose turn it is"
            for o in look.others
            if o.wish.against == self._me and self._goes_first(o, look.priority)
        )
        return names

    def _goes_first(self, other: _Other, priority: int) -> bool:
        """Whether the request of another writer precedes the next write of this one.

        The older one of two requests has precedence.
        """
        if other.priority != priority:
            return other.priority > priority
        mine = self._turn
        return not mine.against or (other.wish.since_ms, other.writer) < (mine.since_ms, self._me)

    def _winner(self, instant: str) -> str:
        """The writer of a completed instant; empty when its metadata do not name one."""
        found = tuple(
            i for i in self._table.timeline().completed if i.requested == instant and i.action in tl.WRITE_ACTIONS
        )
        for _, info in self._table.commits(found):
            return writer_of(info.extra.get(metadata.ATTEMPT, ""))
        return ""
