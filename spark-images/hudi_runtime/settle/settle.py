"""The agent's part of settling.

RollingBack → Swept, and the instants that living writers have
abandoned (docs/design/protocol.md, Settling).

Each pass starts from the present state of etcd and the timeline, so the next agent continues when
one is killed at any point (I6). Each outcome is written to `settle/<inc>` by compare-and-set before
the next instant is handled; a failure is counted there and retried with back-off.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hudi_contract import keys
from hudi_contract.backoff import exponential
from hudi_contract.keys import Kind
from hudi_contract.requests import Abandoned, Counted, named
from hudi_contract.settle import Phase, Reason, SettledInstant, SettleRecord
from hudi_contract.shape import Record, ShapeError
from hudi_contract.table_keys import InstantRecord, Registration
from hudi_contract.words import InstantState, Outcome, RequestKind, Role, Service
from hudi_runtime.process.errors import OutcomeUnknown, classify, environment_secrets, record_message
from hudi_runtime.process.etcd import Entry, now_ms, protocol_log
from hudi_runtime.process.session import FENCED
from hudi_runtime.settle.agent_session import AgentSession
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.settle.rollback import NotYet, look_and_roll_back
from hudi_runtime.settle.sweep import INSTANTS_AT_ONCE, Listing, Stopped, sweep, sweep_unnamed
from hudi_runtime.table.service_kinds import SERVICE_ACTIONS

COMMIT = "commit"
"""Action of an instant of which only the owner is known."""
FIRST_BACKOFF_SECONDS = 2.0
MAX_BACKOFF_SECONDS = 60.0
ABANDONED_KEPT = 500
"""Instants in one `done/abandoned-<inc>`. The records of what its owner abandons beyond them stay
until it has ended: each has a key of its own, so their number needs no bound (F634).
"""


@dataclass(frozen=True)
class Records:
    """The table's keys as one pass of the agent read them."""

    instants: Mapping[str, Entry]
    settles: Mapping[str, Entry]
    writers: Mapping[str, Entry]
    """`writer/<inc>`: registered incarnations, agents included."""
    given_up: Mapping[str, Entry]
    """`done/abandoned-<inc>`: abandoned instants that were rolled back while their
    owner was alive.
    """
    services: Mapping[str, Entry] = field(default_factory=dict)
    """`done/service-<kind>`, keyed by `service-<kind>`: last run of each table service."""
    counted: Mapping[str, Any] = field(default_factory=dict)
    """`done/counted`, by service: its commits that archival may have removed from
    the active timeline.
    """
    holds: Mapping[str, Entry] = field(default_factory=dict)
    """`done/hold-<name>`, keyed by `hold-<name>`: commits whose files stay for readers."""

    @classmethod
    def from_entries(cls, entries: Iterable[Entry], *, prefix: str) -> Records:
        """Sort the keys of one range over `P/tables/T/`."""
        kinds: dict[str, dict[str, Entry]] = {}
        for entry in entries:
            kind, _, name = entry.key.removeprefix(prefix).partition("/")
            kinds.setdefault(kind, {})[name] = entry
        done = kinds.get(Kind.DONE, {})
        given_up = {inc: entry for name, entry in done.items() if (inc := keys.abandoned_by(name))}
        services = {name: entry for name, entry in done.items() if named(RequestKind.SERVICE, name)}
        holds = {name: entry for name, entry in done.items() if named(RequestKind.HOLD, name)}
        counted = done[keys.COUNTED].value if keys.COUNTED in done else {}
        return cls(
            kinds.get(Kind.INSTANT, {}),
            kinds.get(Kind.SETTLE, {}),
            kinds.get(Kind.WRITER, {}),
            given_up,
            services,
            counted,
            holds,
        )

    @property
    def of_unknown_owner(self) -> tuple[str, ...]:
        """Instants whose record cannot be read: any incarnation may own or have claimed them."""
        return tuple(instant for instant, entry in self.instants.items() if entry.unreadable)

    @property
    def _instants(self) -> Iterable[InstantRecord]:
        return (entry.read(InstantRecord) for entry in self.instants.values())

    @property
    def _settles(self) -> Iterable[SettleRecord]:
        return (entry.read(SettleRecord) for entry in self.settles.values())

    def proven(self, inc: str) -> bool:
        """Whether an incarnation can do nothing any more.

        Its proof and drain are complete, or it left by a clean exit.

        A clean exit leaves no Pending instant: an unregistered incarnation with a Pending instant
        has an unknown state (I11, F38). The same holds for each one while the owner of an instant
        is unknown.
        """
        settle = self.settles.get(inc)
        if settle is not None:
            return settle.read(SettleRecord).phase >= Phase.RollingBack
        return (
            inc not in self.writers
            and not self.of_unknown_owner
            and not any(inc in (held.inc, held.claimed_by) for held in self._instants if held.pending)
        )

    def other_agents(self, me: str) -> list[str]:
        """Agent incarnations other than this one that may still do something (F22).

        One whose registration cannot be read may be an agent.
        """
        known = {**self.settles, **self.writers}
        agents = {inc for inc, entry in known.items() if entry.unreadable or entry.read(Registration).is_agent}
        return sorted(inc for inc in agents if inc != me and not self.proven(inc))

    def rolling_back(self) -> bool:
        """Whether an instant of a dead incarnation waits to be rolled back.

        A service instant that waits for its execution does not count.
        """
        open_items = (
            item
            for record in self._settles
            if record.phase is Phase.RollingBack
            for item in (record.instants or {"": SettledInstant()}).values()
            if item.outcome is None
        )
        return any(item.action not in SERVICE_ACTIONS for item in open_items)

    def work_for_the_settler(self) -> bool:
        """Whether a pass of the settler may find work."""
        handed_over = any(record.phase is Phase.RollingBack for record in self._settles)
        return handed_over or bool(self.given_up) or any(record.abandoned for record in self._instants)

    def settling(self) -> bool:
        """Whether an incarnation that has left instants, or may have, is not completely settled."""
        given_up = any(record.abandoned for record in self._instants)
        return given_up or any(record.phase < Phase.Swept for record in self._settles)

    def adopting(self) -> bool:
        """Whether instants of a table's former writers have no outcome yet."""
        return any(
            entry.unreadable or (record.reason == Reason.ADOPTED and record.phase < Phase.Swept)
            for entry, record in zip(self.settles.values(), self._settles, strict=True)
        )

    def services_of(self, me: str) -> dict[str, str]:
        """Pending service instants whose only executor is this incarnation (I12).

        They come with their action.
        """
        known = {instant: entry.read(InstantRecord) for instant, entry in self.instants.items()}
        return {
            instant: record.action
            for instant, record in known.items()
            if record.pending and record.action in SERVICE_ACTIONS and (record.claimed_by or record.inc) == me
        }

    def counted_of(self, service: Service) -> Counted | None:
        """The count recorded for a service; None when there is none, or it cannot be read."""
        found = self.counted.get(service)
        return None if found is None or Counted.wrong(found) else Counted.known(found)

    def given_up_by(self, inc: str) -> tuple[str, ...]:
        """Instants of `done/abandoned-<inc>`.

        Raises ShapeError when they cannot be read: they must not be lost (I4).
        """
        entry = self.given_up.get(inc)
        return Abandoned.from_json(entry.readable).instants if entry is not None else ()


def instants_of(inc: str, record: SettleRecord, records: Records) -> dict[str, str]:
    """Instants (with their action) to settle for an incarnation.

    Recorded, owned, claimed, or abandoned by it (I7). Raises ShapeError.
    """
    found = {instant: item.action for instant, item in record.instants.items()}
    for instant, entry in records.instants.items():
        owned = entry.read(InstantRecord)
        if inc in (owned.inc, owned.claimed_by):
            found.setdefault(instant, owned.action)
    for instant in records.given_up_by(inc):
        found.setdefault(instant, COMMIT)
    return found


def _outcome(end: Outcome | Exception) -> Outcome:
    if isinstance(end, Exception):
        raise end
    return end


def backoff(failures: int) -> float:
    """Seconds before the next try after that many failures."""
    return exponential(failures, first=FIRST_BACKOFF_SECONDS, longest=MAX_BACKOFF_SECONDS)


@dataclass
class _Handed:
    """The settle record of an incarnation that is handed over, as this pass writes it on."""

    inc: str
    record: SettleRecord
    revision: int
    due: frozenset[str]
    """Its instants that are looked at now."""
    changed: bool = False
    """Somebody else has written it: the next pass begins with what is there (I6)."""


@dataclass
class Settler:
    """Rolls back and sweeps instants of one table."""

    table: AgentTable
    session: AgentSession
    name: str
    options: Callable[[], Mapping[str, str]]
    """Hudi options of the agent's clients, at each use."""
    ended: set[str] = field(default_factory=set)
    """Instants of this incarnation whose tasks had all ended when they were abandoned: they cannot
    have late files.
    """
    lost: Callable[[], bool] = lambda: False
    """Whether this process has lost an executor that may still write for an instant of this
    incarnation (F4).
    """
    drain: float = 10.0
    """D in seconds: a request that was on the wire when its owner abandoned the instant, or ended,
    has arrived or failed after D (F35).
    """
    gate_drain: Callable[[], float] = lambda: 0.0
    """D of the gate in seconds, at each use: the longer one counts (F437)."""
    alone: Callable[[], Mapping[str, str]] | None = None
    """`options` while no writer is registered that is not settled here; None: the same."""
    _kept: set[str] = field(default_factory=set)
    """Abandoned instants that were rolled back, and whose records stay while their owner lives."""
    _since: dict[tuple[str, str], float] = field(default_factory=dict)
    _due: dict[tuple[str, str], float] = field(default_factory=dict)
    _failures: dict[tuple[str, str], int] = field(default_factory=dict)

    def run(self, records: Records, *, stopping: Callable[[], bool]) -> int:
        """One pass over all instants that may be settled now.

        Returns how many of them got an outcome.
        """
        done = self._settle(records, stopping)
        done += self._give_up(records, stopping)
        self._collect(records, stopping)
        return done

    def _settle(self, records: Records, stopping: Callable[[], bool]) -> int:
        """Settle what the operator has handed over, of all incarnations together (F562)."""
        handed: list[_Handed] = []
        for inc, entry in records.settles.items():
            if entry.read(SettleRecord).phase is Phase.RollingBack and not stopping():
                handed += self._handed(inc, entry, records)
        done = 0
        due = {instant for one in handed for instant in one.due}
        for instant, end in self._ends(sorted(due), records, stopping):
            done += sum(self._ended(one, instant, end) for one in handed if instant in one.due)
        for one in handed:
            self._swept(one, records)
        return done

    def _handed(self, inc: str, entry: Entry, records: Records) -> list[_Handed]:
        """The record of an incarnation, with its instants; none when it cannot be read."""
        try:
            record = SettleRecord.from_json(entry.readable)
            wanted = instants_of(inc, record, records)
        except ShapeError as unread:
            # Its instants and their outcomes are unknown: all of its data stays unchanged (I11).
            self._later_unread(inc, str(unread))
            return []
        added = {
            instant: SettledInstant(action=action)
            for instant, action in wanted.items()
            if instant not in record.instants
        }
        record = record.but(instants={**record.instants, **added})
        now = time.monotonic()
        due = frozenset(
            instant
            for instant, item in record.instants.items()
            if item.outcome is None and now >= self._due.get((inc, instant), 0.0)
        )
        return [_Handed(inc, record, entry.mod_revision, due)]

    def _ended(self, handed: _Handed, instant: str, end: Outcome | Exception) -> bool:
        """Record the outcome of an instant, or why it has none yet; whether it has one."""
        inc, item = handed.inc, handed.record.instants[instant]
        if isinstance(end, NotYet):
            self._due[(inc, instant)] = time.monotonic() + 2.0
            if item.error == str(end):
                return False
            item = item.but(error=str(end))  # not counted: waiting is not a failure
        elif isinstance(end, Exception):
            item = self._failed(inc, instant, item, end)
        else:
            item = item.but(outcome=end, error="")
        handed.record = handed.record.but(instants={**handed.record.instants, instant: item})
        updated = self._put(inc, handed.record, handed.revision, instant=instant)
        if updated is None:
            handed.changed, handed.due = True, frozenset()
        else:
            handed.revision = updated
        return item.outcome is not None

    def _swept(self, handed: _Handed, records: Records) -> None:
        """Move the record to Swept when every instant of it has an outcome."""
        inc, record = handed.inc, handed.record
        if handed.changed:
            return
        if records.of_unknown_owner:
            # It may be the owner: it waits until the record can be read, or is gone (I7).
            self._later_unread(inc, f"the owner of instant {records.of_unknown_owner[0]} cannot be read")
        elif not record.without_outcome(record.instants):
            record = record.moved(Phase.Swept, now_ms=now_ms())
            if self._put(inc, record, handed.revision) is not None:
                self._forget_given_up(inc, records)

    def _later_unread(self, inc: str, error: str) -> None:
        now = time.monotonic()
        if now >= self._due.get((inc, ""), 0.0):
            self._due[(inc, "")] = now + MAX_BACKOFF_SECONDS
            print(f"{Kind.SETTLE.of(inc)} is left as it is: {error}", file=sys.stderr, flush=True)

    def _failed(self, inc: str, instant: str, item: SettledInstant, error: Exception) -> SettledInstant:
        failure = classify(error, secrets=environment_secrets())
        failed = item.but(failures=item.failures + 1, error=record_message(f"{failure.kind}: {failure.message}"))
        self._due[(inc, instant)] = time.monotonic() + backoff(failed.failures)
        return failed

    def _put(self, inc: str, record: SettleRecord, revision: int, *, instant: str = "") -> int | None:
        """Write the record; `instant` is the instant that has changed."""
        more = {"key": Kind.SETTLE.of(inc), "detail": record.phase.name}
        if instant:
            more |= {"instant": instant, "outcome": str(record.instants[instant].outcome or "")}
        return self._cas("settle-update", Kind.SETTLE.of(inc), record, revision, **more)

    def _cas(self, action: str, name: str, record: Record, revision: int, **more: str) -> int | None:
        """A logged compare-and-set.

        A lost answer is logged as unknown: etcd may have executed it, or may still do so.
        """
        try:
            updated = self.session.etcd.cas(name, record.to_json(), revision)
        except Exception:
            self._log(action, 0, ok=False, **{**more, "detail": "unknown"})
            raise
        self._log(action, updated or 0, ok=updated is not None, **{field: text for field, text in more.items() if text})
        return updated

    def _log(self, action: str, revision: int, *, ok: bool, **more: str) -> None:
        session = self.session
        protocol_log(
            table=session.table_id, actor=session.inc, role=Role.AGENT, action=action, revision=revision, ok=ok, **more
        )

    def _ends(
        self, instants: Sequence[str], records: Records, stopping: Callable[[], bool]
    ) -> Iterator[tuple[str, Outcome | Exception]]:
        """Roll back each instant that needs it, then sweep all of them after one listing (F530).

        As many at a time as one listing looks for: the names of their files are in memory. Yields
        the outcome of each, or why it has none yet. An instant without either, because this process
        stops, is looked at again by the next agent.
        """
        for start in range(0, len(instants), INSTANTS_AT_ONCE):
            looked: dict[str, tuple[Outcome, str]] = {}
            for instant in instants[start : start + INSTANTS_AT_ONCE]:
                if stopping():
                    return
                try:
                    looked[instant] = self._look(instant, records)
                except Exception as error:
                    yield instant, error
            yield from self._sweeps(looked, stopping)

    def _sweeps(
        self, looked: Mapping[str, tuple[Outcome, str]], stopping: Callable[[], bool]
    ) -> Iterator[tuple[str, Outcome | Exception]]:
        if not looked or stopping():
            return
        wanted = [victim or instant for instant, (_, victim) in looked.items()]
        try:
            listing = Listing.of(self.table, wanted, stopping=stopping)
        except Stopped:
            return
        except Exception as error:
            yield from ((instant, error) for instant in looked)
            return
        for instant, (outcome, victim) in looked.items():
            if stopping():
                return
            try:
                if victim:
                    sweep(self.table, victim, listing)
                elif outcome is Outcome.COMPLETED:
                    sweep_unnamed(self.table, instant, listing)
            except Exception as error:
                yield instant, error
            else:
                yield instant, outcome

    def _look(self, instant: str, records: Records) -> tuple[Outcome, str]:
        left = (entry for inc, entry in records.writers.items() if inc not in records.settles)
        alone = all(not entry.unreadable and entry.read(Registration).is_agent for entry in left)
        options = self.alone() if self.alone is not None and alone else self.options()
        return look_and_roll_back(
            self.table, instant, name=self.name, options=options, claim=lambda other: self._claim(other, records)
        )

    def _claim(self, instant: str, records: Records) -> None:
        """Become the executor of an instant.

        Raises NotYet when an unproven incarnation owns or has claimed it, or this one is fenced
        (F3, F22, F48).
        """
        if self.session.state == FENCED:
            raise NotYet(f"this incarnation is fenced: instant {instant} is left to the next agent")
        key = Kind.INSTANT.of(instant)
        entry = self.session.etcd.get(key)
        me = self.session.inc
        if entry is None:
            self._claim_unrecorded(instant, records)
            return
        record = InstantRecord.from_json(entry.readable)
        if me in (record.inc, record.claimed_by):
            return
        holders = [record.claimed_by] if record.claimed_by else []
        if not record.abandoned:
            holders.append(record.inc)
        unproven = [holder for holder in holders if not records.proven(holder)]
        if unproven:
            raise NotYet(f"instant {instant} belongs to {unproven[0]}, which is not proven dead")
        if record.abandoned:
            claimed = (
                self._cas("claim", key, record.but(claimed_by=me), entry.mod_revision, instant=instant) is not None
            )
        else:
            claimed = self.session.claim(instant, record.claimed_by or record.inc)
        if not claimed:
            raise NotYet(f"instant {instant} could not be claimed")

    def _claim_unrecorded(self, instant: str, records: Records) -> None:
        """Whether an instant without a record may be touched (I7).

        It may only when a settle record in its phase names it, or its owner had abandoned it.
        """
        for inc in {*records.settles, *records.given_up}:
            settle = records.settles.get(inc)
            said = settle is not None and instant in settle.read(SettleRecord).instants
            if (said or instant in records.given_up_by(inc)) and records.proven(inc):
                record = InstantRecord(
                    inc=inc, action=COMMIT, state=InstantState.ABANDONED, claimed_by=self.session.inc, at_ms=now_ms()
                )
                if (
                    self._cas(
                        "claim-unrecorded",
                        Kind.INSTANT.of(instant),
                        record,
                        0,
                        instant=instant,
                        key=Kind.SETTLE.of(inc),
                    )
                    is not None
                ):
                    return
        raise NotYet(f"instant {instant} has no record: it is foreign")

    def _give_up(self, records: Records, stopping: Callable[[], bool]) -> int:
        """Roll back the Abandoned instants of living writers; returns how many have an outcome.

        The proof is that its owner abandoned it (the wrapper never publishes it any more).
        """
        owners: dict[str, str] = {}
        for instant, entry in records.instants.items():
            record = entry.read(InstantRecord)
            if (
                record.abandoned
                and record.inc not in records.settles
                and time.monotonic() >= self._due.get((record.inc, instant), 0.0)
                and self._drained(record.inc, instant)
                and not (instant in self._kept and record.inc in records.writers)
            ):
                owners[instant] = record.inc
        # What is swept from now on is swept after the end of these owners, and the drain
        ended = {inc for inc in set(owners.values()) - set(records.writers) if self._drained(inc)}
        done = 0
        for instant, end in self._ends(tuple(owners), records, stopping):
            inc = owners[instant]
            try:
                outcome = _outcome(end)
                if instant not in self.ended or self.lost():
                    remembered = self._remember_given_up(inc, instant)
                    if not remembered and inc not in ended:
                        self._kept.add(instant)
                        continue
                self._drop_record(instant, outcome)
            except Exception as error:
                self._postpone(inc, instant, error)
                continue
            self._since.pop((inc, instant), None)
            self._kept.discard(instant)
            done += 1
        return done

    def _drained(self, inc: str, instant: str = "") -> bool:
        """Whether D is over since this process first saw that the instant is Abandoned.

        Without an instant: since it first saw that its owner has left.
        """
        now = time.monotonic()
        return now - self._since.setdefault((inc, instant), now) >= max(self.drain, self.gate_drain())

    def _drop_record(self, instant: str, outcome: Outcome) -> None:
        """Delete the record of an Abandoned instant after a fresh timeline has shown its end."""
        key = Kind.INSTANT.of(instant)
        entry = self.session.etcd.get(key)
        if entry is not None and self.session.etcd.delete(key, entry.mod_revision):
            # A deletion returns no revision: the record's own revision orders this step after its
            # owner's last one.
            self._log("done", entry.mod_revision, ok=True, instant=instant, detail=f"abandoned {outcome}")

    def _postpone(self, inc: str, instant: str, error: Exception) -> None:
        """Retry later an instant that has no settle record to count its failures."""
        if isinstance(error, NotYet):
            self._due[(inc, instant)] = time.monotonic() + 2.0
            return
        failures = self._failures.get((inc, instant), 0) + 1
        self._failures[(inc, instant)] = failures
        self._due[(inc, instant)] = time.monotonic() + backoff(failures)
        failure = classify(error, secrets=environment_secrets())
        self._log("done", 0, ok=False, instant=instant, detail=f"abandoned, {failure.kind}: {failure.message[:200]}")

    def _remember_given_up(self, inc: str, instant: str) -> bool:
        """Remember the instant before its record is deleted.

        Its sweep is repeated when the writer is settled (F4). False when there is no room: then the
        record must stay.
        """
        key = Kind.DONE.of(keys.abandoned(inc))
        for _ in range(5):
            entry = self.session.etcd.get(key)
            known = Abandoned(inc=inc) if entry is None else Abandoned.from_json(entry.readable)
            if instant in known.instants:
                return True
            if len(known.instants) >= ABANDONED_KEPT:
                return False
            value = known.but(instants=(*known.instants, instant)).to_json()
            if self.session.etcd.cas(key, value, entry.mod_revision if entry else 0) is not None:
                return True
        raise OutcomeUnknown(f"{key} changes too fast")

    def _collect(self, records: Records, stopping: Callable[[], bool]) -> None:
        """Check and sweep the abandoned instants of writers that left by a clean exit (F4).

        Those of all writers together (F562). They are forgotten afterwards: such writers are never
        settled.
        """
        if records.of_unknown_owner:
            return
        held = {entry.read(InstantRecord).inc for entry in records.instants.values()}
        left: dict[str, set[str]] = {}
        """The instants of each such writer that are still to be looked at again."""
        failed: dict[str, Exception] = {}
        for inc in records.given_up:
            if (
                inc in records.settles
                or inc in records.writers
                or inc in held
                or time.monotonic() < self._due.get((inc, ""), 0.0)
            ):
                continue
            if not self._drained(inc):
                continue
            try:
                left[inc] = set(records.given_up_by(inc))
            except ShapeError as unread:
                failed[inc] = unread
        every = {instant for instants in left.values() for instant in instants}
        for instant, end in self._ends(sorted(every), records, stopping):
            for inc in [inc for inc, instants in left.items() if instant in instants]:
                try:
                    self._drop_record(instant, _outcome(end))
                    left[inc].remove(instant)
                except Exception as error:
                    failed[inc] = error
        for inc in [inc for inc, instants in left.items() if not instants]:
            try:
                self._forget_given_up(inc, records)
                self._since.pop((inc, ""), None)
            except Exception as error:
                failed[inc] = error
        for inc, failure in failed.items():
            self._postpone(inc, "", failure)

    def _forget_given_up(self, inc: str, records: Records) -> None:
        entry = records.given_up.get(inc)
        if entry is not None:
            self.session.etcd.delete(Kind.DONE.of(keys.abandoned(inc)), entry.mod_revision)

    def must_be_proven_dead(self) -> bool:
        """Before a clean exit: whether this incarnation abandoned an instant and lost an executor.

        Only the executor's pod proves its end (F4).
        """
        me = self.session.inc
        if not self.lost():
            return False
        found = self.session.etcd.range(Kind.INSTANT.every)
        own = any(entry.unreadable or entry.read(InstantRecord).inc == me for entry in found)
        return own or self.session.etcd.get(Kind.DONE.of(keys.abandoned(me))) is not None

    def release_claims(self) -> None:
        """Before a clean exit: release claims.

        The next agent need not wait for this incarnation then.
        """
        for entry in self.session.etcd.range(Kind.INSTANT.every):
            record = entry.read(InstantRecord)
            if record.claimed_by == self.session.inc and record.inc != self.session.inc:
                self.session.etcd.cas(
                    Kind.INSTANT.of(entry.name), record.but(claimed_by="").to_json(), entry.mod_revision
                )
