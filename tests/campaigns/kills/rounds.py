"""One round: a fresh table, three live writers, and a victim that is killed a number of times."""

from __future__ import annotations

import os
import random
import signal
import time
from types import TracebackType
from typing import Any
from urllib.parse import urlparse

import pandas as pd
from demo import cluster, world
from demo.cluster import kubectl
from demo.lake import Lake, moment
from demo.protocol import Watch
from demo.screen import Screen

from tests.support.cluster.node import HOST
from tests.support.cluster.space import Space, make_space, run, wait_for, written
from tests.support.evidence import commit
from tests.support.harness.s3proxy import Held, Proxy, completed

LIVE = 3
ROWS = 20
MILLION = 1_000_000


class Broken(AssertionError):
    """A round that broke an invariant, or one that is stuck, as something did not happen in its
    time; ``round`` is what is known of it.
    """

    def __init__(self, why: str, found: dict[str, Any]) -> None:
        super().__init__(why)
        self.round = found


class Rounds:
    """The cluster, and rounds on it one after another."""

    def __init__(self) -> None:
        self.screen = Screen()
        self.commit = commit()
        run("demo/run", "install", seconds=1800)
        os.environ["KUBECONFIG"] = run("hack/cluster/cluster", "kubeconfig").strip()
        self.lake: Lake = world.storage(self.screen)
        self.lake.make_folder("e2e")
        self.watch: Watch
        self.watch, self._forward = world.etcd_watch(self.screen)
        self.watch.start()
        server = urlparse(self.lake.endpoint)
        self.proxy = Proxy(HOST, (str(server.hostname), int(server.port or 80)))

    def __enter__(self) -> Rounds:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.proxy.stop()
        self.watch.stop()
        self._forward.stop()

    def run(self, kind: str, kills: int, chance: random.Random) -> dict[str, Any]:
        """A round. Raises Broken; of a round that is stuck its rows were not looked at, and `stuck`
        says what was waited for.
        """
        space = make_space(f"kills-{kind}", self.lake, self.watch)
        round_ = Round(space, self.proxy if kind == "critical" else None, self.screen, chance)
        try:
            found = {"rows": round_.run(kills), "stuck": ""}
        except Broken as broken:
            found = {"rows": str(broken), "stuck": ""}
        except AssertionError as error:
            found = {"rows": "not looked at", "stuck": str(error)[:500]}
        found |= {"kills": round_.done, "load": round_.loads}
        found |= {"kind": kind, "commit": self.commit, "at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())}
        if found["rows"] != "ok":
            raise Broken(found["stuck"] or found["rows"], found)
        kubectl("delete", "namespace", space.namespace, "--wait=false")
        return found


class Round:
    """A table ``t``, writers ``live-0``… and ``victim``."""

    def __init__(self, space: Space, proxy: Proxy | None, screen: Screen, chance: random.Random) -> None:
        self.space, self.proxy, self.screen, self.chance = space, proxy, screen, chance
        self.done: list[dict[str, Any]] = []
        self.loads: list[float] = []
        """The kills so far, and the load average when each was settled."""

    def run(self, kills: int) -> str:
        """Kill, wait for the ends, look: `check`.

        Raises Broken, and AssertionError of what did not happen in its time.
        """
        space = self.space
        spec = space.table("t", apply=False)["spec"]
        if self.proxy is not None:
            spec["storage"]["options"]["fs.s3a.endpoint"] = f"http://{HOST}:{self.proxy.port}"
        space.table("t", storage=spec["storage"])
        space.wait("huditable/t", "Ready", seconds=300)
        for number in range(LIVE):
            space.writer(
                f"live-{number}", "t", batches=MILLION // ROWS, rows=ROWS, delay=2.0, first=(number + 1) * MILLION
            )
        space.writer(
            "victim",
            "t",
            batches=kills + 1,
            rows=ROWS,
            delay=0.25,
            retryPolicy={"limit": min(20, kills + 10), "backoffSeconds": 1, "maxBackoffSeconds": 2},
        )
        pod = ""
        while len(self.done) < kills and not cluster.is_true(space.get("hudiwriter", "victim"), "Finished"):
            instant, pod = space.wait_inflight("victim", "t", not_pod=pod, seconds=240)
            self.kill(instant, pod)
            told = ", ".join(f"{name} {value}" for name, value in self.done[-1].items())
            self.screen.fact(f"kill {len(self.done)} of {kills}: {told}")
        space.wait("hudiwriter/victim", "Finished", seconds=600)
        for number in range(LIVE):
            kubectl(
                "patch",
                "hudiwriter",
                f"live-{number}",
                "-n",
                space.namespace,
                "--type=merge",
                "-p",
                '{"spec":{"suspend":true}}',
            )
        for number in range(LIVE):
            wait_for(f"the end of live-{number}", lambda name=f"live-{number}": self._ended(name), seconds=180, every=2)
        return self.check(kills)

    def kill(self, instant: str, pod: str) -> None:
        """Kill the victim once and wait until it is settled; `done` has what it took, in seconds
        after the kill. Raises Broken, and AssertionError of what did not happen in its time.
        """
        space, held, late = self.space, None, 0.0
        if self.proxy is None:
            time.sleep(self.chance.uniform(0, 3))
        else:
            held = self.proxy.hold_next(lambda line: completed(line) and f"/{instant}_" in line)
            assert held.arrived.wait(180), f"{instant} did not come to its commit"
            late = self.chance.choice([0.0, self.chance.uniform(0.5, 6)])
        space.signal(pod, signal.SIGKILL)
        at = time.time()
        if held is not None:
            self._deliver(held, late)
        record = space.wait_settled(pod, seconds=240)
        # An instant that was completed and released before the kill has no record
        outcome = record.outcomes.get(instant, "Completed")
        wanted = {"Completed"} if late else {"RolledBack"} if held is not None else {"RolledBack", "Completed", "Gone"}
        phases = {phase: round(seen - at, 1) for phase, seen in sorted(record.phases.items(), key=lambda pair: pair[1])}
        others = [
            moment(i.completed).timestamp()
            for i in space.lake.timeline(space.path("t"))
            if i.completed and i.requested != instant
        ]
        between = sum(at < seen < record.phases["Settled"] for seen in others)
        found = {
            "instant": instant,
            "outcome": outcome,
            "delivered": round(late, 1) or None,
            "commitsOfOthers": between,
            **phases,
        }
        self.done.append(found)
        self.loads.append(round(os.getloadavg()[0], 1))
        if outcome not in wanted:
            raise Broken(f"{instant} is {outcome}, expected {' or '.join(sorted(wanted))}", {})

    @staticmethod
    def _deliver(held: Held, late: float) -> None:
        if late:
            time.sleep(late)
            held.deliver.set()
            assert held.delivered.wait(20), "the held request was not delivered"

    def _ended(self, name: str) -> bool:
        ended = all(pod["status"].get("phase") in {"Succeeded", "Failed"} for pod in self.space.drivers(name))
        return ended and cluster.is_true(self.space.get("hudiwriter", name), "Suspended")

    def check(self, kills: int) -> str:
        """``ok``, or the error: every row of every acknowledged commit must be there once and
        nothing else, and all that the audit checks.
        """
        wanted = [written(batches=kills + 1, rows=ROWS)]
        for number in range(LIVE):
            records = int(self.space.get("hudiwriter", f"live-{number}")["status"].get("records", 0))
            if records:
                wanted.append(written(batches=records // ROWS, rows=ROWS, first=(number + 1) * MILLION))
        answers = self.space.audit("t", pd.concat(wanted))
        return (
            "ok"
            if set(answers.outcomes.values()) <= {"ok", "not asked"} and answers.outcomes["rows"] == "ok"
            else str(answers.text)
        )
