"""`validations` of a writer: what fails leaves nothing behind, what passes is what is written, and
what was read of the table is compared (docs/use/validations.md).
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.harness.in_its_write import done, stopped_in_its_write
from tests.support.harness.local import AGENT, NOTHING, SIDE_BY_SIDE, Process, Table, World, rows, until
from tests.support.oracle import not_seen

NON_BLOCKING = {
    "type": "MergeOnRead",
    "concurrency": {"mode": "NonBlocking"},
    "index": {"type": "Bucket", "buckets": 1},
}
NEW_KEYS = {"name": "new", "sql": "SELECT count(*) FROM batch JOIN table USING (id, p)", "equals": "0"}
AT_MOST_THREE = {
    "name": "three",
    "sql": "SELECT count(*) <= 3 FROM (SELECT id FROM table UNION SELECT id FROM batch)",
    "equals": "true",
}


def started(
    table: Table, name: str, batch: Sequence[tuple[Any, ...]], *validations: dict[str, Any], **job: Any
) -> Process:
    more = {key: job.pop(key) for key in ("schema",) if key in job}
    return table.writer(name, validations=list(validations), python={"batches": [{"rows": batch, **more}]}, **job)


def refused(writer: Process, said: str, kind: str = "ValidationFailed") -> None:
    """It has ended so, and has begun no instant."""
    assert writer.wait() == 10, writer.log()[-4000:]
    told = writer.termination()
    assert (told["class"], told["commits"]) == (kind, 0), told
    assert said in told["message"], told
    assert not writer.protocol("abandon"), "no instant was begun for it"


@pytest.mark.extra
def test_what_fails_leaves_nothing_behind(world: World, agent: Process) -> None:
    """Not even its new columns. What was committed before it stays."""
    table = world.table("validations")
    world.create(table, agent=AGENT, process=agent)
    first = {"name": "first", "sql": "SELECT count(*) FROM batch LEFT ANTI JOIN table USING (id)", "equals": "2"}
    kept = rows([1, 2], "a", "x", 1)
    done(started(table, "seed", kept, first, NEW_KEYS))
    refused(started(table, "again", rows([3, 2], "a", "y", 2), NEW_KEYS), "validation new: expected '0', found '1'")
    wide = [(7, "a", "x", 1, None), (8, "b", "x", 1, 5)]
    refused(
        started(
            table,
            "wide",
            wide,
            {"name": "filled", "notNull": ["id", "w"]},
            schema="id int, p string, v string, ts long, w int",
        ),
        "validation filled: expected no null, found null in w of 1 row",
    )
    assert len(table.timeline().instants) == 1
    assert "w" not in world.spark().read.format("hudi").load(table.path).columns
    table.audited(kept)


@pytest.mark.extra
def test_each_kind(world: World, agent: Process) -> None:
    table = world.table("validation-kinds")
    world.create(table, agent=AGENT, process=agent)
    batch = [*rows([1, 2], "a", "x", 1), (3, "a", None, 1)]
    passes = [
        {"name": "size", "minRows": 3, "maxRows": 3},
        {"name": "filled", "notNull": ["id", "p", "ts"]},
        {"name": "empty", "sql": "SELECT id, v FROM batch WHERE id > 3", "expect": "Empty"},
        {"name": "sum", "sql": "WITH b AS (SELECT id FROM batch) SELECT sum(id) FROM b;", "equals": "6"},
        {"name": "none", "sql": "TABLE table", "expect": "Empty"},
    ]
    done(started(table, "passes", batch, *passes))
    fails: list[tuple[dict[str, Any], str]] = [
        ({"minRows": 4}, "expected at least 4 rows, found 3"),
        ({"maxRows": 2}, "expected at most 2 rows, found 3"),
        ({"notNull": ["p", "v"]}, "expected no null, found null in v of 1 row"),
        ({"sql": "SELECT id, v, 'a\nb' AS t FROM batch WHERE v IS NULL"}, "found id='3', v=null, t='a?b'"),
        ({"sql": "SELECT max(v) FROM batch WHERE id = 3", "equals": "x"}, "expected 'x', found null"),
        ({"sql": "SELECT id FROM batch", "equals": "1"}, "expected '1', found several rows"),
        ({"sql": "SELECT id FROM batch WHERE id = 9", "equals": "1"}, "expected '1', found no row"),
    ]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"sql": "SELECT 1, 2", "equals": "1"}, "sql gives 2 columns, equals needs one"),
        ({"sql": "SELECT nothing FROM batch"}, "AnalysisException: [UNRESOLVED_COLUMN"),
        ({"notNull": ["nothing"]}, "AnalysisException: [UNRESOLVED_COLUMN"),
        ({"sql": "SELECT * FROM source"}, "table source is not a view of this query"),
        ({"sql": "DROP TABLE batch"}, "it must be one query over its views"),
        ({"sql": "SELECT reflect('java.lang.System', 'getenv', 'HOME')"}, "runs code and may not be used"),
    ]
    for kind, cases in (("ValidationFailed", fails), ("UserError", wrong)):
        for number, (validation, said) in enumerate(cases):
            writer = started(table, f"{kind.lower()}-{number}", batch, {"name": "v", **validation})
            refused(writer, said, kind)
    assert len(table.timeline().instants) == 1
    table.audited(batch)


@pytest.mark.extra
def test_the_rows_that_were_validated_are_written(world: World, agent: Process) -> None:
    """A row that is another one the second time is computed once."""
    table = world.table("validated-once")
    world.create(table, agent=AGENT, process=agent)
    only = {"name": "january", "sql": "SELECT p FROM batch WHERE p <> '2026-01-01'", "expect": "Empty"}
    done(
        table.writer(
            "moody",
            validations=[only],
            function="another_partition_the_second_time",
            python={"marker": str(world.folder / "validated-once")},
        )
    )
    table.audited([(1, "2026-01-01", "moody", 1)])


@pytest.mark.extra
@pytest.mark.parametrize("spec", [{}, NON_BLOCKING], ids=["optimistic", "non-blocking"])
def test_what_a_validation_has_read_is_compared(world: World, agent: Process, spec: dict[str, Any]) -> None:
    """A commit that comes between validation and commit is a conflict, whatever file group it has
    changed, and the batch is validated again: it may fail then.
    """
    table = world.table(f"validated-{len(spec)}", **spec)
    world.create(table, agent=AGENT, process=agent)
    present = rows([1], "b", "x", 1)
    done(started(table, "seed", present))
    for name, quick, fails in (("passes", rows([1], "b", "y", 2), False), ("fails", rows([3, 4], "b", "y", 3), True)):
        slow = started(table, name, rows([2], "a", name, 4), AT_MOST_THREE)
        stopped_in_its_write(table, slow)  # it is validated
        done(started(table, f"quick-{name}", quick))
        slow.signal(signal.SIGCONT)
        if fails:
            assert slow.wait() == 10, slow.log()[-4000:]
            told = slow.termination()
            assert (told["class"], told["commits"], told["conflicts"]) == ("ValidationFailed", 0, 1), told
            assert "validation three: expected 'true', found 'false'" in told["message"]
            present = [*rows([2], "a", "passes", 4), *rows([1], "b", "y", 2), *quick]
        else:
            done(slow, conflicts=1)
        assert "HUDIOP-SNAPSHOT-MOVED" in slow.log()
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited(present, without=SIDE_BY_SIDE | not_seen("incremental") if spec else NOTHING)


@pytest.mark.extra
def test_a_delete_is_compared_with_what_its_validation_has_read(world: World, agent: Process) -> None:
    """In the non-blocking mode, too, where the versions that it deletes do not count (F425)."""
    table = world.table("validated-delete", **NON_BLOCKING)
    world.create(table, agent=AGENT, process=agent)
    done(started(table, "seed", rows([1, 2], "a", "x", 1)))
    others = {
        "name": "others",
        "sql": "SELECT count(*) FROM table LEFT ANTI JOIN batch USING (id)",
        "equals": "1",
    }
    slow = started(table, "delete", rows([1], "a", "", 9), others, operation="delete")
    stopped_in_its_write(table, slow)  # it is validated
    done(started(table, "quick", rows([3], "a", "y", 1)))
    slow.signal(signal.SIGCONT)
    assert slow.wait() == 10, slow.log()[-4000:]
    told = slow.termination()
    assert (told["class"], told["conflicts"]) == ("ValidationFailed", 1), told
    assert "validation others: expected '1', found '2'" in told["message"]
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited([*rows([1, 2], "a", "x", 1), *rows([3], "a", "y", 1)], without=SIDE_BY_SIDE)


@pytest.mark.extra
def test_where_a_source_begins_is_not_validated(world: World, agent: Process) -> None:
    source, table = world.table("validated-source"), world.table("validated-latest")
    for each in (source, table):
        world.create(each, agent=AGENT, process=agent)
    done(started(source, "seed", rows([1], "a", "x", 1)))
    some = [{"name": "some", "minRows": 1}]
    done(table.writer("latest", validations=some, hudi={"path": source.path, "startFrom": "Latest"}))
    done(started(source, "more", rows([2], "a", "x", 1)))
    done(table.writer("latest", run=2, validations=some, hudi={"path": source.path, "startFrom": "Latest"}))
    table.audited(rows([2], "a", "x", 1))
