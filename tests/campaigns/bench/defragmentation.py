"""What a defragmentation of etcd costs its clients (docs/operate/operations.md, Defragment etcd).

    python -m tests.campaigns.bench.defragmentation

Real members with TLS, without fsync. Each is filled, some of it is deleted and compacted, and
`hudi_operator.etcd_upkeep.defragment` runs while clients put, read and keep a lease of 10 s alive,
each through one member first. Stored in docs/results/raw/bench/etcd-defragmentation.json, in place
of the last run. Seconds; sizes in MiB. `longest`: the longest time that a call took, or that a
client needed with its repetitions; `refused`: calls that failed.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc

from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.etcd_upkeep import defragment
from hudi_operator.model.ports import Fatal, Retryable
from tests.campaigns.bench.services import OUT, at, machine
from tests.support.evidence import commit
from tests.support.harness.etcd_members import Members

JsonDict = dict[str, Any]
FILE = OUT / "etcd-defragmentation.json"
CASES = ((1, 64, 1.0), (1, 1000, 0.1), (1, 512, 1.0), (3, 100, 1.0))
"""Members, MiB that are written, and the part of them that stays in use."""
VALUE = b"x" * 61_440
FOLDER = "/hudi/tables/x/"
LEASE_SECONDS = 10


class Client:
    """One call, over and over, until it is told to end."""

    def __init__(self, name: str, call: Callable[[], None], stop: threading.Event) -> None:
        self.name, self.longest, self.refused, self.calls = name, 0.0, 0, 0
        self._call, self._stop = call, stop
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            began = time.monotonic()
            while not self._answered() and not self._stop.is_set():
                self.refused += 1
            self.calls += 1
            self.longest = max(self.longest, time.monotonic() - began)

    def _answered(self) -> bool:
        try:
            self._call()
        except (Retryable, Fatal):
            return False
        return True

    def told(self) -> JsonDict:
        return {"client": self.name, "longest": round(self.longest, 2), "refused": self.refused, "calls": self.calls}


def fill(root: Connection, mebibytes: int, kept: float) -> None:
    count = mebibytes * 2**20 // len(VALUE)
    for number in range(count):
        put = rpc.messages.PutRequest(key=f"{FOLDER}{number:08d}".encode(), value=VALUE)
        root.call_now(rpc.kv, "Put", put, writes=True)
    dropped = count - int(count * kept)
    if dropped:
        gone = rpc.messages.DeleteRangeRequest(key=FOLDER.encode(), range_end=f"{FOLDER}{dropped:08d}".encode())
        revision = root.call_now(rpc.kv, "DeleteRange", gone, writes=True).header.revision
        request = rpc.messages.CompactionRequest(revision=revision, physical=True)
        root.call_now(rpc.kv, "Compact", request, writes=True)
        time.sleep(2)


def measured(folder: Path, members: int, mebibytes: int, kept: float) -> JsonDict:
    cluster, stop, least = Members(folder, "--quota-backend-bytes=8589934592"), threading.Event(), [LEASE_SECONDS]
    try:
        cluster.begin(members)
        root = Connection(cluster.config(), timeout=60)
        fill(root, mebibytes, kept)
        grant = rpc.messages.LeaseGrantRequest(TTL=LEASE_SECONDS)
        lease = root.call_now(rpc.leases, "LeaseGrant", grant, writes=True).ID
        operator = cluster.config("operator")
        put = rpc.messages.PutRequest(key=b"/hudi/control/x", value=b"1")
        get = rpc.messages.RangeRequest(key=b"/hudi/control/x")

        def alive(connection: Connection) -> None:
            beat = iter([rpc.messages.LeaseKeepAliveRequest(ID=lease)])
            try:
                least.append(next(rpc.leases(connection.channel()).LeaseKeepAlive(beat, timeout=60)).TTL)
            except (grpc.RpcError, ValueError) as error:
                raise Retryable(str(error)) from error

        clients = []
        for first in range(members):
            endpoints = (*operator.endpoints[first:], *operator.endpoints[:first])
            way = Connection(replace(operator, endpoints=endpoints), timeout=60)
            own = Connection(replace(operator, endpoints=endpoints), timeout=60)
            calls = {
                "put": lambda way=way: way.call_now(rpc.kv, "Put", put, writes=True),
                "get": lambda way=way: way.call_now(rpc.kv, "Range", get, writes=False),
                "keep-alive": lambda own=own: alive(own),
            }
            clients += [Client(f"{name} through e{first}", call, stop) for name, call in calls.items()]
        time.sleep(2)
        reports = defragment.run(cluster.config(), defragment.Wishes(least=0.0, interrupt=True), print)
        time.sleep(1)
        stop.set()
        for client in clients:
            client.thread.join()
    finally:
        stop.set()
        cluster.stop()
    return {
        "members": members,
        "written": mebibytes,
        "reports": reports,
        "clients": [client.told() for client in clients],
        "leastTTL": min(least),
    }


def main() -> None:
    before = os.getloadavg()[0]
    runs = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            runs.append(measured(Path(folder), *case))
        print(json.dumps(runs[-1]), flush=True)
    found = {
        "commit": commit(),
        "machine": machine(),
        "at": at(),
        "loadBefore": before,
        "loadAfter": os.getloadavg()[0],
        "runs": runs,
    }
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
