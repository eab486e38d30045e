"""The audit of a table from outside the cluster, in a process with its own Spark session (see
hudi_runtime.audit for the checks).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from demo.cluster import ROOT
from demo.lake import Lake
from demo.screen import DemoFailed


class TableAnswers:
    """Results of one Spark session: the audit's report, and the commits' metadata."""

    def __init__(
        self,
        lake: Lake,
        path: str,
        output: Path,
        *,
        expected: pd.DataFrame | None = None,
        keys: str = "",
        seconds: float = 600,
    ) -> None:
        """`expected`: the rows that the table must have.

        `keys`: its keys as `etcdctl get -w json` prints them.
        """
        environment = dict(
            os.environ, AWS_ACCESS_KEY_ID=lake.access_key, AWS_SECRET_ACCESS_KEY=lake.secret_key, TZ="UTC"
        )
        places = [str(ROOT), str(ROOT / "spark-images"), str(ROOT / "operator"), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(places)
        environment["PYSPARK_PYTHON"] = sys.executable
        environment.pop("SPARK_HOME", None)
        log = output / "spark.log"
        output.mkdir(parents=True, exist_ok=True)
        for name in ("expected.parquet", "keys.json", "audit.json"):
            (output / name).unlink(missing_ok=True)
        if expected is not None:
            expected.to_parquet(output / "expected.parquet", index=False)
        if keys:
            (output / "keys.json").write_text(keys)
        with log.open("wb") as out:
            done = subprocess.run(
                [sys.executable, "-m", "demo.spark_read", lake.endpoint, path, str(output)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                cwd=output,
            )
        if done.returncode != 0:
            raise DemoFailed(
                f"Spark could not read the table, see {log}: "
                f"{log.read_text(errors='replace').strip().splitlines()[-1:]}"
            )
        self.commits: list[dict[str, Any]] = json.loads((output / "commits.json").read_text())
        self.archived: list[dict[str, Any]] = json.loads((output / "archived.json").read_text())
        self.text = (output / "audit.txt").read_text()
        self._checks: list[dict[str, Any]] = json.loads((output / "audit.json").read_text())["checks"]

    @property
    def outcomes(self) -> dict[str, str]:
        """Outcome of each check: ok, violated, unknown, not asked."""
        return {check["name"]: check["outcome"] for check in self._checks}

    @property
    def checks(self) -> list[dict[str, Any]]:
        """The report's checks, as JSON."""
        return self._checks
