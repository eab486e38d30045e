"""The plain dataset of a bootstrap: it is read and checked before anything of the table is written.

Hudi would find these errors in the middle of its write, or never (two rows with one key). Here they
are reported with names and numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession, functions

from hudi_contract.outcomes import FailureClass
from hudi_contract.words import BootstrapFormat
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError, classify, user_error
from hudi_runtime.table import values
from hudi_runtime.table.storage import Storage

SHOWN = 3
"""Number of examples in a message."""
HUDI_COLUMNS = "_hoodie_"


@dataclass(frozen=True)
class Dataset:
    """The rows of the dataset; `rows` is their number."""

    frame: DataFrame
    rows: int


def read(spark: SparkSession, spec: TableSpec, path: str, format: str) -> Dataset:
    """Read and check a dataset.

    Raises RuntimeFailure: UserError when a person must correct something, else the class
    of the failure.
    """
    if format != BootstrapFormat.PARQUET:
        raise UserCodeError(f"format {format} is not supported, only {BootstrapFormat.PARQUET}")
    if Storage(spark, path).exists(".hoodie"):
        raise UserCodeError(
            f"{path} is a Hudi table, not a plain dataset: adopt it, or read it by a HudiWriter with source.hudi"
        )
    # A separate session, so that these settings affect no other table.
    own = spark.newSession()
    # Otherwise month=02 would become the number 2, and name another partition.
    own.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    try:
        # Otherwise Spark would take the columns of one file for those of all files.
        frame = own.read.option("mergeSchema", "true").parquet(path)
        said = problems(spec, frame.columns)
        if said:
            raise UserCodeError(f"{path}: {'; '.join(said)}")
        held = values.held(frame, spec)
        return Dataset(held, _count(held, spec, path))
    except Exception as error:
        raise user_error(error, path) from error


def problems(spec: TableSpec, columns: Sequence[str]) -> list[str]:
    """One sentence for each column of the dataset that is missing or must not be there.

    A column is missing when the table needs it and the dataset lacks it.
    """
    said = []
    for field, names in (
        ("recordKeyFields", spec.record_keys),
        ("partitionFields", spec.partitions),
        ("orderingFields", spec.ordering),
    ):
        missing = [name for name in names if name not in columns]
        if missing:
            said.append(f"{field}: no column {', '.join(missing)}; there are {', '.join(columns)}")
    hudi = [name for name in columns if name.startswith(HUDI_COLUMNS)]
    if hudi:
        said.append(f"column {hudi[0]} is reserved for Hudi: files of a Hudi table are not a plain dataset")
    return said


def _count(frame: DataFrame, spec: TableSpec, path: str) -> int:
    """Number of rows.

    Raises UserCodeError when there are none, or two rows of a partition have one key. Rows that the
    table cannot hold, such as those without a key, end the count (`values.held`).
    """
    groups = frame.groupBy(
        *(functions.col(f"`{name}`") for name in dict.fromkeys((*spec.partitions, *spec.record_keys)))
    ).count()
    found = groups.agg(
        functions.sum("count").alias("rows"),
        functions.expr("sum(if(count > 1, 1, 0))").alias("doubled"),
    ).first()
    rows, doubled = (int(found[name] or 0) for name in ("rows", "doubled")) if found is not None else (0, 0)
    if not rows:
        raise UserCodeError(f"{path} holds no rows: leave spec.bootstrap out, and the table begins empty")
    if doubled:
        examples = [
            " ".join(str(row[name]) for name in spec.record_keys)
            for row in groups.filter("count > 1").orderBy(*groups.columns).take(SHOWN)
        ]
        raise UserCodeError(
            f"{path}: {doubled} keys occur in more than one row of a partition ({', '.join(examples)}): a record must "
            "have one row"
        )
    return rows


def of_the_dataset(error: Exception) -> bool:
    """Whether a person must correct the dataset or the spec."""
    kind = classify(error).kind
    return kind is FailureClass.BAD_DATA or (
        isinstance(error, RuntimeFailure) and kind in (FailureClass.USER_ERROR, FailureClass.SCHEMA_MISMATCH)
    )
