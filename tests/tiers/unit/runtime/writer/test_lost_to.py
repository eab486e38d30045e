"""What a try that was refused is said to have lost to, and what the next one waits for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.process.session import Conflict
from hudi_runtime.writer.commit import Committer
from tests.support.world.thrown import Thrown

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
    assert refused._conflict(error, abandoned) == Conflict("".join(abandoned), "17", (), early=True)
