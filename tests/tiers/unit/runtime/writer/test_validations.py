"""What a message says of a batch that is not as expected, and which queries may read the table.

With Spark and Hudi: tests/tiers/hudi/test_validations.py.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.job import Validation
from hudi_contract.words import Duplicates
from hudi_runtime.process.errors import UserCodeError
from hudi_runtime.read.progress import Progress
from hudi_runtime.read.sources import Batch
from hudi_runtime.writer import duplicates, validations


def test_no_row() -> None:
    assert validations.no_row([], ["id"]) == ""
    found = [("7", None, "a\nb"), ("8", "x", "y")]
    assert validations.no_row(found, ["id", "v", "w"]) == "expected no row, found id='7', v=null, w='a?b'"


def test_one_value() -> None:
    assert validations.one_value([("0",)], "0") == ""
    assert validations.one_value([("3",)], "0") == "expected '0', found '3'"
    assert validations.one_value([(None,)], "null") == "expected 'null', found null"
    assert validations.one_value([], "0") == "expected '0', found no row"
    assert validations.one_value([("0",), ("0",)], "0") == "expected '0', found several rows"


def test_no_null() -> None:
    assert validations.no_null({"id": 0, "v": 0}) == ""
    assert validations.no_null({"id": 0, "v": 1, "w": 2}) == "expected no null, found null in v of 1 row, w of 2 rows"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (0, "expected at least 1 row, found 0"),
        (1, ""),
        (3, ""),
        (4, "expected at most 3 rows, found 4"),
    ],
)
def test_a_number_of_rows(found: int, said: str) -> None:
    assert validations.size(found, 1, 3) == said
    assert validations.size(found, None, None) == ""


def test_a_message_is_bounded() -> None:
    """Whatever the rows hold, and however many columns they have."""
    long = "x" * 10_000
    said = [
        validations.no_row([(long,) * 100], [long] * 100),
        validations.one_value([(long,)], long[1:]),
        validations.no_null({f"{long}{n}": 1 for n in range(100)}),
    ]
    assert max(map(len, said)) < 1000
    assert said[0].endswith(", …")


def test_a_secret_is_left_out_before_a_value_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """F493: the beginning of a long one would stay."""
    token = "t0ken" * 40
    monkeypatch.setenv("SESSION_TOKEN", token)
    for value in (token, f"Bearer {token}", f"{'x' * 70} {token}"):
        said = validations.one_value([(value,)], "0")
        assert "t0ken" not in said, said
        assert "<redac" in said


def test_a_query_without_the_word_has_no_view_of_the_table() -> None:
    def reads(sql: str) -> bool:
        return validations.read_the_table([Validation(name="v", min_rows=1), Validation(name="q", sql=sql)])

    for sql in ("SELECT 1 FROM table", "SELECT 1 FROM batch JOIN `TABLE` USING (id)", "SELECT (SELECT 1 FROM\ntable)"):
        assert reads(sql), sql
    for sql in ("SELECT 1 FROM batch", "SELECT a_table, tables FROM batch"):
        assert not reads(sql), sql
    assert validations.options([Validation(name="q", sql="SELECT 1 FROM table")]) == {
        "hoodie.write.lock.etcd.snapshot_isolation": "serializable"
    }
    assert validations.options([Validation(name="q", sql="SELECT 1 FROM batch")]) == {}


class Frame:
    """Stands for a batch, and for what reads the table; notes what is done first."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.columns = ["id"]
        self.sparkSession = self.read = self

    def noted(self, what: str) -> Frame:
        self.done.append(what)
        return self

    def persist(self) -> Frame:
        return self.noted("persist")

    def unpersist(self) -> Frame:
        return self.noted("unpersist")

    def count(self) -> int:
        self.noted("compute")
        return 2

    def format(self, _: str) -> Frame:
        return self

    def options(self, **_: str) -> Frame:
        return self

    def load(self, _: str) -> Frame:
        return self.noted("list")

    def drop(self, *_: str) -> Frame:
        return self


def test_the_table_is_listed_after_the_batch_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """F487: what is listed before a long batch may be cleaned, or changed, when it is read."""
    frame: Any = Frame()

    def over(*_: Any) -> Any:
        raise ValueError("the query")

    monkeypatch.setattr(validations, "over", over)
    asked = [Validation(name="q", sql="SELECT 1 FROM table")]
    with pytest.raises(UserCodeError, match="the query"), validations.held(frame, asked, "s3a://lake/t"):
        pass
    assert frame.done == ["persist", "compute", "list", "unpersist"]


@pytest.mark.parametrize(
    ("prunes", "validated", "done"),
    [
        (True, False, ["persist", "compute", "list", "unpersist"]),
        (True, True, ["persist", "compute", "list", "unpersist"]),
        (False, True, ["persist", "compute", "list", "unpersist"]),
        (False, False, ["list"]),
    ],
)
def test_keys_are_looked_up_after_the_batch_is_computed(
    monkeypatch: pytest.MonkeyPatch, prunes: bool, validated: bool, done: list[str]
) -> None:
    """F487: validations compute it before its instant, which would keep the files."""
    frame: Any = Frame()
    monkeypatch.setattr(duplicates.lookup_partitions, "may_prune", lambda *_: prunes)
    monkeypatch.setattr(duplicates.lookup_partitions, "of_batch", lambda kept, _: kept.count() and None)
    monkeypatch.setattr(duplicates, "_held", lambda batch, *_, **__: batch)
    job: Any = SimpleNamespace(
        adds=True,
        overwrites=False,
        duplicates=Duplicates.DROP,
        table=SimpleNamespace(record_keys=("id",), partitions=("p",), path="s3a://lake/t"),
    )
    with duplicates.held(frame, frame, job, columns=None, validated=validated):
        pass
    assert frame.done == done


def test_a_batch_that_only_stores_where_its_source_begins() -> None:
    """It has no rows by design, so that a validation could refuse it for ever."""
    frame: Any = SimpleNamespace()
    job: Any = SimpleNamespace(validations=(Validation(name="v", min_rows=1),))
    assert Batch(frame, {}, "", Progress()).validations(job) == job.validations
    assert Batch(frame, {}, "", Progress(), beginning=True).validations(job) == ()
