"""Which partitions have expired: told from every file's instant, in days of 24 hours however many
they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.options import TTL_PATTERN
from hudi_contract.outcomes import FailureClass
from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.services.expiry import CREATION, DAYS, LAST_WRITE, LIMIT, SINCE, Expiry, before, last_write
from hudi_runtime.services.triggers import Result
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import write_info

NOW = datetime.now(UTC)


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).strftime("%Y%m%d%H%M%S%f")[:17]


def files(base: float, log: float | None = None) -> list[str]:
    names = [".hoodie_partition_metadata", f"f-0_0-1-0_{ago(base)}.parquet"]
    return [*names, f".f-0_{ago(log)}.log.1_0-2-0"] if log is not None else names


def run(
    partitions: dict[str, list[str]],
    *,
    days: int,
    since: str = LAST_WRITE,
    live: set[str] | None = None,
    pattern: str = "",
    limit: int = 9,
    emptied: list[tuple[list[str], str]] | None = None,
) -> list[str]:
    """The partitions that one run deletes."""
    configs: list[dict[str, str]] = []
    emptied = [] if emptied is None else emptied
    table: Any = SimpleNamespace(
        partitions=lambda: list(partitions),
        storage=SimpleNamespace(names=lambda p: partitions[p]),
        live_partitions=lambda config: list(partitions) if live is None else list(live),
        partition_created=lambda p: min(
            (n.split("_")[2][:17] for n in partitions[p] if n.startswith("f-")), default=""
        ),
    )
    table.emptied = lambda some, instant: emptied.append((list(some), instant))
    table.deleted_partitions = dict
    expiry = Expiry(table, lambda options: configs.append(dict(options)) or options, lambda _: None)
    options = {DAYS: str(days), SINCE: since, LIMIT: str(limit), **({TTL_PATTERN: pattern} if pattern else {})}
    found = expiry._expired({}, options, now=NOW)[:limit]
    if not found:
        assert expiry.run(options).result is Result.NOTHING_TO_DO
        assert all((c[DAYS], c[SINCE]) == ("1", LAST_WRITE) for c in configs), "Hudi multiplies days in 32 bits"
    return found


@pytest.mark.parametrize("days", [1, 24, 25, 49, 50, 60, 100, 365, 36500])
def test_a_day_has_24_hours_however_many_they_are(days: int) -> None:
    """Hudi 1.2 takes 50 days for seven hours, 60 for ten days, 365 for 17."""
    assert run({"young": files(days - 0.5)}, days=days) == []
    if days < 36500:
        assert run({"old": files(days + 0.01), "young": files(days - 0.5)}, days=days) == ["old"]


def test_a_log_file_is_a_write() -> None:
    assert run({"updated": files(90, log=1), "left": files(90, log=80)}, days=30) == ["left"]
    assert run({"updated": files(90, log=1)}, days=30, since=CREATION) == ["updated"]


def test_what_readers_do_not_see_any_more_is_not_deleted_twice() -> None:
    assert run({"gone": files(90), "there": files(90)}, days=30, live={"there"}) == ["there"]


def test_an_old_partition_without_rows_begins_anew() -> None:
    """F471: rows that are written to it later are not as old as its folder."""
    emptied: list[tuple[list[str], str]] = []
    partitions = {"gone": files(90), "there": files(90), "young": files(1)}
    assert run(partitions, days=30, since=CREATION, live={"there", "young"}, emptied=emptied) == ["there"]
    assert emptied == [(["gone"], ago(0))]
    emptied.clear()
    run(partitions, days=30, since=LAST_WRITE, live={"there", "young"}, emptied=emptied)
    assert emptied == [], "the age of its files counts"


def test_pattern_limit_and_what_nothing_is_known_of() -> None:
    partitions = {"day=1": files(90), "day=2": files(90), "other": files(90), "day=3": [".hoodie_partition_metadata"]}
    assert run(partitions, days=30, pattern="day=.*") == ["day=1", "day=2"]
    assert run(partitions, days=30, pattern="day=.*", limit=1) == ["day=1"]
    assert last_write(["f-0_0-1-0_20260101000000.parquet"]) == "20260101000000999"
    assert before(datetime(2026, 3, 1, tzinfo=UTC), 1) == "20260228000000000"


@pytest.mark.parametrize("since", [LAST_WRITE, CREATION])
def test_a_partition_of_hudis_own_bootstrap_is_of_unknown_age(since: str) -> None:
    """F499: its instants are no times, and every partition would be 2,000 years old."""
    names = ["f-0_0-1-0_00000000000001.parquet", "f-1_0-1-0_00000000000002.parquet"]
    assert run({"p": names}, days=30, since=since) == []
    if since == LAST_WRITE:
        assert run({"p": [*names, *files(90)], "q": [*names, *files(1)]}, days=30) == ["p"]


class Listed:
    """A table in which a partition is written to after it was listed."""

    def __init__(self, *looks: list[str]) -> None:
        self.looks = list(looks)
        self.names = ["p"]
        self.storage = SimpleNamespace(names=lambda _: self.looks.pop(0) if self.looks else files(90))
        self.deleted: list[str] = []
        self.errors: list[Exception] = [RuntimeError("enough")]
        self.others: list[dict[str, Any]] = []

    def timeline(self) -> tl.Timeline:
        return tl.Timeline()

    def writes(self, _instants: object) -> Iterator[tuple[None, dict[str, Any]]]:
        return ((None, metadata) for metadata in self.others)

    def partitions(self) -> list[str]:
        return self.names

    def live_partitions(self, _config: object) -> list[str]:
        return self.names

    @contextmanager
    def client(self, _config: object) -> Iterator[Any]:
        yield SimpleNamespace(startCommit=lambda _: "100", deletePartitions=self._delete)

    def java_list(self, some: list[str]) -> list[str]:
        return some

    def _delete(self, partitions: list[str], _instant: str) -> None:
        self.deleted = partitions
        raise self.errors.pop(0)


def test_what_was_written_since_the_partitions_were_listed_stays() -> None:
    """F472: Hudi compares with what completes after the begin, and with nothing before it."""
    options = {DAYS: "30", SINCE: LAST_WRITE, LIMIT: "9"}
    withdrawn: list[str] = []
    table: Any = Listed(files(90), [*files(90), *files(0)])
    expiry = Expiry(table, lambda options: options, withdrawn.append)
    assert expiry.run(options).result is Result.NOTHING_TO_DO
    assert (table.deleted, withdrawn) == ([], ["100"])
    table = Listed(files(90), files(90))
    with pytest.raises(RuntimeError, match="enough"):
        Expiry(table, lambda options: options, withdrawn.append).run(options)
    assert table.deleted == ["p"]


def test_what_others_write_to_is_left_for_the_next_run() -> None:
    """F483: all is one commit, and a partition that is always written would keep the others."""
    options = {DAYS: "30", SINCE: LAST_WRITE, LIMIT: "9"}
    written, replaced = {"partitionToWriteStats": {"b": [{}]}}, {"partitionToReplaceFileIds": {"c": ["f"]}}
    for others, deleted, left in (
        ([written, replaced], ["a"], 0),
        ([], ["a", "b", "c"], 1),
        ([{"partitionToWriteStats": dict.fromkeys("abc")}], ["a", "b", "c"], 1),
    ):
        table: Any = Listed()
        withdrawn: list[str] = []
        table.names, table.others = ["a", "b", "c"], others
        table.errors.insert(0, RuntimeFailure(FailureClass.WRITE_CONFLICT, "lost"))
        with pytest.raises((RuntimeError, RuntimeFailure)):
            Expiry(table, lambda options: options, withdrawn.append).run(options)
        assert (table.deleted, len(table.errors)) == (deleted, left)
        assert withdrawn == ["100"] * (2 - left)


def test_the_limit_is_not_filled_with_what_others_write_to() -> None:
    """F500: the first partitions, always written, would keep all others for ever."""
    table: Any = Listed()
    table.names, table.others = ["a", "b", "c"], [{"partitionToWriteStats": {"a": [{}]}}]
    table.errors.insert(0, RuntimeFailure(FailureClass.WRITE_CONFLICT, "lost"))
    with pytest.raises(RuntimeError, match="enough"):
        Expiry(table, lambda options: options, lambda _: None).run({DAYS: "30", SINCE: LAST_WRITE, LIMIT: "1"})
    assert table.deleted == ["b"]


def test_what_was_deleted_and_written_since_the_partitions_were_listed_stays() -> None:
    """F472 with `since: Creation`: both have completed, and nobody has written its new age."""
    table: Any = Listed()
    created = {"p": ago(90)}
    deletions: list[dict[str, str]] = [{}, {"p": ago(0)}]
    table.deleted_partitions = lambda: deletions.pop(0)
    table.partition_created = created.__getitem__
    table.emptied = lambda some, instant: created.update(dict.fromkeys(some, instant))
    withdrawn: list[str] = []
    done = Expiry(table, lambda options: options, withdrawn.append).run({DAYS: "30", SINCE: CREATION, LIMIT: "9"})
    assert (done.result, table.deleted, withdrawn) == (Result.NOTHING_TO_DO, [], ["100"])
    assert not deletions


def test_a_partition_that_was_deleted_and_written_again_is_young() -> None:
    """F471: nobody has found it empty meanwhile."""
    created = {"again": ago(90), "since": ago(10), "old": ago(90)}
    table: Any = SimpleNamespace(
        partitions=lambda: list(created),
        live_partitions=lambda _: list(created),
        partition_created=created.__getitem__,
        deleted_partitions=lambda: {"again": ago(5), "since": ago(20), "folder/gone": ago(5)},
        emptied=lambda some, instant: created.update(dict.fromkeys(some, instant)),
    )
    expiry = Expiry(table, lambda options: options, lambda _: None)
    assert expiry._expired({}, {DAYS: "30", SINCE: CREATION}, now=NOW) == ["old"]
    assert created == {"again": ago(5), "since": ago(10), "old": ago(90)}
    created["again"] = ago(90)
    expiry.begun_anew()
    assert created == {"again": ago(5), "since": ago(10), "old": ago(90)}, "F480: before archival"


def test_which_partitions_a_commit_has_emptied() -> None:
    """Whatever its operation: an overwritten table loses those that the batch has no rows of."""
    stats = {"kept": [{"partitionPath": "kept", "fileId": "f2", "path": "kept/f2_1.parquet"}]}
    replaced = {"kept": ["f1"], "gone": ["f1"], "empty": []}
    metadata = {"partitionToWriteStats": stats, "partitionToReplaceFileIds": replaced}
    assert write_info({"operationType": "INSERT_OVERWRITE_TABLE", **metadata}).emptied == {"gone"}
    assert write_info({"operationType": "CLUSTER", **metadata}).emptied == set(), "F480: others have rows"
