"""One case on one table type: written by real writers, tended by a real agent, and read back column
by column after each step.
"""

from __future__ import annotations

import importlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from hudi_runtime.audit.rows import for_hudi_rs
from hudi_runtime.read.incremental import Reader
from hudi_runtime.read.positions import ByCompletion
from tests.campaigns.values.cases import PAYLOAD, Case
from tests.support.harness import restore_requests as restores
from tests.support.harness.local import Process, Table, World, until

USER_CODE = Path(__file__).with_name("user_code.py")
SERVICES: Mapping[str, Mapping[str, Any]] = {"compaction": {"afterCommits": 1}, "clustering": {"afterCommits": 1}}
"""Clustering also sorts (by the first key field): else one file group of a partition by itself is
nothing to do.
"""
LIMIT = 240.0
STEPS = (
    "upserts",
    "bulk insert and upsert",
    "compaction",
    "clustering",
    "incremental pull",
    "source.hudi",
    "restore",
    "the run",
)
"""In the order in which they are looked at."""
AS_TEXT = ("date", "timestamp", "timestamp_ntz", "string")
SHOWN = 160
HELD = "held"
NOT_READ = "not read: "
"""Prefix for a reader that says that it does not know a type, or how to merge log files: it shows
nothing about the values.
"""
VERSION = "batch"
"""The column that says which batch a row is of."""
Read = Callable[[Sequence[str]], Any]
"""Gives a Spark frame with at least these columns; without any: with all."""


class Unmerged(Exception):
    """The newest rows are in log files, which only Hudi's readers merge."""


@dataclass
class Run:
    """Results of a run: step, reader and column, with `held` or a description of the difference."""

    world: World
    agent: Process
    agent_name: str
    case: Case
    kind: str
    name: str
    seen: dict[str, dict[str, str]] = field(default_factory=dict)

    def run(self, keep: Callable[[], None] = lambda: None) -> dict[str, dict[str, str]]:
        """Every step, with `keep` after each.

        A step that does not come to its end is seen as such and ends the run.
        """
        try:
            for step in self._steps():
                step()
                keep()
        except Exception as error:
            self.seen["the run"] = {"": f"ended by {type(error).__name__}: {str(error)[:600]}"}
        return self.seen

    def _steps(self) -> Iterator[Callable[[], None]]:
        yield self._write
        yield from [self._compaction] if self.kind == "MergeOnRead" else []
        if self.case.table.get("index", {}).get("type") != "Bucket":  # whose files clustering would move
            yield self._clustering
        yield from (self._pull, self._source, self._restore)

    # -- the table ---------------------------------------------------------------------------------

    def _table(self, suffix: str = "", **more: Any) -> Table:
        case = self.case
        fields = {
            "recordKeyFields": list(case.keys),
            "partitionFields": list(case.partitions),
            "orderingFields": list(case.ordering),
        }
        return self.world.table(f"{self.name}{suffix}", type=self.kind, **fields, **case.table, **more)

    def _created(self, suffix: str = "") -> Table:
        made = self._table(suffix)
        self.world.create(made, agent=self.agent_name, process=self.agent)
        return made

    def _do(self, table: Table, name: str, *queries: str, operation: str = "upsert") -> None:
        writer = table.writer(
            name, file=str(USER_CODE), function="queries", python={"queries": list(queries)}, operation=operation
        )
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
        pull = Reader(self._spark(), self.table.path).look().pull(ByCompletion("0"), limit=None)
        assert pull is not None
        self._compare("incremental pull: Spark", lambda _: pull.frame)

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

    # -- what is read ------------------------------------------------------------------------------

    def _spark(self) -> Any:
        spark = self.world.spark()
        spark.catalog.clearCache()
        return spark

    def _look(self, step: str, table: Table) -> None:
        self._compare(f"{step}: Spark", lambda _: self._spark().read.format("hudi").load(table.path))
        # The files in between are pyarrow's, which says nothing of calendars.
        self._compare(f"{step}: hudi-rs", partial(self._by_hudi_rs, table), rebase="CORRECTED")
        self._compare(f"{step}: pandas", partial(self._by_pandas, table), rebase="CORRECTED")

    def _by_hudi_rs(self, table: Table, names: Sequence[str]) -> Any:
        hudi, pyarrow = importlib.import_module("hudi"), importlib.import_module("pyarrow")
        options = hudi.HudiReadOptions(projection=list(names)) if names else None
        return self._of_arrow(
            pyarrow.Table.from_batches(
                [pyarrow.record_batch(batch) for batch in self._opened(table).read_stream(options)]
            )
        )

    def _by_pandas(self, table: Table, names: Sequence[str]) -> Any:
        """The base files that the rows of a snapshot name; their bytes are read by pandas alone."""
        pandas, pyarrow = importlib.import_module("pandas"), importlib.import_module("pyarrow")
        named = (
            self._spark()
            .read.format("hudi")
            .load(table.path)
            .select("_hoodie_partition_path", "_hoodie_file_name")
            .distinct()
            .collect()
        )
        frames = []
        for folder, name in named:
            if not name.endswith(".parquet"):
                raise Unmerged("log files")
            with (table.folder / folder / name).open("rb") as file:
                frames.append(
                    pandas.read_parquet(file, engine="pyarrow", columns=list(names) or None, dtype_backend="pyarrow")
                )
        return self._of_arrow(pyarrow.Table.from_pandas(pandas.concat(frames, ignore_index=True), preserve_index=False))

    def _opened(self, table: Table) -> Any:
        builder = importlib.import_module("hudi").HudiTableBuilder
        return builder.from_base_uri(for_hudi_rs(table.path)).with_options(self.world.s3_reader_options()).build()

    def _of_arrow(self, rows: Any) -> Any:
        """The same rows as a frame of Spark's."""
        file = Path(tempfile.mkdtemp(prefix="values-", dir=self.world.folder)) / "rows.parquet"
        importlib.import_module("pyarrow.parquet").write_table(
            rows, str(file), coerce_timestamps="us", allow_truncated_timestamps=False
        )
        # local files: rows on their way from pyarrow to Spark; the table is on S3
        return self._spark().read.parquet(f"file://{file}")

    def _compare(self, reading: str, read: Read, *, rebase: str = "EXCEPTION") -> None:
        """Column by column; where they cannot be read all at once, one by one: one that cannot be
        read must not hide the others.
        """
        spark = self._spark()
        spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", rebase)
        spark.conf.set("spark.sql.parquet.int96RebaseModeInRead", rebase)
        found = {}
        try:
            theirs = self._texts(read(()), self._names)
            found = {name: _difference(self._expected[name], theirs[name]) for name in self._names}
        except BaseException as error:  # what Rust panics with is no Exception
            _raise_interrupts(error)
            for name in self._names:
                try:
                    found[name] = _difference(
                        self._expected[name],
                        self._texts(read(tuple(dict.fromkeys((*self._keys, name)))), (name,))[name],
                    )
                except BaseException as alone:
                    _raise_interrupts(alone)
                    found[name] = _unreadable(alone)
        whole = set(found.values())
        self.seen[reading] = {"": whole.pop()} if len(whole) == 1 and HELD not in whole else found

    @property
    def _names(self) -> tuple[str, ...]:
        return (*self.case.columns, VERSION)

    @property
    def _keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.case.keys, *self.case.partitions)))

    def _texts(self, frame: Any, names: Sequence[str]) -> Mapping[str, list[tuple[str, ...]]]:
        """For each of these columns all rows, as key and value."""
        keys = [self._text(key) for key in self._keys]
        rows = [
            tuple(map(repr, row)) for row in frame.selectExpr(*keys, *(self._text(name) for name in names)).collect()
        ]
        return {name: [(*row[: len(keys)], row[len(keys) + n]) for row in rows] for n, name in enumerate(names)}

    def _text(self, name: str) -> str:
        return _text(name, self.case.columns[name][0] if name in self.case.columns else "string")

    @cached_property
    def _expected(self) -> Mapping[str, list[tuple[str, ...]]]:
        """For each record the version with the largest ordering value; the later one if these are
        equal.
        """
        first, second = self._queries
        keys = ", ".join(f"`{key}`" for key in self._keys)
        newest = (
            f"row_number() OVER (PARTITION BY {keys} ORDER BY "
            f"{', '.join(f'`{f}` DESC' for f in self.case.ordering)}, {VERSION} DESC)"
        )
        frame = self.world.spark().sql(
            f"SELECT * FROM (SELECT *, {newest} AS nth FROM ({first} UNION ALL {second})) WHERE nth = 1"
        )
        return self._texts(frame, self._names)


def _difference(mine: Sequence[tuple[str, ...]], theirs: Sequence[tuple[str, ...]]) -> str:
    """`held`, or what is read back instead."""
    if len(theirs) != len(mine):
        return f"{len(theirs)} rows instead of {len(mine)}"
    if sorted(mine) == sorted(theirs):
        return HELD
    wrong, instead = (
        [row[-1][:40] for row in one if row not in set(other)] for one, other in ((mine, theirs), (theirs, mine))
    )
    return f"{', '.join(sorted(set(wrong)))} is read back as {', '.join(sorted(set(instead)))}"[:SHOWN]


def _raise_interrupts(error: BaseException) -> None:
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        raise error


def _unreadable(error: BaseException) -> str:
    """Message of a reader about a column that it cannot read: the type is unknown to it, or it has
    failed.
    """
    said = f"{type(error).__name__}: {_first(str(error))}"
    if isinstance(error, Unmerged):
        return f"{NOT_READ}{error}"
    known = type(error).__module__.split(".")[0] not in ("py4j", "pyspark") and any(
        word in said.lower() for word in UNKNOWN_TYPE
    )
    return f"{NOT_READ}{said}" if known else f"not readable: {said}"


UNKNOWN_TYPE = ("not yet implemented", "not implemented", "unsupported", "not supported")
"""Texts by which readers other than Spark say that they do not support a type."""


def _text(name: str, kind: str) -> str:
    """A column as text that tells apart what is not equal."""
    if kind == "binary":
        return f"hex(`{name}`)"
    if kind.startswith("map<"):  # entries have no order
        return f"to_json(struct(array_sort(map_entries(`{name}`)) AS `{name}`), map('ignoreNullFields', 'false'))"
    return (
        f"CAST(`{name}` AS string)"
        if kind in AS_TEXT
        else f"to_json(struct(`{name}`), map('ignoreNullFields', 'false'))"
    )


def _first(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")[:SHOWN]


def column(case: Case, name: str) -> str:
    """Name of a column on the page."""
    if re.fullmatch(r"c\d+", name):
        return list(PAYLOAD)[int(name[1:])]
    if name == VERSION:
        return "which version"
    return f"{name} {case.columns[name][0]}" if name in case.columns else name
