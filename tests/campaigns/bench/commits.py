"""Cost of a small commit: `python -m tests.campaigns.bench.commits`.

One writer upserts ten rows again and again into a MergeOnRead table with its metadata table, on one
S3 server of this machine: ours, and stock Hudi with ZooKeeper and the same options of Hudi. Nobody
else writes, and no agent runs meanwhile.

First each side once through a proxy that keeps the lines of all requests, with Spark's event log:
this *counts* the requests of a commit to the store by verb and part of the table, the calls of
etcd, and the jobs, stages and tasks of Spark. Then by turns, without either: *seconds* between two
commits, and *processor time* of the writer, of Python and of the JVM's threads. A writer's first
commits are left out: its JVM is new.

BENCH_COMMITS (40): commits of a turn that count. BENCH_TURNS (3). BENCH_WARM_UP (20). Writes
docs/results/raw/bench/commits.json, in place of the last run; about ten minutes, on a quiet
machine.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import ssl
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hudi_operator.manifests import hudi_conf
from hudi_runtime.table import timeline as tl
from tests.campaigns.bench.services import OUT, Usage, at, epoch, machine
from tests.support.evidence import commit
from tests.support.evidence.versions import versions
from tests.support.harness import s3_requests, s3proxy
from tests.support.harness.etcd_server import pki
from tests.support.harness.local import Process, World, rows, until
from tests.support.harness.stock import Stock, StockWriter, ZooKeeper

JsonDict = dict[str, Any]

COMMITS = int(os.environ.get("BENCH_COMMITS", "40"))
TURNS = int(os.environ.get("BENCH_TURNS", "3"))
WARM_UP = int(os.environ.get("BENCH_WARM_UP", "20"))
COUNTED, COUNTED_WARM_UP = 8, 4
"""Commits of the runs in which requests are counted: their numbers do not depend on a warm JVM."""
FILE = OUT / "commits.json"
PATIENCE = 1800.0
AGENT = "agent-commits"
_TICKS = os.sysconf("SC_CLK_TCK")
EVENT_LOG = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
THREADS = (
    ("compiler", re.compile(r"^C[12] ")),
    ("collector", re.compile(r"^(GC |G1 |VM Thread|VM Periodic)")),
    ("tasks", re.compile(r"^Executor task l")),
    ("etcd", re.compile(r"^(grpc-|hudi-operator-)")),
    ("s3", re.compile(r"^(s3a-|java-sdk-|idle-connectio)")),
    ("driver", re.compile(r"^(Thread-|Connection|main|java$|dag-scheduler|dispatcher-)")),
)
"""Threads of the JVM by the beginning of their names, of which Linux keeps fifteen characters."""
SAME = (
    "hoodie.embed.timeline.server",
    "hoodie.write.markers.type",
    "hoodie.table.services.enabled",
    "hoodie.metadata.enable",
    "hoodie.metadata.index.column.stats.enable",
    "hoodie.metadata.index.partition.stats.enable",
    "hoodie.upsert.shuffle.parallelism",
    "hoodie.client.heartbeat.interval_in_ms",
    "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.parquet.compression.codec",
)
"""Options of Hudi that the stock writer has as ours."""


@dataclass(frozen=True)
class Side:
    """A writer that stops at the beginning and at the end of what counts, and its table."""

    writer: Process
    timeline: Path
    gates: tuple[Path, Path]

    def reached(self, which: int) -> None:
        """Wait until everything before that gate is committed; the writer waits there, too."""
        path = Path(f"{self.gates[which]}.reached")
        until("the commits before it", path.exists, timeout=PATIENCE, alive=self.writer, every=0.02)

    def completions(self) -> list[str]:
        """Completion times of all commits so far."""
        return [instant.completion for instant in tl.parse(os.listdir(self.timeline)).completed]


class Bench:
    """The servers of one measurement, and one table after the other."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.world.start()
        self.zookeeper = ZooKeeper(folder / "zookeeper")
        self._number = 0

    def stop(self) -> None:
        self.zookeeper.stop()
        self.world.stop()

    def _batches(self, gates: tuple[Path, Path], warm_up: int, commits: int) -> list[JsonDict]:
        made: list[JsonDict] = [{"rows": rows(range(10), "a", f"v{n}", n)} for n in range(warm_up + commits + 1)]
        for gate, n in zip(gates, (warm_up, warm_up + commits), strict=True):
            made[n]["after"] = str(gate)
        return made

    def side(self, name: str, *, endpoint: str, warm_up: int, commits: int, log: Path | None) -> Side:
        """Start the writer of one side. `log`: folder of Spark's event log."""
        self._number += 1
        table = f"commits-{name}-{self._number}"
        first, last = (self.world.folder / f"{table}-gate-{n}" for n in range(2))
        batches = self._batches((first, last), warm_up, commits)
        # local files: Spark's event log, which is read after the run; the table is on S3
        logged = {} if log is None else EVENT_LOG | {"spark.eventLog.dir": f"file://{log}"}
        start = self._ours if name == "ours" else self._stock
        made = start(table, endpoint or self.world.start_s3(), batches, logged)
        return Side(made, self.world.lake / table / ".hoodie" / "timeline", (first, last))

    def _ours(self, name: str, endpoint: str, batches: list[JsonDict], spark: Mapping[str, str]) -> Process:
        table = self.world.table(name, type="MergeOnRead", endpoint=endpoint)
        agent = self.world.agent(f"{AGENT}-{name}", storage=table)
        self.world.create(table, agent=f"{AGENT}-{name}", process=agent)
        agent.kill()  # nobody needs it, and it would have a share in what is counted
        return table.writer("writer", python={"batches": batches}, spark=dict(spark))

    def _stock(self, name: str, endpoint: str, batches: list[JsonDict], spark: Mapping[str, str]) -> Process:
        ours = hudi_conf.hudi_defaults(self.world.table(f"{name}-as-ours", type="MergeOnRead").spec)
        same = {option: ours[option] for option in SAME if option in ours}
        stock = Stock(self.world, name, endpoint=endpoint, zookeeper=self.zookeeper, options=same)
        job = {
            "path": stock.path,
            "batches": batches,
            "skip": 0,
            "options": stock.options(services=False) | {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
            "spark": stock.spark_settings() | spark,
        }
        folder = self.world.folder / "stock" / name
        return self.world.child(StockWriter(name, folder, job, module="tests.campaigns.matrix.stock_writer"))

    # -- what is counted ---------------------------------------------------------------------------

    def counts(self, name: str) -> JsonDict:
        """Requests, calls and jobs of one commit of this side."""
        server = urlsplit(self.world.start_s3())
        proxy = s3proxy.Proxy("127.0.0.1", (str(server.hostname), int(server.port or 80)))
        log = self.world.folder / f"events-{name}"
        log.mkdir()
        try:
            side = self.side(name, endpoint=proxy.url, warm_up=COUNTED_WARM_UP, commits=COUNTED, log=log)
            side.reached(0)
            lines, calls, begun = len(proxy.lines), self._calls(), _now()
            side.gates[0].touch()
            side.reached(1)
            asked, called, ended = proxy.lines[lines:], self._calls(), _now()
            side.gates[1].touch()
            assert side.writer.wait(PATIENCE) == 0, side.writer.log()[-6000:]
        finally:
            proxy.stop()
        by_part = s3_requests.counted(asked)
        by_verb: Counter[str] = Counter()
        for (verb, _), number in by_part.items():
            by_verb[verb] += number
        return {
            "commits": COUNTED,
            "store": _each(by_verb),
            "storeByPart": _each({f"{verb} {part}": number for (verb, part), number in by_part.items()}),
            "etcd": _each(called - calls),
            "spark": _each(_events(log, begun, ended)),
        }

    def _calls(self) -> Counter[str]:
        """Messages that etcd has received, by method."""
        context = ssl.create_default_context(cafile=str(pki() / "ca.crt"))
        context.load_cert_chain(pki() / "gateway.crt", pki() / "gateway.key")
        with urllib.request.urlopen(f"{self.world.etcd.url}/metrics", context=context, timeout=30) as answer:
            text = answer.read().decode()
        found = re.findall(r'^grpc_server_msg_received_total\{.*grpc_method="(\w+)".*\} (\S+)$', text, re.M)
        return Counter({method: int(float(number)) for method, number in found})

    # -- what is measured --------------------------------------------------------------------------

    def turn(self, name: str) -> JsonDict:
        """Seconds and processor time of the commits of this side."""
        side = self.side(name, endpoint="", warm_up=WARM_UP, commits=COMMITS, log=None)
        side.reached(0)
        begun, used, load = len(side.completions()), Used.of(side.writer.pid), os.getloadavg()[0]
        side.gates[0].touch()
        side.reached(1)
        spent = Used.of(side.writer.pid).since(used)
        times = side.completions()[begun:]
        side.gates[1].touch()
        assert side.writer.wait(PATIENCE) == 0, side.writer.log()[-6000:]
        assert len(times) == COMMITS, (len(times), COMMITS)
        seconds = [epoch(after) - epoch(before) for before, after in itertools.pairwise(times)]
        return {
            "side": name,
            "loadBefore": load,
            "loadAfter": os.getloadavg()[0],
            "seconds": [round(each, 3) for each in seconds],
            "processorSeconds": {who: round(each / COMMITS, 3) for who, each in spent.items()},
        }


@dataclass(frozen=True)
class Used:
    """Processor seconds of a writer: its Python, its JVM, and the threads of that one that live."""

    processes: Mapping[str, float]
    threads: Mapping[int, tuple[str, float]]

    @classmethod
    def of(cls, pid: int) -> Used:
        jvm = _jvm_below(pid)
        threads = {}
        for task in Path(f"/proc/{jvm}/task").iterdir():
            text = (task / "stat").read_text()
            name = text.partition("(")[2].rpartition(")")[0]
            fields = text.rpartition(")")[2].split()
            threads[int(task.name)] = (name, (int(fields[11]) + int(fields[12])) / _TICKS)
        return cls({"python": Usage.of(pid).cpu, "jvm": Usage.of(jvm).cpu}, threads)

    def since(self, before: Used) -> dict[str, float]:
        """Usage since then; `jvm other`: threads of no group, and those that have ended."""
        found = {who: used - before.processes[who] for who, used in self.processes.items()}
        groups: dict[str, float] = {}
        for number, (name, used) in self.threads.items():
            group = next((group for group, names in THREADS if names.match(name)), "")
            if group:
                spent = used - before.threads.get(number, (name, 0.0))[1]
                groups[f"jvm {group}"] = groups.get(f"jvm {group}", 0.0) + spent
        return {**found, **groups, "jvm other": found["jvm"] - sum(groups.values())}


def _jvm_below(pid: int) -> int:
    """The JVM that this process has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:  # it has ended since
            continue
        if text.partition("(")[2].startswith("java)") and int(text.rpartition(")")[2].split()[1]) == pid:
            return int(stat.parent.name)
    raise SystemExit(f"process {pid} has no JVM")


def _events(log: Path, begun: int, ended: int) -> Counter[str]:
    """Jobs, stages and tasks that began between two times (milliseconds)."""
    when: Mapping[str, Callable[[JsonDict], int]] = {
        "SparkListenerJobStart": lambda event: int(event["Submission Time"]),
        "SparkListenerStageSubmitted": lambda event: int(event["Stage Info"].get("Submission Time", 0)),
        "SparkListenerTaskStart": lambda event: int(event["Task Info"]["Launch Time"]),
    }
    found: Counter[str] = Counter()
    for file in log.glob("[!.]*"):
        for line in file.read_text().splitlines():
            event = json.loads(line)
            time = when.get(event["Event"])
            if time is not None and begun <= time(event) < ended:
                found[str(event["Event"]).removeprefix("SparkListener")] += 1
    return found


def _each(numbers: Mapping[str, int]) -> dict[str, float]:
    """Counts of one commit."""
    return {what: round(number / COUNTED, 2) for what, number in sorted(numbers.items()) if number}


def _now() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def measure() -> JsonDict:
    """Count, then measure by turns."""
    bench = Bench(Path(tempfile.mkdtemp(prefix="commits-")))
    try:
        counts = {name: bench.counts(name) for name in ("ours", "stock")}
        turns = [bench.turn(name) for _ in range(TURNS) for name in ("ours", "stock")]
    finally:
        bench.stop()
    return {
        "commit": commit(),
        "versions": versions(),
        "machine": machine(),
        "at": at(),
        "warmUp": WARM_UP,
        "counted": counts,
        "turns": turns,
    }


def main() -> None:
    found = measure()
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
