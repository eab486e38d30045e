"""One case on one table type: written by real writers, tended by a real agent, and read back column by column after each step."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.hudi import test_restore as restores
from tests.hudi.harness import Process, Table, World, until
from tests.values.cases import PAYLOAD, Case

from hudi_runtime.audit.rows import _save, for_hudi_rs
from hudi_runtime.incremental import Reader
from hudi_runtime.positions import ByCompletion

USER_CODE = Path(__file__).with_name("user_code.py")
SERVICES: Mapping[str, Mapping[str, Any]] = {"compaction": {"afterCommits": 1}, "clustering": {"afterCommits": 1}}
"""Clustering also sorts (by the first key field): else one file group of a partition by itself is nothing to do."""
LIMIT = 240.0
AS_TEXT = ("date", "timestamp", "timestamp_ntz", "string")
SHOWN = 160
HELD = "held"


@dataclass
class Run:
    """What was seen: step, reader and column, and `held` or what was seen instead."""

    world: World
    agent: Process
    agent_name: str
    case: Case
    kind: str
    name: str
    seen: dict[str, dict[str, str]] = field(default_factory=dict)

    def run(self) -> dict[str, dict[str, str]]:
        """Every step; a step that does not come to its end is seen as such and ends the run."""
        try:
            for step in self._steps():
                step()
        except Exception as error:
            self.seen["the run"] = {"": f"ended by {type(error).__name__}: {str(error)[:600]}"}
        return self.seen

    def _steps(self) -> Iterator[Callable[[], None]]:
        yield self._write
        if "services" in self.case.steps:
            yield from [self._compaction] if self.kind == "MergeOnRead" else []
            yield self._clustering
        if "source" in self.case.steps:
            yield self._pull
            yield self._source
        if "restore" in self.case.steps:
            yield self._restore

    # -- the table -----------------------------------------------------------------------------------------------------------------

    def _table(self, suffix: str = "", **more: Any) -> Table:
        case = self.case
        fields = {"recordKeyFields": list(case.keys), "partitionFields": list(case.partitions), "orderingFields": list(case.ordering)}
        return self.world.table(f"{self.name}{suffix}", type=self.kind, s3=True, **fields, **case.table, **more)

    def _created(self, suffix: str = "") -> Table:
        made = self._table(suffix)
        self.world.create(made, agent=self.agent_name, process=self.agent)
        return made

    def _do(self, table: Table, name: str, *queries: str, operation: str = "upsert") -> None:
        writer = table.writer(name, file=str(USER_CODE), function="queries", python={"queries": list(queries)}, operation=operation)
        if writer.wait() != 0:
            told = writer.termination()
            raise AssertionError(f"{told['class']}: {told['message']}")

    @property
    def _queries(self) -> tuple[str, str]:
        return self.case.rows(1), self.case.rows(2, shift=1, where="n % 2 = 0")

    def _write(self) -> None:
        self.table = self._created()
        first, second = self._queries
        if self.case.first == "upsert":
            self._do(self.table, "writer", first, second)
        else:
            self._do(self.table, "first", first, operation=self.case.first)
            self._do(self.table, "second", second)
        self._look("upserts" if self.case.first == "upsert" else "bulk insert and upsert", self.table)

    def _served(self, service: str) -> None:
        kinds = ("compaction", "clustering", "clean", "archive")
        more = {"sortColumns": [self.case.keys[0]]} if service == "clustering" else {}
        wanted = {kind: {**SERVICES[kind], **more} if kind == service else {"enabled": False} for kind in kinds}
        self._table(services=wanted).assign(self.agent_name)

        def done() -> str:
            record = self.table.get(f"done/service-{service}") or {}
            assert record.get("result") != "Failed", record
            return str(record.get("result")) if record.get("result") in ("Completed", "NothingToDo") else ""

        result = until(f"{service} is done", done, alive=self.agent, timeout=LIMIT)
        self._table().assign(self.agent_name)
        assert result == "Completed", f"{service}: {result}"
        self._look(service, self.table)

    def _compaction(self) -> None:
        self._served("compaction")

    def _clustering(self) -> None:
        self._served("clustering")

    def _pull(self) -> None:
        spark = self._spark()
        pull = Reader(spark, self.table.path).look().pull(ByCompletion("0"), limit=None)
        assert pull is not None
        self._compare("incremental pull: Spark", pull.frame)

    def _source(self) -> None:
        target = self._created("-target")
        writer = target.writer("chain", hudi={"path": self.table.path})
        if writer.wait() != 0:
            told = writer.termination()
            raise AssertionError(f"source.hudi: {told['class']}: {told['message']}")
        self._look("source.hudi", target)

    def _restore(self) -> None:
        restores.keep(self.table, "good", self.agent)
        self._do(self.table, "undone", self.case.rows(3, shift=2))
        restores.ask(self.table, "back", "good", names=("good",))
        done = restores.ended(self.table, "back", self.agent)
        assert done["result"] == "Completed", done
        self.table.gate("open")
        self._look("restore", self.table)

    # -- what is read --------------------------------------------------------------------------------------------------------------

    def _spark(self) -> Any:
        spark = self.world.spark()
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        for key, value in self.world.s3_settings().items():
            hadoop.set(key, value)
        spark.catalog.clearCache()
        return spark

    def _look(self, step: str, table: Table) -> None:
        spark = self._spark()
        self._compare(f"{step}: Spark", spark.read.format("hudi").load(table.path))
        try:
            frame = self._hudi_rs(table)
        except BaseException as error:  # what Rust panics with is no Exception
            self.seen[f"{step}: hudi-rs"] = {"": f"{type(error).__name__}: {str(error)[:SHOWN]}"}
            return
        # The file in between is one of pyarrow's, which says nothing of calendars.
        self._compare(f"{step}: hudi-rs", frame, rebase="CORRECTED")

    def _hudi_rs(self, table: Table) -> Any:
        builder = importlib.import_module("hudi").HudiTableBuilder
        pyarrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
        opened = builder.from_base_uri(for_hudi_rs(table.path)).with_options(self.world.s3_reader_options()).build()
        folder = tempfile.mkdtemp(prefix="values-", dir=self.world.folder)
        assert _save(opened, Path(folder) / "rows.parquet", pyarrow, parquet), "no rows"
        return self._spark().read.parquet(f"file://{folder}/rows.parquet")

    def _compare(self, reading: str, frame: Any, *, rebase: str = "EXCEPTION") -> None:
        """Column by column: one that cannot be read must not hide the others."""
        spark, found = self._spark(), {}
        spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", rebase)
        spark.conf.set("spark.sql.parquet.int96RebaseModeInRead", rebase)
        expected = self._expected()
        for name, (kind, _) in self.case.columns.items():
            try:
                found[name] = self._difference(expected, frame, name, kind)
            except Exception as error:
                found[name] = f"not readable: {_first(str(error))}"
        self.seen[reading] = found

    def _difference(self, expected: Any, frame: Any, name: str, kind: str) -> str:
        keys = [self._text(key) for key in dict.fromkeys((*self.case.keys, *self.case.partitions))]
        shown = [*keys, _text(name, kind)]
        mine, theirs = ([tuple(row) for row in one.selectExpr(*shown).collect()] for one in (expected, frame))
        if len(theirs) != len(mine):
            return f"{len(theirs)} rows instead of {len(mine)}"
        if sorted(map(repr, mine)) == sorted(map(repr, theirs)):
            return HELD
        wrong, instead = ([repr(row[-1])[:40] for row in one if row not in set(other)] for one, other in ((mine, theirs), (theirs, mine)))
        return f"{', '.join(sorted(set(wrong)))} is read back as {', '.join(sorted(set(instead)))}"[:SHOWN]

    def _text(self, name: str) -> str:
        return _text(name, self.case.columns[name][0] if name in self.case.columns else "string")

    def _expected(self) -> Any:
        """Of each record the version with the largest ordering value; of equal ones the later."""
        first, second = self._queries
        keys = ", ".join(f"`{key}`" for key in dict.fromkeys((*self.case.keys, *self.case.partitions)))
        newest = f"row_number() OVER (PARTITION BY {keys} ORDER BY {', '.join(f'`{f}` DESC' for f in self.case.ordering)}, batch DESC)"
        return self.world.spark().sql(f"SELECT * FROM (SELECT *, {newest} AS nth FROM ({first} UNION ALL {second})) WHERE nth = 1")


def _text(name: str, kind: str) -> str:
    """A column as text that tells apart what is not equal."""
    if kind == "binary":
        return f"hex(`{name}`)"
    if kind.startswith("map<"):  # entries have no order
        return f"to_json(struct(array_sort(map_entries(`{name}`)) AS `{name}`), map('ignoreNullFields', 'false'))"
    return f"CAST(`{name}` AS string)" if kind in AS_TEXT else f"to_json(struct(`{name}`), map('ignoreNullFields', 'false'))"


def _first(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")[:SHOWN]


def column(case: Case, name: str) -> str:
    """What a column is called on the page."""
    if case.name.startswith("payload") and name in case.columns:
        return list(PAYLOAD)[int(name.removeprefix("c"))]
    return f"{name} {case.columns[name][0]}" if name in case.columns else name
