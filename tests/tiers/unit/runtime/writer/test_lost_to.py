"""What a try that was refused is said to have lost to, and what the next one waits for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.process.session import Conflict
from hudi_runtime.read.progress import Progress
from hudi_runtime.read.sources import Batch
from hudi_runtime.read.update import Base
from hudi_runtime.writer.commit import Committer
from tests.support.world.played_committer import Play
from tests.support.world.thrown import MOVED, Thrown

HUDI = "org.apache.hudi.exception"
SERVICE = (
    "Failed to drop partitions. Please ensure that there are no pending table service actions (clustering/compaction) "
    "for the partitions to be deleted: [a, b]. Instant(s) of offending pending table service action: [17, 18]"
)


class Refused(Committer):
    """A committer whose session has had a conflict before."""

    def __init__(self, last: Conflict | None = None) -> None:
        self._session: Any = SimpleNamespace(last_conflict=lambda: last)
        self._table: Any = SimpleNamespace(columns=lambda: (None, ""))
        self._fitted_to = None


@pytest.mark.parametrize("abandoned", [["19"], []])
def test_a_deletion_of_partitions_waits_for_the_service_that_rewrites_them(abandoned: list[str]) -> None:
    """F486: Hudi deletes no partition that a pending compaction or clustering rewrites."""
    refused, error = Refused(), Thrown(f"{HUDI}.HoodieDeletePartitionPendingTableServiceException", SERVICE)
    assert refused._is_conflict(error)
    assert refused._conflict(error, abandoned, None) == Conflict("".join(abandoned), "17", (), early=True)


def test_a_look_up_that_was_refused_has_lost_to_nobody() -> None:
    """F489: the conflict of another try, an hour ago, is none of this one."""
    hour_ago = Conflict("3", "2", ("p/f",), yielded=True)
    assert Refused(hour_ago)._conflict(MOVED, [], hour_ago) == Conflict("", "", ())
    met = Conflict("19", "18", ("p/g",))
    assert Refused(met)._conflict(MOVED, ["19"], hour_ago) == met
    assert Refused(met)._conflict(MOVED, [], hour_ago) == met
    assert Refused(met)._conflict(MOVED, ["20"], hour_ago) == Conflict("20", "", ())


def test_rows_of_the_table_stay_right_when_a_look_up_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """F489: only the look-up is repeated. With an instant it was the commit that was refused."""
    frame: Any = SimpleNamespace()
    batch = Batch(frame, {}, "d", Progress(), base=Base("4", "1"))
    assert Play(monkeypatch, ["lost", "done"], retries=3, began=False).commit(batch, base="") == "later"
    with pytest.raises(RuntimeFailure, match="the next attempt calls the function again"):
        Play(monkeypatch, ["lost", "done"], retries=3).commit(batch, base="")
