"""The writer's source when the job reads a database (JdbcSource).

Below it are `work` and the records of `given`; it uses nothing else.
"""

from __future__ import annotations

import re

from hudi_kubectl.streamer.given import WRITER, JsonDict, Needed, Option
from hudi_kubectl.streamer.work import Work

_S = "hoodie.streamer.jdbc."
_MORE = f"{_S}extra.options."
_AT = "HudiWriter spec.source.jdbc"
_URL = re.compile(
    r"jdbc:(postgresql|mysql|mariadb)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\])(?::([0-9]{1,5}))?/([A-Za-z0-9_][A-Za-z0-9_$-]{0,62})"
)
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*([.][A-Za-z_][A-Za-z0-9_$]*)?")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")
_DRIVERS = ("org.postgresql.driver", "org.mariadb.jdbc.driver", "com.mysql.jdbc.driver", "com.mysql.cj.jdbc.driver")


def translate(work: Work) -> None:
    """`source.jdbc` of the HudiWriter."""
    jdbc: JsonDict = {}
    _server(work, jdbc)
    _table(work, jdbc)
    _incremental(work, jdbc)
    _options(work, jdbc)
    name = f"{work.writer_name[:58]}-jdbc"
    jdbc["secretRef"] = {"name": name}
    keys = ("username: the user of the database", "password: that user's password")
    work.needed.append(Needed("Secret", name, keys))
    for key in ("user", "password", "password.file"):
        work.to(work.prop(_S + key), f"{_AT}.secretRef", "its value goes into the Secret, by your hand")
    work.unneeded(work.prop(f"{_S}storage.level"), "rows are read once, and held in memory and on disk")
    for each in work.below(_S):
        work.missing(each, "source.jdbc has no such setting", "see docs/use/sources.md")
    for schema in (work.flag("--schemaprovider-class"), *work.below("hoodie.streamer.schemaprovider.")):
        work.missing(schema, "rows have the columns of the database", "convert columns in transform.sql")
    work.writer["source"] = {"jdbc": jdbc}
    work.notes.append(
        "source.jdbc.tls is Verify, the default here: the connection is encrypted, and the server's certificate is "
        "verified; put its authority into the Secret as ca.crt, unless it is a public one."
    )


def agree(work: Work) -> None:
    """Adapt operation and runs to this source; they are known by now."""
    jdbc = work.writer.get("source", {}).get("jdbc")
    if jdbc is None:
        return
    if "incremental" not in jdbc:
        if work.writer.pop("streaming", None) is not None:
            work.block(WRITER, "--continuous: without an incremental column each run reads everything")
        return
    operation = work.writer.get("operation")
    if operation == "Delete":
        work.block(WRITER, "--op: DELETE by an incremental column would delete again what is read again")
    if operation in ("Insert", "BulkInsert") and work.writer.get("duplicates") != "Drop":
        work.writer["duplicates"] = "Drop"
        work.notes[:] = [note for note in work.notes if not note.startswith("spec.duplicates is ")]
        work.notes.append("spec.duplicates is Drop: source.jdbc.incremental reads rows at the position again.")


def _server(work: Work, jdbc: JsonDict) -> None:
    url, driver = work.prop(f"{_S}url"), work.prop(f"{_S}driver.class")
    if url is None:
        work.not_given(f"{_S}url", "the database is not known", "give it", WRITER)
    else:
        _url(work, jdbc, url)
    if driver is not None and driver.value.lower() not in _DRIVERS:
        work.missing(driver, "the image has drivers of PostgreSQL and MariaDB", "use files or a program", WRITER)
    work.unneeded(driver, "it follows from the engine")


def _url(work: Work, jdbc: JsonDict, url: Option) -> None:
    plain, _, more = url.value.partition("?")
    found = _URL.fullmatch(plain)
    if found is None or not 1 <= int(found[3] or 1) <= 65535:
        work.missing(
            url, "jdbc:postgresql:// or jdbc:mysql:// with one host, a port and a database", "correct the value", WRITER
        )
        return
    jdbc |= {"engine": "PostgreSQL" if found[1] == "postgresql" else "MariaDB", "host": found[2], "database": found[4]}
    if found[3]:
        jdbc["port"] = int(found[3])
    if more:
        work.missing(
            url, "properties of the driver cannot be set", "look whether the job needs those behind ? (tls is a field)"
        )
    work.to(url, f"{_AT}.host")


def _table(work: Work, jdbc: JsonDict) -> None:
    table = work.prop(f"{_S}table.name")
    if table is None:
        work.not_given(f"{_S}table.name", "the table is not known", "give it", WRITER)
    elif _TABLE.fullmatch(table.value) and len(table.value) <= 127:
        jdbc["table"] = table.value
        work.to(table, f"{_AT}.table")
    else:
        work.missing(table, "TABLE or SCHEMA.TABLE", "write what it is as source.jdbc.query", WRITER)


def _incremental(work: Work, jdbc: JsonDict) -> None:
    pull, column = work.prop(f"{_S}incr.pull"), work.prop(f"{_S}table.incr.column.name")
    again, limit = work.prop(f"{_S}incr.fallback.to.full.fetch"), work.flag("--source-limit")
    if pull is None or pull.value.lower() != "true":
        work.unneeded(pull, "without incremental each run reads everything")
        work.unneeded(column, "the job is not incremental")
        work.unneeded(again, "the job is not incremental")
        work.missing(limit, "a read of everything is one commit", "use a query with a condition, or incremental")
        return
    new: JsonDict = {}
    if column is None:
        work.not_given(f"{_S}table.incr.column.name", "the column is not known", "give it", WRITER)
    elif _COLUMN.fullmatch(column.value):
        new["column"] = column.value
        work.to(column, f"{_AT}.incremental.column")
    else:
        work.missing(column, "letters, digits, _ and $", "give it another name in source.jdbc.query", WRITER)
    work.to(pull, f"{_AT}.incremental")
    most = f"{_AT}.incremental.maxRowsPerCommit"
    if limit is not None and limit.value != str(2**63 - 1):
        work.number(limit, most, 1, 1_000_000_000, lambda count: new.update(maxRowsPerCommit=count))
    work.unneeded(limit, "the default here as well")
    if again is not None and again.value.lower() == "true":
        work.missing(again, "a read that fails is repeated from the position", "leave it out")
    work.unneeded(again, "the default here as well")
    jdbc["incremental"] = new
    work.notes.append(
        "source.jdbc.incremental reads rows with a value equal to the position again, which HoodieStreamer leaves out; "
        "set lag if rows are committed later than rows with greater values."
    )


def _options(work: Work, jdbc: JsonDict) -> None:
    """Options of Spark's reader, in whatever case."""
    given = work.given.properties.items()
    found = {name[len(_MORE) :].lower(): each for name, each in given if name.startswith(_MORE)}
    at = f"{_AT}.fetchSize"
    work.number(found.get("fetchsize"), at, 1, 1_000_000, lambda count: jdbc.update(fetchSize=count))
    column, count = found.get("partitioncolumn"), found.get("numpartitions")
    if column is not None and count is not None and _COLUMN.fullmatch(column.value):
        parts: JsonDict = {"column": column.value}
        if work.number(count, f"{_AT}.partitioning.partitions", 2, 256, lambda n: parts.update(partitions=n)):
            jdbc["partitioning"] = parts
            work.to(column, f"{_AT}.partitioning.column")
    for name in ("lowerbound", "upperbound"):
        work.unneeded(found.get(name), "the bounds of a read are looked up")
