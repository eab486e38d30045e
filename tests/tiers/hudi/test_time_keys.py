"""A bulk insert gives a record whose key has a timestamp the key that an upsert gives it (F92)."""

from __future__ import annotations

import pytest

from tests.support.harness.local import AGENT, Process, World, rows

MICROS = 1_704_103_200_000_000
BATCH = rows([1, 2, 3], "a", "old", 1)
TIMED = f"SELECT timestamp_micros({MICROS} + id) AS seen, p, v, ts FROM source"


@pytest.mark.extra
def test_a_bulk_insert_makes_the_key_of_an_upsert(world: World, agent: Process) -> None:
    """The row writer of Hudi takes a timestamp's text without fractions of a second: records fell
    together, and an upsert did not find them.
    """
    table = world.table("time-keys", recordKeyFields=["seen"])
    world.create(table, agent=AGENT, process=agent)
    bulk = table.writer("bulk", operation="bulk_insert", python={"batches": [{"rows": BATCH}]}, transform=TIMED)
    assert bulk.wait() == 0, bulk.log()[-4000:]
    upsert = table.writer(
        "upsert",
        python={"batches": [{"rows": [(number, p, "new", 2) for number, p, _, _ in BATCH[:2]]}]},
        transform=TIMED,
    )
    assert upsert.wait() == 0, upsert.log()[-4000:]
    found = world.spark().read.format("hudi").load(table.path).select("_hoodie_record_key", "v").collect()
    assert sorted((row["_hoodie_record_key"], row.v) for row in found) == [
        (str(MICROS + 1), "new"),
        (str(MICROS + 2), "new"),
        (str(MICROS + 3), "old"),
    ]
