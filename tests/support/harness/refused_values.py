"""Values of a partition that no table can hold, and the messages about them to a writer."""

from __future__ import annotations

from typing import Any

from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process.errors import classify
from hudi_runtime.table import values

NO_PATHS = {
    "a//b": "//",
    "/abs": "//",
    "a/": "//",
    ".": "dot",
    "..": "dot",
    "../victim/a": "dot",
    "a/../b": "dot",
    ".hoodie/metadata/files": "dot",
    "s3a://lake/victim/a": "//",
    "x:y": "colon",
    "x=y": "equals",
    "a\\b": "backslash",
    "a\nb": "control",
    "a%41": "hexadecimal",
    "": "empty",
    "__HIVE_DEFAULT_PARTITION__": "name of the partition for null",
    "x" * 201: "200 bytes",
    "ü" * 101: "200 bytes",
    "/".join(["x" * 150] * 4): "500 bytes",
}
SPEC = TableSpec("id", "ns/t", "t", "s3a://lake/t", "MERGE_ON_READ", ("id",), ("p",), ("ts",), False)
SCHEMA = "id string, p string, v string, ts long"


def refusal(frame: Any, spec: TableSpec = SPEC, *, kafka: bool = False) -> str:
    """Message that refuses the batch; empty: it is accepted. `kafka`: it comes from topics."""
    try:
        values.held(frame, spec, kafka=kafka).write.format("noop").mode("overwrite").save()
    except Exception as error:
        failure = classify(error)
        assert failure.kind is FailureClass.BAD_DATA, failure
        return failure.message
    return ""
