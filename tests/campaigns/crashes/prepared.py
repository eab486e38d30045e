"""The table of the runs: written once by a real writer that was killed before its commit.

Each run gets a fresh copy.

``base`` is the table after a first commit; ``dead`` are the files that the killed writer has left
behind: its instant on the timeline, data, markers and its heartbeat.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.support.harness.class_archive import BUNDLE
from tests.support.harness.local import World, rows, until

NAME, PARTITION = "flights", "p"
SEED = rows(range(5), "a", "seed", 1) + rows(range(5, 9), "b", "seed", 1)
PATIENCE_SECONDS = 900.0
DEAD = rows(range(5), "a", "dead", 9) + rows(range(20, 23), "c", "dead", 9)


@dataclass(frozen=True)
class Prepared:
    """Prepared files of a table."""

    directory: Path
    instant: str
    """Requested time of the dead writer's instant, as in the names and contents of its files.
    """

    def copy(self, target: Path) -> None:
        """The table before the dead writer."""
        shutil.copytree(self.directory / "base", target)

    def place(self, target: Path, instant: str) -> None:
        """Place the remains of the dead writer under another requested time.

        The timeline's files come last, except for the heartbeat, as with a writer.
        """
        files = sorted(
            (f for f in (self.directory / "dead").rglob("*") if f.is_file()),
            key=lambda f: ("/timeline/" not in str(f), "inflight" in f.name),
        )
        for file in files:
            name = str(file.relative_to(self.directory / "dead")).replace(self.instant, instant)
            content = file.read_bytes()
            if file.suffix != ".parquet":
                content = content.replace(self.instant.encode(), instant.encode())
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(content)


def prepared(cache: Path) -> Prepared:
    """The table, made now unless an earlier campaign has left it in ``cache``."""
    digest = hashlib.sha256(f"{SEED} {DEAD} {BUNDLE}".encode()).hexdigest()[:12]
    place = cache / f"table-{digest}"
    if not place.exists():
        with tempfile.TemporaryDirectory(prefix="prepare-", dir=cache) as scratch:
            _make(Path(scratch), Path(scratch) / "table").rename(place)
    return Prepared(place, json.loads((place / "about.json").read_text())["instant"])


def _make(scratch: Path, target: Path) -> Path:
    world = World(scratch / "world")
    world.folder.mkdir()
    world.start()
    try:
        table = world.table(NAME, partitionFields=[PARTITION])
        agent = world.agent("agent", storage=table)
        table.gate("closed")
        world.admit_agent(table, "agent")
        until("the table exists", lambda: table.report().get("exists"), alive=agent, timeout=PATIENCE_SECONDS)
        table.gate("open")
        agent.kill()
        gate = scratch / "gate"
        writer = table.writer("writer", python={"batches": [{"rows": SEED}, {"rows": DEAD, "gate": str(gate)}]})
        until("the second write is under way", Path(f"{gate}.reached").exists, alive=writer, timeout=PATIENCE_SECONDS)
        (victim,) = table.pending()
        # Somebody else's lock: the writer writes its data and cannot commit.
        world.etcd.put(
            table.key("lock"), {"inc": "nobody", "attempt": "nobody", "podUID": "nobody", "nonce": "n", "sinceMs": 0}
        )
        gate.touch()
        until(
            "its data is written and it waits for the lock",
            lambda: table.data_files(victim) and table.keys("queue/"),
            alive=writer,
            timeout=PATIENCE_SECONDS,
        )
        writer.kill()
        _split(table.folder, victim, target)
    finally:
        world.stop()
    (target / "about.json").write_text(json.dumps({"instant": victim}))
    return target


def _split(folder: Path, victim: str, target: Path) -> None:
    for file in (f for f in folder.rglob("*") if f.is_file()):
        name = str(file.relative_to(folder))
        # The marker names the lock authority of this world.
        if not name.startswith(".hoodie/hudi-operator"):
            to = target / ("dead" if victim in name else "base") / name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, to)
