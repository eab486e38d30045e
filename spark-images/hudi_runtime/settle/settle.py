"""The agent's part of settling: RollingBack → Swept, and the instants that living writers have given up (docs/design/protocol.md, Settling).

Everything starts from what etcd and the timeline say now, so an agent that is killed anywhere is continued by the next one (I6). Each outcome is
written to `settle/<inc>` by compare-and-set before the next instant is looked at; a failure is counted there and tried again with back-off.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract.backoff import exponential
from hudi_runtime.process.errors import OutcomeUnknown, classify
from hudi_runtime.process.etcd import Entry, now_ms, protocol_log
from hudi_runtime.settle.agent_session import AgentSession
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.settle.rollback import NotYet, Outcome, look_and_roll_back
from hudi_runtime.settle.sweep import sweep, sweep_unnamed
from hudi_runtime.table.service_kinds import SERVICE_ACTIONS

ROLLING_BACK = "RollingBack"
SWEPT_PHASES = frozenset({"Swept", "Settled"})
PROVEN_PHASES = frozenset({ROLLING_BACK, *SWEPT_PHASES})
FIRST_BACKOFF_SECONDS = 2.0
MAX_BACKOFF_SECONDS = 60.0
ABANDONED_KEPT = 500


@dataclass(frozen=True)
class Records:
    """The table's keys as one pass of the agent read them."""

    instants: Mapping[str, Entry]
    settles: Mapping[str, Entry]
    writers: Mapping[str, Entry]
    """`writer/<inc>`: registered incarnations, agents included."""
    given_up: Mapping[str, Entry]
    """`done/abandoned-<inc>`: instants that were rolled back on the word of their living owner."""
    services: Mapping[str, Entry] = field(default_factory=dict)
    """`done/service-<kind>`, keyed by `service-<kind>`: last run of each table service."""
    counted: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """`done/counted`, by service: its commits that archival may have taken out of the active timeline."""

    @classmethod
    def from_entries(cls, entries: Iterable[Entry], *, prefix: str) -> Records:
        """Sort the keys of one range over `P/tables/T/`."""
        kinds: dict[str, dict[str, Entry]] = {}
        for entry in entries:
            kind, _, name = entry.key.removeprefix(prefix).partition("/")
            kinds.setdefault(kind, {})[name] = entry
        marker = "abandoned-"
        done = kinds.get("done", {})
        given_up = {name.removeprefix(marker): entry for name, entry in done.items() if name.startswith(marker)}
        services = {name: entry for name, entry in done.items() if name.startswith("service-")}
        counted = done["counted"].value if "counted" in done else {}
        return cls(kinds.get("instant", {}), kinds.get("settle", {}), kinds.get("writer", {}), given_up, services, counted)

    def proven(self, inc: str) -> bool:
        """Whether an incarnation can do nothing any more: settled as far as proof and drain, or left by a clean exit.

        Nobody leaves so with something Pending: who has that and is not registered is unknown (I11, F38).
        """
        settle = self.settles.get(inc)
        if settle is not None:
            return str(settle.value.get("phase")) in PROVEN_PHASES
        held = (entry.value for entry in self.instants.values() if entry.value.get("state") == "Pending")
        return inc not in self.writers and not any(inc in (value.get("inc"), value.get("claimedBy")) for value in held)

    def other_agents(self, me: str) -> list[str]:
        """Agent incarnations other than this one that may still do something (F22)."""
        agents = {inc for inc, entry in {**self.settles, **self.writers}.items() if entry.value.get("role") == "agent"}
        return sorted(inc for inc in agents if inc != me and not self.proven(inc))

    def rolling_back(self) -> bool:
        """Whether something waits to be rolled back. A service instant that waits for its execution is not that."""
        open_items = (
            item
            for entry in self.settles.values()
            if entry.value.get("phase") == ROLLING_BACK
            for item in (entry.value.get("instants") or {"": {}}).values()
            if item.get("outcome") is None
        )
        abandoned = any(entry.value.get("state") == "Abandoned" for entry in self.instants.values())
        return abandoned or any(item.get("action") not in SERVICE_ACTIONS for item in open_items)

    def settling(self) -> bool:
        """Whether an incarnation that has left instants, or may have, is not settled to its end."""
        unswept = any(str(entry.value.get("phase")) not in SWEPT_PHASES for entry in self.settles.values())
        return unswept or self.rolling_back()

    def adopting(self) -> bool:
        """Whether instants of a table's former writers have no outcome yet."""
        records = (entry.value for entry in self.settles.values() if entry.value.get("reason") == "Adopted")
        return any(record.get("phase") not in SWEPT_PHASES for record in records)

    def services_of(self, me: str) -> dict[str, str]:
        """Pending service instants (with their action) whose only executor is this incarnation (I12)."""
        return {
            instant: str(entry.value["action"])
            for instant, entry in self.instants.items()
            if entry.value.get("state") == "Pending"
            and entry.value.get("action") in SERVICE_ACTIONS
            and (entry.value.get("claimedBy") or entry.value.get("inc")) == me
        }


def instants_of(inc: str, record: Mapping[str, Any], records: Records) -> dict[str, str]:
    """Instants (with their action) that settling an incarnation is about: recorded, owned, claimed, or given up by it (I7)."""
    found = {instant: str(item.get("action", "")) for instant, item in (record.get("instants") or {}).items()}
    for instant, entry in records.instants.items():
        if inc in (entry.value.get("inc"), entry.value.get("claimedBy")):
            found.setdefault(instant, str(entry.value.get("action", "")))
    given_up = records.given_up.get(inc)
    for instant in given_up.value.get("instants", []) if given_up else []:
        found.setdefault(str(instant), "commit")
    return found


def backoff(failures: int) -> float:
    """Seconds before the next try after that many failures."""
    return exponential(failures, first=FIRST_BACKOFF_SECONDS, longest=MAX_BACKOFF_SECONDS)


@dataclass
class Settler:
    """Rolls back and sweeps instants of one table."""

    table: AgentTable
    session: AgentSession
    name: str
    options: Mapping[str, str]
    ended: set[str] = field(default_factory=set)
    """Instants of this very incarnation whose every task had ended when they were given up: nothing of them can be late."""
    lost: Callable[[], bool] = lambda: False
    """Whether this process has lost an executor, which may still write for an instant of this incarnation (F4)."""
    drain: float = 10.0
    """D in seconds: a request that was on the wire at an owner's word, or at its end, has landed or died after it (F35)."""
    _since: dict[tuple[str, str], float] = field(default_factory=dict)
    _due: dict[tuple[str, str], float] = field(default_factory=dict)
    _failures: dict[tuple[str, str], int] = field(default_factory=dict)

    def run(self, records: Records, *, stopping: Callable[[], bool]) -> int:
        """One pass over everything that may be settled now; returns how many instants got their outcome."""
        done = 0
        for inc, entry in records.settles.items():
            if entry.value.get("phase") == ROLLING_BACK and not stopping():
                done += self._settle(inc, entry, records, stopping)
        for instant, entry in records.instants.items():
            if entry.value.get("state") == "Abandoned" and str(entry.value["inc"]) not in records.settles and not stopping():
                done += self._give_up(instant, entry, records)
        self._collect(records)
        return done

    def _settle(self, inc: str, entry: Entry, records: Records, stopping: Callable[[], bool]) -> int:
        record = copy.deepcopy(dict(entry.value))
        instants = record.setdefault("instants", {})
        for instant, action in instants_of(inc, record, records).items():
            instants.setdefault(instant, {"action": action, "outcome": None, "failures": 0})
        revision = entry.mod_revision
        done = 0
        for instant in sorted(instants):
            item = instants[instant]
            if item.get("outcome") is not None or stopping() or time.monotonic() < self._due.get((inc, instant), 0.0):
                continue
            try:
                item["outcome"] = self._one(instant, records).value
                item.pop("error", None)
                done += 1
            except NotYet as waiting:
                self._due[(inc, instant)] = time.monotonic() + 2.0
                if item.get("error") == str(waiting):
                    continue
                item["error"] = str(waiting)  # not counted: it is nobody's failure
            except Exception as error:
                self._failed(inc, instant, item, error)
            updated = self._put(inc, record, revision, instant=instant)
            if updated is None:
                return done
            revision = updated
        if all(item.get("outcome") is not None for item in instants.values()):
            record["phase"] = "Swept"
            record.setdefault("times", {})["Swept"] = now_ms()
            if self._put(inc, record, revision) is not None:
                self._forget_given_up(inc, records)
        return done

    def _failed(self, inc: str, instant: str, item: dict[str, Any], error: Exception) -> None:
        failure = classify(error)
        item["failures"] = int(item.get("failures", 0)) + 1
        item["error"] = f"{failure.kind.value}: {failure.message}"[:500]
        self._due[(inc, instant)] = time.monotonic() + backoff(item["failures"])

    def _put(self, inc: str, record: Mapping[str, Any], revision: int, *, instant: str = "") -> int | None:
        """Write the record; `instant` is the one that the change is about."""
        more = {"key": f"settle/{inc}", "detail": str(record.get("phase"))}
        if instant:
            more |= {"instant": instant, "outcome": str(record["instants"][instant].get("outcome") or "")}
        return self._cas("settle-update", f"settle/{inc}", record, revision, **more)

    def _cas(self, action: str, name: str, value: Mapping[str, Any], revision: int, **more: str) -> int | None:
        """A logged compare-and-set; a lost answer is logged as what it is: etcd may have executed it, or may yet."""
        try:
            updated = self.session.etcd.cas(name, value, revision)
        except Exception:
            self._log(action, 0, ok=False, **{**more, "detail": "unknown"})
            raise
        self._log(action, updated or 0, ok=updated is not None, **{field: text for field, text in more.items() if text})
        return updated

    def _log(self, action: str, revision: int, *, ok: bool, **more: str) -> None:
        session = self.session
        protocol_log(table=session.table_id, actor=session.inc, role="agent", action=action, revision=revision, ok=ok, **more)

    def _one(self, instant: str, records: Records) -> Outcome:
        outcome, victim = look_and_roll_back(self.table, instant, name=self.name, options=self.options, claim=lambda other: self._claim(other, records))
        if victim:
            sweep(self.table, victim)
        elif outcome is Outcome.COMPLETED:
            sweep_unnamed(self.table, instant)
        return outcome

    def _claim(self, instant: str, records: Records) -> None:
        """Become the executor of an instant; raises NotYet when an unproven incarnation owns or has claimed it, or this one is fenced (F3, F22, F48)."""
        if self.session.state == "FENCED":
            raise NotYet(f"this incarnation is fenced: instant {instant} is left to the next agent")
        entry = self.session.etcd.get(f"instant/{instant}")
        me = self.session.inc
        if entry is None:
            self._claim_unrecorded(instant, records)
            return
        owner, claimant = str(entry.value["inc"]), str(entry.value.get("claimedBy") or "")
        if me in (owner, claimant):
            return
        given_up = entry.value.get("state") == "Abandoned"
        holders = [claimant] if claimant else []
        if not given_up:
            holders.append(owner)
        unproven = [holder for holder in holders if not records.proven(holder)]
        if unproven:
            raise NotYet(f"instant {instant} belongs to {unproven[0]}, which is not proven dead")
        if given_up:
            claimed = self._cas("claim", f"instant/{instant}", {**entry.value, "claimedBy": me}, entry.mod_revision, instant=instant) is not None
        else:
            claimed = self.session.claim(instant, claimant or owner)
        if not claimed:
            raise NotYet(f"instant {instant} could not be claimed")

    def _claim_unrecorded(self, instant: str, records: Records) -> None:
        """An instant without a record may be touched only when a settle record in its phase names it, or its owner had given it up (I7)."""
        for inc in {*records.settles, *records.given_up}:
            settle = records.settles.get(inc)
            named = settle is not None and instant in (settle.value.get("instants") or {})
            given_up = records.given_up.get(inc)
            named = named or (given_up is not None and instant in given_up.value.get("instants", []))
            if named and records.proven(inc):
                record = {"inc": inc, "action": "commit", "state": "Abandoned", "claimedBy": self.session.inc, "atMs": now_ms()}
                if self._cas("claim-unrecorded", f"instant/{instant}", record, 0, instant=instant, key=f"settle/{inc}") is not None:
                    return
        raise NotYet(f"instant {instant} has no record: it is foreign")

    def _give_up(self, instant: str, entry: Entry, records: Records) -> int:
        """Roll back an Abandoned instant of a living writer: its owner's word is the proof (the wrapper never publishes it any more)."""
        inc = str(entry.value["inc"])
        if time.monotonic() < self._due.get((inc, instant), 0.0) or not self._drained(inc, instant):
            return 0
        try:
            outcome = self._one(instant, records)
            if instant not in self.ended or self.lost():
                self._remember_given_up(inc, instant)
            self._drop_record(instant, outcome)
        except Exception as error:
            self._postpone(inc, instant, error)
            return 0
        self._since.pop((inc, instant), None)
        return 1

    def _drained(self, inc: str, instant: str = "") -> bool:
        """Whether D is over since this process first saw the word about the instant, or (no instant) that its owner has left."""
        now = time.monotonic()
        return now - self._since.setdefault((inc, instant), now) >= self.drain

    def _drop_record(self, instant: str, outcome: Outcome) -> None:
        """The record of an Abandoned instant goes when a fresh timeline has shown its end."""
        entry = self.session.etcd.get(f"instant/{instant}")
        if entry is not None and self.session.etcd.delete(f"instant/{instant}", entry.mod_revision):
            # A deletion tells no revision: the record's own says after which step of its owner this one comes.
            self._log("done", entry.mod_revision, ok=True, instant=instant, detail=f"abandoned {outcome.value}")

    def _postpone(self, inc: str, instant: str, error: Exception) -> None:
        """Try again later what has no settle record to count its failures in."""
        if isinstance(error, NotYet):
            self._due[(inc, instant)] = time.monotonic() + 2.0
            return
        failures = self._failures.get((inc, instant), 0) + 1
        self._failures[(inc, instant)] = failures
        self._due[(inc, instant)] = time.monotonic() + backoff(failures)
        failure = classify(error)
        self._log("done", 0, ok=False, instant=instant, detail=f"abandoned, {failure.kind.value}: {failure.message[:200]}")

    def _remember_given_up(self, inc: str, instant: str) -> None:
        """Before the record goes: its sweep is repeated when the writer is settled (F4)."""
        for _ in range(5):
            entry = self.session.etcd.get(f"done/abandoned-{inc}")
            known = [str(item) for item in entry.value.get("instants", [])] if entry else []
            if instant in known:
                return
            value = {"inc": inc, "instants": [*known, instant][-ABANDONED_KEPT:]}
            if self.session.etcd.cas(f"done/abandoned-{inc}", value, entry.mod_revision if entry else 0) is not None:
                return
        raise OutcomeUnknown(f"done/abandoned-{inc} changes too fast")

    def _collect(self, records: Records) -> None:
        """A writer that left by a clean exit is never settled: look and sweep once more at what it had given up, then forget it (F4)."""
        held = {str(entry.value.get("inc")) for entry in records.instants.values()}
        for inc, entry in records.given_up.items():
            if inc in records.settles or inc in records.writers or inc in held or time.monotonic() < self._due.get((inc, ""), 0.0):
                continue
            if not self._drained(inc):
                continue
            try:
                for instant in entry.value.get("instants", []):
                    self._drop_record(str(instant), self._one(str(instant), records))
                self._forget_given_up(inc, records)
                self._since.pop((inc, ""), None)
            except Exception as error:
                self._postpone(inc, "", error)

    def _forget_given_up(self, inc: str, records: Records) -> None:
        entry = records.given_up.get(inc)
        if entry is not None:
            self.session.etcd.delete(f"done/abandoned-{inc}", entry.mod_revision)

    def must_be_proven_dead(self) -> bool:
        """Before a clean exit: an instant of this incarnation was given up and an executor was lost, whose end only its pod proves (F4)."""
        me = self.session.inc
        if not self.lost():
            return False
        own = any(entry.value.get("inc") == me for entry in self.session.etcd.range("instant/"))
        return own or self.session.etcd.get(f"done/abandoned-{me}") is not None

    def release_claims(self) -> None:
        """Before a clean exit: give claims back, so that the next agent need not wait for this incarnation."""
        for entry in self.session.etcd.range("instant/"):
            if entry.value.get("claimedBy") == self.session.inc and entry.value.get("inc") != self.session.inc:
                value = {key: item for key, item in entry.value.items() if key != "claimedBy"}
                self.session.etcd.cas(f"instant/{entry.name}", value, entry.mod_revision)
