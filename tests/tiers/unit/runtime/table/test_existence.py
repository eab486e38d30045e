"""Whether there is a table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.table.hudi import Table


@pytest.mark.parametrize(
    ("names", "exists"),
    [
        ([], False),
        (["hoodie.properties"], True),
        (["hoodie.properties", "hoodie.properties.backup"], True),
        # F527: Hudi was ended between the deletion of the first and its new one
        (["hoodie.properties.backup"], True),
        (["hoodie.properties.crc"], False),
    ],
)
def test_a_table_has_properties_or_a_copy_of_them(names: list[str], *, exists: bool) -> None:
    table: Any = Table.__new__(Table)
    table.storage = SimpleNamespace(exists=lambda path: path.removeprefix(".hoodie/") in names)
    assert table.exists() is exists
