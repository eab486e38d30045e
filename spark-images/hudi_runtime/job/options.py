"""Hudi options of one write, and the refusal of options that belong to the operator.

The operator has applied the same rules (hudi_contract/options.py) at admission; they are applied
again here because a job may come from an older operator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import types

from hudi_contract import metadata
from hudi_contract.options import writer_rule
from hudi_contract.words import Duplicates, Operation
from hudi_runtime.job.job import Job, TableSpec
from hudi_runtime.process.errors import OptionNotAllowed

ROW_WRITER = "hoodie.datasource.write.row.writer.enable"


def check_allowed(options: Mapping[str, str]) -> None:
    """Raise OptionNotAllowed for the first key that a writer may not set.

    Case, spaces and a `spark.` prefix make no difference.
    """
    for key in options:
        name = "".join(key.split()).lower().removeprefix("spark.")
        if not name.startswith("hoodie.") or writer_rule(name) is not None:
            raise OptionNotAllowed(key)


def table_options(table: TableSpec) -> dict[str, str]:
    """Options that identify the table; the same for every write."""
    options = {
        "hoodie.table.name": table.name,
        "hoodie.datasource.write.table.type": table.type,
        "hoodie.datasource.write.recordkey.field": ",".join(table.record_keys),
        "hoodie.datasource.write.partitionpath.field": ",".join(table.partitions),
        "hoodie.datasource.write.hive_style_partitioning": str(table.hive_style).lower(),
    }
    if table.ordering:
        options["hoodie.table.ordering.fields"] = ",".join(table.ordering)
    return options


def write_options(
    job: Job, *, inc: str, progress: Mapping[str, object], progress_base: str, schema_base: str
) -> dict[str, str]:
    """All options of one commit.

    `progress_base` is the completion time up to which the timeline was read (`0`: empty), see F5.

    `schema_base` is the completion time up to which commits had been made when the table's schema
    was read.
    """
    return {
        **_common(job, schema_base=schema_base),
        "hoodie.datasource.write.operation": "insert_overwrite"
        if job.operation == Operation.REMOVE_DUPLICATES
        else job.operation,
        **_duplicates(job),
        "hoodie.write.lock.etcd.progress_writer": job.writer,
        "hoodie.write.lock.etcd.progress_base": progress_base,
        **commit_metadata(job, inc=inc, progress=progress),
    }


def _duplicates(job: Job) -> dict[str, str]:
    """Hudi's three options for duplicates.

    The runtime does the lookup; only with Allow, rows packed into small files do not merge with
    rows of equal key.
    """
    if not job.adds:
        return {}
    return {
        # The batch has each key once, or may have it twice: nothing is left for Hudi to do.
        "hoodie.combine.before.insert": job.options.get("hoodie.combine.before.insert", "false"),
        "hoodie.merge.allow.duplicate.on.inserts": str(job.duplicates == Duplicates.ALLOW).lower(),
        "hoodie.datasource.insert.dup.policy": "none",
        "hoodie.datasource.write.insert.drop.duplicates": "false",
    }


def key_options(schema: types.StructType, keys: Sequence[str]) -> dict[str, str]:
    """Options for a bulk insert of rows with this schema.

    With them it gives each record the same key as an upsert.

    Hudi's row writer derives the key of a timestamp from its text, without fractions of a second;
    all other writes derive it from its number (F92).
    """
    return (
        {ROW_WRITER: "false"}
        if any(isinstance(_type(schema, name), (types.TimestampType, types.TimestampNTZType)) for name in keys)
        else {}
    )


def _type(schema: types.StructType, name: str) -> types.DataType | None:
    """Type of a column, or of a field inside one; None: there is none with that name."""
    found: types.DataType | None = schema
    for part in name.split("."):
        found = found[part].dataType if isinstance(found, types.StructType) and part in found.fieldNames() else None
    return found


def schema_options(job: Job, *, inc: str, schema_base: str) -> dict[str, str]:
    """All options of a commit without rows that only changes the table's schema."""
    return {
        **_common(job, schema_base=schema_base),
        "hoodie.datasource.write.operation": "upsert",
        **commit_metadata(job, inc=inc, progress=None),
    }


def _common(job: Job, *, schema_base: str) -> dict[str, str]:
    check_allowed(job.options)
    return {**job.options, **table_options(job.table), "hoodie.write.lock.etcd.schema_base": schema_base}


def commit_metadata(job: Job, *, inc: str, progress: Mapping[str, object] | None) -> dict[str, str]:
    """Options that put writer, attempt, incarnation and progress into the commit's metadata."""
    said = {
        "hoodie.datasource.write.commitmeta.key.prefix": metadata.PREFIX,
        metadata.WRITER: job.writer,
        metadata.ATTEMPT: job.attempt,
        metadata.INC: inc,
    }
    if progress is not None:
        said[metadata.PROGRESS] = json.dumps(progress, sort_keys=True, separators=(",", ":"))
    return said
