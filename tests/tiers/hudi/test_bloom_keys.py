"""An upsert finds what a bulk insert has written, in whatever letters its keys are (F102)."""

from __future__ import annotations

import pytest

from tests.support.harness.local import AGENT, Process, World

KEYS = ("\uff96", "\U00020bb7")
"""The first comes before the second by bytes of UTF-8, and after it by units of UTF-16."""
SCHEMA = "id string, p string, v string, ts long"


@pytest.mark.extra
def test_an_upsert_finds_keys_of_every_script(world: World, agent: Process) -> None:
    """The row writer of a bulk insert names the least and greatest key of a file by one order, and
    the index compares by the other one.
    """
    # A record that was not found is merged, if it happens to come into the file that has it
    no_small_files = {"hoodie.parquet.small.file.limit": "0"}
    table = world.table("scripts", index={"type": "Bloom"}, hudiOptions=no_small_files)
    world.create(table, agent=AGENT, process=agent)
    for operation, v, ts in (("bulk_insert", "old", 1), ("upsert", "new", 2)):
        batch = {"rows": [(key, "a", v, ts) for key in KEYS], "schema": SCHEMA}
        writer = table.writer(operation.replace("_", "-"), operation=operation, python={"batches": [batch]})
        assert writer.wait() == 0, writer.log()[-4000:]
    table.audited([(key, "a", "new", 2) for key in KEYS], schema=SCHEMA)
