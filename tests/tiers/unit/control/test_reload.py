"""The operator's configuration file, read again while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_operator import main
from hudi_operator.main import Operator, read_config

TABLE = {
    "metadata": {"namespace": "ns", "name": "t", "uid": "u"},
    "spec": {"path": "s3a://lake/t", "recordKeyFields": ["id"]},
}


class Reads:
    """The reconciler: what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def configure(self, config: Any) -> None:
        self.told.append(config)


def metric(operator: Operator) -> float | None:
    return operator.metrics.registry.get_sample_value("hudi_operator_config_in_force")


def test_a_change_counts_and_a_file_that_cannot_be_used_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(main, "_CONFIG_SECONDS", 0.01)
    caplog.set_level(logging.INFO)
    file, reads = tmp_path / "config.yaml", Reads()

    def put(text: str) -> None:
        """At once, as a kubelet puts the files of a ConfigMap: half a file would be another one."""
        file.with_suffix(".new").write_text(text)
        file.with_suffix(".new").replace(file)

    put("allowedSchemes: [s3a]")
    operator = Operator(read_config(str(file)), str(file))
    operator.index.put(TABLE)

    async def until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not holds():
                await asyncio.sleep(0.01)

    async def play() -> None:
        task = asyncio.create_task(operator._reload(reads))  # type: ignore[arg-type]
        await until(lambda: metric(operator) == 1)
        await asyncio.sleep(0.1)
        assert (reads.told, len(operator.queue)) == ([], 0)
        put("{allowedSchemes: [gs], agent: {maxTables: 7}}")
        await until(lambda: bool(reads.told))
        assert operator.config.allowed_schemes == reads.told[0].allowed_schemes == ("gs",)
        assert (operator.index.max_tables, len(operator.queue)) == (7, 1), "every table is looked at"
        for bad, said in (
            ("allowedScheme: [s3a]", "unknown setting allowedScheme"),
            ("[", "config.yaml"),
            ("{allowedSchemes: [gs], agent: {maxTables: 7}, metricsPort: 1}", "a change of metricsPort counts after"),
        ):
            put(bad)
            await until(lambda: metric(operator) == 0 and said in caplog.text)  # noqa: B023
            await asyncio.sleep(0.1)
            assert caplog.text.count(said) == 1, "once"
        file.unlink()
        await until(lambda: "No such file" in caplog.text)
        assert (len(reads.told), operator.config.metrics_port) == (1, 9090)
        assert not task.done()
        task.cancel()

    asyncio.run(play())
