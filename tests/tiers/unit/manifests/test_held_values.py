"""What processes are told so that no value makes trouble: where their files belong, how arrays are
written (F39, F41).
"""

from __future__ import annotations

from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.manifests import hudi_conf, spark_conf
from hudi_operator.model.config import OperatorConfig

CONFIG = OperatorConfig()
GUARD = "spark.hadoop.hudi.operator.guard.path"


def table(**spec: object) -> TableSpec:
    body = {"path": "s3a://lake/flights", "recordKeyFields": ["id"], **spec}
    return TableSpec.from_object(
        {"kind": "HudiTable", "metadata": {"namespace": "ns", "name": "flights", "uid": "t-uid"}, "spec": body}
    )


WRITER = WriterSpec.from_object(
    {
        "kind": "HudiWriter",
        "metadata": {"namespace": "ns", "name": "w", "uid": "w-uid"},
        "spec": {"tableRef": {"name": "flights"}, "sparkConf": {GUARD: "s3a://lake/elsewhere"}},
    }
)


def test_executors_know_which_table_their_files_belong_to() -> None:
    """A writer's own settings cannot say otherwise.

    An agent of many tables has no executors, and knows its tables by its sessions.
    """
    assert spark_conf.spark_defaults(table(), WRITER, 1, CONFIG)[GUARD] == "s3a://lake/flights"
    assert spark_conf.agent_defaults(table(agent={}), CONFIG)[GUARD] == "s3a://lake/flights"
    assert GUARD not in spark_conf.agent_defaults(table(), CONFIG)


def test_everybody_writes_arrays_that_may_hold_null() -> None:
    for settings in (spark_conf.spark_defaults(table(), WRITER, 1, CONFIG), spark_conf.agent_defaults(table(), CONFIG)):
        assert settings["spark.hadoop.parquet.avro.write-old-list-structure"] == "false"


def test_a_row_that_cannot_be_written_fails_the_write() -> None:
    assert hudi_conf.common_defaults()["hoodie.writestatus.class"] == "io.hudioperator.FailFastWriteStatus"


def test_no_file_names_a_class_to_its_reader() -> None:
    """F323: what it does to Parquet's reader is shown by ParquetClassesTest."""
    for settings in (spark_conf.spark_defaults(table(), WRITER, 1, CONFIG), spark_conf.agent_defaults(table(), CONFIG)):
        assert settings["spark.hadoop.parquet.avro.data.supplier"] == "org.apache.parquet.avro.GenericDataSupplier"


def test_everybody_writes_dates_as_they_are_and_says_so() -> None:
    """Through Avro (upserts, compaction) and as rows (bulk inserts)."""
    common = hudi_conf.common_defaults()
    assert common["hoodie.avro.write.support.class"] == "io.hudioperator.DatedWriteSupport"
    assert common["hoodie.parquet.spark.row.write.support.class"] == "io.hudioperator.InsertedRowWriteSupport"
    for settings in (spark_conf.spark_defaults(table(), WRITER, 1, CONFIG), spark_conf.agent_defaults(table(), CONFIG)):
        assert (
            settings["spark.sql.parquet.datetimeRebaseModeInWrite"]
            == settings["spark.sql.parquet.int96RebaseModeInWrite"]
            == "CORRECTED"
        )
