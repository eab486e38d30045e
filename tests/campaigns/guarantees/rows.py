"""The cells.

A claim without a test does not stand here: where nothing was run, the cell is None. Rows that
have no claim at all are there because users ask for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """Claim, and the test that shows it: `file::name`, with the parameters' id in brackets if it
    has several.
    """

    claim: str
    test: str


@dataclass(frozen=True)
class Row:
    """Writers that do this to one table at once. None: not run."""

    operation: str
    mode: str
    index: str
    type: str
    duplicates: Cell | None = None
    lost_update: Cell | None = None
    write_skew: Cell | None = None
    reader: Cell | None = None

    @property
    def name(self) -> str:
        """Name that tells it from the others."""
        return f"{self.operation}, {self.mode}, {self.index}, {self.type}"

    @property
    def cells(self) -> tuple[Cell | None, ...]:
        """Cells of the four columns of phenomena."""
        return self.duplicates, self.lost_update, self.write_skew, self.reader


_INDEX = "tests/tiers/hudi/test_index.py::test_an_index_that_is_allowed"
_ANY = "tests/tiers/hudi/test_index.py::test_any_two_inserts_into_one_partition_conflict"
_WRITER = "tests/tiers/hudi/test_writer.py::test_two_writers_rewrite_one_file_group"
_UPDATE = "tests/tiers/hudi/test_updates.py::test_an_update_is_asked_again"
_ELSEWHERE = "tests/tiers/hudi/test_updates.py::test_another_file_group_is_no_conflict_unless_it_is_serializable"
_LOOKED_UP = "tests/tiers/hudi/test_updates.py::test_a_look_up_does_not_hide_what_the_function_has_read"
_BESIDE = "tests/tiers/hudi/test_non_blocking.py::test_two_writers_of_one_file_group_both_commit"
_DELETE = "tests/tiers/hudi/test_non_blocking.py::test_the_operation_delete_deletes_what_it_has_read"
_INSERTS = "tests/tiers/hudi/test_duplicates.py::test_fail_drop_and_allow"
_REPLACED = "tests/tiers/hudi/test_overwrite.py::test_a_batch_replaces_its_partitions"
_DROPPED = "tests/tiers/hudi/test_overwrite.py::test_partitions_are_deleted_by_name"
_HISTORY = "tests/tiers/hudi/test_history.py::test_a_history_shows_nothing_that_was_promised_not_to_be"
_BETWEEN = "tests/tiers/hudi/test_statements_between.py::test_one_order_or_a_conflict"
_ONE = "none: one new key brought twice at once is one record"
_REPEATED = "none: the later commit to a file group is repeated"
_ASKED = "none: the function is asked again"
_SKEW = "possible: writers of two file groups do not meet"
_MET = "a commit to another file group is a conflict, too: the function is asked again"
_DUE = "a snapshot after the writers has each acknowledged row once"
_LOOKED = "none: BulkInsert with Fail and Insert with Drop, alone and beside an upsert of the key"
_LOOKED_IN_BUCKETS = "none: Insert with Fail and with Drop, alone and beside an upsert of the key"
_NEW_ONCE = "none: one new key inserted by three writers is one record, in one history"
_OVER = "none: a commit to a replaced partition makes it write again, and one of a replaced row is repeated"
_GONE = "none: a commit to a deleted partition is deleted by the next try, and one of a deleted row is repeated"
_KEPT = "none in one history"
_SERIAL = "none in one history (no G2)"
_WHOLE = "no half of a transfer, no read skew, in one history"
_IN_ORDER = "none: the rows that one of the two orders leaves, or a conflict that changes nothing"
_ONCE = "none beside an upsert and a delete of the keys"
_AS_MANY = "as many records as the key was inserted"
_MERGED = "none: readers merge the records of a key"
COW, MOR, OPTIMISTIC, NON_BLOCKING = "CopyOnWrite", "MergeOnRead", "Optimistic", "NonBlocking"

INSERTED = (
    (OPTIMISTIC, "Simple", COW, "copy"),
    (OPTIMISTIC, "Simple", MOR, "merge"),
    (OPTIMISTIC, "Bloom", COW, "bloom-copy"),
    (OPTIMISTIC, "Bloom", MOR, "bloom-merge"),
    (OPTIMISTIC, "Bucket", MOR, "bucket-merge"),
    (NON_BLOCKING, "Bucket", MOR, "bucket-free"),
)
"""Mode, index and type of each case of `_INSERTS`."""

ROWS = (
    Row(
        "Upsert",
        OPTIMISTIC,
        "Simple",
        COW,
        Cell(_ONE, f"{_INDEX}[simple-spec0-1-1]"),
        Cell(_REPEATED, f"{_WRITER}[CopyOnWrite-3]"),
        reader=Cell(_DUE, "tests/tiers/hudi/test_unique.py::test_three_writers_bring_the_same_new_keys[CopyOnWrite]"),
    ),
    Row(
        "Upsert",
        OPTIMISTIC,
        "Simple",
        MOR,
        Cell(_ONE, f"{_INDEX}[simple-merge-spec1-1-1]"),
        Cell("none: the later commit to a file group is refused", f"{_WRITER}[MergeOnRead-0]"),
        reader=Cell(_DUE, "tests/tiers/hudi/test_unique.py::test_three_writers_bring_the_same_new_keys[MergeOnRead]"),
    ),
    *(
        Row(
            "Upsert",
            OPTIMISTIC,
            index,
            kind,
            Cell(_ONE, f"{_INDEX}[{case}-1-1]"),
            Cell(_REPEATED, f"{_WRITER}[{kind}-{index}]"),
        )
        for index, kind, case in (
            ("Bloom", COW, "bloom-spec2"),
            ("Bloom", MOR, "bloom-merge-spec3"),
            ("Bucket", COW, "bucket-spec5"),
            ("Bucket", MOR, "bucket-merge-spec6"),
        )
    ),
    Row(
        "Upsert",
        NON_BLOCKING,
        "Bucket",
        MOR,
        Cell("none: readers merge what both have brought", f"{_INDEX}[bucket-free-spec7-0-1]"),
        Cell("both commit; the larger ordering value stays, whoever committed last", _BESIDE),
    ),
    Row(
        "Upsert, `insertConflicts: Ignore`",
        OPTIMISTIC,
        "Simple",
        COW,
        Cell("possible: one new key brought twice at once is two records", f"{_INDEX}[ignored-spec4-0-2]"),
    ),
    *(
        Row(
            "Upsert, `insertConflicts: Partition`",
            OPTIMISTIC,
            "Simple",
            kind,
            Cell("none: of two commits that insert into one partition the later one is repeated", f"{_ANY}[{kind}]"),
        )
        for kind in (COW, MOR)
    ),
    *(
        Row(
            "Insert (a BulkInsert is one)" if index == "Bucket" else "Insert, BulkInsert",
            mode,
            index,
            type,
            Cell(_LOOKED_IN_BUCKETS if index == "Bucket" else _LOOKED, f"{_INSERTS}[{case}]"),
            reader=Cell(_DUE, f"{_INSERTS}[{case}]"),
        )
        for mode, index, type, case in INSERTED
    ),
    *(
        Row(
            f"{'Insert (a BulkInsert is one)' if index == 'Bucket' else 'Insert, BulkInsert'}, `duplicates: Allow`",
            mode,
            index,
            type,
            Cell(_MERGED if index == "Bucket" else _AS_MANY, f"{_INSERTS}[{case}]"),
        )
        for mode, index, type, case in INSERTED
    ),
    Row("Insert (a BulkInsert is one)", OPTIMISTIC, "Bucket", COW),
    Row("InsertOverwrite", OPTIMISTIC, "Simple", COW, None, Cell(_OVER, f"{_REPLACED}[cow]")),
    Row("InsertOverwrite", OPTIMISTIC, "Simple", MOR, None, Cell(_OVER, f"{_REPLACED}[mor]")),
    Row("InsertOverwrite", OPTIMISTIC, "Bucket", MOR, None, Cell(_OVER, f"{_REPLACED}[mor-bucket]")),
    Row("DeletePartition", OPTIMISTIC, "Simple", COW, None, Cell(_GONE, f"{_DROPPED}[cow]")),
    Row("DeletePartition", OPTIMISTIC, "Simple", MOR, None, Cell(_GONE, f"{_DROPPED}[mor]")),
    Row("DeletePartition", OPTIMISTIC, "Bucket", MOR, None, Cell(_GONE, f"{_DROPPED}[mor-bucket]")),
    Row(
        "Update",
        OPTIMISTIC,
        "Simple",
        COW,
        Cell(_NEW_ONCE, f"{_HISTORY}[cow/Optimistic/Simple/update]"),
        Cell(_ASKED, f"{_UPDATE}[cow]"),
        Cell(_SKEW, _ELSEWHERE),
        Cell(_WHOLE, f"{_HISTORY}[cow/Optimistic/Simple/update]"),
    ),
    Row("Update", OPTIMISTIC, "Simple", MOR, None, Cell(_ASKED, f"{_UPDATE}[mor]")),
    Row(
        "Update",
        NON_BLOCKING,
        "Bucket",
        MOR,
        Cell(_NEW_ONCE, f"{_HISTORY}[mor/NonBlocking/Bucket/update]"),
        Cell(_ASKED, f"{_UPDATE}[non-blocking]"),
        Cell(_SERIAL, f"{_HISTORY}[mor/NonBlocking/Bucket/update]"),
        Cell(_WHOLE, f"{_HISTORY}[mor/NonBlocking/Bucket/update]"),
    ),
    Row(
        "Update, serializable",
        OPTIMISTIC,
        "Simple",
        COW,
        Cell(_NEW_ONCE, f"{_HISTORY}[cow/Optimistic/Simple/serializable]"),
        Cell(_KEPT, f"{_HISTORY}[cow/Optimistic/Simple/serializable]"),
        Cell(_MET, _ELSEWHERE),
        Cell(_WHOLE, f"{_HISTORY}[cow/Optimistic/Simple/serializable]"),
    ),
    Row(
        "`spark.read`, then a write",
        OPTIMISTIC,
        "Simple",
        COW,
        None,
        Cell(
            "none: the attempt ends as a conflict",
            "tests/tiers/hudi/test_updates.py::test_what_was_read_without_the_runtime_is_compared_too",
        ),
    ),
    Row(
        "`spark.read`, then Insert",
        OPTIMISTIC,
        "Simple",
        COW,
        None,
        Cell("none: the attempt ends as a conflict", f"{_LOOKED_UP}[insert]"),
    ),
    Row(
        "`spark.read`, then Delete",
        OPTIMISTIC,
        "Simple",
        MOR,
        None,
        Cell("none: the attempt ends as a conflict", f"{_LOOKED_UP}[delete]"),
    ),
    Row(
        "`spark.read`, then Delete",
        NON_BLOCKING,
        "Bucket",
        MOR,
        None,
        Cell("none: the attempt ends as a conflict", f"{_LOOKED_UP}[delete-non-blocking]"),
    ),
    Row("Delete", OPTIMISTIC, "Simple", COW),
    Row("Delete", OPTIMISTIC, "Simple", MOR),
    Row(
        "Delete",
        NON_BLOCKING,
        "Bucket",
        MOR,
        None,
        Cell("none: an insert of the key at once stays if its ordering value is not smaller", _DELETE),
    ),
    *(
        Row(
            "SQL of a program: `UPDATE`, `DELETE`, `MERGE INTO`; saves that delete",
            mode,
            index,
            type,
            Cell(_ONCE, f"{_BETWEEN}[{case}]"),
            Cell(_IN_ORDER, f"{_BETWEEN}[{case}]"),
        )
        for mode, index, type, case in (
            (OPTIMISTIC, "Simple", COW, "cow"),
            (OPTIMISTIC, "Simple", MOR, "mor"),
            (OPTIMISTIC, "Bucket", COW, "cow-bucket"),
            (OPTIMISTIC, "Bucket", MOR, "mor-bucket"),
            (NON_BLOCKING, "Bucket", MOR, "non-blocking"),
        )
    ),
)


def named() -> Iterator[str]:
    """Tests that the cells name."""
    for row in ROWS:
        yield from (cell.test for cell in row.cells if cell is not None)
