"""The parts of a cell: one etcd, one agent, one S3 server, one table.

The test plays the operator, as in the hudi tier.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hudi_operator.api import services
from hudi_runtime.job.options import check_allowed
from hudi_runtime.process.errors import OptionNotAllowed
from hudi_runtime.table.timeline import Instant
from tests.campaigns.matrix.cells import KINDS, Cell
from tests.campaigns.matrix.workload import NEW, Batch, Row
from tests.support.harness.local import NOTHING, Process, Table, World, until
from tests.support.oracle import Unasked

AGENT = "agent-matrix"
LOCAL = "half of the cells of the matrix are about a file system with renames"
LIMIT = 1500.0
"""Seconds for one step on a machine with much else to do; nothing is measured. The limit of the
cell is a shorter one.
"""
WRITES = {"cow": "commit", "mor": "deltacommit"}
"""Action of a writer's commit."""
#: Small numbers, so that everything happens within a dozen commits.
_ARCHIVE = {"minCommitsToKeep": 2, "maxCommitsToKeep": 3}
_AFTER_COMMITS = {"compaction": 3, "clustering": 4, "clean": 1, "archive": 1}
METADATA = {
    # The metadata table is compacted by writers; archival waits for that (Hudi's rule).
    "hoodie.metadata.compact.max.delta.commits": "2",
}
_NULL_FOR_MISSING = {"hoodie.write.set.null.for.missing.columns": "true"}
RETRIES = 8


def writer_options() -> dict[str, str]:
    """Options of each writer.

    One that does not know a column that another has added goes on: by option, or because the
    runtime sees to it.
    """
    try:
        check_allowed(_NULL_FOR_MISSING)
    except OptionNotAllowed:
        return METADATA
    return METADATA | _NULL_FOR_MISSING


def wanted_services(*, at_once: bool) -> dict[str, dict[str, Any]]:
    """`spec.services`: every service that there is.

    `at_once`: after a single commit, and no writer is at work any more.

    A writer may still need the file version before the last commit. When all have ended, the newest
    one is enough: after one compaction there is something to clean then.
    """
    kinds = [kind for kind in _AFTER_COMMITS if kind in services.KINDS]
    found: dict[str, dict[str, Any]] = {
        kind: {"afterCommits": 1 if at_once else _AFTER_COMMITS[kind]} for kind in kinds
    }
    found["clean"] |= {"retainFileVersions": 1} if at_once else {"retainCommits": 1}
    found["archive"] |= _ARCHIVE
    if "clustering" in found:
        found["clustering"]["sortColumns"] = ["id"]
    return found


LATER = {"hudi-rs": Unasked("of a MergeOnRead table it is asked after the compaction")}


class Setup:
    """A cell's processes and its table."""

    def __init__(self, cell: Cell, folder: Path) -> None:
        self.cell = cell
        self.folder = folder
        self.world = World(folder)
        self.gates = f"{folder}/gate-"
        self.table: Table
        self.agent: Process

    def start(self) -> None:
        """Everything but writers; the table exists then. The reader's JVM starts meanwhile."""
        self.world.start()
        cell = self.cell
        self.world.start_s3()
        self._reader = threading.Thread(target=self.world.spark, daemon=True)
        self._reader.start()
        self.table = self._with(wanted_services(at_once=False) if cell.test.async_clean and not cell.refused else None)
        self.table.gate("closed")
        self.agent = self.world.agent(AGENT, self.table, storage=self.table)
        until("the table exists", lambda: self.table.report().get("exists"), alive=self.agent, timeout=LIMIT)
        self.table.gate("open")

    def _with(self, wanted: dict[str, dict[str, Any]] | None) -> Table:
        mode = "Optimistic" if self.cell.several else "SingleWriter"
        more: dict[str, Any] = {"concurrency": {"mode": mode}} | ({"services": wanted} if wanted else {})
        made = self.world.table(
            "matrix", type=KINDS[self.cell.kind], local_files=LOCAL if self.cell.storage == "file" else "", **more
        )
        if not self.cell.test.metadata:
            made.below["hoodie.metadata.enable"] = "false"
        return made

    def serve(self) -> None:
        """From now on the agent runs every service."""
        self._with(wanted_services(at_once=True)).assign(AGENT)

    def spark(self) -> Any:
        """The reader's session."""
        self._reader.join()
        return self.world.spark()

    # -- writers -----------------------------------------------------------------------------------

    def writer(self, name: str, batches: list[Batch]) -> Process:
        return self.table.writer(name, python={"batches": batches}, options=writer_options(), retries=RETRIES)

    def open(self, *gates: str) -> None:
        for gate in gates:
            Path(f"{self.gates}{gate}").touch()

    def reached(self, gate: str, process: Process) -> None:
        until(
            f"{process.name} has come to {gate}",
            Path(f"{self.gates}{gate}.reached").exists,
            alive=process,
            timeout=LIMIT,
        )

    def ended(self, process: Process) -> dict[str, Any]:
        """Termination message of a writer that has done everything."""
        assert process.wait(LIMIT) == 0, process.log()[-4000:]
        return process.termination()

    # -- what has happened -------------------------------------------------------------------------

    def writing(self) -> str:
        """The one write that is inflight, by its requested time."""
        (found,) = [
            instant.requested for instant in self.table.timeline().pending if instant.action == WRITES[self.cell.kind]
        ]
        return found

    def instant(self, requested: str) -> Instant:
        found = self.table.timeline().get(requested)
        assert found is not None, f"{requested} is not on the timeline"
        return found

    def ran(self, kind: str) -> list[tuple[str, str]]:
        """Instants and words of the runs of a service that did something."""
        return re.findall(rf"^table \S+: {kind}: Completed (\d*) in \d+ ms: (.*)$", self.agent.log(), re.M)

    def archived(self) -> int:
        return sum(int(words.split()[0]) for _, words in self.ran("archive"))

    def history(self) -> bool:
        """Whether there is an archived timeline."""
        return bool(self.table.archived())

    def until(self, what: str, probe: Any) -> Any:
        return until(what, probe, alive=self.agent, timeout=LIMIT, every=0.2)

    # -- the end -----------------------------------------------------------------------------------

    def tended(self) -> None:
        """Every service has seen the last commit and has done something, nothing is pending, the
        agent leaves.
        """
        last = max(i.completion for i in self.table.timeline().completed if i.action == WRITES[self.cell.kind])
        kinds = [kind for kind in wanted_services(at_once=True) if kind != "compaction" or self.cell.kind == "mor"]
        for kind in kinds:
            self.until(f"{kind} has seen the last commit", lambda kind=kind: self._served(kind, last))
        idle = [kind for kind in kinds if not self.ran(kind)]
        assert not idle, f"{', '.join(idle)}: nothing was done"
        assert self.history(), "archival has left its files"
        self.quiet()

    def _served(self, kind: str, last: str) -> bool:
        record = self.table.get(f"done/service-{kind}") or {}
        return record.get("result") in ("Completed", "NothingToDo") and record["upTo"] >= last

    def quiet(self) -> None:
        """Nothing is pending, and the agent leaves in order."""
        self.until("nothing is pending", lambda: not self.table.pending() and not self.table.names("instant/"))
        self.agent.terminate()
        assert self.agent.wait(LIMIT) == 0, self.agent.log()[-4000:]

    def audited_before_services(self, rows: list[Row]) -> None:
        """The oracle, while the commits that raced are in the active timeline and their files are
        as they were written.

        Of a MergeOnRead table hudi-rs is asked after the compaction.
        """
        self.until("nothing is pending", lambda: not self.table.pending() and not self.table.names("instant/"))
        self.spark()
        self.table.audited(rows, schema=NEW, without=NOTHING if self.cell.kind == "cow" else LATER)

    def audited(self, rows: list[Row], *, schema: str = NEW, without: Mapping[str, str] = NOTHING) -> None:
        """The oracle, and the protocol log."""
        self.spark()
        self.table.audited(rows, schema=schema, without=without)
        self.world.conform()
