"""Tables that stock Hudi writes with plain settings: no lock, no provider, nothing
of this project.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hudi_contract.settle import Phase
from hudi_operator.plan.gate import adoption
from tests.support import CACHE
from tests.support.harness.class_archive import BUNDLE, S3_JARS
from tests.support.harness.local import PLAIN_SPARK, Process, Row, Table, World, until
from tests.support.harness.stock import StockWriter

OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}


def spark_of(world: World) -> dict[str, str]:
    """Spark's settings of a stock writer: it knows the S3 server, and nothing of this project."""
    return {
        **PLAIN_SPARK,
        "spark.driver.extraClassPath": ":".join(str(CACHE / "jars" / jar) for jar in (BUNDLE, *S3_JARS)),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **{f"spark.hadoop.{key}": value for key, value in world.s3_settings().items()},
    }


def adopt(table: Table, instants: Mapping[str, str]) -> str:
    """The operator's `adopt`, proof and drain up to RollingBack: instants (with their actions) of
    writers whose death a person attests.
    """
    inc = f"adopted-{table.spec.ref.name}-{min(instants)}"
    record = adoption.record_of(inc, dict(instants), who=f"default/{table.spec.ref.name}", now_ms=0)
    record = record.but(phase=Phase.RollingBack)
    etcd = table.world.etcd
    etcd.put(table.control(f"fence/{inc}"), {"inc": inc, "reason": "Adopted", "atMs": 0})
    etcd.put(table.key(f"settle/{inc}"), record.to_json())
    for instant, action in instants.items():
        etcd.put(table.key(f"instant/{instant}"), {"inc": inc, "action": action, "state": "Pending", "atMs": 0})
    return inc


def release(table: Table, agent: str, process: Process) -> None:
    """Do the same as the deletion of a HudiTable without writers: the agent leaves, and the gate
    belongs to nobody.
    """
    etcd = table.world.etcd
    etcd.delete(f"/hudi/control/agents/{agent}/{table.id}")
    until("the agent has left", lambda: not table.keys("writer/"), alive=process)
    table.gate("frozen")
    etcd.delete(table.key("report/timeline"))


class StockTable:
    """Starts stock writers of one table, a process each."""

    def __init__(self, world: World, table: Table, options: Mapping[str, str] | None = None) -> None:
        self._world, self._table = world, table
        self._options = {
            **OPTIONS,
            "hoodie.table.name": table.spec.table_name,
            "hoodie.datasource.write.table.type": table.spec.hudi_type,
            **(options or {}),
        }
        self._count = 0

    def writer(self, rows: Sequence[Row], options: Mapping[str, str] | None = None) -> StockWriter:
        """Start one upsert, or what these options make of it."""
        self._count += 1
        name = f"stock-{self._table.spec.ref.name}-{self._count}"
        job = {"path": self._table.path, "rows": list(rows), "spark": spark_of(self._world)}
        job["options"] = {**self._options, **(options or {})}
        return self._world.child(StockWriter(name, self._world.folder / "stock" / name, job))

    def delete(self, rows: Sequence[Row]) -> None:
        """Delete the records of these rows, and compact."""
        compact = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
        self.upsert(rows, {"hoodie.datasource.write.operation": "delete", **compact})

    def upsert(self, rows: Sequence[Row], options: Mapping[str, str] | None = None) -> None:
        """One upsert, done."""
        writer = self.writer(rows, options)
        assert writer.wait() == 0, writer.log()[-4000:]
        assert writer.acknowledged

    def dies_in_its_write(self, rows: Sequence[Row]) -> str:
        """One upsert that is killed while its instant is inflight; returns the instant."""
        writer = self.writer(rows)
        folder: Path = self._table.folder / ".hoodie" / "timeline"

        def inflight() -> str:
            names = os.listdir(folder)
            done = {name.partition("_")[0] for name in names if "_" in name}
            return next(
                (
                    name.partition(".")[0]
                    for name in names
                    if name.endswith(".inflight") and name.partition(".")[0] not in done
                ),
                "",
            )

        instant = until("a stock write is inflight", inflight, alive=writer, every=0.001)
        writer.kill()
        assert not writer.acknowledged
        assert self._table.pending() == {instant}, "it was killed in the middle"
        return instant
