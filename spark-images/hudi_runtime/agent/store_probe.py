"""Check a table's store before the table is used (F61, docs/operate/stores.md).

The checks are in the Java module's StoreProbe.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from hudi_contract.words import AgentError
from hudi_runtime.agent.adoption import NotAdopted


def require(spark: SparkSession, path: str, *, exists: bool) -> None:
    """Raise NotAdopted (StoreUnfit) with each property that the store at `path` lacks.

    Raise the store's own error when it does not answer.
    """
    context: Any = spark.sparkContext
    missing = [
        str(sentence)
        for sentence in context._jvm.io.hudioperator.StoreProbe.missing(path, context._jsc.hadoopConfiguration())
    ]
    if missing:
        raise NotAdopted(
            AgentError.STORE_UNFIT,
            f"the store of {path} lacks properties that a table needs: {'; '.join(missing)}",
            exists=exists,
        )
