"""Random SQL statements and writes of a program, and what each must make of a table's rows.

A statement is generated with the rows that it must leave: by the meaning that SQL gives it, which
is computed here, row by row, without Spark and without Hudi. A statement that the product refuses,
or that Hudi fails, must leave the rows as they were.

As documented (docs/use/merging.md), a version of a row with a smaller ordering value than the row
is discarded, and of several source rows of one record the one with the greatest value counts. In a
MergeOnRead table a version that is older than the deletion of its record is discarded until the
deletion is compacted: then it is a new row.

Several programs may write one table: each has its own keys, and touches no others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

Row = tuple[str, str, str | None, int]
"""A row: record key `id`, partition `p`, payload `v`, ordering value `ts`."""
Rows = Mapping[tuple[str, str], Row]
"""A table's rows by partition and record key."""
Condition = tuple[str, Callable[[Row], bool | None]]
"""A condition, with what it says of a row; None as SQL's null."""

Clause = tuple[str, Callable[[Row], bool | None], Callable[[Row, Row], Row | None]]
"""A clause of MERGE INTO, its source rows, and what it makes of a source row and the table's."""

COLUMNS = ("id", "p", "v", "ts")
PARTITIONS = ("a", "b")
VALUES = ("x", "y", None)


@dataclass(frozen=True)
class Step:
    """One statement or write, and the rows of the table after it."""

    kind: str
    """Kind of the statement, such as `merge` or `save upsert`: a run must have had each of them
    succeed.
    """
    sql: str
    """A statement on the table `t`; empty for a save."""
    save: tuple[str, tuple[Row, ...]]
    """Hudi's operation and the rows, for `df.write`; ("", ()) for a statement."""
    after: Rows
    """The rows that the table must have if this succeeds."""
    read: str = ""
    """A query on the table, whose rows the program keeps; it sees the current rows."""
    cached: bool = False
    """Spark is told to keep the rows of ``read``."""
    saves_read: bool = False
    """The rows kept last are upserted."""
    may_lack: frozenset[tuple[str, str]] = frozenset()
    """Records of ``after`` that may be absent: an older version of what was deleted, or what an
    older version deletes.
    """

    def leaves(self, found: Collection[tuple[str, str]]) -> Rows:
        """The rows that must be there when there are rows of these records."""
        return {key: row for key, row in self.after.items() if key in found or key not in self.may_lack}


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

    def __init__(
        self,
        seed: int,
        *,
        prefix: str = "k",
        alone: bool = True,
        late: bool = False,
        on_read: bool = False,
        packs: bool = False,
    ) -> None:
        """``prefix``: of all keys; ``alone``: no other program writes the table, so that a whole
        partition may be overwritten; ``late``: ordering values may be smaller than the row's;
        ``on_read``: the table's type is MergeOnRead, in which a late DELETE of MERGE INTO is
        discarded like any late version, and so are late versions of deleted records; ``packs``:
        Hudi may pack new rows into a base file, and such a DELETE counts in that file.
        """
        self._random = random.Random(seed)
        self._keys = tuple(f"{prefix}{number}" for number in range(12))
        self._prefix = prefix
        self._alone = alone
        self._late = late
        self._on_read = on_read
        self._packs = packs
        self._may_delete: set[tuple[str, str]] = set()
        self._ts = 0
        self._used: set[int] = set()
        self._kept: Rows | None = None
        self._greatest: dict[tuple[str, str], int] = {}
        """The greatest ordering value that came with each record."""

    def step(self, rows: Rows) -> Step:
        """The next step for a table with these rows."""
        kinds: list[Callable[[Rows], Step]] = [
            *(self._merge,) * 6,
            self._update,
            self._delete,
            self._insert,
            self._insert_of_a_query,
            self._save_upsert,
            self._save_insert,
            self._save_delete,
            self._read,
        ]
        if self._alone:
            kinds.append(self._overwrite)
        if self._kept is not None:
            kinds += [self._save_read] * 4
        self._came(rows.values())
        self._may_delete = set()
        step = self._random.choice(kinds)(rows)
        if not self._on_read:
            return step
        new = {key: row for key, row in step.after.items() if key not in rows}
        late = frozenset(key for key, row in new.items() if row[3] < self._greatest.get(key, row[3]))
        self._came(step.after.values())
        return replace(step, may_lack=late | self._may_delete)

    def _came(self, rows: Iterable[Row]) -> None:
        for row in rows:
            key = (row[1], row[0])
            self._greatest[key] = max(row[3], self._greatest.get(key, row[3]))

    def first(self) -> Step:
        """An upsert of one row for each partition, with which a run begins."""
        source = tuple(self._row((partition, self._keys[0])) for partition in PARTITIONS)
        return Step("save upsert", "", ("upsert", source), {(row[1], row[0]): row for row in source})

    # ---- rows and conditions

    def _next(self) -> int:
        """An ordering value that no row had."""
        if not self._late:
            self._ts += self._random.randint(1, 3)
            return self._ts
        while (value := self._random.randint(1, 10**6)) in self._used:
            pass
        self._used.add(value)
        return value

    def _row(self, key: tuple[str, str] | None = None) -> Row:
        partition, id = key or (self._random.choice(PARTITIONS), self._random.choice(self._keys))
        return id, partition, self._random.choice(VALUES), self._next()

    def _source(self, rows: Rows) -> list[Row]:
        """One row for each of some records, known ones and new ones."""
        known = self._random.sample(sorted(rows), min(len(rows), self._random.randint(0, 3)))
        others = [(p, id) for p in PARTITIONS for id in self._keys if (p, id) not in rows]
        new = self._random.sample(others, min(len(others), self._random.randint(0, 3)))
        found = [self._row(key) for key in [*known, *new]]
        if found and self._random.random() < 0.3:
            # A second row for one of them.
            found.append(self._row(self._random.choice([*known, *new])))
        self._random.shuffle(found)
        return found or [self._row()]

    def _condition(self, of: str = "") -> Condition:
        """About a row of the table, or of the source (``of`` is `s.` then)."""
        some = self._random.sample(self._keys, 3)
        choices: list[Condition] = [
            _equals("id", self._random.choice(self._keys), of),
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

    def _of_own_rows(self) -> Condition:
        """A condition that holds for no row of another program."""
        text, holds = self._condition()
        return text if self._alone else f"id LIKE '{self._prefix}%' AND ({text})", holds

    # ---- statements

    def _update(self, rows: Rows) -> Step:
        text, holds = self._of_own_rows()
        value = self._random.choice(VALUES)
        moves = self._random.random() < 0.5
        ts = self._next()
        sets = f"v = {literal(value, 'v')}" + (f", ts = {ts}L" if moves else "")
        after = {
            key: newer((row[0], row[1], value, ts if moves else row[3]), row) if holds(row) else row
            for key, row in rows.items()
        }
        return Step("update", f"UPDATE t SET {sets} WHERE {text}", ("", ()), after)

    def _delete(self, rows: Rows) -> Step:
        text, holds = self._of_own_rows()
        after = {key: row for key, row in rows.items() if not holds(row)}
        return Step("delete", f"DELETE FROM t WHERE {text}", ("", ()), after)

    def _new(self, rows: Rows) -> list[Row]:
        """New records, once each: about others the table's rule for duplicates decides.

        In a MergeOnRead table no deleted ones: a program's insert doubles such a key (F325).
        """
        had: Collection[tuple[str, str]] = self._greatest if self._on_read else rows
        return list({(row[1], row[0]): row for row in self._source(rows) if (row[1], row[0]) not in had}.values())

    def _insert(self, rows: Rows) -> Step:
        """As an upsert (F321)."""
        source = self._source(rows)
        order = self._random.sample(COLUMNS, 4)
        values = ", ".join(_values(row, order) for row in source)
        text = f"INSERT INTO t ({', '.join(order)}) VALUES {values}"
        return Step("insert", text, ("", ()), upserted(rows, self._latest(source)))

    def _insert_of_a_query(self, rows: Rows) -> Step:
        """Rows of one partition, as new ones of a key that the other one does not have."""
        here, there = self._random.sample(PARTITIONS, 2)
        free = [id for id in self._keys if (there, id) not in rows]
        found = [row for (partition, id), row in sorted(rows.items()) if partition == here and id in free]
        if not found:
            return self._delete(rows)
        row = self._random.choice(found)
        order = self._random.sample(COLUMNS, 4)
        values = {"id": "id", "p": f"'{there}'", "v": "concat(v, '-')", "ts": "ts"}
        query = ", ".join(f"{values[name]} AS {name}" for name in order)
        text = f"INSERT INTO t ({', '.join(order)}) SELECT {query} FROM t WHERE p = '{here}' AND id = '{row[0]}'"
        made = (row[0], there, None if row[2] is None else f"{row[2]}-", row[3])
        return Step("insert of a query", text, ("", ()), {**rows, (there, row[0]): made})

    def _overwrite(self, rows: Rows) -> Step:
        partition = self._random.choice(PARTITIONS)
        source = [row for row in self._latest(self._source(rows)) if row[1] == partition]
        if not source:
            return self._insert(rows)
        values = ", ".join(_values(row, ("id", "v", "ts")) for row in source)
        text = f"INSERT OVERWRITE t PARTITION (p = '{partition}') SELECT * FROM VALUES {values} AS r(id, v, ts)"
        kept = {key: row for key, row in rows.items() if key[0] != partition}
        return Step("overwrite", text, ("", ()), {**kept, **{(row[1], row[0]): row for row in source}})

    def _latest(self, source: Sequence[Row]) -> list[Row]:
        """The row with the greatest ordering value among several rows for one record."""
        found: dict[tuple[str, str], Row] = {}
        for row in source:
            key = (row[1], row[0])
            found[key] = newer(row, found.get(key))
        return list(found.values())

    def _save_upsert(self, rows: Rows) -> Step:
        source = tuple(self._source(rows))
        return Step("save upsert", "", ("upsert", source), upserted(rows, self._latest(source)))

    def _save_insert(self, rows: Rows) -> Step:
        source = self._new(rows)
        if not source:
            return self._save_upsert(rows)
        operation = self._random.choice(("insert", "bulk_insert"))
        return Step(f"save {operation}", "", (operation, tuple(source)), upserted(rows, source))

    def _save_delete(self, rows: Rows) -> Step:
        source = tuple(self._source(rows))
        gone = {(row[1], row[0]) for row in source}
        return Step("save delete", "", ("delete", source), {key: row for key, row in rows.items() if key not in gone})

    def _read(self, rows: Rows) -> Step:
        """Rows for a later upsert. Changes of the program until then do not change them."""
        text, holds = self._of_own_rows()
        ts = self._next()
        table = self._random.choice(("t", "r"))
        query = f"SELECT id, p, concat(v, '~') AS v, {ts}L AS ts FROM {table} WHERE {text}"
        self._kept = {
            key: (row[0], row[1], None if row[2] is None else f"{row[2]}~", ts)
            for key, row in rows.items()
            if holds(row)
        }
        return Step("read", "", ("", ()), rows, read=query, cached=self._random.random() < 0.5)

    def _save_read(self, rows: Rows) -> Step:
        kept, self._kept = self._kept or {}, None
        return Step("save what was read", "", ("", ()), upserted(rows, list(kept.values())), saves_read=True)

    def _merge(self, rows: Rows) -> Step:
        source = self._source(rows)
        self._came(source)  # a deletion has the ordering value of its source row
        order = self._random.sample(COLUMNS, 4)
        values = ", ".join(_values(row, order) for row in source)
        using = f"(SELECT * FROM VALUES {values} AS r({', '.join(order)})) s"
        on = self._random.choice(("t.id = s.id AND t.p = s.p", "s.p = t.p AND s.id = t.id"))
        clauses_of_matched = self._random.randint(0, 2)
        # Only the last clause may be without a condition.
        matched = [self._matched(number < clauses_of_matched) for number in range(1, clauses_of_matched + 1)]
        new = [self._not_matched() for _ in range(self._random.randint(0 if matched else 1, 1))]
        if self._random.random() < 0.3:
            matched, new = self._of_both()
        clauses = " ".join(clause for clause, _, _ in [*matched, *new])
        after = dict(rows)
        for row in self._latest(source):
            key = (row[1], row[0])
            for _, holds, become in matched if key in rows else new:
                if holds(row):
                    made = become(row, rows.get(key, row))
                    if made is None:
                        if not self._on_read or row[3] >= rows.get(key, row)[3]:
                            after.pop(key, None)
                        elif self._packs:
                            self._may_delete.add(key)
                    else:
                        after[key] = newer(made, rows.get(key))
                    break
        return Step("merge", f"MERGE INTO t USING {using} ON {on} {clauses}", ("", ()), after)

    def _of_both(self) -> tuple[list[Clause], list[Clause]]:
        """As MergeOnRead tables take it: UPDATE and INSERT with one condition, perhaps a DELETE."""
        _, holds = condition = self._condition("s.")
        if self._random.random() < 0.5:
            condition, holds = ("", lambda row: True), lambda row: True
        when = f" AND {condition[0]}" if condition[0] else ""
        update: Clause = (f"WHEN MATCHED{when} THEN UPDATE SET *", holds, lambda new, old: new)
        insert: Clause = (f"WHEN NOT MATCHED{when} THEN INSERT *", holds, lambda new, old: new)
        delete: Clause = ("WHEN MATCHED THEN DELETE", lambda row: True, lambda new, old: None)
        return [update, delete] if when and self._random.random() < 0.5 else [update], [insert]

    def _when(self, words: str, always: bool = False) -> tuple[str, Callable[[Row], bool | None]]:
        if not always and self._random.random() < 0.5:
            return words, lambda row: True
        text, holds = self._condition("s.")
        return f"{words} AND {text}", holds

    def _matched(self, conditional: bool) -> Clause:
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

    def _not_matched(self) -> Clause:
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


def newer(row: Row, other: Row | None) -> Row:
    """`row`, unless the other one, which was there before, has a greater ordering value."""
    return row if other is None or row[3] >= other[3] else other


def upserted(rows: Rows, source: Sequence[Row]) -> Rows:
    """The rows after an upsert of at most one row for each record."""
    return {**rows, **{(row[1], row[0]): newer(row, rows.get((row[1], row[0]))) for row in source}}


def _and(first: bool | None, second: bool | None) -> bool | None:
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def _values(row: Row, order: Sequence[str]) -> str:
    return "(" + ", ".join(literal(row[COLUMNS.index(name)], name) for name in order) + ")"
