"""What one live look at a table costs beside 10 to 10,000 writers of other tables in its namespace.

    python -m tests.campaigns.bench.looks

API server, controller-manager and etcd are real. A table with one running writer is set up by an
operator, which then ends; the looks are made one after the other by this process, with the
operator's own observer and planner. Other writers belong to HudiTables that do not exist: they are
objects of the API server, and nobody looks at them. The result replaces
docs/results/raw/bench/looks.json, for docs/results/performance.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hudi_operator.adapters.etcd import EtcdStore, Revisions
from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.adapters.identity import pods_authority
from hudi_operator.adapters.kubernetes import ApiServer, KubernetesStore, load_configuration
from hudi_operator.control.index import TableIndex
from hudi_operator.control.observe import Observer
from hudi_operator.control.timers import Timers
from hudi_operator.main import read_config
from hudi_operator.plan.table import plan_table
from tests.campaigns.bench.launches import world
from tests.campaigns.bench.services import OUT, at, machine
from tests.support.evidence import commit
from tests.support.harness.operator_world import World
from tests.support.harness.servers import wait_for

JsonDict = dict[str, Any]
RAW = OUT / "looks.json"
SIZES = (10, 100, 1000, 10_000)
LOOKS = 60
WARM = 10
"""Looks before those that are measured."""
OF_A_TABLE = 50
"""Other writers for each table that they name."""


async def looks(made: World, table: JsonDict, number: int) -> JsonDict:
    """Medians of so many looks."""
    config = read_config(str(made.directory / "config-0.yaml"))
    os.environ["KUBECONFIG"] = str(made.cluster.kubeconfig)
    requests = [0]

    def counted(_verb: str, _status: int, _seconds: float) -> None:
        requests[0] += 1

    api = ApiServer(await load_configuration(), requested=counted)
    connection = Connection(config.etcd)
    index = TableIndex(config.spark_image, max_tables=config.agent.max_tables)
    index.put(table)
    observer = Observer(
        kubernetes=KubernetesStore(api, instance="bench"),
        etcd=EtcdStore(connection, config.etcd.prefix, revisions=Revisions(), observe=lambda *_: None),
        index=index,
        timers=Timers(),
        config=config,
        authority=lambda: pods_authority(config.pod_etcd),
    )
    key = (table["metadata"]["namespace"], table["metadata"]["name"])
    spent: list[tuple[float, float]] = []
    try:
        for turn in range(WARM + number):
            if turn == WARM:
                requests[0] = 0
            cpu, wall = time.process_time(), time.monotonic()
            observed = await observer.observe(key)
            plan = plan_table(observed, config)
            spent.append((time.process_time() - cpu, time.monotonic() - wall))
            assert not plan.failed, plan.failed
            assert len(observed.writers) == 1, "it is given the writers of its table"
    finally:
        connection.close()
        await api.close()
    cpu_seconds, seconds = zip(*spent[WARM:], strict=True)
    return {
        "cpuMillis": round(1000 * statistics.median(cpu_seconds), 2),
        "millis": round(1000 * statistics.median(seconds), 2),
        "requests": round(requests[0] / number, 2),
    }


def measure(made: World, sizes: tuple[int, ...], number: int) -> JsonDict:
    """All sizes, one after the other."""
    operator = made.start_operator(leader_election=False)
    table_id, _, _ = made.running_table()
    made.running_writer(table_id)
    wait_for("it runs", lambda: (made.condition("hudiwriters", "load", "Running") or {}).get("status") == "True")
    operator.kill()
    table = made.get("huditables", "flights")
    assert table is not None
    found: JsonDict = {"commit": commit(), "at": at(), "machine": machine(), "loadBefore": os.getloadavg()[0]}
    there, runs = 1, []
    for size in sizes:
        with ThreadPoolExecutor(8) as many:
            list(many.map(lambda n: made.writer(f"other-{n}", table=f"table-{n // OF_A_TABLE}"), range(there, size)))
        there = size
        runs.append({"writers": size, **asyncio.run(looks(made, table, number))})
        print(runs[-1], flush=True)
    return {**found, "looks": number, "runs": runs}


def load() -> JsonDict:
    """The result that was kept; empty when there is none."""
    return dict(json.loads(RAW.read_text())) if RAW.exists() else {}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.bench.looks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--writers", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--looks", type=int, default=LOOKS, help="looks with each number of writers")
    parser.add_argument("--keep", action="store_true", help="keep the raw result")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, world(Path(folder)) as made:
        found = measure(made, tuple(sorted(given.writers)), given.looks)
    print(json.dumps(found, indent=1))
    if given.keep:
        RAW.parent.mkdir(parents=True, exist_ok=True)
        RAW.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
