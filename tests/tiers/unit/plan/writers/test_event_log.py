"""Where Spark's event log of a writer may be (F208)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_operator.api.spec import WriterSpec
from hudi_operator.model.config import OperatorConfig
from hudi_operator.plan.core.view import build_view
from hudi_operator.plan.writers import event_log
from tests.support.world.simulated_store import CONFIG, NAMESPACE
from tests.support.world.simulated_world import World, finished, ready_world

CLOSED = OperatorConfig(path_prefixes={NAMESPACE: ("s3a://lake/",)})
BRONZE = {"hudi": {"tableRef": {"name": "bronze"}}}


def problem(folder: str, *, name: str = "spark.eventLog.dir") -> str:
    """Of a writer of the table s3a://lake/flights that reads s3a://lake/bronze."""
    world = World()
    world.make_table()
    world.make_writer("load", source=BRONZE, sparkConf={name: folder})
    world.sources["bronze"] = world._object(
        "HudiTable", "bronze", {"path": "s3a://lake/bronze", "recordKeyFields": ["a"]}
    )
    return event_log.problem(build_view(world.observe(), CLOSED), WriterSpec.from_object(world.writers["load"]))


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("s3a://lake/log", ""),
        ("s3://lake/log/", ""),
        ("s3://lake//log/", "must not contain '//' after the bucket or host"),
        ("s3a://lake/flights2", ""),
        ("s3a://lake/flights", "overlaps with the folder of HudiTable flights"),
        ("s3a://lake/flights/.hoodie", "overlaps with the folder of HudiTable flights"),
        ("s3://lake/flights/x", "overlaps with the folder of HudiTable flights"),
        ("s3a://lake/bronze/x", "overlaps with the folder of HudiTable bronze"),
        ("s3a://other/log", "not below a prefix that namespace lake may use"),
        ("s3a://lake/a/../../other", "must not contain '.' or '..'"),
        ("s3a://lake/{log,x}", "has a character other than"),
        ("s3a://user:word@lake/log", "credentials in the path are not allowed"),
        (" s3a://lake/log", "must not begin or end with white space"),
        ("file:///tmp/spark-events", "scheme file is not allowed"),
        ("/tmp/spark-events", "scheme (none) is not allowed"),
        ("", "scheme (none) is not allowed"),
    ],
)
def test_folders(folder: str, message: str) -> None:
    found = problem(folder)
    assert message in found
    assert bool(found) is bool(message)
    assert not found or found.startswith("spec.sparkConf['spark.eventLog.dir']: ")


@pytest.mark.parametrize(
    ("tables", "whose"), [(("lake/other",), "HudiTable other"), (("secret/t", "lake/x"), "HudiTable x"),
                          (("secret/t",), "another HudiTable")]
)  # fmt: skip
def test_the_folder_of_any_table(tables: tuple[str, ...], whose: str) -> None:
    """F270: of tables that the writer neither writes nor reads too, whoever has them."""
    world = ready_world()
    world.make_writer("load", sparkConf={"spark.eventLog.dir": "s3a://log/all"})
    seen = replace(world.observe(), tables_at_event_logs={"s3a://log/all": tables})
    found = event_log.problem(build_view(seen, CONFIG), WriterSpec.from_object(world.writers["load"]))
    assert found == (
        f"spec.sparkConf['spark.eventLog.dir']: s3a://log/all overlaps with the folder of {whose}; "
        "it is for the table's files alone"
    )


def test_however_the_setting_is_spelled() -> None:
    assert "not below a prefix" in problem("s3a://other/log", name="Spark.EventLog.Dir")


def test_a_refused_folder_stalls_the_writer() -> None:
    world = ready_world()
    world.make_writer("load", sparkConf={"spark.eventLog.dir": "s3a://lake/flights/log"})
    world.run(lambda w: w.is_true(w.writers["load"], "Stalled"))
    stalled = world.condition(world.writers["load"], "Stalled")
    assert stalled["reason"] == "PathNotAllowed"
    assert stalled["message"].startswith("spec.sparkConf['spark.eventLog.dir']: ")
    world.edit(world.writers["load"], sparkConf={"spark.eventLog.dir": "s3a://log/flights"})
    world.run(finished("load"))
