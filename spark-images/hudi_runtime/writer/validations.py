"""Conditions on a batch: `validations` of a HudiWriter (docs/use/validations.md).

A batch is validated before its instant begins, so that a refused one leaves nothing behind. It is
cached for that (by Spark, on disk if memory is short) and written from the cache: the rows that
were validated are the rows that are written. Rows that come out otherwise when a part of the cache
is lost are not committed (F106).

A query may read the table. As other look-ups of the runtime this counts for the write alone
(`Session.looking_up`). Any commit of another writer may change its answer, so the write is compared
with every commit with rows since (`serializable`); after a conflict the batch is validated again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, functions

from hudi_contract.job import Validation
from hudi_contract.outcomes import FailureClass
from hudi_runtime.process.errors import (
    CUT,
    RuntimeFailure,
    UserCodeError,
    environment_secrets,
    redact,
    user_error,
)
from hudi_runtime.read.sources import over
from hudi_runtime.read.update import ISOLATION, plain
from hudi_runtime.table.hudi import SNAPSHOT

BATCH, TABLE = "batch", "table"
"""The views of a query."""
SHOWN = 80
"""Characters of a value in a message."""
COLUMNS = 5
"""Columns in a message."""
_NAMES_THE_TABLE = re.compile(rf"\b{TABLE}\b", re.IGNORECASE)


def read_the_table(validations: Sequence[Validation]) -> bool:
    """Whether one of them may read the table: without this word a query has no view of it."""
    return any(_NAMES_THE_TABLE.search(one.sql) for one in validations)


def options(validations: Sequence[Validation]) -> Mapping[str, str]:
    """Write options that compare the commit with what the validations have read."""
    return {ISOLATION: "serializable"} if read_the_table(validations) else {}


@contextmanager
def held(batch: DataFrame, validations: Sequence[Validation], path: str) -> Iterator[DataFrame]:
    """The batch, to be written within this context.

    `path`: of the table. Raises RuntimeFailure(ValidationFailed) for the first validation that
    fails.
    """
    if not validations:
        yield batch
        return
    kept = batch.persist()
    try:
        if read_the_table(validations):
            # Files that are listed before a long batch may be cleaned, or changed, when they are
            # read (F487).
            kept.count()
        for one in validations:
            if problem := _problem(one, kept, path):
                raise RuntimeFailure(FailureClass.VALIDATION_FAILED, f"validation {one.name}: {problem}")
        yield kept
    finally:
        kept.unpersist()


def _problem(validation: Validation, batch: DataFrame, path: str) -> str:
    """Message about the expected and the found value; empty: the batch passes."""
    if validation.sql:
        return _answer(validation, batch, path)
    if validation.not_null:
        return _nulls(validation, batch)
    return size(batch.count(), validation.min_rows, validation.max_rows)


def _answer(validation: Validation, batch: DataFrame, path: str) -> str:
    views = {BATCH: batch}
    if read_the_table([validation]):
        rows = plain(batch.sparkSession.read.format("hudi").options(**SNAPSHOT).load(path))
        views[TABLE] = rows if rows.columns else batch.limit(0)  # before the first commit
    answer = _made(validation, lambda: over(views, validation.sql, f"validation {validation.name}: sql"))
    if validation.equals is not None and len(answer.columns) != 1:
        raise UserCodeError(f"validation {validation.name}: sql gives {len(answer.columns)} columns, equals needs one")
    names = [f"_{number}" for number in range(len(answer.columns))]
    texts = answer.toDF(*names).select([functions.col(name).cast("string") for name in names])
    found = [tuple(row) for row in texts.limit(2).collect()]
    return one_value(found, validation.equals) if validation.equals is not None else no_row(found, answer.columns)


def no_row(found: Sequence[tuple[str | None, ...]], columns: Sequence[str]) -> str:
    """The problem of an answer that must have no row; `found`: its first rows."""
    if not found:
        return ""
    row = [f"{_shown(name)}={_quoted(value)}" for name, value in zip(columns, found[0], strict=True)]
    return f"expected no row, found {_few(row)}"


def one_value(found: Sequence[tuple[str | None, ...]], expected: str) -> str:
    """The problem of an answer that must be one value; `found`: its first two rows."""
    if len(found) == 1 and found[0][0] == expected:
        return ""
    what = _quoted(found[0][0]) if len(found) == 1 else "several rows" if found else "no row"
    return f"expected {_quoted(expected)}, found {what}"


def _nulls(validation: Validation, batch: DataFrame) -> str:
    counts = _made(
        validation,
        lambda: batch.select(
            [functions.count(functions.when(functions.col(name).isNull(), 1)) for name in validation.not_null]
        ),
    )
    return no_null(dict(zip(validation.not_null, counts.collect()[0], strict=True)))


def no_null(found: Mapping[str, int]) -> str:
    """The problem of columns that must have no null; `found`: in how many rows each has one."""
    nulls = [f"{_shown(name)} of {_rows(count)}" for name, count in found.items() if count]
    return f"expected no null, found null in {_few(nulls)}" if nulls else ""


def size(found: int, least: int | None, most: int | None) -> str:
    """The problem of a number of rows."""
    if least is not None and found < least:
        return f"expected at least {_rows(least)}, found {found}"
    if most is not None and found > most:
        return f"expected at most {_rows(most)}, found {found}"
    return ""


def _made(validation: Validation, make: Callable[[], DataFrame]) -> DataFrame:
    """A query that was not executed: the problem is an error of its author."""
    try:
        return make()
    except Exception as error:
        raise user_error(error, f"validation {validation.name}") from error


def _few(parts: Sequence[str]) -> str:
    return ", ".join([*parts[:COLUMNS], *(["…"] if len(parts) > COLUMNS else [])])


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _quoted(value: str | None) -> str:
    return "null" if value is None else f"'{_shown(value)}'"


def _shown(text: str) -> str:
    """A text from a row or a query, on one line, without secrets and truncated."""
    line = re.sub(r"[\x00-\x1f\x7f]", "?", redact(text, secrets=environment_secrets()))
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}{CUT}"
