"""Connections between a driver and its executors: nobody else is served (F150).

That they are encrypted, and so is what they write to their disks, are settings, which
`unit/manifests/test_manifests.py` compares; nobody has looked at the bytes.
"""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.harness import spark_stranger
from tests.support.harness.executors import EXECUTORS
from tests.support.harness.local import AGENT, Process, World, rows, until
from tests.support.harness.servers import free_ports

KEY = EXECUTORS["spark.authenticate.secret"]


def stranger(*arguments: object) -> dict[str, str]:
    """What a JVM hears on each port: `served` or `refused` and why."""
    asked = subprocess.run(
        [sys.executable, "-m", spark_stranger.__name__, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        cwd=ROOT,
    )
    heard = dict(line.split(" ", 1) for line in asked.stdout.splitlines())
    assert heard.keys() == {"rpc", "blocks"}, asked.stdout + asked.stderr[-3000:]
    return heard


@pytest.mark.extra
def test_the_store_answers_nobody_without_credentials(world: World, agent: Process) -> None:
    """A neighbour on the network of versitygw: it neither lists, reads, writes nor deletes."""
    table = world.table("anonymous")
    world.create(table, agent=AGENT, process=agent)
    written = rows(range(3), "a", "first", 1)
    assert table.writer("writer", python={"batches": [{"rows": written}]}).wait() == 0
    bucket, file = f"{world.start_s3()}/lake", f"anonymous/{table.data_files()[0]}"
    for method, path in (("GET", "?list-type=2"), ("GET", f"/{file}"), ("PUT", f"/{file}"), ("DELETE", f"/{file}")):
        asked = urllib.request.Request(bucket + path, method=method, data=b"x" if method == "PUT" else None)
        with pytest.raises(urllib.error.HTTPError) as answer:
            urllib.request.urlopen(asked, timeout=10)
        assert answer.value.code == 403, (method, path, answer.value)
    table.audited(written)


@pytest.mark.parametrize("mode", ["local", "executors"])
def test_who_does_not_have_the_key_is_refused(world: World, agent: Process, mode: str) -> None:
    """In local mode nobody but the driver has one."""
    rpc, blocks = free_ports(2)
    spark: dict[str, Any] = {"spark.driver.port": str(rpc), "spark.driver.blockManager.port": str(blocks)}
    table = world.table(f"wire-{mode}")
    world.create(table, agent=AGENT, process=agent)
    gate = world.folder / f"gate-wire-{mode}"
    written = rows(range(20), "a", "first", 1)
    writer = table.writer(
        "writer",
        python={"batches": [{"rows": written, "gate": str(gate)}]},
        spark={**spark, **(EXECUTORS if mode == "executors" else {})},
    )
    until("the write is under way", Path(f"{gate}.reached").exists, alive=writer)
    for key in ("", "wrong"):
        heard = stranger(rpc, blocks, *([key] if key else []))
        assert [word.split()[0] for word in heard.values()] == ["refused", "refused"], heard
    if mode == "executors":
        assert stranger(rpc, blocks, KEY) == {"rpc": "served", "blocks": "served"}, "it is refused for something else"
    gate.touch()
    assert writer.wait() == 0, writer.log()[-6000:]
    table.audited(written)
