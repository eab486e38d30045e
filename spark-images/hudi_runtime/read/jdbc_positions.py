"""The position of a writer in a table of a database: the values of one column that it has read.

Pure: no I/O.

A value is kept as text, as the database writes it in UTC: a number loses no digit and a time no
microsecond on its way. The next read begins at the position itself, or `lag` below it: a row with
an equal value, or one that was committed late, is read with it. Rows that were read before come
again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext

NUMBER, DATE, TIME = "number", "date", "time"
KINDS = (NUMBER, DATE, TIME)
"""Kinds of columns: values of each have one order and one text."""
_FORMS = {
    NUMBER: re.compile(r"-?[0-9]{1,65}(\.[0-9]{1,65})?"),
    DATE: re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    TIME: re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|\+00|\+00:00)?"),
}
_FIRST = datetime(1, 1, 1, tzinfo=UTC)
_DIGITS = 200
"""Precision of arithmetic with numbers: more than any database has."""


class PositionError(ValueError):
    """A value or a stored position that cannot be used; the message has the value and the rule."""


def value(kind: str, text: str) -> str:
    """The text of a value as it is stored and compared. Raises PositionError for no such value."""
    if kind not in _FORMS or not _FORMS[kind].fullmatch(text):
        raise PositionError(f"{text[:80]!r} is no {kind} that a position can have")
    try:
        return _text(_parsed(kind, text))
    except ValueError as error:
        raise PositionError(f"{text[:80]!r} is no {kind} that a position can have: {error}") from error


def less(kind: str, one: str, other: str) -> bool:
    """Whether the first value stands before the second one."""
    first, second = _parsed(kind, one), _parsed(kind, other)
    return bool(first < second)  # type: ignore[operator]


def before(kind: str, text: str, lag: int) -> str:
    """The value that is `lag` smaller: numbers, days of a date, seconds of a time.

    It is the smallest date or time when there is none.
    """
    found = _parsed(kind, text)
    try:
        if isinstance(found, Decimal):
            with localcontext() as context:
                context.prec = _DIGITS
                return _text(found - lag)
        return _text(found - (timedelta(seconds=lag) if isinstance(found, datetime) else timedelta(days=lag)))
    except OverflowError:
        return _text(_FIRST if isinstance(found, datetime) else date.min)


def literal(kind: str, text: str) -> str:
    """The value in SQL, for a session in UTC."""
    checked = value(kind, text)
    return {NUMBER: checked, DATE: f"DATE '{checked}'", TIME: f"TIMESTAMP '{checked}'"}[kind]


def _parsed(kind: str, text: str) -> Decimal | date | datetime:
    if kind == NUMBER:
        return Decimal(text)
    if kind == DATE:
        return date.fromisoformat(text)
    # The only possible zone is UTC.
    return datetime.fromisoformat(re.sub(r"(Z|\+00|\+00:00)$", "", text)).replace(tzinfo=UTC)


def _text(found: Decimal | date | datetime) -> str:
    if isinstance(found, Decimal):
        return format(found, "f")
    return found.replace(tzinfo=None).isoformat(" ") if isinstance(found, datetime) else found.isoformat()


@dataclass(frozen=True)
class Position:
    """All rows with values up to `to` were read that were there when they were read.

    `begin`: the least value that is read at all; empty: there is none. `to` empty: nothing was read
    yet.
    """

    database: str
    table: str
    """Empty for a query."""
    column: str
    kind: str
    begin: str = ""
    to: str = ""
    rows: int = 0
    """Number of the rows of this read that the next read will read again."""

    def low(self, lag: int) -> str:
        """The least value of the next read; empty: there is none."""
        if not self.to:
            return self.begin
        found = before(self.kind, self.to, lag)
        return self.begin if self.begin and less(self.kind, found, self.begin) else found

    def checkpoint(self) -> dict[str, object]:
        """The form to store."""
        return {
            "database": self.database,
            "table": self.table,
            "column": self.column,
            "kind": self.kind,
            "begin": self.begin,
            "to": self.to,
            "rows": self.rows,
        }


def parse(checkpoint: Mapping[str, object]) -> Position:
    """The position of a `checkpoint()`. Raises PositionError."""
    texts = {name: checkpoint.get(name) for name in ("database", "table", "column", "kind", "begin", "to")}
    told = {name: text for name, text in texts.items() if isinstance(text, str)}
    if missing := sorted(set(texts) - set(told)):
        raise PositionError(f"{missing[0]} {texts[missing[0]]!r}: must be a text")
    if told["kind"] not in KINDS:
        raise PositionError(f"kind {told['kind']!r}: must be one of {', '.join(KINDS)}")
    for name in ("begin", "to"):
        told[name] = value(told["kind"], told[name]) if told[name] else ""
    rows = checkpoint.get("rows")
    if not isinstance(rows, int) or rows < 0:
        raise PositionError(f"rows {rows!r}: must be a number of rows")
    return Position(**told, rows=rows)
