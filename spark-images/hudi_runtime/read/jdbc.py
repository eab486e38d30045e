"""The source `jdbc`: a table or a query of a database, whole or by what is new in one column.

The greatest value of a commit is fixed before its rows are read, and stored in that commit as the
position. Rows are read once and then held by Spark: no try and no lost executor asks the database
again, whose answer may have changed. User and password are in files, which the connections read
(`io.hudioperator.databases`): no option, plan or log has them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession, functions

from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import JdbcSource
from hudi_runtime.process.errors import JavaCause, RuntimeFailure, UserCodeError, java_causes
from hudi_runtime.read import jdbc_positions as jp
from hudi_runtime.read import progress as pg

POSTGRESQL = "PostgreSQL"
PROVIDER = "hudi-operator"
"""`DatabaseConnections.java`, which Spark asks for connections."""
KEYS = ("username", "password")
"""Keys that the Secret must have."""
_DRIVERS = {POSTGRESQL: "org.postgresql.Driver", "MariaDB": "org.mariadb.jdbc.Driver"}
_SOURCE, _AGAIN = "hudi_source", "hudi_again"
_PASSING = ("08", "40", "53", "55", "57", "58", "HY", "XX")
"""Classes of SQLSTATE of what another attempt may not meet: connections, locks, a server that
stops or is full. Others are wrong names, rights or passwords.
"""
_LONGS = (-(2**63), 2**63 - 1)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Part:
    """The rows of one commit, the position after them, and the number of rows that remain.

    `count` is the number of its rows. `beginning`: it only stores where the source begins.
    """

    frame: DataFrame
    position: jp.Position
    count: int
    waiting: int = 0
    beginning: bool = False


@dataclass(frozen=True)
class _Seen:
    """The column at one moment: its greatest value (empty: no row), and rows in a range of it."""

    greatest: str
    rows: int
    unset: bool
    """Whether a row has no value."""


def whole(spark: SparkSession, source: JdbcSource) -> DataFrame:
    """Everything, held by Spark. Raises UserCodeError, RuntimeFailure."""
    return _Database(spark, source).rows("", mark="")


def parts(spark: SparkSession, source: JdbcSource, done: pg.Progress) -> Iterator[Part]:
    """New rows by the column, one part for each commit.

    The greatest value of the last part is fixed first, so that a run ends. Raises UserCodeError,
    RuntimeFailure.
    """
    database = _Database(spark, source)
    kind = database.kind(source.column)
    position = _stored(source, kind, done) or _beginning(source, kind)
    seen = database.seen(kind, position.low(source.lag), position.to)
    if seen.unset:
        raise UserCodeError(
            f"source.jdbc.incremental.column: {source.column} is null in a row, which would never be read: leave such "
            "rows out with a query, or give them a value there (COALESCE)"
        )
    if not done.digest and source.start_from == "Latest":
        yield _latest(database, kind, replace(position, begin=seen.greatest, to=seen.greatest))
        return
    if not seen.greatest or (seen.rows == position.rows and not _is_new(position, seen.greatest)):
        return
    if position.to and jp.less(kind, seen.greatest, position.to):
        print(
            f"source.jdbc: the greatest {source.column} is {seen.greatest}, below the position {position.to}: the "
            "newest rows were deleted, or the database was restored; rows that come below the position are read "
            f"within lag ({source.lag}) only",
            file=sys.stderr,
            flush=True,
        )
        yield _next(database, position, position.to)
        return
    left = database.count(kind, position.to, seen.greatest) if source.max_rows is not None else 0
    while True:
        to = database.bound(kind, position.to or position.begin, seen.greatest, first=not position.to)
        part = _next(database, position, to)
        position, left = part.position, left - part.count
        ended = not jp.less(kind, to, seen.greatest)
        yield part if ended else replace(part, waiting=max(left, 1))
        if ended:
            return


def _is_new(position: jp.Position, greatest: str) -> bool:
    """Whether a row with this value has not been read, whatever else has."""
    if position.to:
        return jp.less(position.kind, position.to, greatest)
    return not position.begin or not jp.less(position.kind, greatest, position.begin)


def _next(database: _Database, position: jp.Position, to: str) -> Part:
    """The rows from the position, or as far below it as `lag` says, up to `to`."""
    source = database.source
    after = replace(position, to=to)
    low, again = position.low(source.lag), after.low(source.lag)
    kind, column = position.kind, database.quoted(source.column)
    within = f"{column} <= {jp.literal(kind, to)}"
    if low:
        within = f"{column} >= {jp.literal(kind, low)} AND {within}"
    rows = database.rows(within, mark=f"{column} >= {jp.literal(kind, again)}")
    count, held = rows.agg(functions.count(functions.lit(1)), functions.sum(_AGAIN)).first() or (0, 0)
    return Part(rows.drop(_AGAIN), replace(after, rows=int(held or 0)), int(count))


def _latest(database: _Database, kind: str, position: jp.Position) -> Part:
    """A commit without rows stores the position: progress is kept only in the target's timeline."""
    rows = database.count(kind, "", position.to, begin=position.begin) if position.to else 0
    return Part(database.rows("1 = 0", mark="").limit(0), replace(position, rows=rows), 0, beginning=True)


def _beginning(source: JdbcSource, kind: str) -> jp.Position:
    """The position before the first commit."""
    found = jp.Position(source.database, source.table, source.column, kind)
    if source.start_from in ("Earliest", "Latest"):
        return found
    try:
        return replace(found, begin=jp.value(kind, source.start_from))
    except jp.PositionError as error:
        raise UserCodeError(f"source.jdbc.incremental.startFrom: {error}: {source.column} holds a {kind}") from error


def _stored(source: JdbcSource, kind: str, done: pg.Progress) -> jp.Position | None:
    """The position of this writer's last commit; None before its first one."""
    if not done.digest:
        return None
    if done.jdbc is None:
        raise UserCodeError(
            f"source.jdbc: this writer's last commit {done.instant} came from a source of another kind, or from one "
            "that is not incremental; use another HudiWriter"
        )
    found = jp.parse(done.jdbc)
    for field, had, has in (
        ("database", found.database, source.database),
        ("table", found.table, source.table),
        ("incremental.column", found.column, source.column),
    ):
        if had != has:
            raise UserCodeError(
                f"source.jdbc.{field}: this writer has read {had or 'a query'} until now and cannot continue with "
                f"{has or 'a query'}; use another HudiWriter"
            )
    if found.kind != kind:
        raise UserCodeError(
            f"source.jdbc.incremental.column: {source.column} held a {found.kind} and holds a {kind} now: the position "
            f"{found.to} has no meaning there; use another HudiWriter"
        )
    return found


class _Database:
    """One database, its table or query, and how it is asked."""

    def __init__(self, spark: SparkSession, source: JdbcSource) -> None:
        self.source = source
        self._spark = spark
        _require_secret(source)
        scheme, more = ("postgresql", "") if source.engine == POSTGRESQL else ("mysql", "?permitMysqlScheme")
        self._url = f"jdbc:{scheme}://{source.host}:{source.port}/{source.database}{more}"

    def quoted(self, name: str) -> str:
        """The name of a column as the database writes it, whatever the name is."""
        mark = '"' if self.source.engine == POSTGRESQL else "`"
        return f"{mark}{name.replace(mark, mark * 2)}{mark}"

    @property
    def _from(self) -> str:
        """Text after FROM."""
        if self.source.query:
            return f"({self.source.query}\n) {_SOURCE}"  # on a separate line, because the query may end with anything
        return f"{'.'.join(self.quoted(part) for part in self.source.table.split('.'))} {_SOURCE}"

    # ---- one row, asked by the driver

    def kind(self, column: str) -> str:
        """The kind of a column (`jp.KINDS`)."""
        sql = f"SELECT {self.quoted(column)} FROM {self._from} WHERE 1 = 0"
        told = self._asked(lambda: str(self._jvm.kind(self._url, self.source.folder, self.source.tls, sql)))
        if told not in jp.KINDS:
            raise UserCodeError(
                f"source.jdbc: column {column} is of type {told.removeprefix(':')}: only whole numbers, decimals, "
                "dates and times have one order and one text"
            )
        return told

    def seen(self, kind: str, low: str, to: str) -> _Seen:
        """The greatest value, and the number of rows from `low` to `to` (no `to`: none)."""
        column = self.quoted(self.source.column)
        within = self._within(kind, low, to) if to else "1 = 0"
        found = self._row(
            f"SELECT (SELECT CAST(max({column}) AS {self._text}) FROM {self._from}),"
            f" (SELECT count(*) FROM {self._from} WHERE {within}),"
            f" (SELECT count(*) FROM (SELECT 1 FROM {self._from} WHERE {column} IS NULL LIMIT 1) hudi_unset)"
        )
        greatest = self._value(kind, found[0]) if found[0] is not None else ""
        return _Seen(greatest, int(found[1]), int(found[2]) > 0)

    def count(self, kind: str, after: str, to: str, *, begin: str = "") -> int:
        """The number of rows greater than `after` (empty: from `begin` on) up to `to`."""
        column = self.quoted(self.source.column)
        more = f"{column} > {jp.literal(kind, after)} AND " if after else ""
        return int(self._row(f"SELECT count(*) FROM {self._from} WHERE {more}{self._within(kind, begin, to)}")[0])

    def bound(self, kind: str, after: str, to: str, *, first: bool) -> str:
        """The greatest value of the next commit: `to`, or less for `maxRowsPerCommit`.

        Rows with equal values come in one commit, however many there are. `first`: nothing was read
        yet, so a row with the value `after` is new.
        """
        if self.source.max_rows is None:
            return to
        column = self.quoted(self.source.column)
        sign = ">=" if first else ">"
        more = f"{column} {sign} {jp.literal(kind, after)} AND " if after else ""
        found = self._row(
            f"SELECT CAST(max(hudi_value) AS {self._text}) FROM (SELECT {column} AS hudi_value FROM {self._from}"
            f" WHERE {more}{self._within(kind, '', to)} ORDER BY {column} LIMIT {self.source.max_rows}) hudi_next"
        )
        return self._value(kind, found[0]) if found[0] is not None else to

    def _within(self, kind: str, low: str, to: str) -> str:
        column = self.quoted(self.source.column)
        more = f"{column} >= {jp.literal(kind, low)} AND " if low else ""
        return f"{more}{column} <= {jp.literal(kind, to)}"

    @property
    def _text(self) -> str:
        return "text" if self.source.engine == POSTGRESQL else "char(200)"

    def _value(self, kind: str, text: str) -> str:
        try:
            return jp.value(kind, text)
        except jp.PositionError as error:
            raise UserCodeError(
                f"source.jdbc.incremental.column: {self.source.column}: {error}: leave such rows out with a query"
            ) from error

    def _row(self, sql: str) -> list[Any]:
        return self._asked(lambda: list(self._jvm.row(self._url, self.source.folder, self.source.tls, sql)))

    @property
    def _jvm(self) -> Any:
        jvm: Any = self._spark.sparkContext._jvm
        return jvm.io.hudioperator.databases.Databases

    # ---- rows, read by tasks

    def rows(self, within: str, *, mark: str) -> DataFrame:
        """The rows for which a condition holds (empty: all), held by Spark.

        `mark`: a condition that the column `hudi_again` says of each row; empty: there is none.
        """
        where = f" WHERE {within}" if within else ""
        marked = f", CASE WHEN {mark} THEN 1 ELSE 0 END AS {_AGAIN}" if mark else ""
        reader = self._spark.read.format("jdbc").options(
            url=self._url,
            driver=_DRIVERS[self.source.engine],
            dbtable=f"(SELECT {_SOURCE}.*{marked} FROM {self._from}{where}) hudi_rows",
            fetchsize=str(self.source.fetch_size),
            connectionProvider=PROVIDER,
            hudioperatorfolder=self.source.folder,
            hudioperatortls=self.source.tls,
            **self._ranges(where),
        )
        return self._asked(lambda: reader.load().localCheckpoint())

    def _ranges(self, where: str) -> dict[str, str]:
        """Options of a read by several tasks.

        The bounds only say how wide the ranges are: the outermost have no end, and the first one
        has the rows without a value.
        """
        name, count = self.source.partition_column, self.source.partitions
        if not name or count == 1:
            return {}
        kind, column = self.kind(name), self.quoted(name)
        least, most = self._row(
            f"SELECT CAST(min({column}) AS {self._text}), CAST(max({column}) AS {self._text}) FROM {self._from}{where}"
        )
        if least is None:
            return {}
        bounds = [jp.value(kind, str(text)) for text in (least, most)]
        if kind == jp.NUMBER:
            bounds = [str(min(max(int(Decimal(text)), _LONGS[0]), _LONGS[1])) for text in bounds]
        if bounds[0] == bounds[1]:
            return {}
        return {
            "partitionColumn": name,
            "lowerBound": bounds[0],
            "upperBound": bounds[1],
            "numPartitions": str(count),
        }

    def _asked(self, ask: Callable[[], _T]) -> _T:
        """The answer.

        An error is the database's or the network's, or the user's: a name, a right, a password.
        """
        try:
            return ask()
        except Exception as error:
            causes = java_causes(error)
            if not causes or causes[-1].type == "py4j":
                raise
            found = next((each for each in causes if "SQL" in each.type.rpartition(".")[2]), None)
            if found is None:
                raise
            if found.type.startswith("org.apache.spark."):  # a type of a column that Spark does not know
                raise UserCodeError(f"source.jdbc: {_first(found)}") from error
            told = f"source.jdbc: {self.source.host}:{self.source.port}: {_first(found)}"
            state = _state(error)
            if not state or state.startswith(_PASSING):
                raise RuntimeFailure(FailureClass.INFRASTRUCTURE, told) from error
            raise UserCodeError(told) from error


def _first(cause: JavaCause) -> str:
    return cause.message.partition("\n")[0]


def _state(error: Exception) -> str:
    """SQLSTATE of the first throwable of the chain that has one; else empty."""
    throwable: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    for _ in range(20):
        if throwable is None:
            break
        try:
            if state := throwable.getSQLState():
                return str(state)
        except Exception:  # noqa: S110 - it is no SQLException
            pass
        throwable = throwable.getCause()
    return ""


def _require_secret(source: JdbcSource) -> None:
    folder = Path(source.folder)
    keys = {path.name for path in folder.iterdir() if path.is_file()} if folder.is_dir() else set()
    for key in KEYS:
        if key not in keys:
            raise UserCodeError(f"source.jdbc.secretRef: the Secret has no key {key}")
