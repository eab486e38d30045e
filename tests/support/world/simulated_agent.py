"""Agent of a simulated table: it prepares the table, settles what the operator has proven, reports,
and serves requests.

In the same cases the agent's own code writes the same (`done/`, `settle/`, `report/`), field by
field: `tests/tiers/unit/halves/test_simulated_agent.py`.

It cannot do everything that a real agent can: fail at the store or in Spark except where a test
says so, be slow, be refused or left without an answer by etcd, act on an old look, do two requests
at once. It has no table services, callbacks and catalogs, and no instant is abandoned. Its
rollbacks take no time and have no files, and it takes the lock for a bootstrap and a restore only,
at once or not at all. When its assignment changes it prepares the table again, but in the session
that it has. Completed instants of foreign writers are not seen. Where a request comes too early the
real one waits; here it is an AssertionError, because the operator must not ask (`judge`).
"""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from hudi_contract.backoff import exponential
from hudi_contract.reports import ReportedCommit, ReportedError, ReportedInstant, TimelineReport
from hudi_contract.requests import (
    BootstrapDone,
    BootstrapRequest,
    Foreign,
    HoldDone,
    HoldRequest,
    MetadataDone,
    MetadataRequest,
    RestoreDone,
    RestoreRequest,
    SavepointDone,
    UnsavepointRequest,
    named,
    request_id,
)
from hudi_contract.settle import Phase, Reason, SettledInstant, SettleRecord
from hudi_contract.shape import Record
from hudi_contract.words import AgentError, GateState, Outcome, RequestKind, Result, Role, SourceError
from tests.support.world.contract_words import wrong
from tests.support.world.simulated_processes import Processes
from tests.support.world.simulated_store import Garbage, Process

R = TypeVar("R", bound=Record)

BOOTSTRAP, METADATA = request_id(RequestKind.BOOTSTRAP), request_id(RequestKind.METADATA)
UNREACHABLE = "StorageUnreachable"
THERE = frozenset({AgentError.TABLE_MISMATCH, AgentError.TABLE_EXISTS, AgentError.OTHER_LOCK_AUTHORITY})
"""Errors of a table that exists."""
ROWS, FILES, BYTES = 7, 2, 100
"""Rows, files and bytes that a bootstrap writes."""
RESTORE = "restore"
LISTED, COMMITS = 20, 10
BACKOFF_MS, LONGEST_MS, WAIT_MS = 10_000, 3_600_000, 2_000
CLOCK_ZERO = "19700101000000000"
INDEX = "hoodie.metadata.index.column.stats.enable"


class Waits(Exception):
    """It is served later."""


class Refused(Exception):
    """It is never served."""


def backoff_ms(failures: int) -> int:
    return int(exponential(failures, first=BACKOFF_MS, longest=LONGEST_MS))


class Agents(Processes):
    """A step of an agent is a second of its life: what takes long has a step for each thing that
    others may see.
    """

    def put(self, key: str, value: dict[str, Any], lease: str = "") -> int:
        said = "" if isinstance(value, Garbage) else wrong(key, value)
        assert not said, said
        return super().put(key, value, lease)

    def _agent(self, process: Process) -> None:
        if "assignment" not in self.kv:
            process.assignment = 0
            if process.registered:
                self._clean_exit(process)
        elif self._prepared(process):
            self._pass(process)

    # ---- preparation

    def _prepared(self, process: Process) -> bool:
        """Whether the table is what its assignment says (`hudi_runtime.agent.preparation`)."""
        error = self.table_error
        if not process.registered:
            if error is not None and error["code"] == UNREACHABLE:  # the session comes after the storage
                self._put_report(TimelineReport(error=ReportedError.from_json(error)))
            else:
                self._register(process)
            return False
        if process.assignment == self.mod("assignment"):
            return True
        if error is not None:
            self._put_error(process, error, exists=error["code"] in THERE)
            return False
        gate = self.kv["gate"].value
        was_open = gate.get("adopted") or gate["state"] == GateState.OPEN
        if not was_open and not self._adopted(process):
            return False
        if not was_open or "clock" not in self.kv:
            self.move_clock(self._newest())
        process.assignment = self.mod("assignment")
        return True

    def _adopted(self, process: Process) -> bool:
        """Behind the gate that was never open: whether nothing of former writers is left."""
        self._settle_all(process)
        if not process.alive:
            return False
        foreign = self._foreign()
        if foreign:
            told = self._timeline(process)
            error = ReportedError(code=AgentError.PENDING_INSTANTS, message=f"pending instants: {', '.join(foreign)}")
            waiting = tuple(one.but(beating=one.instant in self.beating) for one in told.foreign)
            self._put_report(told.but(foreign=waiting, error=error, commits_since={}, commits=()))
            return False
        if any(record.reason == Reason.ADOPTED and record.phase < Phase.Swept for record in self._records()):
            return False
        self.put("done/foreign", Foreign().to_json())
        return True

    # ---- reports

    def _pass(self, process: Process) -> None:
        self._settle_all(process)
        if not process.alive:
            return
        if self.table_error is not None:
            self._put_error(process, self.table_error, exists=True)
            return
        if not (process.step and self.kv["gate"].value.get("restoring")):
            self._report(process)
        self._serve(process)

    def _report(self, process: Process) -> None:
        seen = (
            process.inc,
            self.mod("assignment"),
            self.mod("report/timeline"),
            sorted(self.completed),
            self._pending(),
            self._foreign(),
            sorted(self.restore_instants),
            [self.mod(f"done/{id}") for id in self.names("done")],
        )
        if seen != self.reported:
            self._put_report(self._timeline(process))
            self.reported = (*seen[:2], self.mod("report/timeline"), *seen[3:])

    def _put_report(self, told: TimelineReport) -> None:
        known = self.kv.get("report/timeline")
        if known is None or {**known.value, "atMs": 0} != told.to_json():
            self.put("report/timeline", told.but(at_ms=self.now_ms).to_json())

    def _put_error(self, process: Process, error: dict[str, str], *, exists: bool) -> None:
        told = TimelineReport(agent_inc=process.inc, exists=exists, error=ReportedError.from_json(error))
        self._put_report(told)

    def _pending(self) -> dict[str, str]:
        """Pending instants on the timeline, with their actions."""
        ended = self.completed | self.rolled_back | self.restore_instants
        recorded = {t: key.value["action"] for t, key in self.names("instant").items()}
        return {t: action for t, action in sorted({**self.foreign, **recorded}.items()) if t not in ended}

    def _foreign(self) -> dict[str, str]:
        """Instants without a record."""
        return {t: action for t, action in self._pending().items() if f"instant/{t}" not in self.kv}

    def _timeline(self, process: Process) -> TimelineReport:
        completed = {t: self.completion(t) for t in sorted(self.completed)}
        every = {**completed, **{t: self.completion(t) for t in sorted(self.restore_instants)}}
        pending, foreign = self._pending(), self._foreign()
        last = max(every, key=lambda t: every[t], default="")
        newest = sorted(completed, key=lambda t: completed[t])[-COMMITS:]
        return TimelineReport(
            agent_inc=process.inc,
            exists=True,
            last_instant=last,
            last_completion_time=every.get(last, ""),
            lowest_pending_requested_time=min(pending, default=""),
            pending=tuple(ReportedInstant(instant=t, action=action, state="INFLIGHT") for t, action in pending.items())[
                :LISTED
            ],
            pending_count=len(pending),
            active_length=len(every) + len(pending),
            foreign=tuple(ReportedInstant(instant=t, action=action) for t, action in foreign.items())[:LISTED],
            commits_since=self._commits_since(completed),
            commits=tuple(self._commit(t, completed[t]) for t in newest),
        )

    def _commit(self, instant: str, completion: str) -> ReportedCommit:
        said = ReportedCommit(instant=instant, action="commit", completion_time=completion)
        author = self.authors.get(instant)
        return (
            said if author is None else said.but(writer=author.writer, attempt=author.attempt, records=author.records)
        )

    def _commits_since(self, completed: dict[str, str]) -> dict[str, int]:
        counted = {}
        for service, order in self.kv["assignment"].value["services"].items():
            if order["afterCommits"] is not None:
                done = self.kv.get(f"done/{request_id(RequestKind.SERVICE, service)}")
                up_to = str(done.value.get("upTo") or "") if done is not None else ""
                counted[service] = len([t for t in completed.values() if t > up_to])
        return counted

    # ---- settling

    def _settle_all(self, process: Process) -> None:
        for inc, key in self.names("settle").items():
            if key.value["phase"] == Phase.RollingBack.name and process.alive:
                self._roll_back(process, inc, SettleRecord.from_json(copy.deepcopy(key.value)))

    def _roll_back(self, process: Process, inc: str, record: SettleRecord) -> None:
        owned = {t: k.value["action"] for t, k in self.names("instant").items() if inc in _holders(k.value)}
        items = {**{t: SettledInstant(action=action) for t, action in owned.items()}, **record.instants}
        record = record.but(instants=items)
        for instant in sorted(items):
            item = record.instants[instant]
            if item.outcome is not None:
                continue
            try:
                item = item.but(outcome=self._outcome(process, inc, instant), error="")
            except Waits as waiting:
                if item.error == str(waiting):
                    continue
                item = item.but(error=str(waiting))
            record = record.but(instants={**record.instants, instant: item})
            self.put(f"settle/{inc}", record.to_json())
            if item.outcome is not None and self.agent_hangs_at == "first outcome":
                self.agent_hangs_at = ""
                self.kill(process, 137)
                return
        if not record.without_outcome(record.instants):
            self.put(f"settle/{inc}", record.moved(Phase.Swept, now_ms=self.now_ms).to_json())

    def _outcome(self, process: Process, inc: str, instant: str) -> Outcome:
        if instant in self.completed | self.restore_instants:
            return Outcome.COMPLETED
        pending = self._pending()
        if instant not in pending:
            return Outcome.GONE
        if self.kv["gate"].value["mode"] == "PodTermination":
            self._check_dead(inc, "rollback")
        self._claim(process, instant)
        if pending[instant] == RESTORE:
            raise Waits(f"instant {instant} is claimed, and waits for its execution by this agent")
        self.rolled_back.add(instant)
        return Outcome.ROLLED_BACK

    def _claim(self, process: Process, instant: str) -> None:
        """Be its only executor."""
        record = self.kv[f"instant/{instant}"].value
        holders = _holders(record)
        if process.inc in holders:
            return
        unproven = [inc for inc in holders if not self._proven(inc)]
        if unproven:
            raise Waits(f"instant {instant} belongs to {unproven[0]}, which is not proven dead")
        self.put(f"instant/{instant}", {**record, "claimedBy": process.inc})

    def _proven(self, inc: str) -> bool:
        """Whether an incarnation can do nothing any more."""
        found = self.kv.get(f"settle/{inc}")
        if found is not None:
            return SettleRecord.known(found.value).phase >= Phase.RollingBack
        return f"writer/{inc}" not in self.kv and not any(
            inc in _holders(key.value) for key in self.names("instant").values()
        )

    def _clean_exit(self, process: Process) -> None:
        if process.role == Role.AGENT and f"fence/{process.inc}" not in self.kv:
            for instant, key in self.names("instant").items():
                if key.value.get("claimedBy") == process.inc != key.value["inc"]:
                    self.put(f"instant/{instant}", {k: v for k, v in key.value.items() if k != "claimedBy"})
        super()._clean_exit(process)

    # ---- requests

    def _serve(self, process: Process) -> None:
        requests = self.names("request")
        for id in requests:
            if named(RequestKind.RESTORE, id):
                self._restore(process, id)
        if any(key.value["action"] == RESTORE for key in self.names("instant").values()):
            return
        if BOOTSTRAP in requests:
            self._bootstrap(process, BootstrapRequest.from_json(requests[BOOTSTRAP].value))
        if METADATA in requests:
            self._metadata(process, MetadataRequest.from_json(requests[METADATA].value))
        self._serve_holds(process)
        for id in requests:
            if named(RequestKind.SAVEPOINT, id):
                self._savepoint(process, id)
        for id in requests:
            if named(RequestKind.UNSAVEPOINT, id):
                self._unsavepoint(process, UnsavepointRequest.from_json(requests[id].value))

    def _done(self, id: str, record: type[R]) -> R:
        found = self.kv.get(f"done/{id}")
        return record.known(found.value if found is not None else {})

    def _other_agents(self, process: Process) -> list[str]:
        """Incarnations of other agents that may still do something."""
        known = {**self.names("settle"), **self.names("writer")}
        agents = {i for i, k in known.items() if isinstance(k.value, Garbage) or k.value["role"] == Role.AGENT}
        return sorted(inc for inc in agents - {process.inc} if not self._proven(inc))

    def _settling(self) -> bool:
        """Whether somebody who may have left instants is not settled."""
        return any(record.phase < Phase.Swept for record in self._records())

    def _records(self) -> list[SettleRecord]:
        return [SettleRecord.known(key.value) for key in self.names("settle").values()]

    def _frozen(self) -> bool:
        """Whether the gate is frozen: nobody acquires then, and the table may be another's soon."""
        return bool(self.kv["gate"].value["state"] == GateState.FROZEN)

    def judge(self, id: str) -> None:
        """The operator asks for nothing while somebody may write."""
        gate = self.kv["gate"].value
        assert gate["state"] == GateState.CLOSED, f"{id} is asked for while the gate is open"
        assert not [a for a in gate["admitted"] if f"admit/{a}" in self.kv], (
            f"{id} is asked for while an attempt may still register"
        )
        assert not [p for p in self.processes if p.role == "writer" and p.alive and p.registered], (
            f"{id} is asked for while a writer runs"
        )

    # ---- savepoints

    def _savepoint(self, process: Process, id: str) -> None:
        known = self._done(id, SavepointDone)
        if known.ended:
            return
        if not self._frozen():
            self.judge(id)
        try:
            done = self._kept(process)
        except Waits as waiting:
            done = SavepointDone(result=Result.PENDING, message=str(waiting))
        except Refused as refused:
            done = SavepointDone(result=Result.FAILED, message=str(refused))
        done = done.but(name=named(RequestKind.SAVEPOINT, id))
        if known.but(at_ms=None) != done:
            self.put(f"done/{id}", done.but(at_ms=self.now_ms).to_json())

    def _kept(self, process: Process) -> SavepointDone:
        if self._frozen():
            raise Waits("waiting for the closed gate")
        for other in self._other_agents(process):
            raise Waits(f"another agent ({other}) is not settled")
        for instant in self._foreign():
            raise Refused(f"instant {instant} is pending and has no record in etcd")
        for instant in self._pending():
            raise Waits(f"instant {instant} is pending")
        if not self.completed:
            raise Refused("the active timeline has no commit")
        instant = max(self.completed)
        if f"instant/{instant}" in self.kv:
            raise Waits(f"instant {instant} is being settled")
        boundary = max(self.completion(t) for t in self.completed)
        taken = self.new_time()
        self.move_clock(taken)
        return SavepointDone(result=Result.COMPLETED, instant=instant, completion_time=taken, boundary=boundary)

    def _unsavepoint(self, process: Process, request: UnsavepointRequest) -> None:
        """Delete it; a refusal is said, and the savepoint stays."""
        id = request_id(RequestKind.SAVEPOINT, request.name)
        known = self._done(id, SavepointDone)
        if known.result is Result.DELETED or "lock" in self.kv:
            return
        others = self._other_agents(process)
        if any(named(RequestKind.RESTORE, other) for other in self.names("request")):
            done = known.but(message="not deleted yet: a restore is asked for")
        elif others:
            done = known.but(message=f"not deleted yet: another agent ({others[0]}) is not settled")
        elif request.instant != known.instant:
            done = known.but(result=known.result or Result.FAILED, message="not deleted")
        else:
            done = known.but(result=Result.DELETED, message="")
        done = done.but(name=request.name)
        if known.but(at_ms=None) != done.but(at_ms=None):
            self.put(f"done/{id}", done.but(at_ms=self.now_ms).to_json())

    # ---- holds

    def _serve_holds(self, process: Process) -> None:
        requests = self.names("request")
        for id in self.names("done"):
            if named(RequestKind.HOLD, id) and id not in requests:
                self.drop(f"done/{id}")
        for id, key in requests.items():
            if named(RequestKind.HOLD, id):
                self._hold(process, id, HoldRequest.from_json(key.value))

    def _hold(self, process: Process, id: str, request: HoldRequest) -> None:
        """Recorded first; granted when nothing that began before can delete a file.

        There are no cleans here, so all files are there.
        """
        known, skew = self._done(id, HoldDone), self.skew_ms()
        new = known.since_ms != request.since_ms
        if known.result is Result.FAILED and not new and known.until_ms == request.until_ms:
            return
        times = {"until_ms": request.until_ms, "kept_until_ms": request.until_ms + skew}
        done = known.but(result=Result.PENDING, message="", **times)
        if new or not known.instant:
            done = HoldDone(name=request.name, result=Result.PENDING, since_ms=request.since_ms, **times)
            self._put_hold(id, done)
            done = self._chosen(done, request.instant)
            self._put_hold(id, done)
        elif known.until_ms != request.until_ms:
            done = done.but(granted=known.granted or known.result is not Result.PENDING)
            self._put_hold(id, done)
        if done.result is Result.FAILED or self.now_ms >= done.kept_until_ms:
            return
        completions = {self.completion(t) for t in self.completed}
        if known.result is Result.COMPLETED and known.until_ms == request.until_ms:
            done = known
        if done.instant not in self.completed or done.boundary not in completions:
            done = done.but(result=Result.FAILED, message="a restore has undone it")
        elif done.result is Result.PENDING:
            others = self._other_agents(process)
            waits = (
                {"message": f"another agent ({others[0]}) is not settled"} if others else {"result": Result.COMPLETED}
            )
            done = done.but(**waits)
        self._put_hold(id, done)

    def _chosen(self, done: HoldDone, instant: str) -> HoldDone:
        if (instant and instant not in self.completed) or not self.completed:
            return done.but(result=Result.FAILED, message="there is no such commit")
        boundary = self.completion(instant) if instant else max(self.completion(t) for t in self.completed)
        return done.but(instant=instant or max(self.completed), boundary=boundary)

    def _put_hold(self, id: str, done: HoldDone) -> None:
        if self._done(id, HoldDone).but(at_ms=None) != done.but(at_ms=None):
            self.put(f"done/{id}", done.but(at_ms=self.now_ms).to_json())

    def skew_ms(self) -> int:
        """Allowed clock skew, by the gate, in milliseconds."""
        return int(self.kv["gate"].value["lock"]["maxClockSkewSeconds"]) * 1000

    # ---- restores

    def _restore(self, process: Process, id: str) -> None:
        """Written ahead, recorded, undone in two steps, done: one step per tick, alone, under the
        gate that is closed for it.
        """
        request, gate = RestoreRequest.from_json(self.kv[f"request/{id}"].value), self.kv["gate"].value
        known = self._done(id, RestoreDone)
        hangs = self.restore_hang_at is not None and process.step >= self.restore_hang_at
        if known.ended or hangs or gate["state"] != GateState.CLOSED or gate.get("restoring") != request.nonce:
            return
        self.judge(id)
        base = known.but(
            nonce=known.nonce or request.nonce,
            savepoint=known.savepoint or request.savepoint,
            result=known.result or Result.PENDING,
        )
        try:
            if process.step or not self._other_agents(process):
                process.step = self._restore_step(process, request, base)
        except Waits as waiting:
            self.drop("lock")
            self._save(process, base.but(message=str(waiting)))
        except Refused as refused:
            self.drop("lock")
            self._save(process, base.but(result=Result.FAILED, message=str(refused), failures=base.failures + 1))

    def _save(self, process: Process, done: RestoreDone) -> None:
        id = request_id(RequestKind.RESTORE, done.nonce)
        saved = done.but(inc=process.inc, at_ms=None)
        if self._done(id, RestoreDone).but(at_ms=None) != saved:
            self.put(f"done/{id}", saved.but(at_ms=self.now_ms).to_json())

    def _restore_step(self, process: Process, request: RestoreRequest, base: RestoreDone) -> int:
        """The next step."""
        match process.step:
            case 0:
                return self._begin_restore(process, request, base)
            case 1:
                plan = self._plan(request, base)
                self._save(process, plan.but(after=self._newest()))
            case 2:
                process.instant = self.new_time()
                self.put(f"instant/{process.instant}", {"inc": process.inc, "action": RESTORE, "state": "Pending"})
                self._save(process, base.but(instant=process.instant))
            case 3 | 4:
                assert self.holds(process), "commits are undone while somebody else could hold the lock (I1)"
                going = self._undone(base.boundary)
                for id, key in self.names("done").items():
                    deleted = key.value.get("result") == Result.DELETED
                    if named(RequestKind.SAVEPOINT, id) and key.value.get("instant") in going and not deleted:
                        self.drop(f"done/{id}")
                for instant in going[-1:] if process.step == 3 else going:
                    self.completed.remove(instant)
                    self.undone.add(instant)
            case 5:
                self._restored(process, request.nonce)
            case _:
                self._end_restore(process, base)
                return 0
        return process.step + 1

    def _begin_restore(self, process: Process, request: RestoreRequest, base: RestoreDone) -> int:
        if base.result is Result.RUNNING and request.nonce in self.restored:
            self._end_restore(process, base)
            return 0
        if not self.acquire(process):
            return 0
        begun = next((t for t, action in self._pending().items() if action == RESTORE), "")
        if begun:
            record = self.kv[f"instant/{begun}"].value
            if process.inc != (record.get("claimedBy") or record["inc"]) or base.result is not Result.RUNNING:
                raise Waits(f"restore {begun} is not claimed yet")
            process.instant = begun
            self._save(process, base.but(instant=begun))
            return 3
        plan = self._plan(request, base)
        if not plan.undone:
            self.drop("lock")
            self.restored.append(request.nonce)
            self._end_restore(process, plan)
            return 0
        return 1

    def _plan(self, request: RestoreRequest, base: RestoreDone) -> RestoreDone:
        for instant in self._foreign():
            raise Refused(f"instant {instant} is pending and has no record in etcd")
        for instant in self._pending():
            raise Waits(f"instant {instant} is pending")
        saved = self._done(request_id(RequestKind.SAVEPOINT, request.savepoint), SavepointDone)
        if saved.result is not Result.COMPLETED:
            raise Refused(f"this HudiTable has taken no savepoint {request.savepoint}")
        kept = [t for t in self.completed if self.completion(t) < saved.completion_time]
        boundary = max(self.completion(t) for t in kept)
        undone = self._undone(boundary)[::-1]
        for name in request.savepoints:
            if self._done(request_id(RequestKind.SAVEPOINT, name), SavepointDone).instant in undone:
                raise Refused(f"savepoint {name} is later: remove its name from spec.savepoints first")
        return base.but(
            result=Result.RUNNING,
            boundary=boundary,
            newest=max(kept),
            undone=len(undone),
            undone_instants=tuple(undone[:LISTED]),
            begin_ms=base.begin_ms or self.now_ms,
        )

    def _newest(self) -> str:
        """Newest time on the timeline."""
        ended = (self.completion(t) for t in self.completed | self.restore_instants)
        return max([*self._pending(), *ended], default=CLOCK_ZERO)

    def _undone(self, boundary: str) -> list[str]:
        """Commits that completed after the boundary, the last one last."""
        return sorted((t for t in self.completed if self.completion(t) > boundary), key=self.completion)

    def _restored(self, process: Process, nonce: str) -> None:
        assert nonce not in self.restored, "a table is restored twice for one nonce"
        assert self.holds(process), "a restore is completed while somebody else could hold the lock (I1)"
        self.restored.append(nonce)
        self.move_clock(self.completion(process.instant))
        self.restore_instants.add(process.instant)
        self.drop("lock")
        self.drop(f"instant/{process.instant}")

    def _end_restore(self, process: Process, base: RestoreDone) -> None:
        completion = self.completion(base.instant) if base.instant else ""
        done = base.but(message="", failures=0, after="", result=Result.COMPLETED, end_ms=self.now_ms)
        self._save(process, done.but(completion_time=completion))

    # ---- the metadata table

    def _metadata(self, process: Process, request: MetadataRequest) -> None:
        """R16: nobody writes while it is changed, and nobody who keeps another one up
        comes after it.
        """
        known = self._done(METADATA, MetadataDone)
        record = known if known.nonce == request.nonce else MetadataDone()
        if request.nonce != self.kv["assignment"].value["metadataTable"] or record.result is Result.COMPLETED:
            return
        if self.now_ms < record.retry_at_ms or self._frozen() or self._settling() or self._other_agents(process):
            return
        self.judge(METADATA)
        before = record.failures
        ahead = MetadataDone(
            nonce=request.nonce,
            result=Result.RUNNING,
            failures=before + 1,
            retry_at_ms=self.now_ms + backoff_ms(before + 1),
            inc=process.inc,
            at_ms=self.now_ms,
        )
        self.put("done/metadata", ahead.to_json())
        pending = next(iter(self._pending()), "")
        if pending:
            waits = ahead.but(failures=before, retry_at_ms=self.now_ms + WAIT_MS)
            told = waits.but(message=f"instant {pending} is pending")
        elif self.metadata_error:
            told = ahead.but(result=Result.FAILED, message=self.metadata_error)
        else:
            stats = ("column_stats", "partition_stats") if request.options.get(INDEX) == "true" else ()
            made = tuple(sorted(("files", *stats))) if request.enabled else ()
            told = ahead.but(result=Result.COMPLETED, failures=0, retry_at_ms=0, partitions=made)
        self.put("done/metadata", told.to_json())

    # ---- bootstraps

    def _bootstrap(self, process: Process, request: BootstrapRequest) -> None:
        """Written ahead, acquire, record, PUT, release, done: one step per tick, each but the first
        only when nothing is left of another agent.
        """
        known = self._done(BOOTSTRAP, BootstrapDone)
        record = known if known.table_uid == request.table_uid else BootstrapDone()
        hangs = self.bootstrap_hang_at is not None and process.step >= self.bootstrap_hang_at
        if record.result is Result.COMPLETED or hangs or self._frozen():
            return
        self.judge(BOOTSTRAP)
        assert not self.kv["gate"].value.get("adopted"), "a bootstrap is asked for after the gate was open (R14)"
        assert not [p for p in self.processes if p.role == "writer" and p.alive], (
            "a bootstrap is asked for while a writer runs (R14)"
        )
        if process.step == 0:
            process.step = self._begin_bootstrap(process, request, record)
        elif self._bootstrap_step(process, record):
            process.step = (process.step + 1) % 6

    def _begin_bootstrap(self, process: Process, request: BootstrapRequest, record: BootstrapDone) -> int:
        """The next step."""
        if self.now_ms < record.retry_at_ms or self._settling() or self._other_agents(process):
            return 0
        failures = record.failures + 1
        ahead = BootstrapDone(
            table_uid=request.table_uid,
            mode=request.mode,
            source=request.path,
            result=Result.RUNNING,
            begin_ms=record.begin_ms or self.now_ms,
            failures=failures,
            retry_at_ms=self.now_ms + backoff_ms(failures),
            inc=process.inc,
        )
        self.put("done/bootstrap", ahead.to_json())
        if self.bootstrapped:  # by an agent that died before its word
            return 5
        failed = ahead.but(result=Result.FAILED, code=Result.FAILED)
        if self.completed:
            told = failed.but(message="the table already has commits: it is bootstrapped only once")
        elif pending := next(iter(self._pending()), ""):
            waits = ahead.but(failures=record.failures, retry_at_ms=self.now_ms + backoff_ms(1))
            told = waits.but(message=f"instant {pending} is pending")
        elif self.bootstrap_error:
            told = failed.but(code=SourceError.SOURCE_INVALID, message=self.bootstrap_error)
        else:
            return 1
        self.put("done/bootstrap", told.to_json())
        return 0

    def _bootstrap_step(self, process: Process, record: BootstrapDone) -> bool:
        match process.step:
            case 1:
                return self.acquire(process)
            case 2:
                process.instant = self.record(process, records=ROWS)
            case 3:
                assert self.holds(process), "a commit landed while somebody else could hold the lock (I1)"
                assert not self.bootstrapped, "a table was bootstrapped twice"
                self.move_clock(self.completion(process.instant))
                self.completed.add(process.instant)
                self.bootstrapped.append(process.instant)
            case 4:
                self.drop("lock")
                self.drop(f"instant/{process.instant}")
            case _:
                found = record.but(
                    instant=self.bootstrapped[0],
                    completion_time=self.completion(self.bootstrapped[0]),
                    records=ROWS,
                    files=FILES,
                    bytes=BYTES,
                )
                done = found.but(result=Result.COMPLETED, end_ms=self.now_ms, failures=0, retry_at_ms=0)
                self.put("done/bootstrap", done.to_json())
        return True


def _holders(record: dict[str, Any]) -> list[str]:
    """Owner and executor of an instant."""
    return [inc for inc in (record.get("claimedBy"), record.get("inc")) if inc]
