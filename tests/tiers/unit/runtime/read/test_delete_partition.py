"""Which names of partitions Hudi takes for themselves."""

from __future__ import annotations

import pytest

from hudi_runtime.process.errors import UserCodeError
from hudi_runtime.read import delete_partition


def test_a_name_that_hudi_takes_for_others_is_refused() -> None:
    """F492: its pattern is `(\\*|%2A)`; letters of a code in lower case are none."""
    plain = ["day=2024-01-01", "a%2a", "a%2Fb", "2A"]
    assert delete_partition.exact(plain) == plain
    for name in ("a,b", "a*", "day=%2A", "a%2Ab"):
        with pytest.raises(UserCodeError, match=r"partition .*: Hudi takes a comma"):
            delete_partition.exact(["a", name])
