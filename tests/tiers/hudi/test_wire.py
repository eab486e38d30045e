"""Connections between a driver and its executors: nobody else is served (F150), and neither what
goes over them nor what executors write to their disks can be read.
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
from tests.support.harness.loopback import Sniffer
from tests.support.ports import free_ports

KEY = EXECUTORS["spark.authenticate.secret"]
APP = Path(__file__).parent / "apps" / "shuffle_app.py"


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


@pytest.mark.extra
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


@pytest.mark.extra
@pytest.mark.parametrize("encrypted", [True, False], ids=["as-set", "without"])
def test_rows_are_unreadable_on_the_wire_and_on_the_disk(world: World, agent: Process, encrypted: bool) -> None:
    """A neighbour that sees each packet between driver and executors, and somebody with the disk.

    Without the settings of the product both read the rows: they would be found.
    """
    text = "text-of-the-rows-of-a-team-"
    name = f"bytes-{encrypted}".lower()
    table = world.table(name)
    world.create(table, agent=AGENT, process=agent)
    gate = world.folder / f"gate-{name}"
    plain = {f"spark.{each}.compress": "false" for each in ("shuffle", "shuffle.spill", "broadcast", "rdd")}
    settings = {**EXECUTORS, **plain, "spark.master": "local-cluster[2,1,512]"}
    if not encrypted:
        settings |= {"spark.network.crypto.enabled": "false", "spark.io.encryption.enabled": "false"}
    with Sniffer() as wire:
        program = table.writer(
            "program", application={"mainFile": str(APP), "arguments": [text[::-1], str(gate)]}, spark=settings
        )
        until("the rows were moved", Path(f"{gate}.reached").exists, alive=program)
        files = [path for path in (program.folder / "tmp").rglob("*") if path.is_file()]
        blocks = [path for path in files if path.name.startswith(("rdd_", "shuffle_")) and path.suffix != ".index"]
        held = {path.name for path in blocks if text.encode() in path.read_bytes()}
    gate.touch()
    assert program.wait() == 0, program.log()[-6000:]
    assert {name.split("_")[0] for name in (path.name for path in blocks)} == {"rdd", "shuffle"}, files
    assert sum(map(len, wire.flows.values())) > 4000 * len(text), "nothing was seen"
    if encrypted:
        assert not held
        assert not wire.carried(text.encode())
    else:
        assert {name.split("_")[0] for name in held} == {"rdd", "shuffle"}
        assert wire.carried(text.encode())
    table.audited([(i, "a", f"{text}{i}", 1) for i in range(20)])
