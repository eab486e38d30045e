"""One run: three writers play the workload on one table, one of them is killed in the middle.

Then the history is read from the table.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_contract.outcomes import EXIT_CODES, FailureClass
from hudi_runtime.audit import Check, Outcome
from hudi_runtime.table import timeline as tl
from tests.campaigns.history.workload import TOTAL, Commit, Found, judge, parse_notes, seed, steps
from tests.support import oracle
from tests.support.harness.etcd_server import Key
from tests.support.harness.local import Process, Table, World, until

CODE = Path(__file__).with_name("transactions.py")
AGENT = "agent-history"
LIMIT = 1500.0
"""Seconds for one step on a machine with much else to do; nothing is measured."""
RETRIES = 20
"""Tries of a writer in its process: with three writers on one file group two of three tries are
lost.
"""
ATTEMPTS = 40
AUDITED = ("origin", "files", "owners", "metadata", "late")
"""Not `overlap`: that is what modes and workloads differ in."""


@dataclass(frozen=True)
class Cell:
    """Parameters of a run. `how`: the writers' way of reading the table (transactions.py)."""

    type: str
    mode: str
    index: str
    how: str

    @property
    def name(self) -> str:
        """As `cow/Optimistic/Simple/update`."""
        return f"{self.type}/{self.mode}/{self.index}/{self.how}"

    @property
    def spec(self) -> dict[str, Any]:
        """Part of a HudiTable's spec that it needs."""
        index: dict[str, Any] = {"type": self.index} | ({"buckets": 1} if self.index == "Bucket" else {})
        return {
            "type": {"cow": "CopyOnWrite", "mor": "MergeOnRead"}[self.type],
            "concurrency": {"mode": self.mode},
            "index": index,
        }

    @property
    def promise(self) -> str:
        """`snapshot`, `serializable`, or nothing."""
        if self.how == "unseen":
            return ""
        return "serializable" if self.how == "serializable" or self.mode == "NonBlocking" else "snapshot"


CELLS = (
    Cell("cow", "Optimistic", "Simple", "update"),
    Cell("cow", "Optimistic", "Simple", "serializable"),
    Cell("cow", "Optimistic", "Simple", "frame"),
    Cell("cow", "Optimistic", "Simple", "unseen"),
    Cell("cow", "Optimistic", "Bloom", "update"),
    Cell("cow", "Optimistic", "Bucket", "update"),
    Cell("mor", "Optimistic", "Simple", "update"),
    Cell("mor", "Optimistic", "Bucket", "update"),
    Cell("mor", "NonBlocking", "Bucket", "update"),
    Cell("mor", "NonBlocking", "Bucket", "unseen"),
)


def commits(table: Table) -> list[Commit]:
    """Every completed write, in order of completion, with the rows that it wrote."""
    return [_commit(table, i) for i in table.timeline().completed if i.action in tl.WRITE_ACTIONS]


def _commit(table: Table, instant: tl.Instant) -> Commit:
    options = {
        "hoodie.datasource.query.type": "incremental",
        # exclusive; a time that no instant has
        "hoodie.datasource.read.begin.instanttime": f"{int(instant.completion) - 1}",
        "hoodie.datasource.read.end.instanttime": instant.completion,
    }
    frame = table.world.spark().read.format("hudi").options(**options).load(table.path)
    found = (
        frame.where(f"_hoodie_commit_time = '{instant.requested}'").select("id", "v", "_hoodie_file_name").collect()
        if frame.columns
        else []
    )
    groups = {row.id: row[2].lstrip(".").split("_")[0] for row in found}
    return Commit(instant.requested, instant.completion, {row.id: row.v for row in found}, groups)


def final(table: Table) -> list[tuple[int, str, str]]:
    """The rows as they are now."""
    found = table.world.spark().read.format("hudi").load(table.path).select("id", "p", "v").collect()
    return sorted((row.id, row.p, row.v) for row in found)


class Run:
    """A table and its writers."""

    def __init__(
        self,
        world: World,
        agent: Process,
        agent_name: str,
        cell: Cell,
        *,
        rounds: int,
        writers: int = 3,
        seed_of_chance: int,
    ) -> None:
        self.world, self.agent, self.cell, self.rounds = world, agent, cell, rounds
        self.names = [f"w{number}" for number in range(writers)]
        self._chance = seed_of_chance
        self.table: Table = world.table("history-" + cell.name.replace("/", "-").lower(), **cell.spec)
        self.folder = world.folder / f"notes-{self.table.id}"
        self.folder.mkdir()
        world.create(self.table, agent=agent_name, process=agent)
        self.conflicts = 0
        self.attempts = 0

    def _writer(self, name: str) -> Process:
        number = self.names.index(name)
        chance = random.Random(self._chance)  # the same records for all writers of a round
        arguments = {
            "steps": steps(number, self.rounds, chance),
            "how": self.cell.how,
            "notes": str(self.folder / f"{name}.{self.table.attempts.get(name, 0) + 1}"),
            "ready": str(self.folder / f"{name}.ready"),
            "go": str(self.folder / "go"),
        }
        self.attempts += 1
        return self.table.writer(name, file=CODE, function="transactions", python=arguments, retries=RETRIES)

    def play(self, *, kill: bool = True) -> None:
        """All writers to their ends.

        With `kill` the first one is killed in the middle of its steps, while it writes itself.
        """
        first = self.table.writer("seed", python={"batches": [{"rows": seed(self.rounds)}]})
        assert first.wait(LIMIT) == 0, first.log()[-4000:]
        running = {name: self._writer(name) for name in self.names}
        for name, process in running.items():
            until(f"{name} is ready", (self.folder / f"{name}.ready").exists, alive=process, timeout=LIMIT)
        (self.folder / "go").touch()
        if kill:
            running[self.names[0]] = self._killed(running[self.names[0]])
        conflict = EXIT_CODES[FailureClass.WRITE_CONFLICT]
        while running:
            for name, process in list(running.items()):
                if process.poll() is None:
                    continue
                assert process.wait() in (0, conflict), process.log()[-4000:]
                self.conflicts += int(process.termination()["conflicts"])
                del running[name]
                if process.wait() == conflict:
                    assert self.attempts < ATTEMPTS * len(self.names)
                    running[name] = self._writer(name)
            time.sleep(0.2)
        until("nothing is left pending", lambda: not self.table.pending(), alive=self.agent, timeout=LIMIT)

    def _killed(self, process: Process) -> Process:
        # An attempt with frames may end with its first conflict
        half = 0 if self.cell.how == "frame" else 3 * self.rounds
        notes = self.folder / f"{self.names[0]}.1"
        until(
            "the victim is in the middle",
            lambda: notes.exists() and len(notes.read_text().splitlines()) > half,
            alive=process,
            timeout=LIMIT,
            every=0.02,
        )
        mine = process.inc
        until(
            "and writes",
            lambda: self.table.pending() & own_instants(self.table.keys("instant/"), mine),
            alive=process,
            timeout=LIMIT,
            every=0.005,
        )
        process.kill()
        self.table.fence(process)
        return self._writer(self.names[0])

    # -- what came of it

    def notes(self) -> list[dict[str, Any]]:
        """Notes of every try: what it read and what it wanted to write."""
        paths = sorted(path for path in self.folder.iterdir() if path.suffix[1:].isdigit())
        return [note for path in paths for note in parse_notes(path.read_text())]

    def found(self) -> Found:
        """Result of judging the history."""
        return judge(self.notes(), commits(self.table), final(self.table), self.rounds)

    def audited(self) -> dict[str, str]:
        """Checks of the audit that are not OK: `audit.name: sentence` with the outcome.

        Rows are not checked: with lost updates the right ones are unknown.
        """
        for _ in range(oracle.TIMES):
            checks = [one for one in self.table.audit().checks if one.name in AUDITED]
            if not all(one.ask_again for one in checks if one.outcome is not Outcome.OK):
                break
            if all(one.outcome is Outcome.OK for one in checks):
                break
            time.sleep(oracle.PAUSE)
        return not_ok(checks)


def own_instants(records: Iterable[Key], inc: str) -> set[str]:
    """Instants that an incarnation has recorded."""
    return {record.key.rsplit("/", 1)[-1] for record in records if record.value["inc"] == inc}


def not_ok(checks: Iterable[Check]) -> dict[str, str]:
    """By a sentence, the outcome of each check of `AUDITED` that is not OK; one that was not made
    is `missing`.
    """
    said = {check.name: check for check in checks if check.name in AUDITED}
    bad = {f"audit {c.name}: {c.sentence}": c.outcome.value for c in said.values() if c.outcome is not Outcome.OK}
    return bad | {f"audit {name}: not made": "missing" for name in AUDITED if name not in said}


def check(cell: Cell, found: Found) -> list[str]:
    """Findings that the promise of the cell excludes."""
    return {
        "": [],
        "snapshot": [*found.broken, *found.inserted_twice],
        "serializable": found.not_serializable,
    }[cell.promise]


def judged(wrong: list[str], audited: Mapping[str, str], met: int) -> tuple[str, str]:
    """The verdict and why: `broken`; `unknown` when the audit could not tell; `thin` when no two
    transactions have met, so that nothing could go wrong; `ok`. `met`: those that have committed
    although they read while another one was under way, and those that were refused for it.
    """
    broken = [*wrong, *(said for said, outcome in audited.items() if outcome == Outcome.VIOLATED.value)]
    if broken:
        return "broken", "; ".join(broken)
    if audited:
        return "unknown", "; ".join(audited)
    return ("ok", "nothing that was promised not to be") if met else ("thin", "no two transactions have met")


def run(cell: Cell, folder: Path, *, rounds: int, seed_of_chance: int) -> dict[str, Any]:
    """A run with its own etcd and agent, for `make history`."""
    begin = time.monotonic()
    world = World(folder)
    try:
        world.start()
        made = Run(world, world.agent(AGENT), AGENT, cell, rounds=rounds, seed_of_chance=seed_of_chance)
        made.play()
        found = made.found()
        audited = made.audited()
        world.conform()
    finally:
        world.stop()
    verdict, told = judged(check(cell, found), audited, found.met + made.conflicts)
    return {
        "verdict": verdict,
        "told": told,
        "rounds": rounds,
        "chance": seed_of_chance,
        "writers": len(made.names),
        "attempts": made.attempts,
        "conflicts": made.conflicts,
        "tries": len(made.notes()),
        "total": TOTAL,
        "found": vars(found),
        "seconds": round(time.monotonic() - begin),
    }
