"""What readers of a MergeOnRead table have to merge (R58): by file names and the timeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hudi_contract.reports import ReadCost
from hudi_runtime.agent.read_cost import EVERY_SECONDS, Gauge, count
from hudi_runtime.services.tasks import Observation
from hudi_runtime.table import timeline as tl
from tests.support.world.agent_contexts import NOTHING


def t(number: int) -> str:
    return f"20260101000000{number:03d}"


def base(group: str, instant: int) -> str:
    return f"p/{group}-0_0-1-2_{t(instant)}.parquet"


def log(group: str, instant: int, version: int = 1) -> str:
    return f"p/.{group}-0_{t(instant)}.log.{version}_0-1-2"


def done(requested: int, completed: int, action: str = "deltacommit") -> str:
    return f"{t(requested)}_{t(completed)}.{action}"


TIMELINE = tl.parse(
    [done(1, 2), done(3, 4), done(5, 9), done(6, 7), f"{t(8)}.compaction.requested", done(8, 10, "commit")]
)


def test_logs_count_until_they_are_compacted() -> None:
    files = {base("f", 1): 100, log("f", 3): 10, log("f", 3, 2): 5, base("g", 1): 200, log("h", 3): 7}
    assert count(files, TIMELINE) == ReadCost(base_bytes=300, log_bytes=22, file_groups=3, file_groups_with_logs=2)
    files |= {base("f", 8): 120, base("h", 8): 9}
    assert count(files, TIMELINE) == ReadCost(base_bytes=329, log_bytes=0, file_groups=3, file_groups_with_logs=0)


def test_what_was_completed_after_the_plan_waits_for_the_next_one() -> None:
    """The commit of 5 began before the compaction of 8 was planned and ended after that.

    The one of 6 ended before.
    """
    files = {base("f", 1): 100, base("f", 8): 120, log("f", 5): 10, log("f", 6): 1}
    assert count(files, TIMELINE).log_bytes == 10


def test_archived_commits_and_replaced_file_groups() -> None:
    files = {
        base("f", 8): 100,
        f"p/.f-0_{t(0)}.log.1_0-1-2": 4,
        base("g", 1): 50,
        log("g", 3): 5,
        "p/.hoodie_partition_metadata": 9,
    }
    assert count(files, TIMELINE, replaced={("p", "g-0")}) == ReadCost(
        base_bytes=100, log_bytes=0, file_groups=1, file_groups_with_logs=0
    )
    assert count({f"f_0-1-2_{t(1)}.parquet": 3}, TIMELINE).base_bytes == 3, "without partitions"


class Table:
    path = "s3a://lake/t"

    def __init__(self) -> None:
        self.listings = 0
        self.files: dict[str, int] | None = {base("f", 1): 100, log("f", 3): 10}
        self.broken = False

    def metadata_files(self) -> dict[str, int] | None:
        self.listings += 1
        if self.broken:
            raise OSError("listing failed")
        return self.files


class Slot:
    free = True

    def start(self, run: Callable[[], None]) -> None:
        if self.free:
            run()


def test_it_is_counted_once_for_a_commit_and_not_too_often() -> None:
    table: Any = Table()
    now = [1000.0]
    slot: Any = Slot()
    gauge = Gauge(table, slot, clock=lambda: now[0])

    def consider(timeline: tl.Timeline) -> None:
        gauge.consider(Observation({}, NOTHING, timeline))

    consider(tl.Timeline())
    assert table.listings == 0, "nothing was committed"
    slot.free = False
    consider(TIMELINE)
    assert gauge.latest is None, "no place"
    slot.free = True
    consider(TIMELINE)
    assert gauge.latest == ReadCost(base_bytes=100, log_bytes=10, file_groups=1, file_groups_with_logs=1)
    now[0] += 10 * EVERY_SECONDS
    consider(TIMELINE)
    assert table.listings == 1, "nothing new"
    newer = tl.parse([done(11, 12)])
    table.broken = True
    consider(newer)
    assert (table.listings, gauge.latest) == (
        2,
        ReadCost(base_bytes=100, log_bytes=10, file_groups=1, file_groups_with_logs=1),
    ), "what was known stays"
    table.broken, table.files = False, None
    consider(newer)
    assert table.listings == 2, "not at once"
    now[0] += EVERY_SECONDS
    consider(newer)
    assert gauge.latest is None, "the table has no metadata table any more"
