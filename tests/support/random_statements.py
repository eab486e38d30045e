"""Random SQL statements and writes of a program, and what each must make of a table's rows.

A statement is generated with the rows that it must leave: by the meaning that SQL gives it, which
is computed here, row by row, without Spark and without Hudi. A statement that the product refuses,
or that Hudi fails, must leave the rows as they were.

Left out because documented otherwise (docs/use/merging.md): values of the ordering column that are
not greater than all before, and several source rows of one record. Each generated row has the
greatest value so far.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Row = tuple[str, str, str | None, int]
"""A row: record key `id`, partition `p`, payload `v`, ordering value `ts`."""
Rows = Mapping[tuple[str, str], Row]
"""A table's rows by partition and record key."""
Condition = tuple[str, Callable[[Row], bool | None]]
"""A condition, with what it says of a row; None as SQL's null."""

COLUMNS = ("id", "p", "v", "ts")
KEYS = tuple(f"k{number}" for number in range(12))
PARTITIONS = ("a", "b")
VALUES = ("x", "y", None)


@dataclass(frozen=True)
class Step:
    """One statement or write, and the rows of the table after it."""

    kind: str
    """What it is, such as `merge` or `save upsert`: a run must have had each of them succeed."""
    sql: str
    """A statement on the table `t`; empty for a save."""
    save: tuple[str, tuple[Row, ...]]
    """Hudi's operation and the rows, for `df.write`; ("", ()) for a statement."""
    after: Rows
    """The rows that the table must have if this succeeds."""


def literal(value: str | int | None, column: str) -> str:
    """A value as SQL; an ordering value as a bigint."""
    if value is None:
        return "CAST(NULL AS STRING)"
    return f"{value}L" if column == "ts" else f"'{value}'"


def _equals(column: str, value: str, of: str) -> Condition:
    at = COLUMNS.index(column)
    return f"{of}{column} = '{value}'", lambda row: None if row[at] is None else row[at] == value


class Statements:
    """Random steps from one seed; each is made for the rows that the table has then."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._ts = 0

    def step(self, rows: Rows) -> Step:
        """The next step for a table with these rows."""
        kinds: Sequence[Callable[[Rows], Step]] = (
            *(self._merge,) * 6,
            self._update,
            self._delete,
            self._insert,
            self._save_upsert,
            self._save_delete,
        )
        return self._random.choice(kinds)(rows)

    def first(self) -> Step:
        """An upsert of one row for each partition, with which a run begins."""
        source = tuple(self._row((partition, KEYS[0])) for partition in PARTITIONS)
        return Step("save upsert", "", ("upsert", source), {(row[1], row[0]): row for row in source})

    # ---- rows and conditions

    def _next(self) -> int:
        self._ts += self._random.randint(1, 3)
        return self._ts

    def _row(self, key: tuple[str, str] | None = None) -> Row:
        partition, id = key or (self._random.choice(PARTITIONS), self._random.choice(KEYS))
        return id, partition, self._random.choice(VALUES), self._next()

    def _source(self, rows: Rows) -> list[Row]:
        """One row for each of some records, known ones and new ones."""
        known = self._random.sample(sorted(rows), min(len(rows), self._random.randint(0, 3)))
        others = [(p, id) for p in PARTITIONS for id in KEYS if (p, id) not in rows]
        new = self._random.sample(others, min(len(others), self._random.randint(0, 3)))
        found = [self._row(key) for key in [*known, *new]]
        self._random.shuffle(found)
        return found or [self._row()]

    def _condition(self, of: str = "") -> Condition:
        """About a row of the table, or of the source (``of`` is `s.` then)."""
        some = self._random.sample(KEYS, 3)
        choices: list[Condition] = [
            _equals("id", self._random.choice(KEYS), of),
            (f"{of}id IN ({', '.join(repr(one) for one in some)})", lambda row: row[0] in some),
            _equals("p", self._random.choice(PARTITIONS), of),
            _equals("v", "x", of),
            (f"{of}v IS NULL", lambda row: row[2] is None),
            (f"{of}ts % 2 = 0", lambda row: row[3] % 2 == 0),
        ]
        first = self._random.choice(choices)
        if self._random.random() < 0.7:
            return first
        second = self._random.choice(choices)
        return f"({first[0]}) AND ({second[0]})", lambda row: _and(first[1](row), second[1](row))

    # ---- statements

    def _update(self, rows: Rows) -> Step:
        text, holds = self._condition()
        value = self._random.choice(VALUES)
        moves = self._random.random() < 0.5
        ts = self._next()
        sets = f"v = {literal(value, 'v')}" + (f", ts = {ts}L" if moves else "")
        after = {
            key: (row[0], row[1], value, ts if moves else row[3]) if holds(row) else row for key, row in rows.items()
        }
        return Step("update", f"UPDATE t SET {sets} WHERE {text}", ("", ()), after)

    def _delete(self, rows: Rows) -> Step:
        text, holds = self._condition()
        after = {key: row for key, row in rows.items() if not holds(row)}
        return Step("delete", f"DELETE FROM t WHERE {text}", ("", ()), after)

    def _insert(self, rows: Rows) -> Step:
        """Of new records: of known ones the table's rule for duplicates decides."""
        source = [row for row in self._source(rows) if (row[1], row[0]) not in rows]
        if not source:
            return self._update(rows)
        order = self._random.sample(COLUMNS, 4)
        values = ", ".join(_values(row, order) for row in source)
        after = {**rows, **{(row[1], row[0]): row for row in source}}
        return Step("insert", f"INSERT INTO t ({', '.join(order)}) VALUES {values}", ("", ()), after)

    def _save_upsert(self, rows: Rows) -> Step:
        source = tuple(self._source(rows))
        return Step("save upsert", "", ("upsert", source), {**rows, **{(row[1], row[0]): row for row in source}})

    def _save_delete(self, rows: Rows) -> Step:
        source = tuple(self._source(rows))
        gone = {(row[1], row[0]) for row in source}
        return Step("save delete", "", ("delete", source), {key: row for key, row in rows.items() if key not in gone})

    def _merge(self, rows: Rows) -> Step:
        source = self._source(rows)
        order = self._random.sample(COLUMNS, 4)
        values = ", ".join(_values(row, order) for row in source)
        using = f"(SELECT * FROM VALUES {values} AS r({', '.join(order)})) s"
        on = self._random.choice(("t.id = s.id AND t.p = s.p", "s.p = t.p AND s.id = t.id"))
        clauses_of_matched = self._random.randint(0, 2)
        # Only the last clause may be without a condition.
        matched = [self._matched(number < clauses_of_matched) for number in range(1, clauses_of_matched + 1)]
        new = [self._not_matched() for _ in range(self._random.randint(0 if matched else 1, 1))]
        clauses = " ".join(clause for clause, _, _ in [*matched, *new])
        after = dict(rows)
        for row in source:
            key = (row[1], row[0])
            for _, holds, become in matched if key in rows else new:
                if holds(row):
                    made = become(row, rows.get(key, row))
                    if made is None:
                        after.pop(key, None)
                    else:
                        after[key] = made
                    break
        return Step("merge", f"MERGE INTO t USING {using} ON {on} {clauses}", ("", ()), after)

    def _when(self, words: str, always: bool = False) -> tuple[str, Callable[[Row], bool | None]]:
        if not always and self._random.random() < 0.5:
            return words, lambda row: True
        text, holds = self._condition("s.")
        return f"{words} AND {text}", holds

    def _matched(self, conditional: bool) -> tuple[str, Callable[[Row], bool | None], Callable[[Row, Row], Row | None]]:
        words, holds = self._when("WHEN MATCHED", conditional)
        how: list[tuple[str, Callable[[Row, Row], Row | None]]] = [
            ("DELETE", lambda new, old: None),
            ("UPDATE SET *", lambda new, old: new),
            ("UPDATE SET id = s.id, p = s.p, v = s.v, ts = s.ts", lambda new, old: new),
            ("UPDATE SET ts = s.ts, v = s.v", lambda new, old: new),
            ("UPDATE SET ts = s.ts", lambda new, old: (*old[:3], new[3])),
            (
                "UPDATE SET v = concat(s.v, '+'), ts = s.ts",
                lambda new, old: (*new[:2], None if new[2] is None else f"{new[2]}+", new[3]),
            ),
            (
                "UPDATE SET v = concat(t.v, '+'), ts = s.ts",
                lambda new, old: (*new[:2], None if old[2] is None else f"{old[2]}+", new[3]),
            ),
        ]
        text, become = self._random.choice(how)
        return f"{words} THEN {text}", holds, become

    def _not_matched(self) -> tuple[str, Callable[[Row], bool | None], Callable[[Row, Row], Row | None]]:
        words, holds = self._when("WHEN NOT MATCHED")
        how: list[tuple[str, Callable[[Row, Row], Row | None]]] = [
            ("INSERT *", lambda new, old: new),
            ("INSERT (id, p, v, ts) VALUES (s.id, s.p, s.v, s.ts)", lambda new, old: new),
            (
                "INSERT (ts, v, p, id) VALUES (s.ts, upper(s.v), s.p, s.id)",
                lambda new, old: (*new[:2], None if new[2] is None else new[2].upper(), new[3]),
            ),
            ("INSERT (id, p, ts) VALUES (s.id, s.p, s.ts)", lambda new, old: (*new[:2], None, new[3])),
        ]
        text, become = self._random.choice(how)
        return f"{words} THEN {text}", holds, become


def _and(first: bool | None, second: bool | None) -> bool | None:
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def _values(row: Row, order: Sequence[str]) -> str:
    return "(" + ", ".join(literal(row[COLUMNS.index(name)], name) for name in order) + ")"
