"""A committer whose writes end as a test says.

It writes nothing and takes no lock: instants, files and conflicts are played.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from hudi_contract.outcomes import FailureClass
from hudi_runtime.process.result import Tally
from hudi_runtime.process.session import Conflict
from hudi_runtime.writer import commit
from hudi_runtime.writer.commit import Committer
from hudi_runtime.writer.fairness import Fairness


class Play(Committer):
    """A committer whose writes end as `ends` says: `yielded` or `lost` races, then `done`.

    `began`: whether a write that is lost had begun its instant.
    """

    def __init__(
        self, monkeypatch: Any, ends: list[str], *, retries: int, stop: bool = False, began: bool = True
    ) -> None:
        self.ends, self.allowed, self.waits = list(ends), list[int](), 0
        self.pending_for, self.began = 2, began
        self._job: Any = SimpleNamespace(in_process_retries=retries, writer="w")
        self._session: Any = SimpleNamespace(
            may_yield=self.allowed.append,
            attempt="default.w-1",
            recomputed=lambda: 0,
            batch=nullcontext,
            trying=nullcontext,
            last_conflict=lambda: None,
        )
        self._tally = Tally()
        self._reporter: Any = SimpleNamespace(stage=lambda _: None, last_stage="Writing", turn=None)
        self._stop: Any = SimpleNamespace(wait=self._wait)
        self._stopped = stop
        self._table: Any = SimpleNamespace(timeline=self._timeline)
        self._fairness = Fairness(self._session, self._table, self._reporter, self._stop, after=0)
        monkeypatch.setattr(commit, "classify_causes", lambda _: FailureClass.WRITE_CONFLICT)

    def _wait(self, _: float) -> bool:
        self.waits += 1
        return self._stopped

    def _timeline(self) -> Any:
        self.pending_for -= 1
        return SimpleNamespace(pending=[SimpleNamespace(requested="other")] if self.pending_for > 0 else [])

    def _write(self, batch: Any, *, base: str) -> Exception | None:
        return None if self.ends[0] == "done" else ValueError(self.ends[0])

    def _find(self, batch: Any, *, base: str) -> Any:
        return (
            (SimpleNamespace(requested="mine", completion="later"), SimpleNamespace(records=1, extra={}))
            if self.ends[0] == "done"
            else None
        )

    def abandon_pending(self) -> list[str]:
        return ["mine"] if self.began else []

    def _conflict(self, error: Exception, abandoned: list[str], before: Conflict | None) -> Conflict:
        return Conflict("mine", "other", (), yielded=self.ends.pop(0) == "yielded")
