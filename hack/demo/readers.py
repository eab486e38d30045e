"""The table as two independent readers see it: Spark with Hudi's own code, and hudi-rs without a JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from hudi import HudiTableBuilder

from demo import flights
from demo.lake import Lake
from demo.screen import DemoFailed


class SparkAnswers:
    """What one Spark session found: the table, the same by incremental pull, and the commits' metadata."""

    def __init__(self, lake: Lake, path: str, output: Path, *, seconds: float = 600) -> None:
        environment = dict(os.environ, AWS_ACCESS_KEY_ID=lake.access_key, AWS_SECRET_ACCESS_KEY=lake.secret_key, TZ="UTC")
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent.parent), environment.get("PYTHONPATH", "")])
        environment["PYSPARK_PYTHON"] = sys.executable
        environment.pop("SPARK_HOME", None)
        log = output / "spark.log"
        output.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            done = subprocess.run(
                [sys.executable, "-m", "demo.spark_read", lake.endpoint, path, str(output)],
                env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, timeout=seconds, cwd=output,
            )  # fmt: skip
        if done.returncode != 0:
            raise DemoFailed(f"Spark could not read the table, see {log}: {log.read_text(errors='replace').strip().splitlines()[-1:]}")
        self.commits: list[dict[str, Any]] = json.loads((output / "commits.json").read_text())
        self._output = output

    def snapshot(self) -> pd.DataFrame:
        return flights.normalized(pq.read_table(self._output / "snapshot", partitioning=None).to_pandas())

    def incremental(self) -> pd.DataFrame:
        return flights.normalized(pq.read_table(self._output / "incremental", partitioning=None).to_pandas())


def with_hudi_rs(lake: Lake, path: str) -> pd.DataFrame:
    """Snapshot by hudi-rs."""
    options = {
        "aws_endpoint": lake.endpoint,
        "aws_access_key_id": lake.access_key,
        "aws_secret_access_key": lake.secret_key,
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
        "aws_virtual_hosted_style_request": "false",
    }
    table = HudiTableBuilder.from_base_uri(f"s3://{path}").with_options(options).build()
    return flights.normalized(pa.Table.from_batches([pa.record_batch(batch) for batch in table.read()]).to_pandas())
