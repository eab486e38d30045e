"""Everything that a bootstrap needs, in one fake: table, session, etcd, Spark and the dataset that
the table begins with.

The fake lacks abilities of the real parts: rows (they are counted, not stored), a lost answer of
etcd or of the store, a compare that fails, more than one job and stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hudi_runtime.agent.bootstrap import KEY, Bootstrap
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.etcd import Entry
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import CommitInfo, Totals
from tests.support.world.agent_contexts import context
from tests.support.world.spark_tasks import spark_context

T1, T2, T3 = (f"2026010100000000{n}" for n in range(1, 4))
ME, OTHER, UID = "agent-me", "agent-other", "uid-1"
SPEC = TableSpec("T", "lake/flights", "flights", "s3a://lake/flights", "COPY_ON_WRITE", ("id",), ("p",), ("ts",), False)


@dataclass
class Fake:
    """Table, session, etcd, Spark and dataset in one: a write leaves on the timeline
    what Hudi does.
    """

    names: list[str] = field(default_factory=list)
    extra: dict[str, dict[str, str]] = field(default_factory=dict)
    kv: dict[str, dict[str, Any]] = field(default_factory=dict)
    recorded: list[str] = field(default_factory=list)
    gate: str = "closed"
    archive: bool = False
    quiet: bool = True
    rows: int = 5
    wrote: int = 5
    source_error: Exception | None = None
    write_error: Exception | None = None
    completes: bool = True
    """Whether a write completes its instant before it fails or returns."""
    active: int = 0
    """Tasks of the failed job that still run."""
    meanwhile: Callable[[], None] = lambda: None
    """Happens while a write is under way."""
    writes: list[dict[str, str]] = field(default_factory=list)
    abandoned: list[str] = field(default_factory=list)
    tries: list[dict[str, Any]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    # etcd
    def get(self, key: str) -> Entry | None:
        if key.startswith("instant/"):
            return Entry(key, {"action": "rollback" if key.endswith(T3) else "commit"}, 1)
        return Entry(key, self.kv[key], 1) if key in self.kv else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        self.kv[key] = dict(value)
        self.tries.append(dict(value))

    # table
    def timeline(self) -> tl.Timeline:
        return tl.parse(self.names)

    def commits(self, instants: tuple[tl.Instant, ...]) -> Any:
        return [(i, CommitInfo(self.extra.get(i.requested, {}), 5)) for i in instants]

    def totals(self, instant: tl.Instant) -> Totals:
        return Totals(self.wrote, 2, 100)

    # the write
    def options(self, **options: str) -> Fake:
        self.writes.append(options)
        return self

    def save(self, path: str) -> None:
        assert self.done["result"] == "Running", "written ahead"
        self.names.append(f"{T1}.commit.requested")
        self.recorded.append(T1)
        if self.completes:
            self.names.append(f"{T1}_{T2}.commit")
            self.extra[T1] = {k: v for k, v in self.writes[-1].items() if k.startswith("hudioperator.")}
            self.recorded.remove(T1)
        self.meanwhile()
        if self.write_error is not None:
            raise self.write_error

    def abandon(self, instant: str) -> bool:
        self.abandoned.append(instant)
        self.recorded.remove(instant)
        return True

    @property
    def done(self) -> dict[str, Any]:
        return self.kv.get("done/bootstrap", {})

    def made(self) -> Bootstrap:
        session: Any = SimpleNamespace(
            inc=ME,
            attempt="a",
            table_id="T",
            etcd=self,
            pending=lambda: list(self.recorded),
            quiet=lambda: self.quiet,
            abandon=self.abandon,
        )
        table: Any = SimpleNamespace(
            timeline=self.timeline,
            commits=self.commits,
            totals=self.totals,
            has_archive=lambda: self.archive,
            path=SPEC.path,
        )
        jobs = SimpleNamespace(
            setLocalProperty=lambda *a: None,
            setJobGroup=lambda *a, **k: None,
            **vars(spark_context({f"{KEY}-{SPEC.id}": self.active})),
            cancelJobGroup=self.cancelled.append,
        )
        spark: Any = SimpleNamespace(sparkContext=jobs)
        return Bootstrap(
            context(
                table,
                session,
                gate=lambda: self.gate,
                spec=SPEC,
                spark=spark,
                **{"hoodie.table.services.enabled": "false"},
            )
        )
