"""`make bench-lock`: the time that the gateway adds to a lock cycle, and to the start of an
attempt.

Writes docs/results/lock-gateway.md.

    python -m tests.campaigns.bench.lock_gateway            measure, about five minutes
    python -m tests.campaigns.bench.lock_gateway --page     only the page

Contenders are sessions of the lock module, threads of one JVM. By turns of a few seconds they go
through the gateway, each with the token of its pod, and to the same etcd directly, with the
gateway's certificate.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import grpc

from hudi_contract.keys import Kind, TableKeys
from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd import EtcdStore, Revisions
from tests.campaigns.bench.services import OUT, Usage, at, java, machine
from tests.support import ROOT
from tests.support.evidence import NOTHING, Evidence, as_said, commit
from tests.support.evidence.versions import versions
from tests.support.harness.etcd_connections import connect
from tests.support.harness.gateway import Client, Gateway, Pod
from tests.support.harness.servers import Etcd

JsonDict = dict[str, Any]
T = TypeVar("T")

PAGE = ROOT / "docs" / "results" / "lock-gateway.md"
RAW = OUT / "lock-gateway.json"
CONTENDERS = (1, 2, 8, 32)
"""One alone waits for nobody."""
REPEATS = 3
SECONDS = int(os.environ.get("BENCH_SECONDS", "8"))
WARM_UP_SECONDS = 1
TABLES = 1000
WITHDRAWN = 200
MIB = 2**20
LIMITS = ("-max-bytes-per-second=1e9", "-max-burst-bytes=1e9", "-max-requests-per-second=1e6")
"""Limits of the gateway that are out of reach: a writer that takes the lock as fast as it can would
reach those of one table, and these are not measured.
"""


def run(awaitable: Awaitable[T]) -> T:
    async def wait() -> T:
        return await awaitable

    return asyncio.run(wait())


class Parts:
    """etcd that syncs to the disk, with TLS and users, and a gateway before it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # The later of two flags counts.
        self.etcd = Etcd(folder, "--unsafe-no-fsync=false")
        self.etcd.start()
        self.etcd.set_up_users()
        self.connection = connect(self.etcd)
        self.store = EtcdStore(self.connection, "/hudi", revisions=Revisions())
        self.gateway = Gateway(self.etcd, folder, *LIMITS)
        self.gateway.start()

    def stop(self) -> None:
        self.connection.close()
        self.gateway.stop()
        self.etcd.stop()

    def table(self, number: int) -> str:
        """Make the gate of a table."""
        made = f"{number:032x}"
        gate = {"state": "open", "mode": "PodTermination", "table": f"load/t{number}", "protocolVersion": 1}
        assert run(self.store.put_gate(made, {**gate, "admitted": []}, expected_mod=0))
        return made

    def admit(self, table: str, pod: Pod, role: str) -> None:
        run(self.store.put_admit(table, attempt=pod.attempt, role=role))

    def ways(self) -> list[JsonDict]:
        """Both ways, with a table for each number of contenders, all of them admitted."""
        ca, tokens = self.etcd.pki / "ca.crt", self.folder / "tokens"
        tokens.mkdir()
        settings = {
            "gateway": {"endpoints": self.gateway.endpoint, "ca": str(ca), "token": str(tokens / "POD")},
            "direct": {
                "endpoints": self.etcd.endpoint,
                "ca": str(ca),
                "cert": str(self.etcd.pki / "gateway.crt"),
                "key": str(self.etcd.pki / "gateway.key"),
            },
        }
        made = []
        for number, (name, how) in enumerate(settings.items(), 1):
            tables = {str(n): self.table(number * 1000 + n) for n in CONTENDERS}
            for n in CONTENDERS:
                for i in range(n):
                    pod = Pod("load", f"{name}-{n}-{i}", f"uid-{name}-{n}-{i}")
                    self.admit(tables[str(n)], pod, "writer")
                    (tokens / pod.name).write_text(self.gateway.issuer.token(pod))
            made.append({"name": name, "settings": how, "tables": tables})
        return made


def race(parts: Parts) -> JsonDict:
    """The JVM's own measurements."""
    job, out, log = parts.folder / "job.json", parts.folder / "out", parts.folder / "log"
    pids = {"gateway": parts.gateway.pid, "etcd": parts.etcd.pid}
    shape = {"contenders": CONTENDERS, "repeats": REPEATS, "seconds": SECONDS, "warmUpSeconds": WARM_UP_SECONDS}
    job.write_text(json.dumps({"ways": parts.ways(), "pids": pids, "folder": str(parts.folder / "lake"), **shape}))
    process = java("LockRace", job, memory="1g", log=log, out=out)
    try:
        assert process.wait(timeout=600) == 0, log.read_text()[-3000:]
    finally:
        process.kill()
        process.wait()
    told = dict(json.loads([line for line in out.read_text().splitlines() if line.startswith("{")][-1]))
    assert not told["halts"], log.read_text()[-3000:]
    assert not [p["error"] for p in told["phases"] if "error" in p], told
    return told


def seconds(what: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    what()
    return time.perf_counter() - begun


def millis(taken: list[float]) -> JsonDict:
    ordered = sorted(1000 * one for one in taken)
    return {"p50": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100], "p100": ordered[-1]}


def many_tables(parts: Parts) -> JsonDict:
    """One agent of many tables: admitted, known to the gateway, and taken from some of them."""
    pod = Pod("load", "hudi-agent-0123456789-1", "uid-agent")
    client = parts.gateway.pod(pod)
    before, etcd_before = Usage.of(parts.gateway.pid).memory, Usage.of(parts.etcd.pid).memory
    tables = [parts.table(100_000 + number) for number in range(TABLES)]

    def write(table: str) -> None:
        client.put(TableKeys("/hudi", table).of(Kind.CLOCK), {"value": "20260101000000000"})

    admitted = [seconds(lambda t=t: parts.admit(t, pod, "agent")) for t in tables]
    first = [seconds(lambda t=t: write(t)) for t in tables]
    again = [seconds(lambda t=t: write(t)) for t in tables]
    withdrawn = [_withdrawn(parts, client, pod, table) for table in tables[:WITHDRAWN]]
    return {
        "tables": TABLES,
        "memoryBefore": before,
        "memory": Usage.of(parts.gateway.pid).memory,
        "etcdMemoryBefore": etcd_before,
        "etcdMemory": Usage.of(parts.etcd.pid).memory,
        "admitMillis": millis(admitted),
        "firstMillis": millis(first),
        "againMillis": millis(again),
        "withdrawn": WITHDRAWN,
        "withdrawnMillis": millis(withdrawn),
    }


def _withdrawn(parts: Parts, client: Client, pod: Pod, table: str) -> float:
    """Seconds from before the admission's deletion until the refusal of the next write."""

    def refused() -> None:
        run(parts.store.delete_admit(table, attempt=pod.attempt))
        try:
            client.txn(rpc.delete(TableKeys("/hudi", table).of(Kind.LOCK)))
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.PERMISSION_DENIED:
                return
            raise
        raise AssertionError(f"table {table} was taken from {pod.name}, which still writes to it")

    return seconds(refused)


def measure() -> JsonDict:
    """One run. Raises when a contender had an error."""
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    load, begun = os.getloadavg()[0], time.monotonic()
    parts = Parts(folder)
    try:
        told = {"race": race(parts), "manyTables": many_tables(parts)}
    finally:
        parts.stop()
    shutil.rmtree(folder, ignore_errors=True)
    return {
        **told,
        "loadBefore": load,
        "loadAfter": os.getloadavg()[0],
        "took": time.monotonic() - begun,
        "seconds": SECONDS,
        "commit": commit(),
        "versions": versions(),
        "machine": machine(),
        "at": at(),
    }


def main(arguments: list[str]) -> int:
    if "--page" not in arguments:
        OUT.mkdir(parents=True, exist_ok=True)
        RAW.write_text(json.dumps(measure(), indent=1) + "\n")
    PAGE.write_text(page())
    print(PAGE)
    return 0


HEAD = """# Lock with the gateway

Written by `make bench-lock` (`tests/campaigns/bench/lock_gateway.py`); do not edit. Contenders take
the lock of one table over and over, without Spark and without data, as threads of one JVM with a
session each. Through the gateway each has the token of its pod, as the kubelet projects it;
directly all have the gateway's own certificate. etcd, one member that syncs to the disk, TLS, users
and roles, is the same, and the two ways have turns of a few seconds, so that other work on the
machine meets both. A cycle is: acquire, record the instant (or publish the completed one), release,
from the call of acquire to the end of release; contenders wait for each other in a queue. `held` is
the part of it from the acquired lock on, with 2 ms in which the clock of the instants moves on. The
limits of one table are lifted here.
"""


def page() -> str:
    """The results page, from the results that are there."""
    if not RAW.exists():
        return f"{HEAD}\n{NOTHING}\n"
    found: JsonDict = json.loads(RAW.read_text())
    phases = found["race"]["phases"]
    repeats = (
        f"{REPEATS} turns of {found['seconds']} s each: the middle one, and in brackets the lowest and the highest"
    )
    direct = "Both ways are in it, through the gateway as pods reach etcd, and past it."
    evidence = Evidence.of([found], "1 of 1", repeats=repeats, direct=direct)
    lines = [HEAD, str(evidence), ""]
    if max(found["loadBefore"], found["loadAfter"]) > 2.5:
        lines += ["**The machine was busy with other work (load below): the times are upper bounds.**", ""]
    lines += [
        "| contenders | way | acquisitions/s | cycle p50 | p99 | held p50 | p99 | processor: gateway | etcd |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for contenders in CONTENDERS:
        for way in ("direct", "gateway"):
            turns = [p for p in phases if (p["way"], p["contenders"]) == (way, contenders)]
            cells = [
                _spread([p["cycles"] / p["seconds"] for p in turns], ".0f"),
                *(
                    _spread([p[kind][percent] for p in turns], ".1f", " ms")
                    for kind in ("cycleMillis", "heldMillis")
                    for percent in ("p50", "p99")
                ),
                *(
                    _spread(
                        [1000 * p["processorSeconds"][who] / max(1, p["cycles"]) for p in turns], ".2f", " ms/cycle"
                    )
                    for who in ("gateway", "etcd")
                ),
            ]
            lines.append(f"| {contenders} | {way} | {' | '.join(cells)} |")
    lines += [
        "",
        "## The start of an attempt",
        "",
        "What of it is the lock's: the connection, the first look at the gate, the registration, the",
        "heartbeat's lease. One after the other, in turns. The JVM's first two, which load its classes, are",
        "not shown.",
        "",
        "| sessions | way | p50 | slowest |",
        "|---:|---|---:|---:|",
    ]
    for one in sorted(found["race"]["openings"], key=lambda o: (o["contenders"], o["way"])):
        if one["contenders"] == 1:
            continue
        lines.append(
            f"| {one['contenders']} | {one['way']} | {one['millis']['p50']:.1f} ms | {one['millis']['p100']:.1f} ms |"
        )
    many = found["manyTables"]
    lines += [
        "",
        f"## An agent of {many['tables']:,} tables",
        "",
        "| what | p50 | p99 | slowest |",
        "|---|---:|---:|---:|",
        _row("the operator admits it to one table more", many["admitMillis"]),
        _row("its first write there, for which the gateway looks its right up", many["firstMillis"]),
        _row("its next write", many["againMillis"]),
        _row("the admission is deleted and its next write is refused, both together", many["withdrawnMillis"]),
        "",
        f"The gateway's memory was {many['memoryBefore'] / MIB:.0f} MB before these tables, after the contenders, "
        f"and {many['memory'] / MIB:.0f} MB after them.",
        *_etcds_memory(many),
        "",
        "Run:",
        "",
        f"* {found['at']}, commit {as_said(found['commit'])}, {found['took']:.0f} s, etcd={found['versions']['etcd']}, "
        f"{found['machine']}, load average {found['loadBefore']:.1f} before it and {found['loadAfter']:.1f} after it "
        "(its own is part of that)",
    ]
    return "\n".join(lines) + "\n"


def _etcds_memory(many: JsonDict) -> list[str]:
    """Nothing of a run that did not look."""
    if "etcdMemory" not in many:
        return []
    return [
        f"etcd's was {many['etcdMemoryBefore'] / MIB:.0f} MB before and {many['etcdMemory'] / MIB:.0f} MB after: a "
        "table has three keys here, its gate, its agent's admission and its clock."
    ]


def _spread(values: list[float], how: str, unit: str = "") -> str:
    return f"{median(values):{how}}{unit} ({min(values):{how}}–{max(values):{how}})"


def _row(what: str, told: JsonDict) -> str:
    return f"| {what} | {told['p50']:.1f} ms | {told['p99']:.1f} ms | {told['p100']:.1f} ms |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
