"""The three setups that each fault is put to: stock Hudi with ZooKeeper, ours in LeaseOnly, ours.

One face for all of them.

On our sides the scenario plays the operator, as in the hudi tier: it fences, waits for proof (it
has ended the processes itself) and for the drain D, unlocks, and the real agent settles.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hudi_runtime.audit import Report, audit
from tests.support.harness import stopped_app
from tests.support.harness.local import Process, Row, Table, World, rows, until
from tests.support.harness.s3proxy import Proxy
from tests.support.harness.stock import Stock, StockWriter, ZooKeeper

SEED = rows(range(6), "a", "seed", 1)
TTL_SECONDS = 10
DRAIN_SECONDS = 6
AGENT = "agent-faults"
ARCHIVE = {
    "clean": {"afterCommits": 1, "retainCommits": 1},
    "archive": {"afterCommits": 1, "minCommitsToKeep": 2, "maxCommitsToKeep": 3},
}
"""Table services that archive after the fourth commit, as `STOCK_ARCHIVE` does."""
METADATA = {"hoodie.metadata.compact.max.delta.commits": "2"}
"""Archival waits for compactions of the metadata table."""
STOCK_ARCHIVE = {
    # Its compaction fails in a stock writer with inline services (1.2.0: "Index 7 out of bounds for
    # length 7")
    "hoodie.metadata.enable": "false",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}
SETUPS = {
    "stock": "stock Hudi 1.2.0 + ZooKeeper",
    "lease-only": "ours, fencing.mode LeaseOnly",
    "ours": "ours",
}


def overlaid(*writes: list[Row]) -> list[Row]:
    """The rows after these writes, the later ones over the earlier."""
    found: dict[tuple[int, str], Row] = {}
    for write in writes:
        found.update({(row[0], row[1]): row for row in write})
    return sorted(found.values())


@dataclass
class Side:
    """One setup with a seeded table behind the proxy."""

    setup: str
    world: World
    proxy: Proxy
    table: Table | None = None
    stock: Stock | None = None
    agent: Process | None = None
    _closers: list[Callable[[], None]] = field(default_factory=list)

    @property
    def path(self) -> str:
        return self.table.path if self.table is not None else str(self.stock.path if self.stock else "")

    def timeline(self) -> Path:
        return self.world.s3_folder / self.path.removeprefix("s3a://") / ".hoodie" / "timeline"

    def archive_version(self) -> str:
        """The version that readers of the archived timeline take; `none` without the file."""
        file = self.timeline() / "history" / "_version_"
        return file.read_text() if file.exists() else "none"

    def is_completed(self, instant: str) -> bool:
        return any(self.timeline().glob(f"{instant}_*"))

    def write(self, name: str, *writes: list[Row], services: bool = False, **hadoop: str) -> Process:
        """Start a writer of these upserts, one after another.

        `services`: stock Hudi's inline table services (ours run in the agent).
        """
        if self.stock is not None:
            return self.stock.writer(name, *writes, services=services, **hadoop)
        assert self.table is not None
        return self.table.writer(name, python={"batches": [{"rows": rows} for rows in writes]})

    def program(self, name: str, data: list[Row], *, how: str) -> tuple[Process, Path]:
        """Start a program that upserts and can be stopped (`stopped_app`).

        Returns its folder, too.
        """
        if self.stock is not None:
            started = self.stock.program(name, data, how=how)
            return started, started.folder
        assert self.table is not None
        folder = self.world.folder / f"program-{name}"
        folder.mkdir()
        (folder / "job.json").write_text(json.dumps({"rows": data, "how": how}))
        return self.table.writer(
            name, application={"mainFile": str(Path(stopped_app.__file__)), "arguments": [str(folder)]}
        ), folder

    def acknowledged(self, process: Process) -> bool:
        """Whether the writer was told, and tells, that its rows are committed."""
        if isinstance(process, StockWriter):
            return process.acknowledged
        return process.poll() == 0 and int(process.termination().get("commits", 0)) > 0

    def settle(self, dead: Process, *, drain: Callable[[], None] = lambda: None) -> dict[str, str]:
        """Fence, prove, drain (`drain` runs meanwhile), unlock, and wait for the agent.

        Returns the outcome of each instant.
        """
        assert self.table is not None
        inc = self.fence_only(dead)
        end = time.monotonic() + self.table.drain
        drain()
        time.sleep(max(0.0, end - time.monotonic()))
        self.table.fence(dead)
        return until("the agent has settled it", lambda: self.settled(inc), alive=self.agent)

    def fence_only(self, dead: Process) -> str:
        """The fence, with the lock still standing: phase Draining."""
        assert self.table is not None
        etcd, table, inc = self.world.etcd, self.table, dead.inc
        etcd.put(table.control(f"fence/{inc}"), {"inc": inc, "reason": "LeaseGone", "atMs": 0})
        etcd.delete(table.key(f"alive/{inc}"))
        return inc

    def settled(self, inc: str) -> dict[str, str] | None:
        assert self.table is not None
        outcomes = self.table.outcomes(inc)
        if outcomes is not None:
            self.table.settled(inc)
        return outcomes

    def audit(self, expected: list[Row]) -> Report:
        """The audit of the table, read past the proxy."""
        if self.table is not None:
            return self.table.audit(expected)
        spark = self.world.spark()

        def wanted(session: Any, schema: Any) -> Any:
            return session.createDataFrame(expected, "id int, p string, v string, ts long")

        return audit(spark, self.path, expected=wanted, hudi_rs_options=self.world.s3_reader_options())

    def close(self) -> None:
        for close in reversed(self._closers):
            close()


def make(setup: str, folder: Path, *, s3_options: dict[str, str] | None = None, archives: bool = False) -> Side:
    """Everything that a scenario needs, with one committed write in the table.

    `archives`: the table is archived after a few commits, with us by an agent that alone has the
    `s3_options`.
    """
    world = World(folder)
    world.start()
    server = world.start_s3()
    host, port = server.removeprefix("http://").split(":")
    proxy = Proxy(host, (host, int(port)))
    side = Side(setup, world, proxy, _closers=[world.stop, proxy.stop])
    if setup == "stock":
        zookeeper = ZooKeeper(folder / "zookeeper")
        side._closers.append(zookeeper.stop)
        options = STOCK_ARCHIVE if archives else {}
        side.stock = Stock(world, "stock", endpoint=proxy.url, zookeeper=zookeeper, options=options)
    else:
        services = {"services": ARCHIVE | {"compaction": {"enabled": False}}} if archives else {}
        impatient = world.table(setup, endpoint=proxy.url, s3_options=s3_options)
        table = world.table(setup, endpoint=proxy.url, **services) if archives else impatient
        table.below = METADATA if archives else {}
        table.mode = "LeaseOnly" if setup == "lease-only" else "PodTermination"
        table.drain = DRAIN_SECONDS
        side.table = table
        side.agent = world.agent(AGENT, storage=impatient)
        world.create(table, agent=AGENT, process=side.agent)
    seed = side.write("seed", SEED)
    assert seed.wait() == 0, seed.log()[-3000:]
    return side
