"""What an attempt tells the operator: the termination message and the live report in etcd."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hudi_runtime.process.errors import Failure
from hudi_runtime.process.etcd import now_ms
from hudi_runtime.process.session import Conflict, Session

TERMINATION_LOG = "/dev/termination-log"
TERMINATION_LIMIT = 4096
MAX_CONFLICTS = 10


@dataclass
class Tally:
    """Counters of one attempt."""

    commits: int = 0
    records: int = 0
    last_instant: str = ""
    last_completion: str = ""
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    conflict_count: int = 0
    waiting: int = 0
    """What the source still had when the last commit's batch was taken: files, commits, offsets."""
    caught_up: bool = False
    """Whether a streaming run has come to the end of its source at least once."""

    def conflict(self, conflict: Conflict) -> None:
        """Remember a lost race; only the last ten are kept."""
        self.conflict_count += 1
        entry = {
            "instant": conflict.instant,
            "retriedAs": "",
            "with": conflict.other,
            "fileGroups": list(conflict.file_groups),
            "yielded": conflict.yielded,
            "atMs": now_ms(),
        }
        self.conflicts = [*self.conflicts, entry][-MAX_CONFLICTS:]

    def committed(self, instant: str, completion: str, records: int, *, since: int) -> None:
        """Count a commit; conflicts number `since` and later were lost on the way to it."""
        self.commits += 1
        self.records += records
        self.last_instant = instant
        self.last_completion = completion
        lost = self.conflict_count - since
        for entry in self.conflicts[len(self.conflicts) - lost :] if lost > 0 else []:
            entry["retriedAs"] = entry["retriedAs"] or instant


class Reporter:
    """Puts `report/attempt/<attempt>`. A report that cannot be put is not worth failing for: the termination message follows."""

    def __init__(self, session: Session, tally: Tally) -> None:
        self._session = session
        self._tally = tally
        self.said = ""
        """The last stage."""
        self.turn: dict[str, Any] | None = None
        """Against whom this writer asks for its turn; empty: against nobody; None: it takes no turns (an application)."""

    def stage(self, stage: str) -> None:
        """Report the stage and the counters so far."""
        tally, self.said = self._tally, stage
        report = {
            "attempt": self._session.attempt,
            "inc": self._session.inc,
            "atMs": now_ms(),
            "stage": stage,
            "commits": tally.commits,
            "records": tally.records,
            "lastInstant": tally.last_instant,
            "lastCompletionTime": tally.last_completion,
            "conflicts": tally.conflicts,
            **({} if self.turn is None else {"turn": self.turn}),
            **_streamed(tally),
        }
        try:
            self._session.etcd.put(f"report/attempt/{self._session.attempt}", report)
        except Exception as error:
            print(f"report not put: {type(error).__name__}", file=sys.stderr, flush=True)


def _streamed(tally: Tally) -> dict[str, Any]:
    return {"waiting": tally.waiting, "caughtUp": tally.caught_up}


def termination_message(tally: Tally, failure: Failure | None) -> str:
    """The JSON of contracts, section 5; the message is cut so that the whole stays within the kubelet's limit."""
    result: dict[str, Any] = {
        "outcome": "Failed" if failure else "Succeeded",
        "class": failure.kind.value if failure else None,
        "message": failure.message if failure else "",
        "commits": tally.commits,
        "records": tally.records,
        "lastInstant": tally.last_instant,
        "lastCompletionTime": tally.last_completion,
        "conflicts": tally.conflict_count,
        **_streamed(tally),
    }
    text = json.dumps(result)
    while len(text.encode()) > TERMINATION_LIMIT:
        result["message"] = result["message"][: len(result["message"]) // 2]
        text = json.dumps(result)
    return text


def write_termination(tally: Tally, failure: Failure | None) -> None:
    """Write the termination message where the kubelet reads it."""
    path = Path(os.environ.get("HUDI_OPERATOR_TERMINATION_LOG", TERMINATION_LOG))
    try:
        path.write_text(termination_message(tally, failure), encoding="utf-8")
    except OSError as error:
        print(f"termination message not written: {error}", file=sys.stderr, flush=True)
