"""Where the deletions of some commits are found: files before and after, delete blocks, and file
groups that were replaced (R55, I9).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.job.job import HudiSource, Job
from hudi_runtime.process.errors import UserCodeError
from hudi_runtime.read import sources
from hudi_runtime.read.deletions import Plan, Slice, deleting, plan, problem, slice_before
from hudi_runtime.read.sources import Batch
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import WriteInfo, write_info
from hudi_runtime.writer.commit import Committer
from tests.support.world.job_json import JOB
from tests.support.world.timelines import done, pending, time, timeline

LOG = ".{}_{}.log.1_0-1-2"


def commit(
    number: int, *stats: tuple[str, str, int], operation: str = "UPSERT", replaced: tuple[str, ...] = ()
) -> tuple[tl.Instant, WriteInfo]:
    """One that was begun at `number` and completed at once.

    Stats are (file, base file that it replaced, records that it deleted).
    """
    listed = [
        {
            "partitionPath": "a",
            "fileId": name.lstrip(".").split("_")[0],
            "path": f"a/{name}",
            "prevBaseFile": before or None,
            "numDeletes": deletes,
        }
        for name, before, deletes in stats
    ]
    metadata = {
        "operationType": operation,
        "partitionToWriteStats": {"a": listed},
        "partitionToReplaceFileIds": {"a": list(replaced)},
    }
    return tl.Instant(time(number), "commit", tl.State.COMPLETED, time(number)), write_info(metadata)


def base(group: str, number: int) -> str:
    return f"{group}_0-1-2_{time(number)}.parquet"


def test_without_deletes_nothing_is_read() -> None:
    inserts, updates = commit(1, (base("f", 1), "", 0)), commit(2, (base("f", 2), base("f", 1), 0))
    assert not plan([inserts, updates])
    blind = commit(3, (base("g", 3), "", 2))
    assert not plan([blind]), "a file group that the commit made itself: nothing was there to be deleted"
    assert [deleting(write) for _, write in (inserts, updates, blind)] == [False, False, True]


def test_the_file_before_the_first_of_the_commits_and_the_last_one_that_they_wrote() -> None:
    """I9: what a commit in between wrote was never given.

    What it took over from the file before it was.
    """
    first, second = commit(2, (base("f", 2), base("f", 1), 0)), commit(3, (base("f", 3), base("f", 2), 1))
    last = commit(4, (base("f", 4), base("f", 3), 0), (base("g", 4), base("g", 1), 0))
    found = plan([last, second, first])
    assert (found.before, found.after) == ({f"a/{base('f', 1)}"}, {f"a/{base('f', 4)}"})
    assert plan([second]) == Plan(frozenset({f"a/{base('f', 2)}"}), frozenset({f"a/{base('f', 3)}"})), (
        "another reader has had the first"
    )
    made = commit(2, (base("f", 2), "", 0))
    assert not plan([made, second]), "made by one of the commits and deleted by another one: never given"


def test_a_table_service_deletes_nothing() -> None:
    compaction = commit(3, (base("f", 3), base("f", 1), 5), operation="COMPACT")
    clustering = commit(4, (base("h", 4), "", 0), operation="CLUSTER", replaced=("f",))
    assert not plan([compaction, clustering])
    after = commit(5, (base("h", 5), base("h", 4), 1))
    assert plan([compaction, clustering, after]).before == {f"a/{base('h', 4)}"}, (
        "it holds rows of others, which were given"
    )


def test_log_files_and_replaced_groups() -> None:
    log = f"a/{LOG.format('f', time(2))}"
    one, other = (
        commit(2, (LOG.format("f", time(2)), "", 3), (LOG.format("g", time(2)), "", 0)),
        commit(3, replaced=("g",), operation="DELETE_PARTITION"),
    )
    found = plan([one, other])
    assert found == Plan(logs=((one[0], ("a", "f"), log),), replaced=((other[0], ("a", "g")),))
    assert deleting(other[1])


def test_a_file_group_as_it_was() -> None:
    """I9, I4: the newest base file that was complete by then and what was logged after it.

    Not what came later or did not complete.
    """
    now = timeline(
        done(2, 3),
        done(4, 8),
        done(5, 6, "deltacommit"),
        done(7, 9, "deltacommit"),
        pending(10, "deltacommit"),
        done(11, 12, "deltacommit"),
    )
    names = [
        base("f", 2),
        base("f", 4),
        *(LOG.format("f", time(n)) for n in (5, 7, 10, 11)),
        base("g", 11),
        ".hoodie_partition_metadata",
    ]
    names += [f"{LOG.format('f', time(5))}.cdc", "f_other.txt"]

    def logged(requested: int) -> Any:
        at = now.get(time(requested))
        assert at is not None
        found = slice_before(at, ("a", "f"), names=names, timeline=now)
        return found.base.removeprefix("a/"), [i.requested for i in found.logged], found.archived

    assert logged(11) == (base("f", 4), [time(5), time(7)], ""), (
        "5 was begun after the base file was, so its log belongs to it"
    )
    assert logged(5) == (base("f", 2), [], "")
    (last,) = (i for i in now.completed if i.requested == time(11))
    assert not slice_before(last, ("a", "none"), names=names, timeline=now)
    assert slice_before(last, ("", "g"), names=[base("g", 2)], timeline=now) == Slice(base("g", 2)), (
        "a table without partitions"
    )


def test_what_was_archived_is_older_than_the_timeline() -> None:
    """I9: an archived base file is complete.

    A log file behind it whose commit was archived cannot be read any more.
    """
    now = timeline(done(7, 9, "deltacommit"), done(11, 12, "deltacommit"))
    at = now.get(time(11))
    assert at is not None

    def found(*names: str) -> Slice:
        return slice_before(at, ("a", "f"), names=names, timeline=now)

    assert found(base("f", 2), LOG.format("f", time(1)), LOG.format("f", time(7))) == Slice(
        f"a/{base('f', 2)}", (now.instants[0],)
    )
    assert found(base("f", 2), LOG.format("f", time(3))).archived == LOG.format("f", time(3))
    assert found(LOG.format("f", time(3))).archived
    assert found(base("f", 9)).base == "", "newer than the look, or of a write that is none"


@pytest.mark.parametrize("action", ["restore", "indexing"])
def test_a_base_file_is_complete_behind_what_is_never_archived(action: str) -> None:
    """F524: it was written after that, and its commit was archived."""
    now = timeline(done(1, 2, action), done(11, 12, "deltacommit"), done(13, 14, "deltacommit"))
    at = now.get(time(13))
    assert at is not None
    found = slice_before(at, ("a", "f"), names=[base("f", 7), LOG.format("f", time(11))], timeline=now)
    assert found == Slice(f"a/{base('f', 7)}", (now.get(time(11)),))


def test_the_archive_says_what_was_archived() -> None:
    """F532: a commit that a savepoint keeps, or a pending rollback, stands in front of later ones
    that were archived.
    """
    now = timeline(done(1, 2, "deltacommit"), done(11, 12, "deltacommit"), done(13, 14, "deltacommit"))
    at = now.get(time(13))
    assert at is not None
    asked: list[int] = []

    def archived() -> list[tl.Instant]:
        asked.append(1)
        states = ((3, 4, "commit"), (5, 6, "deltacommit"), (7, 15, "commit"))
        return [tl.Instant(time(begun), action, tl.State.COMPLETED, time(end)) for begun, end, action in states]

    def found(*names: str) -> Slice:
        return slice_before(at, ("a", "f"), names=names, timeline=now, archived=archived)

    assert found(base("f", 1), LOG.format("f", time(11))) == Slice(f"a/{base('f', 1)}", (now.get(time(11)),))
    assert not asked, "the archive is read for what the timeline does not know"
    assert found(base("f", 3), LOG.format("f", time(11))) == Slice(f"a/{base('f', 3)}", (now.get(time(11)),))
    assert found(base("f", 3), LOG.format("f", time(5))).archived == LOG.format("f", time(5))
    assert found(base("f", 3), base("f", 7)).base == f"a/{base('f', 3)}", "7 was completed after this commit"
    assert found(base("f", 9)).base == "", "nobody knows it"


def config(
    type: str = "MERGE_ON_READ", mode: str = "EVENT_TIME_ORDERING", format: str = "PARQUET", **others: bool
) -> Any:
    def name(value: str) -> Any:
        return lambda: SimpleNamespace(name=lambda: value)

    said = {"many": False, "boot": False, "dropped": False} | others
    return SimpleNamespace(
        getTableType=name(type),
        getRecordMergeMode=name(mode),
        getBaseFileFormat=name(format),
        isMultipleBaseFileFormatsEnabled=lambda: said["many"],
        getBootstrapBasePath=lambda: SimpleNamespace(isPresent=lambda: said["boot"]),
        shouldDropPartitionColumns=lambda: said["dropped"],
    )


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (config(), ""),
        (config("COPY_ON_WRITE", "CUSTOM"), ""),
        (config(mode="CUSTOM"), "its record merger decides"),
        (config(format="ORC"), "not Parquet"),
        (config(many=True), "not Parquet"),
        (config(boot=True), "bootstrapped"),
        (config(dropped=True), "partition columns"),
    ],
)
def test_tables_whose_deletions_cannot_be_told(table: Any, why: str) -> None:
    assert why in problem(table)
    assert bool(problem(table)) == bool(why)


def test_a_transform_that_leaves_the_mark_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """I9: without it what was deleted would be written as rows."""
    committer: Any = Committer.__new__(Committer)
    committer._spark, committer._job = None, SimpleNamespace(transform="SELECT")
    frame: Any = SimpleNamespace(columns=["id", "p"])
    monkeypatch.setattr("hudi_runtime.writer.commit.transform", lambda rows, sql: frame)
    batch = Batch(frame, {}, "", sources.pg.Progress())
    assert committer._transformed(batch, frame) is frame
    with pytest.raises(UserCodeError, match="no column _hoodie_is_deleted, which marks deleted rows"):
        committer._transformed(Batch(frame, {}, "", sources.pg.Progress(), deletes=True), frame)
    frame.columns.append("_hoodie_is_deleted")
    assert committer._transformed(Batch(frame, {}, "", sources.pg.Progress(), deletes=True), frame) is frame


@pytest.mark.parametrize(
    ("said", "carried"), [({}, False), ({"deletes": "Ignore"}, False), ({"deletes": "Carry"}, True)]
)
def test_an_older_operator_does_not_say_it(said: dict[str, str], carried: bool) -> None:
    hudi = {"path": "s3a://lake/x/", "startFrom": "Earliest", "order": "Fenced", "ifPositionLost": "Fail", **said}
    assert Job.from_json(JOB | {"source": {"hudi": hudi}}).source == HudiSource(
        "s3a://lake/x", "Earliest", "Fenced", None, "Fail", carried
    )
