"""The metadata table is changed while nobody writes: the gate is closed, writers finish, the agent
makes the change, writers go on (R16).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.api.fields import SpecError, read
from hudi_operator.api.metadata_table import MetadataTable
from hudi_operator.api.spec import TableSpec
from hudi_operator.manifests import hudi_conf
from tests.support.world.simulated_world import World, at_step, finished, ready_world

T1 = "20260101000000001"

OFF = {"enabled": False}


def shown(world: World) -> dict[str, Any]:
    return dict((world.table or {}).get("status", {}).get("metadataTable") or {})


def made(world: World) -> bool:
    return shown(world).get("outcome") == "Completed" and world.is_true(world.table, "Ready")


def test_a_table_that_says_nothing_is_left_as_it_is() -> None:
    for table in ({}, {"metadataTable": {}}, {"metadataTable": {"enabled": True, "indexes": []}}):
        world = ready_world(**table)
        world.settle_down()
        assert (shown(world), world.names("request")) == ({}, {})


def test_running_writers_finish_and_nobody_new_starts_before_the_change() -> None:
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("running")
    world.run(at_step("running", 3))
    assert world.table is not None
    world.edit(world.table, metadataTable=OFF)
    world.writer_hang_at = None
    world.make_writer("later")
    for _ in range(20):
        world.reconcile()
        world.tick()
    assert world.kv["gate"].value["state"] == "closed"
    assert shown(world) == {"wanted": "Off/", "outcome": "Pending"}
    assert not world.names("request"), "not asked for while a writer runs"
    assert world.condition(world.writers["later"], "Admitted")["reason"] == "TableMetadata"
    assert world.condition(world.table, "Ready")["reason"] == "MetadataTable"
    assert not any(name.startswith("later") for name in world.created)
    process = world.writer_process("running")
    assert process is not None
    process.hang_at = None
    world.run(made)
    assert shown(world)["partitions"] == []
    world.run(finished("later"))
    assert not world.names("request"), "the request goes when it is done"
    world.settle_down()


def test_nobody_starts_with_the_new_options_before_the_change() -> None:
    """The gate is still open when the spec changes: a writer that came in that very moment would
    keep up another metadata table than the others.
    """
    world = ready_world()
    world.make_writer("quick", suspend=True)
    for _ in range(5):
        world.reconcile()
        world.tick()
    assert world.table is not None
    world.edit(world.table, metadataTable=OFF)
    world.edit(world.writers["quick"], suspend=False)
    world.reconcile()
    assert not any("quick" in name for name in world.names("admit"))
    assert not any(name.startswith("quick") for name in world.created)
    world.run(lambda w: made(w) and finished("quick")(w))


def test_a_change_that_waits_is_not_the_one_before_it() -> None:
    """Of a table that is suspended: nobody may take it for completed."""
    world = ready_world(metadataTable=OFF)
    world.run(made)
    assert world.table is not None
    world.edit(world.table, suspend=True)
    world.settle_down()
    world.edit(world.table, metadataTable={"rebuild": "1"})
    world.settle_down()
    told = shown(world)
    assert told["wanted"].endswith("/1")
    assert told["outcome"] == "Pending"


@pytest.mark.parametrize("before", [{}, {"metadataTable": {"rebuild": "1"}}])
def test_another_word_makes_it_anew_once(before: dict[str, Any]) -> None:
    world = ready_world(**before)
    for word in ("2", "3"):
        assert world.table is not None
        world.edit(world.table, metadataTable={"rebuild": word})
        world.run(lambda w, word=word: made(w) and w.kv["done/metadata"].value["nonce"].endswith(f"/{word}"))
    at = world.kv["done/metadata"].mod
    world.settle_down()
    assert world.kv["done/metadata"].mod == at


def test_saying_nothing_again_brings_the_default_back() -> None:
    world = ready_world(metadataTable=OFF)
    world.run(made)
    assert world.table is not None
    world.edit(world.table, metadataTable=None)
    world.run(lambda w: w.kv["done/metadata"].value["nonce"] == MetadataTable().nonce and made(w))


def test_a_change_that_fails_keeps_writers_away_and_says_why() -> None:
    world = ready_world()
    world.metadata_error = "the store has failed"
    assert world.table is not None
    world.edit(world.table, metadataTable={"indexes": ["ColumnStats"]})
    world.run(lambda w: shown(w).get("outcome") == "Failed")
    world.reconcile()
    assert world.kv["gate"].value["state"] == "closed"
    assert "1 failures, the last one: the store has failed" in world.condition(world.table, "Ready")["message"]
    world.metadata_error = ""
    world.run(made)


def test_the_operator_may_die_in_it_anywhere() -> None:
    world = ready_world()
    world.make_writer("first")
    world.run(finished("first"))
    assert world.table is not None
    world.edit(world.table, metadataTable=OFF)
    world.run(made, crash_every=2)


def test_what_cannot_be_wanted() -> None:
    with pytest.raises(SpecError, match=r"spec\.metadataTable\.indexes: 'RecordIndex' must be one of ColumnStats"):
        read(MetadataTable, {"indexes": ["RecordIndex"]}, "spec.metadataTable")
    assert read(MetadataTable, {"indexes": []}, "spec.metadataTable").indexes == ()


def test_every_writer_is_told() -> None:
    def options(raw: dict[str, Any] | None) -> dict[str, str]:
        spec = {"path": "s3a://lake/t", "recordKeyFields": ["id"], **({} if raw is None else {"metadataTable": raw})}
        table = TableSpec.from_object(
            {"kind": "HudiTable", "metadata": {"namespace": "lake", "name": "t"}, "spec": spec}
        )
        return {
            key.removeprefix("hoodie.metadata."): value
            for key, value in hudi_conf.hudi_defaults(table).items()
            if "hoodie.metadata." in key
        }

    keeps = {"auto.delete.partitions": "false"}
    assert options(OFF) == {
        **keeps,
        "enable": "false",
        "index.column.stats.enable": "false",
        "index.partition.stats.enable": "false",
    }
    stats = {"indexes": ["ColumnStats"]}
    assert options(stats) == {
        **keeps,
        "enable": "true",
        "index.column.stats.enable": "true",
        "index.partition.stats.enable": "true",
    }
    for nothing in (None, {}, {"indexes": []}):  # F104
        assert options(nothing) == {
            **keeps,
            "enable": "true",
            "index.column.stats.enable": "false",
            "index.partition.stats.enable": "false",
        }


def test_the_example_is_what_it_says() -> None:
    path = Path(__file__).resolve().parents[5] / "examples" / "services" / "indexed.yaml"
    table = TableSpec.from_object(yaml.safe_load(path.read_text()))
    assert table.metadata_table is not None
    assert table.metadata_table.nonce == "Files/2026-11-22"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"metadataTable": OFF}, "MetadataTable"),
        ({"savepoints": [{"name": "a"}]}, "Savepoint"),
        ({"restore": {"savepoint": "a", "nonce": "1"}}, "Restore"),
    ],
)
def test_a_service_that_fails_for_good_is_named(change: dict[str, Any], reason: str) -> None:
    """F434: the change waits for the agent's own compaction, and writers wait for the change."""
    world = ready_world()
    inc = next(iter(world.names("writer")))
    world.put(f"instant/{T1}", {"inc": inc, "action": "compaction", "state": "Pending"})
    world.put(
        "done/service-compaction",
        {"service": "compaction", "result": "Failed", "failures": 7, "message": "no class Merger", "inc": inc},
    )
    assert world.table is not None
    world.edit(world.table, **change)
    for _ in range(5):
        world.reconcile()
    ready = world.condition(world.table, "Ready")
    assert ready["reason"] == reason
    expected = f"the compaction {T1} is pending (7 failures, the last one: no class Merger)"
    assert ready["message"].endswith(expected)
