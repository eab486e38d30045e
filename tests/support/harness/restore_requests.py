"""The operator's part of savepoints and restores, and a writer of files whose rows would be there
twice if they were read twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from hudi_operator.api.restore import Restore
from hudi_operator.plan.requests import restores as operators_restores
from hudi_operator.plan.requests import savepoints
from tests.support.harness.local import Process, Row, Table, until


def write_file(folder: Path, number: int, content: list[Row]) -> None:
    folder.mkdir(exist_ok=True)
    schema = pa.schema([("id", pa.int32()), ("p", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
    parquet.write_table(
        pa.table([list(column) for column in zip(*content, strict=True)], schema=schema), folder / f"{number}.parquet"
    )


def load(table: Table, folder: Path, *, run: int) -> dict[str, Any]:
    """An attempt of the same writer that inserts the files of a folder in the lake, one in a
    commit: a file that is read twice would be there twice.
    """
    files = {"format": "parquet", "paths": [table.world.url(folder)], "options": {}, "maxFilesPerCommit": 1}
    process = table.writer("loader", files=files, operation="insert", run=run)
    assert process.wait() == 0, process.log()[-4000:]
    return process.termination()


def keep(table: Table, name: str, agent: Process) -> dict[str, Any]:
    """The operator's part of a savepoint."""
    table.gate("closed")
    table.ask(savepoints.request(name).to_json())
    done = until(
        f"savepoint {name}",
        lambda: (d := table.get(f"done/savepoint-{name}") or {}).get("result") == "Completed" and d,
        alive=agent,
    )
    table.world.etcd.delete(table.control(f"request/savepoint-{name}"))
    table.gate("open")
    return done


def ask(table: Table, nonce: str, savepoint: str, *, names: tuple[str, ...]) -> None:
    """The operator's part of a restore: the gate names it, then it is asked for."""
    for old in table.world.etcd.range(table.control("request/")):
        table.world.etcd.delete(old.key)
    table.gate("closed", restoring=nonce, adopted=True)
    table.ask(operators_restores.request(Restore(savepoint, nonce), names).to_json())


def ended(table: Table, nonce: str, agent: Process) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        done = table.get(f"done/restore-{nonce}") or {}
        return done if done.get("result") in ("Completed", "Failed") else None

    return until(f"restore {nonce} has ended", found, alive=agent)
