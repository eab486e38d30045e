"""The results that an attempt sends to the operator.

The termination message and the live report in etcd.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from hudi_contract.environment import TERMINATION_LOG, TERMINATION_MESSAGE
from hudi_contract.keys import Kind, attempt_report
from hudi_contract.outcomes import Ending
from hudi_contract.reports import AttemptReport, ConflictReport, TerminationMessage, Turn
from hudi_contract.words import Stage
from hudi_runtime.process.errors import Failure
from hudi_runtime.process.etcd import now_ms
from hudi_runtime.process.session import Conflict, Session

TERMINATION_LIMIT = 4096
MAX_CONFLICTS = 10


@dataclass
class Tally:
    """Counters of one attempt."""

    commits: int = 0
    records: int = 0
    last_instant: str = ""
    last_completion: str = ""
    conflicts: tuple[ConflictReport, ...] = ()
    conflict_count: int = 0
    waiting: int = 0
    """Backlog of the source when the last commit's batch was taken: files, commits, offsets."""
    bad_records: int = 0
    """Records that the writer's commits have left out, in all its attempts."""
    caught_up: bool = False
    """Whether a streaming run has reached the end of its source at least once."""

    def conflict(self, conflict: Conflict) -> None:
        """Record a lost race; only the last MAX_CONFLICTS are kept."""
        self.conflict_count += 1
        groups, at = conflict.file_groups, now_ms()
        entry = ConflictReport(
            instant=conflict.instant, with_=conflict.other, file_groups=groups, yielded=conflict.yielded, at_ms=at
        )
        self.conflicts = (*self.conflicts, entry)[-MAX_CONFLICTS:]

    def committed(self, instant: str, completion: str, records: int, *, since: int) -> None:
        """Count a commit; the conflicts from number `since` on were lost by earlier tries of it."""
        self.commits += 1
        self.records += records
        self.last_instant = instant
        self.last_completion = completion
        before = len(self.conflicts) - max(0, self.conflict_count - since)
        self.conflicts = tuple(
            entry.but(retried_as=entry.retried_as or instant) if number >= before else entry
            for number, entry in enumerate(self.conflicts)
        )


class Reporter:
    """Puts `report/attempt/<attempt>`.

    A failed put does not fail the attempt: the termination message follows.
    """

    def __init__(self, session: Session, tally: Tally) -> None:
        self._session = session
        self._tally = tally
        self.last_stage: Stage | None = None
        """The last stage."""
        self._resumed_ms = 0
        self.turn: Turn | None = None
        """The writers from which this writer requests a turn; None: it takes no turns (an
        application).
        """

    def stage(self, stage: Stage) -> bool:
        """Report the stage and the counters so far. False: nobody knows whether it was put."""
        if self.last_stage is Stage.WAITING and stage is not Stage.WAITING:
            self._resumed_ms = now_ms()
        tally, self.last_stage = self._tally, stage
        report = AttemptReport(
            attempt=self._session.attempt,
            inc=self._session.inc,
            at_ms=now_ms(),
            stage=stage,
            commits=tally.commits,
            records=tally.records,
            last_instant=tally.last_instant,
            last_completion_time=tally.last_completion,
            conflicts=tally.conflicts,
            conflict_count=tally.conflict_count,
            turn=self.turn,
            waiting=tally.waiting,
            caught_up=tally.caught_up,
            bad_records=tally.bad_records,
            resumed_ms=self._resumed_ms,
        )
        try:
            self._session.etcd.put(Kind.REPORT.of(attempt_report(self._session.attempt)), report.to_json())
        except Exception as error:
            print(f"report not put: {type(error).__name__}", file=sys.stderr, flush=True)
            return False
        return True


def termination_message(tally: Tally, failure: Failure | None) -> str:
    """The JSON of contracts, section 5.

    The message is truncated so that the JSON stays within the kubelet's limit.
    """
    result = TerminationMessage(
        outcome=Ending.FAILED if failure else Ending.SUCCEEDED,
        class_=failure.kind if failure else None,
        message=failure.message if failure else "",
        commits=tally.commits,
        records=tally.records,
        last_instant=tally.last_instant,
        last_completion_time=tally.last_completion,
        conflicts=tally.conflict_count,
        waiting=tally.waiting,
        caught_up=tally.caught_up,
        bad_records=tally.bad_records,
    )
    while len((text := json.dumps(result.to_json())).encode()) > TERMINATION_LIMIT:
        result = result.but(message=result.message[: len(result.message) // 2])
    return text


def write_termination(tally: Tally, failure: Failure | None) -> None:
    """Write the termination message where the kubelet reads it."""
    path = Path(os.environ.get(TERMINATION_MESSAGE, TERMINATION_LOG))
    try:
        path.write_text(termination_message(tally, failure), encoding="utf-8")
    except OSError as error:
        print(f"termination message not written: {error}", file=sys.stderr, flush=True)
