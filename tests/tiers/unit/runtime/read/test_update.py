"""When rows were read that a batch is made from, and what a batch of a query is."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import Job
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError
from hudi_runtime.read import context, sources, update
from hudi_runtime.read import progress as pg
from hudi_runtime.read.context import Context
from hudi_runtime.read.progress import Progress
from hudi_runtime.read.update import Base, Update, base_of
from hudi_runtime.table.timeline import parse
from hudi_runtime.writer import commit
from hudi_runtime.writer.commit import Committer
from tests.support.world.job_json import JOB
from tests.support.world.thrown import MOVED, Thrown


def name(requested: int, completed: int | None = None, action: str = "commit") -> str:
    """A file of the timeline; the times are the last digits."""
    first = f"2026010100000{requested:04d}"
    return f"{first}.{action}.requested" if completed is None else f"{first}_2026010100000{completed:04d}.{action}"


def base(*names: str) -> tuple[str, str]:
    found = base_of(parse(names))
    return found.completion[-4:], found.floor[-4:]


def test_the_base_is_the_newest_completion_and_the_floor_what_may_still_complete() -> None:
    assert base() == ("0", "0")
    assert base(name(1, 2), name(3, 9), name(4, 5)) == ("0009", "0004")
    assert base(name(1, 2), name(3), name(4, 5)) == ("0005", "0003"), "the one that is pending was requested before"
    assert base(name(1, 2), name(3, action="clean"), name(4, 5)) == ("0005", "0004"), "a clean brings no rows"


class Frame:
    """Stands for a DataFrame."""

    def drop(self, *_: str) -> Frame:
        return self


@pytest.fixture
def reads(monkeypatch: Any) -> list[str]:
    """Completion times of the next reads of the table."""
    times: list[str] = []
    monkeypatch.setattr(context, "take", lambda *_: (Frame(), Base(times.pop(0), "1")))
    monkeypatch.setattr(context, "Table", lambda *_: None)
    return times


def test_a_batch_has_the_oldest_read_since_the_batch_before_it(reads: list[str]) -> None:
    spark: Any = None
    made = Context(Job.from_json(JOB), "i", spark)
    assert made.base_of_batch() is None
    reads += ["5", "4", "7"]
    made.read_table()
    made.read_table()
    assert times(made.base_of_batch()) == ("4", "1")
    assert times(made.base_of_batch()) == ("4", "1"), "the next batch may be made from the same rows"
    made.read_table()
    assert times(made.base_of_batch()) == ("7", "1")


def times(found: Base | None) -> tuple[str, str] | None:
    return (found.completion, found.floor) if found else None


def test_a_thread_that_has_read_nothing_may_write_what_another_one_has_read(reads: list[str]) -> None:
    spark: Any = None
    made = Context(Job.from_json(JOB), "i", spark)
    reads += ["5", "4"]
    made.read_table()
    assert times(in_a_thread(made.base_of_batch)) == ("5", "1")
    in_a_thread(made.read_table)
    assert times(made.base_of_batch()) == ("5", "1"), "what another thread reads is not what this one writes"


def test_metadata_of_two_reads_or_two_threads_are_told_apart(reads: list[str]) -> None:
    """F40: a commit made from another read is not known, although this program has made it."""
    spark: Any = None
    made = Context(Job.from_json(JOB), "i", spark)
    reads += ["5", "5"]
    name = "hoodie.write.lock.etcd.snapshot_read"
    made.read_table()
    first = made.commit_metadata()[name]
    assert made.commit_metadata()[name] == first, "one write after the other, from one read"
    assert in_a_thread(made.commit_metadata)[name] != first
    made.read_table()
    assert made.commit_metadata()[name] != first


def in_a_thread(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_an_application_passes_it_on(reads: list[str]) -> None:
    spark: Any = None
    made = Context(Job.from_json(JOB), "i", spark)
    assert not any("snapshot" in key for key in made.commit_metadata())
    reads.append("5")
    made.read_table()
    options = made.commit_metadata()
    found = {key.rpartition("_")[2]: value for key, value in options.items() if "snapshot" in key}
    assert found.pop("read")
    assert found == {"base": "5", "floor": "1", "isolation": "snapshot"}


def test_a_read_beside_a_clean_is_repeated(monkeypatch: Any) -> None:
    """F488: a clean that was planned while the files are listed hides none, and ends no attempt."""
    refused, bases = list[Exception](), iter(range(1, 20))

    def load(_: str) -> Frame:
        if refused:
            raise refused.pop()
        return Frame()

    monkeypatch.setattr(update, "base_of", lambda _: Base(str(next(bases)), "0"))
    monkeypatch.setattr(update.positions, "stable", lambda *_: None)
    reader = SimpleNamespace(load=load)
    spark: Any = SimpleNamespace(read=SimpleNamespace(format=lambda _: SimpleNamespace(options=lambda **_: reader)))
    table: Any = SimpleNamespace(timeline=lambda: None, path="s3a://lake/t")
    refused += [MOVED] * (update.LOOKS - 1)
    assert update.take(spark, table)[1].completion == str(update.LOOKS), "the base is that of the last look"
    refused += [MOVED] * update.LOOKS
    with pytest.raises(Thrown):
        update.take(spark, table)
    assert not refused
    refused += [Thrown("java.io.IOException", "broken pipe")] * 2
    with pytest.raises(Thrown, match="broken pipe"):
        update.take(spark, table)
    assert len(refused) == 1


def test_a_function_that_reads_beside_a_clean_is_called_again(committer: Rewritten) -> None:
    """F488: the error of the read, with which the try is repeated, and no error of the user."""

    def reads(_: Any) -> Any:
        raise MOVED

    with pytest.raises(Thrown):
        committer._rows(batch(Update(reads)))


class Rewritten(Committer):
    """Only what a try is made from."""

    def __init__(self) -> None:
        self._spark: Any = None
        self._table: Any = None
        self._session: Any = SimpleNamespace(asking=nullcontext)


@pytest.fixture
def committer(monkeypatch: Any) -> Rewritten:
    monkeypatch.setattr(commit, "DataFrame", Frame)
    times = iter(range(1, 9))
    monkeypatch.setattr(commit, "take", lambda *_: (Frame(), Base(str(next(times)), "0")))
    return Rewritten()


def options(found: tuple[Any, Any]) -> tuple[str | None, str | None]:
    return found[1].get("hoodie.write.lock.etcd.snapshot_base"), found[1].get(
        "hoodie.write.lock.etcd.snapshot_isolation"
    )


def batch(frame: Any, since: Base | None = None) -> sources.Batch:
    return sources.Batch(frame, {}, "d", Progress(), base=since)


def test_an_update_is_asked_at_each_try(committer: Rewritten) -> None:
    asked: list[Any] = []

    def rows(snapshot: Any) -> Any:
        asked.append(snapshot)
        return Frame()

    one = batch(Update(rows))
    assert [options(committer._rows(one)) for _ in range(2)] == [("1", "snapshot"), ("2", "snapshot")]
    assert len(asked) == 2
    assert options(committer._rows(batch(Update(rows, serializable=True)))) == ("3", "serializable")


def test_a_frame_keeps_the_base_that_it_has(committer: Rewritten) -> None:
    assert options(committer._rows(batch(Frame()))) == (None, None)
    assert [options(committer._rows(batch(Frame(), Base("4", "1")))) for _ in range(2)] == [("4", "snapshot")] * 2


def test_what_the_function_does_wrong_is_told(committer: Rewritten) -> None:
    def fails(_: Any) -> Any:
        raise ValueError("no such column")

    with pytest.raises(UserCodeError, match="function of an Update: ValueError: no such column"):
        committer._rows(batch(Update(fails)))
    nothing: Any = lambda _: None  # noqa: E731
    with pytest.raises(UserCodeError, match="expected a DataFrame, got NoneType"):
        committer._rows(batch(Update(nothing)))


def test_a_lost_race_of_a_frame_from_the_table_ends_the_attempt(monkeypatch: Any) -> None:
    from tests.support.world.played_committer import Play

    play = Play(monkeypatch, ["lost", "done"], retries=3)
    with pytest.raises(RuntimeFailure, match="the next attempt calls the function again") as found:
        play.commit(batch(Frame(), Base("4", "1")), base="")
    assert found.value.failure is FailureClass.WRITE_CONFLICT
    assert play.waits == 0
    assert Play(monkeypatch, ["lost", "done"], retries=3).commit(batch(Frame()), base="") == "later"


def view(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "hudi": {"path": path}}


@pytest.mark.parametrize(
    ("path", "updates"), [("s3a://lake/t", True), ("s3a://lake/t/", True), ("s3a://lake/other", False)]
)
def test_a_query_of_the_own_table_is_an_update(monkeypatch: Any, path: str, updates: bool) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(sources, "_query", lambda _spark, _source, views: given.append(sorted(views)) or Frame())
    job = Job.from_json(
        JOB | {"source": {"sql": {"query": "SELECT 1", "views": [view("a", path), view("b", "s3a://lake/b")]}}}
    )
    table: Any = type("Table", (), {"path": "s3a://lake/t"})()
    spark: Any = None
    user: Any = None
    (found,) = sources.batches(spark, job, table, user, pg.Progress())
    assert isinstance(found.frame, Update) is updates
    if isinstance(found.frame, Update):
        assert given == [], "it is asked when it is written"
        rows: Any = Frame()
        found.frame.rows(rows)
    assert given == [["a"] if updates else []]
