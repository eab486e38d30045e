"""The partitions that a HudiWriter has declared (`spec.partitions`).

A batch with rows in other partitions is refused (R42).

They are checked twice: before the instant is begun, so that a refusal leaves nothing behind, and in
the written rows, because a source may return other rows when Spark computes the batch again.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, functions

from hudi_contract.outcomes import ErrorCode, FailureClass
from hudi_runtime.job.job import Job
from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.table.values import NO_VALUE, PARTITION_KINDS, nowhere

SHOWN = 5


def held(frame: DataFrame, job: Job) -> DataFrame:
    """The batch with a check that fails at a row of another partition.

    Raises RuntimeFailure(PartitionNotDeclared) when the batch has one now.
    """
    fields = job.table.partitions
    if not job.partitions or any(name.split(".")[0] not in frame.columns for name in fields):
        return frame  # a batch without a partition column is refused later, for the missing column
    _check_types(frame, fields)
    path = functions.concat_ws("/", *(value(name) for name in fields))
    declared = path.rlike(expression(job.partitions))
    stray = frame.where(~declared).select(path.alias("path")).limit(1).collect()
    if stray:
        raise RuntimeFailure(FailureClass.PARTITION_NOT_DECLARED, refusal(str(stray[0]["path"]), job.partitions))
    told = functions.concat(
        functions.lit(f"[{ErrorCode.PARTITION}] partition "),
        path,
        functions.lit(refusal("", job.partitions).removeprefix("partition ")),
        nowhere(),
    )
    return frame.where(
        functions.when(declared, functions.lit(True)).otherwise(functions.raise_error(told).cast("boolean"))
    )


def refusal(path: str, patterns: Sequence[str]) -> str:
    """The error message for a row in partition `path`."""
    more = f" and {len(patterns) - SHOWN} more" if len(patterns) > SHOWN else ""
    return (
        f"partition {path}: the batch has rows in it, but spec.partitions of the HudiWriter declares only "
        f"{', '.join(patterns[:SHOWN])}{more}"
    )


def expression(patterns: Sequence[str]) -> str:
    """A Java regular expression for paths that match one of the patterns."""
    return (
        r"(?s)\A(?:"
        + "|".join("".join(_REGEX.get(c, c if c.isalnum() else f"\\x{{{ord(c):x}}}") for c in p) for p in patterns)
        + r")\z"
    )


_REGEX = {"*": ".*", "?": "."}


def _check_types(frame: DataFrame, fields: Sequence[str]) -> None:
    schema = frame.select([functions.col(name) for name in fields]).schema
    for name, field in zip(fields, schema.fields, strict=True):
        if not isinstance(field.dataType, PARTITION_KINDS):
            rule = "spec.partitions needs partition columns of text, whole numbers, booleans or dates"
            raise RuntimeFailure(
                FailureClass.PARTITION_NOT_DECLARED, f"column {name}: it is {field.dataType.simpleString()}; {rule}"
            )


def value(name: str) -> Column:
    """The value as in the partition path, without the field name."""
    text = functions.col(name).cast("string")
    return functions.when(text.isNull() | (text == ""), functions.lit(NO_VALUE)).otherwise(text)
