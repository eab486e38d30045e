"""A HudiWriter's source in a relational database: the fields of ``spec.source.jdbc``.

There is no URL: a driver's properties can name classes and files, and a URL can have properties in
many places. Host, port and database are fields, and the runtime makes the URL of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime

from hudi_contract import job as contract
from hudi_contract.words import Duplicates
from hudi_operator.api.fields import NAME, number, record, text

WHERE = "spec.source.jdbc"
SECRET_DIR = "/etc/hudi/jdbc"  # noqa: S105 - a folder
PORTS = {"PostgreSQL": 5432, "MariaDB": 3306}
"""The engines, each with the port that it has when none is set."""
_COLUMN = "^[A-Za-z_][A-Za-z0-9_$]*$"
_START = (
    "^(Earliest|Latest|-?[0-9]{1,38}([.][0-9]{1,38})?"
    "|[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?Z)?)$"
)
_QUERY = (
    r"^\s*(?i:SELECT|WITH)\s"
    r"([^\x27\x22\x60;\\$#]|\x27[^\x27\\]*\x27|\x22[^\x22\\]*\x22|\x60[^\x60\x27\x22;\\$#()]*\x60)*$"
)
"""One statement that begins with SELECT or WITH. Outside of quotes it has nothing that ends it or
begins a comment or a quote of another kind; within them nothing that hides where they end. A
backtick is a quote in MariaDB alone.
"""
_QUOTED = re.compile(r"\x27[^\x27]*\x27|\x22[^\x22]*\x22")
_AGAIN = "rows at the position are read again"


@dataclass(frozen=True)
class Incremental:
    """The column by which a run reads what is new.

    ``max_rows_per_commit`` None: no bound.
    """

    column: str = text(required=True, at_least=1, at_most=63, matches=_COLUMN)
    start_from: str = text("Earliest", at_most=78, matches=_START)
    """``Earliest``, ``Latest`` or a value of the column."""
    lag: int = number(0, at_least=0, at_most=1_000_000_000)
    """Distance below the position at which a read begins: numbers, days of a date, seconds of a
    time.
    """
    max_rows_per_commit: int | None = number(unset=None, at_least=1, at_most=1_000_000_000)


@dataclass(frozen=True)
class Partitioning:
    """Ranges of a column that are read side by side."""

    column: str = text(required=True, at_least=1, at_most=63, matches=_COLUMN)
    partitions: int = number(required=True, at_least=2, at_most=256)


@dataclass(frozen=True)
class JdbcSource:
    """A table or a query of a database (exactly one is set)."""

    engine: str = text(required=True, choices=tuple(PORTS))
    host: str = text(required=True, at_least=1, at_most=253, matches="^([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:]+\\])$")
    database: str = text(required=True, at_least=1, at_most=63, matches="^[A-Za-z0-9_][A-Za-z0-9_$-]*$")
    secret: str = text(at="secretRef.name", required=True, way_required=True, at_least=1, at_most=253, pattern=NAME)
    port: int | None = number(unset=None, at_least=1, at_most=65535)
    """None: the one of the engine."""
    table: str = text(at_least=1, at_most=127, matches="^[A-Za-z_][A-Za-z0-9_$]*([.][A-Za-z_][A-Za-z0-9_$]*)?$")
    query: str = text(at_least=1, at_most=16384, matches=_QUERY)
    incremental: Incremental | None = record(Incremental, optional=True)
    """None: each run reads everything."""
    partitioning: Partitioning | None = record(Partitioning, optional=True)
    """None: one task reads."""
    fetch_size: int = number(1000, at_least=1, at_most=1_000_000)
    tls: str = text("Verify", choices=("Verify", "Off"))


def problem(source: JdbcSource | None, *, operation: str, duplicates: str, streaming: bool) -> str:
    """Why this source cannot be used, or not with these fields of its writer (field, value, rule).

    Empty when it can, or when there is none.
    """
    if source is None:
        return ""
    found = _contradiction(source)
    return f"{WHERE}.{found}" if found else _of_writer(source, operation, duplicates, streaming=streaming)


def _contradiction(source: JdbcSource) -> str:
    if bool(source.table) == bool(source.query):
        return "table: either table or query is set"
    if found := _query_problem(source.query):
        return f"query: {found}"
    start = "Earliest" if source.incremental is None else source.incremental.start_from
    try:
        if re.match("[0-9]{4}-", start):
            datetime.fromisoformat(start) if "T" in start else date.fromisoformat(start)
    except ValueError:
        return f"incremental.startFrom: {start!r} is no day of the calendar, or no time of a day"
    return ""


def _query_problem(query: str) -> str:
    """Rule beyond the pattern: the query is put in parentheses, which it must not leave."""
    if "--" in query or "/*" in query:
        return "-- and /* begin comments, which are not allowed, also within quotes"
    depth = 0
    for letter in _QUOTED.sub("", query):
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
    return "its parentheses do not match" if depth else ""


def _of_writer(source: JdbcSource, operation: str, duplicates: str, *, streaming: bool) -> str:
    """Fields of the writer that do not go together with the source, as in the CRD."""
    if source.incremental is None:
        return (
            "spec.streaming: cannot be combined with source.jdbc without incremental: each run reads everything"
            if streaming
            else ""
        )
    if operation == "InsertOverwrite":
        return (
            "spec.operation: InsertOverwrite cannot be combined with source.jdbc.incremental: a batch has only what is "
            "new there, and would replace everything else"
        )
    if operation in ("Insert", "BulkInsert") and duplicates != Duplicates.DROP:
        return f"spec.duplicates: {operation} with source.jdbc.incremental needs duplicates Drop: {_AGAIN}"
    if operation == "Delete":
        return f"spec.operation: Delete cannot be combined with source.jdbc.incremental: {_AGAIN}, and delete again"
    return ""


def job(source: JdbcSource) -> contract.Jdbc:
    """``source.jdbc`` of job.json."""
    new, parts = source.incremental, source.partitioning
    return contract.Jdbc(
        engine=source.engine,
        host=source.host,
        port=PORTS[source.engine] if source.port is None else source.port,
        database=source.database,
        table=source.table,
        query=source.query,
        incremental=None
        if new is None
        else contract.JdbcIncremental(
            column=new.column,
            start_from=new.start_from,
            lag=new.lag,
            max_rows_per_commit=new.max_rows_per_commit,
        ),
        partitioning=None
        if parts is None
        else contract.JdbcPartitioning(column=parts.column, partitions=parts.partitions),
        fetch_size=source.fetch_size,
        tls=source.tls,
        folder=SECRET_DIR,
    )
