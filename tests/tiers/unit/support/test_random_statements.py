"""The random statements of `tests/support/random_statements.py` are the same for the same seed, of
all kinds, and what they must leave is what SQL says.
"""

from __future__ import annotations

from collections import Counter

from tests.support.random_statements import Row, Rows, Statements, Step


def run(seed: int, steps: int) -> list[tuple[Rows, Step]]:
    """The rows before each step, and the step; each succeeds."""
    statements = Statements(seed)
    found, rows = [], statements.first().after
    for _ in range(steps):
        step = statements.step(rows)
        found.append((rows, step))
        rows = step.after
    return found


def test_a_seed_says_which_statements() -> None:
    assert [step.sql or step.save for _, step in run(7, 50)] == [step.sql or step.save for _, step in run(7, 50)]
    assert [step.sql for _, step in run(7, 50)] != [step.sql for _, step in run(8, 50)]


def test_all_kinds_are_among_them_and_most_change_something() -> None:
    steps = run(1, 400)
    kinds = Counter(step.kind for _, step in steps)
    assert set(kinds) == {
        "merge",
        "update",
        "delete",
        "insert",
        "insert of a query",
        "overwrite",
        "read",
        "save upsert",
        "save insert",
        "save bulk_insert",
        "save delete",
        "save what was read",
    }
    assert sum(rows != step.after for rows, step in steps) > 200


def test_the_ordering_value_of_what_is_written_is_the_greatest_so_far() -> None:
    """But of rows that were read before: they have that of the time when they were read."""
    greatest = 0
    for rows, step in run(2, 200):
        if step.saves_read:
            continue
        written = {row[3] for key, row in step.after.items() if row != rows.get(key)} - {
            row[3] for row in rows.values()
        }
        assert all(ts > greatest for ts in written), step
        greatest = max([greatest, *written, *(row[3] for row in step.save[1])])


def test_only_the_last_clause_of_matched_rows_is_without_a_condition() -> None:
    for _, step in run(3, 400):
        if step.kind == "merge":
            clauses = step.sql.split(" WHEN ")[1:]
            matched = [clause for clause in clauses if clause.startswith("MATCHED")]
            assert all(clause.startswith("MATCHED AND") for clause in matched[:-1]), step.sql


def test_what_a_merge_must_leave() -> None:
    """By hand, of statements as they are generated: the first clause whose condition holds."""
    old: Row = ("k1", "a", "x", 1)
    rows: Rows = {("a", "k1"): old, ("b", "k2"): ("k2", "b", None, 2)}
    seen = set()
    for seed in range(300):
        statements = Statements(seed)
        statements._ts = 10
        step = statements._merge(rows)
        clauses = step.sql.split(" WHEN ")[1:]
        if clauses == ["MATCHED THEN DELETE"]:
            assert set(step.after) <= set(rows)
            seen.add("delete")
        if clauses == ["NOT MATCHED THEN INSERT *"]:
            assert all(step.after[key] == row for key, row in rows.items())
            seen.add("insert")
        if clauses == ["MATCHED THEN UPDATE SET ts = s.ts"]:
            assert all(row[2] == rows[key][2] for key, row in step.after.items())
            seen.add("update of one column")
    assert seen == {"delete", "insert", "update of one column"}


def test_late_rows_are_discarded() -> None:
    """Half of the ordering values are smaller than the row's: an upsert leaves that row."""
    statements, late = Statements(4, late=True), 0
    rows = statements.first().after
    for _ in range(400):
        step = statements.step(rows)
        if step.kind == "save upsert":
            for id, p, _, ts in step.save[1]:
                before, after = rows.get((p, id)), step.after[p, id]
                assert after[3] >= ts
                if before is not None and before[3] > ts:
                    late += 1
                    assert after[3] >= before[3]
        rows = step.after
    assert late > 20


def test_a_program_beside_others_names_its_own_keys_only() -> None:
    statements = Statements(5, prefix="x", alone=False)
    rows = statements.first().after
    for _ in range(400):
        step = statements.step(rows)
        assert step.kind != "overwrite"
        if step.kind in ("update", "delete"):
            assert "WHERE id LIKE 'x%' AND (" in step.sql
        assert all(id.startswith("x") for _, id in step.after)
        rows = step.after


def test_a_late_delete_of_merge_into_is_discarded_in_log_files() -> None:
    rows: Rows = {("a", f"k{n}"): (f"k{n}", "a", "x", 500_000) for n in range(12)}
    seen = set()
    for seed in range(400):
        for on_read in (False, True):
            step = Statements(seed, late=True, on_read=on_read)._merge(rows)
            if step.sql.split(" WHEN ")[1:] == ["MATCHED THEN DELETE"]:
                gone = len(rows) - len(step.after)
                seen.add((on_read, gone > 0))
                late = Statements(seed, late=True, on_read=not on_read)._merge(rows)
                assert (len(late.after) >= len(step.after)) or on_read
    assert {(False, True), (True, True), (True, False)} <= seen


def test_an_older_version_of_a_deleted_record_may_be_there_or_not() -> None:
    """In a MergeOnRead table; the deleted row itself is never one of the rows that are right."""
    seen = 0
    for on_read in (False, True):
        statements = Statements(6, late=True, on_read=on_read)
        rows, had = statements.first().after, dict[tuple[str, str], int]()
        for _ in range(300):
            step = statements.step(rows)
            for key in step.may_lack:
                assert on_read
                assert key not in rows
                assert step.after[key][3] < had[key]
                assert step.leaves([key])[key] == step.after[key]
                assert key not in step.leaves([])
                seen += 1
            for row in [*step.after.values(), *step.save[1]]:
                had[row[1], row[0]] = max(row[3], had.get((row[1], row[0]), 0))
            if step.kind == "merge":
                had = dict.fromkeys([*had, *step.after], 10**7)
            rows = step.leaves([])
    assert seen > 20


def test_a_late_delete_counts_where_new_rows_are_packed() -> None:
    rows: Rows = {("a", f"k{n}"): (f"k{n}", "a", "x", 500_000) for n in range(12)}
    seen = 0
    for seed in range(200):
        statements = Statements(seed, late=True, on_read=True, packs=True)
        statements._random.seed(seed)
        step = statements.step(rows)
        late = {key for key in step.may_lack if key in rows}
        assert not late or step.kind == "merge"
        assert all(step.after[key] == rows[key] for key in late)
        seen += len(late)
    assert seen > 5
