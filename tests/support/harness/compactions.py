"""Tables that are compacted all the time, and what is seen of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hudi_runtime.table.timeline import Instant, State
from tests.support.harness.local import Table, rows

#: Small numbers, so that everything happens within a dozen commits.
SERVICES = {
    "compaction": {"afterCommits": 4},
    "clean": {"afterCommits": 4, "retainCommits": 2},
    "archive": {"afterCommits": 4, "minCommitsToKeep": 4, "maxCommitsToKeep": 5},
}
OFF: dict[str, Any] = {kind: {"enabled": False} for kind in SERVICES}
EAGER = OFF | {"compaction": {"afterCommits": 1}}


def batch(number: int, gate: Path | None = None) -> dict[str, Any]:
    """Every batch rewrites the same rows: one file group, one log file a commit."""
    return {"rows": rows(range(20), "a", f"v{number}", number), **({"gate": str(gate)} if gate else {})}


def compaction(table: Table, state: State) -> Instant | None:
    """The newest compaction in that state; a completed one is a `commit` on the timeline."""
    action = "commit" if state is State.COMPLETED else "compaction"
    return next((i for i in reversed(table.timeline().instants) if i.action == action and i.state is state), None)
