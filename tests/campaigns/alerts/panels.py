"""Pictures of the dashboards: every query of every panel, asked of the real Prometheus that has
scraped two minutes of a busy operator, and drawn by hack/dashboards/draw.py.

    python -m tests.campaigns.alerts.panels            play, ask, keep the answers, and draw
    python -m tests.campaigns.alerts.panels --draw     only draw, from the answers that are there
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import grpc
from hack.dashboards import draw

from hudi_contract.assignment import CatalogOrder
from hudi_contract.reports import CatalogReport
from hudi_operator.adapters import etcd_rpc as rpc
from tests.campaigns.alerts.of_tables import PREFIXES
from tests.campaigns.alerts.played import Play
from tests.campaigns.alerts.run import commit
from tests.campaigns.alerts.stage import Stage, instant, now_ms, stage
from tests.support import ROOT, promtool
from tests.support.evidence import RAW
from tests.support.harness.gateway import Pod

JsonDict = dict[str, Any]
DASHBOARDS = ROOT / "charts" / "hudi-operator" / "files" / "dashboards"
STORE = RAW / "dashboards"
PICTURES = ROOT / "docs" / "operate"
SECONDS, STEP = 120, 2
TABLE, METASTORE = "flights", "thrift://metastore.catalogs:9083"
HELD_FROM = 105
"""From this second on one writer holds the lock: a status shows it after five seconds."""
BEFORE = 15
"""Seconds at the beginning that are left out: rates need a few scrapes."""


def names() -> list[str]:
    """Names of the dashboards."""
    return sorted(path.stem for path in DASHBOARDS.glob("*.json"))


def dashboard(name: str) -> JsonDict:
    """A dashboard of the chart."""
    found: JsonDict = json.loads((DASHBOARDS / f"{name}.json").read_text())
    return found


def kept(name: str) -> JsonDict:
    """Answers that are stored."""
    found: JsonDict = json.loads((STORE / f"{name}.json").read_text())
    return found


def picture(name: str) -> str:
    """The picture, from the answers that are stored."""
    found = kept(name)
    return draw.picture(dashboard(name), found["panels"], (found["start"], found["end"]))


def file(name: str) -> Path:
    """Where the picture is."""
    return PICTURES / f"dashboard-{name}.svg"


# ---- what is played


class Busy:
    """A table with three writers, one of which dies and is settled, and two tables with faults."""

    def __init__(self, stage_: Stage) -> None:
        self.stage, self.play = stage_, Play(stage_)
        self.dice = random.Random(7)
        play = self.play
        receiver = {"url": "https://receiver.example.com/commits"}
        catalog = {"hiveMetastore": {"uris": [METASTORE]}}
        slots = {"maxWriters": 3}
        self.id = play.table(TABLE, type="MergeOnRead", concurrency=slots, commitCallback=receiver, catalog=catalog)
        self.live = play.writer(TABLE, "live")
        self.backfill = play.writer(TABLE, "backfill")
        self.killed = play.writer(TABLE, "killed")
        stage_.world.writer("waits", table=TABLE)
        play.table("hotels")
        play.writer("hotels", "nightly")
        stage_.world.table("stalled", path="s3a://elsewhere/stalled")
        pod, inc = play.writer("hotels", "bad-data", retryPolicy={"limit": 0, "backoffSeconds": 1})
        play.fails("hotels", pod, inc, "BadData")
        self.commits, self.conflicts = 0, list[JsonDict]()
        self.undelivered, self.log_bytes = 0, 5 << 20

    def second(self, number: int) -> None:
        """What happens within one second."""
        play = self.play
        if number < HELD_FROM:
            self._locks(self.live if number % 3 else self.backfill)
        elif number == HELD_FROM:
            self.stage.world.lock(self.id, self.backfill[1], self.backfill[0])
        self.commits += 1
        at = instant(0.2)
        self.log_bytes += self.dice.randint(1, 4) << 20
        if number % 40 == 35:
            self.log_bytes = 5 << 20
            self._service("compaction", "Completed", 0)
        told = {"instant": at, "action": "deltacommit", "completionTime": at, "records": 500}
        play.report(
            TABLE,
            commits=[told],
            lastInstant=at,
            lastCompletionTime=at,
            activeLength=10 + number,
            pending=[{"instant": instant(3), "action": "deltacommit", "state": "Inflight"}],
            pendingCount=1,
            lowestPendingRequestedTime=instant(3),
            readCost={"baseBytes": 60 << 20, "logBytes": self.log_bytes, "fileGroups": 8, "fileGroupsWithLogs": 5},
        )
        if number % 7 == 0:
            lost = {"instant": instant(4), "with": at, "fileGroups": ["month=2/1e35db0a"], "atMs": now_ms()}
            self.conflicts = [*self.conflicts, lost][-10:]
        told_of = {"conflicts": self.conflicts, "conflictCount": number // 7 + 1}
        written = {"commits": self.commits, "records": 500 * self.commits, "lastInstant": at, "lastCompletionTime": at}
        play.tells(TABLE, *self.live, waiting=max(0, 60 - number // 2), **told_of, **written)
        play.tells(TABLE, *self.backfill, waiting=max(0, 900 - 9 * number), **written)
        if number % 10 == 0:
            self._service(
                "clean", "Failed" if 30 <= number < 70 else "Completed", (number - 20) // 10 if 30 <= number < 70 else 0
            )
        self._callback(number)
        self._catalog(number)
        self._death(number)
        self._stranger(number)

    def _locks(self, owner: tuple[JsonDict, str]) -> None:
        pod, inc = owner
        world = self.stage.world
        lock, ticket = (world.key(self.id, name) for name in ("lock", f"queue/{inc}-n"))
        value = {"inc": inc, "attempt": f"{self.play.namespace}.{pod['metadata']['name']}", "nonce": "n"}
        value |= {"podUID": pod["metadata"]["uid"], "sinceMs": now_ms()}
        if self.dice.random() < 0.6:
            world.etcd.put(ticket, {"inc": inc})
            time.sleep(self.dice.uniform(0.05, 0.3))
        put = rpc.put(lock, json.dumps(value).encode())
        world.etcd._call("gateway", "Txn", rpc.txn_request([], [rpc.delete(ticket), put]), writes=True)
        time.sleep(self.dice.uniform(0.05, 0.4))
        world.etcd.delete(lock)

    def _service(self, name: str, result: str, failures: int) -> None:
        told = {"service": name, "inc": self.play.incs[TABLE], "message": "", "instant": "", "result": result}
        self.play.put(TABLE, f"done/service-{name}", {**told, "failures": failures, "atMs": now_ms()})

    def _callback(self, number: int) -> None:
        away = 40 <= number < 80
        self.undelivered = self.undelivered + 1 if away else 0
        told: JsonDict = {"inc": self.play.incs[TABLE], "archivedTo": "", "lost": 0, "atMs": now_ms()}
        told |= {"completionTime": instant(self.undelivered + 2), "instant": instant(self.undelivered + 3)}
        told |= {"delivered": number, "undelivered": self.undelivered, "failures": self.undelivered // 5}
        told |= {
            "oldest": instant(self.undelivered) if away else "",
            "reason": "HTTP503" if away else "",
            "message": "",
        }
        self.play.put(TABLE, "report/callback", told)

    def _catalog(self, number: int) -> None:
        uid = (self.stage.world.get("huditables", TABLE) or {})["metadata"]["uid"]
        order = CatalogOrder(uris=(METASTORE,), database="default", table=TABLE, timeout_seconds=60, uid=uid)
        report = CatalogReport(
            inc=self.play.incs[TABLE],
            target=order.target,
            instant=instant(number % 15 + 1),
            completion_time=instant(number % 15 + 1),
            at_ms=now_ms(),
            failures=max(0, number % 30 - 25),
        )
        self.play.put(TABLE, "report/catalog", report.to_json())

    def _death(self, number: int) -> None:
        pod, inc = self.killed
        if number == 50:
            self.stage.world.instant(self.id, inc, instant(5))
            self.stage.world.revoke(inc)
        if number == 65:
            threading.Thread(target=self._end, args=(pod, inc), daemon=True).start()

    def _end(self, pod: JsonDict, inc: str) -> None:
        self.stage.world.kubelet_kills(pod)
        self.stage.world.phase(self.id, inc, "RollingBack")
        time.sleep(8)
        self.stage.world.sweep(self.id, inc)

    def _stranger(self, number: int) -> None:
        if number % 5 == 0:
            client = self.stage.gateway.pod(Pod(self.play.namespace, "a-stranger", "no-uid"))
            with contextlib.suppress(grpc.RpcError):
                client.put(f"/hudi/tables/{self.id}/lock", {"inc": "x"})


# ---- what is asked


def asked(stage_: Stage, name: str, start: float, end: float) -> JsonDict:
    """Answers to every query of a dashboard."""
    variables = {"job": "hudi-operator", "namespace": stage_.world.namespace, "table": TABLE}
    variables |= {"__rate_interval": "10s", "__range": f"{SECONDS}s"}
    found: dict[str, dict[str, list[JsonDict]]] = {}
    for panel in dashboard(name)["panels"]:
        answers = found.setdefault(str(panel["id"]), {})
        for target in panel.get("targets", ()):
            expression = promtool.replaced(target["expr"], variables)
            ask = stage_.prometheus.ask
            whole = not target.get("instant") and panel["type"] != "stat"
            series = ask(expression, since=start, until=end, step=STEP) if whole else ask(expression)
            answers[target["refId"]] = [_shorter(one) for one in series]
    return {panel: answers for panel, answers in found.items() if answers}


def _shorter(series: JsonDict) -> JsonDict:
    """A series for a file: four digits of each value."""

    def pair(one: list[Any]) -> list[Any]:
        return [round(float(one[0]), 1), f"{float(one[1]):.6g}"]

    if "values" in series:
        return {"metric": series["metric"], "values": [pair(one) for one in series["values"]]}
    return {"metric": series["metric"], "value": pair(series["value"])}


def played(directory: Path) -> None:
    """Play, ask, and keep the answers."""
    with stage(directory) as made:
        made.enter("lake", pathPrefixes={"lake": list(PREFIXES)})
        made.start()
        made.led()
        busy = Busy(made)
        start = time.time()
        for number in range(SECONDS):
            busy.second(number)
            time.sleep(max(0.0, start + number + 1 - time.time()))
        end = time.time()
        STORE.mkdir(parents=True, exist_ok=True)
        for name in names():
            told = {
                "commit": commit(),
                "at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
                "start": round(start + BEFORE, 1),
                "end": round(end, 1),
                "panels": asked(made, name, start + BEFORE, end),
            }
            (STORE / f"{name}.json").write_text(json.dumps(told, separators=(",", ":")) + "\n")


def empty(name: str) -> list[str]:
    """Titles of panels with a query without an answer."""
    titles = {str(panel["id"]): panel["title"] for panel in dashboard(name)["panels"]}
    return sorted(titles[panel] for panel, answers in kept(name)["panels"].items() if not all(answers.values()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.alerts.panels", description="draw the dashboards")
    parser.add_argument("--draw", action="store_true", help="only draw, from the answers that are there")
    given = parser.parse_args()
    if not given.draw:
        with tempfile.TemporaryDirectory(prefix="hudi-panels-") as directory:
            played(Path(directory))
    for name in names():
        file(name).write_text(picture(name), encoding="utf-8")
        print(f"{name}: {', '.join(empty(name)) or 'every query has an answer'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
