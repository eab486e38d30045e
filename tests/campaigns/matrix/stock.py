"""The same workload with plain Hudi settings: one writer, no lock, inline services, eager cleaning
of failed writes.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_runtime.audit import rows
from hudi_runtime.table import timeline as tl
from tests.campaigns.matrix.setup import LIMIT, Setup
from tests.campaigns.matrix.workload import CLEANED, COMPACTED, LOST, REST, Row, Work
from tests.support import CACHE
from tests.support.harness.class_archive import BUNDLE, S3_JARS
from tests.support.harness.local import PLAIN_SPARK, SHORT_LIVED, Process, until
from tests.support.harness.stock import StockWriter
from tests.support.harness.stock_tables import OPTIONS


def options(setup: Setup) -> dict[str, str]:
    """Plain settings with what the test is about."""
    cell = setup.cell
    found = {
        **OPTIONS,
        "hoodie.table.name": "stock",
        "hoodie.datasource.write.table.type": {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[cell.kind],
        "hoodie.clean.failed.writes.policy": "EAGER",
        "hoodie.metadata.enable": str(cell.test.metadata).lower(),
        "hoodie.metadata.compact.max.delta.commits": "2",
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.upsert.shuffle.parallelism": "2",
    }
    if cell.kind == "mor":
        found |= {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "3"}
    return found | ({"hoodie.clean.async.enabled": "true"} if cell.test.async_clean else {})


@dataclass
class Stock:
    """The stock table; its writers run on a thread beside ours."""

    setup: Setup
    job: Work
    path: str
    folder: Path
    failure: BaseException | None = None
    thread: threading.Thread | None = None

    def _writer(self, number: int, skip: int) -> Process:
        jars = ":".join(str(CACHE / "jars" / jar) for jar in (BUNDLE, *S3_JARS))
        spark = {**PLAIN_SPARK, "spark.driver.extraClassPath": jars, "spark.driver.extraJavaOptions": SHORT_LIVED}
        if self.setup.cell.storage == "s3":
            spark |= {f"spark.hadoop.{key}": value for key, value in self.setup.world.s3_settings().items()}
        job = {"path": self.path, "batches": self.job.one, "skip": skip, "options": options(self.setup), "spark": spark}
        made = StockWriter(
            f"stock-{number}",
            self.setup.folder / "stock" / str(number),
            job,
            module="tests.campaigns.matrix.stock_writer",
        )
        return self.setup.world.child(made)

    def play(self) -> None:
        """One writer dies in its write, the next one goes on where it was."""
        try:
            gates = f"{self.setup.folder}/stock-gate-"
            lost = next(number for number, batch in enumerate(self.job.one) if batch.get("gate") == f"{gates}{LOST}")
            for gate in (REST, COMPACTED, CLEANED):
                Path(f"{gates}{gate}").touch()
            first = self._writer(1, 0)
            until("the stock write is inflight", Path(f"{gates}{LOST}.reached").exists, alive=first, timeout=LIMIT)
            first.kill()
            Path(f"{gates}{LOST}").touch()
            second = self._writer(2, lost)
            assert second.wait(LIMIT) == 0, second.log()[-4000:]
        except BaseException as error:
            self.failure = error

    def same(self, expected: list[Row]) -> str:
        """The two tables have the same rows, and the stock one was archived, too."""
        assert self.thread is not None
        self.thread.join()
        if self.failure is not None:
            raise AssertionError(f"the stock side: {self.failure}") from self.failure
        timeline = self.folder / ".hoodie" / "timeline"
        assert any((timeline / "history").glob("*.parquet")), "stock Hudi has archived"
        assert not tl.parse(path.name for path in timeline.iterdir()).pending, "stock Hudi has left nothing pending"
        spark = self.setup.spark()
        with rows.row_reader(spark):
            stock, ours = (_rows(rows.read(spark, path)) for path in (self.path, self.setup.table.path))
        assert stock == ours, f"stock: {json.dumps(stock)[:2000]}\nours: {json.dumps(ours)[:2000]}"
        assert ours == [list(row) for row in expected]
        return f"the same {len(ours)} rows with plain Hudi settings"


def _rows(frame: Any) -> list[list[object]]:
    found = frame.select("id", "p", "v", "ts", "n").collect()
    return sorted((list(row) for row in found), key=lambda row: (row[0], row[1]))


def start(setup: Setup, job: Work) -> Stock:
    """Begin to write the stock table, beside ours."""
    if setup.cell.storage == "s3":
        folder = setup.world.lake / "stock"
        path = setup.world.url(folder)
    else:
        folder = setup.folder / "tables" / "stock"
        # local files: as ours of the same cell
        path = f"file://{folder}"
    made = Stock(setup, job, path, folder)
    made.thread = threading.Thread(target=made.play, daemon=True)
    made.thread.start()
    return made
