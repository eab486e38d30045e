"""All runs: references first, then one run per write and fault, several side by side.

Each result is a file, so that a campaign can be continued.
"""

from __future__ import annotations

import compileall
import copy
import fcntl
import hashlib
import json
import os
import pickle
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grpc

from tests.campaigns.crashes.agent_proxy import PREFIX
from tests.campaigns.crashes.api_proxy import FIRST_PORT, PORTS_EACH
from tests.campaigns.crashes.etcd_proxy import can_conflict
from tests.campaigns.crashes.faults import KILLS, Fault, Target
from tests.campaigns.crashes.interruptions import ALONE, INTERRUPTIONS
from tests.campaigns.crashes.play import SCENARIOS
from tests.campaigns.crashes.prepared import prepared
from tests.campaigns.crashes.run import Outcome, Parts, Reference, Run, differences
from tests.campaigns.crashes.shared import joined, s3, servers
from tests.support import ROOT, evidence
from tests.support.harness.servers import ENVIRONMENT, Etcd

JsonDict = dict[str, Any]
RESULTS = ROOT / "build" / "crashes"
REFERENCES = 3
DISTURBING = frozenset(f.__name__.replace("_", " ") for f in ALONE)
TRIES = 3
"""Number of tries of a write that depends on timing, and of an interruption that did not take
effect; a run that did not reach it is not counted.
"""
JUDGES = ("play", "run", "monitor", "faults", "interruptions", "nursery", "api_proxy", "etcd_proxy", "naming")
JUDGES += ("agents", "agent_host", "agent_proxy", "prepared")
AGENT = ("spark-images/hudi_runtime", "spark-images/etcd-lock/src/main")
UNDER_TEST = (
    "operator/hudi_contract",
    "operator/hudi_operator",
    *AGENT,
    "crds",
    *(f"tests/campaigns/crashes/{name}.py" for name in JUDGES),
)


@dataclass(frozen=True)
class Case:
    """One run to be done.

    Without target and interruption: a reference, told apart by ``number``.
    """

    scenario: str
    target: Target | None = None
    fault: Fault | None = None
    number: int = 0
    interruption: str = ""
    played: bool = False
    """The agent is played."""

    @property
    def is_reference(self) -> bool:
        return self.target is None and not self.interruption

    @property
    def slug(self) -> str:
        """Name of its result file."""
        if self.interruption:
            return f"{_slug(self.scenario)}/interruption/{_slug(self.interruption)}"
        if self.target is None:
            return f"{_slug(self.scenario)}/{'played-' if self.played else ''}reference-{self.number}"
        digest = hashlib.sha256(f"{self.target} {self.fault}".encode()).hexdigest()[:8]
        return f"{_slug(self.scenario)}/{_slug(str(self.fault))}/{_slug(str(self.target))[:80]}-{digest}"

    def __str__(self) -> str:
        if self.interruption:
            return f"{self.scenario}: interruption: {self.interruption}"
        return (
            f"{self.scenario}: {self.fault}: {self.target}"
            if self.target
            else f"{self.scenario}: reference {self.number}{' played' * self.played}"
        )


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")


def code_key() -> str:
    """Hash of what is under test, and of what judges it: results of other code do not count."""
    digest = hashlib.sha256()
    for place in UNDER_TEST:
        path = ROOT / place
        for file in sorted(
            [path]
            if path.is_file()
            else (f for f in path.rglob("*") if f.suffix in (".py", ".yaml", ".json", ".java", ".proto"))
        ):
            digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()[:12]


class Results:
    """Result files of the current code."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, case: Case) -> Path:
        return self.directory / f"{case.slug}.json"

    def read(self, case: Case) -> JsonDict | None:
        """The result; None when the case was not run to its end."""
        path = self.path(case)
        return dict(json.loads(path.read_text())) if path.exists() else None

    def write(self, case: Case, outcome: Outcome, *, tries: int) -> None:
        path = self.path(case)
        path.parent.mkdir(parents=True, exist_ok=True)
        value = {
            "case": str(case),
            "tries": tries,
            "commit": evidence.commit(),
            "at": _now(),
            **asdict(outcome),
            "writes": [[t.name, t.turn] for t in outcome.writes],
        }
        if not case.is_reference:
            value = {k: v for k, v in value.items() if k not in ("state", "counts", "writes")}
        scratch = path.with_suffix(".part")
        scratch.write_text(json.dumps(value, indent=1))
        scratch.rename(path)

    def disturbed(self, case: Case, outcome: Outcome) -> None:
        """A try that shows nothing for certain is made again.

        The record says that it was made, why it does not count, and what it showed nevertheless.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        value = {"case": str(case), "why": outcome.disturbed, "deviations": outcome.deviations, "at": _now()}
        with (self.directory / "disturbed.jsonl").open("a") as out:
            out.write(json.dumps(value) + "\n")

    def all_disturbed(self) -> list[JsonDict]:
        """Every try that was left out."""
        path = self.directory / "disturbed.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def forget_references(self) -> None:
        """Forget references of another start: its servers had other certificates and ports."""
        for path in self.directory.glob("*/*reference-*.json"):
            path.unlink()

    def reference(self, scenario: str, *, played: bool = False) -> tuple[Reference, list[Target]] | None:
        """State, counts and the writes that every reference has made, in the order of the first.

        None while some are missing.
        """
        found = [self.read(Case(scenario, number=n, played=played)) for n in range(REFERENCES)]
        done = [f for f in found if f is not None and not f["deviations"]]
        if len(done) < REFERENCES:
            return None
        for n, other in enumerate(done):
            wrong = [
                *differences(done[0]["state"], other["state"], "end state"),
                *differences(done[0]["counts"], other["counts"], "counts"),
            ]
            if wrong:
                raise AssertionError(f"{scenario}: reference {n} is no reference: {wrong}")
        common = set.intersection(*({tuple(w) for w in f["writes"]} for f in done))
        return Reference(done[0]["state"], done[0]["counts"]), [
            Target(*w) for w in done[0]["writes"] if tuple(w) in common
        ]


def cases(results: Results) -> list[Case]:
    """Every case of the campaign; only references as long as some are missing.

    Kills and interruptions, with the real agent, come first.
    """
    found = []
    for scenario in SCENARIOS:
        for played in (False, True):
            known = results.reference(scenario, played=played)
            if known is None:
                return [
                    Case(s, number=n, played=p) for p in (False, True) for s in SCENARIOS for n in range(REFERENCES)
                ]
            faults = [fault for fault in Fault if (fault not in KILLS) == played]
            found += [
                Case(scenario, t, fault, played=played) for fault in faults for t in known[1] if _applies(fault, t)
            ]
    return [Case(s, interruption=name) for name in INTERRUPTIONS for s in SCENARIOS] + sorted(found, key=_urgency)


def _applies(fault: Fault, target: Target) -> bool:
    """Whether a write can meet a fault.

    The agent is killed only: what lost answers do to it, tests of the Java module show.
    """
    if target.name.startswith(PREFIX):
        return fault in KILLS
    return fault is not Fault.CONFLICT or can_conflict(target.name)


def _urgency(case: Case) -> tuple[bool, bool, str]:
    """Kills first; of each kind what is written for people or written again last.

    Scenarios mixed.
    """
    assert case.target is not None
    again = case.target.name.startswith("event") or (case.target.name.startswith("apply") and case.target.turn > 1)
    return case.played, again, hashlib.sha256(case.slug.encode()).hexdigest()


# ---- workers


def work(place: Path) -> int:
    """A worker: cases as pickles from standard input, a line per result on standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setup = pickle.loads((place / "setup").read_bytes())
    results = Results(setup["results"])
    shared = {name: setup[name] for name in ("s3_server", "prepared")}
    with joined(setup["cluster"], setup["etcd"], scratch=place / f"agents-{os.getpid()}", **shared) as parts:
        for line in sys.stdin:
            case: Case = pickle.loads(bytes.fromhex(line))
            known = None if case.is_reference else results.reference(case.scenario, played=case.played)
            for number in range(1, TRIES + 1):
                scratch = place / f"{case.slug}-{number}"
                outcome = _run(parts, case, scratch, known[0] if known else None)
                if outcome.disturbed:
                    print(f"{case}: {outcome.disturbed}", file=sys.stderr, flush=True)
                    results.disturbed(case, outcome)
                    shutil.rmtree(scratch, ignore_errors=True)
                    continue
                if outcome.deviations:
                    kept = results.path(case).with_suffix("")
                    shutil.rmtree(kept, ignore_errors=True)
                    shutil.copytree(scratch, kept)
                shutil.rmtree(scratch, ignore_errors=True)
                outcome.hit = outcome.hit or case.is_reference
                if outcome.hit or outcome.deviations:
                    break
            if not outcome.disturbed:
                results.write(case, outcome, tries=number)
            said = [f"the play: {outcome.disturbed}"] if outcome.disturbed else outcome.deviations
            print(json.dumps([str(case), round(outcome.seconds, 1), outcome.hit, said, outcome.cpu]), flush=True)
    return 0


def _run(parts: Parts, case: Case, scratch: Path, reference: Reference | None) -> Outcome:
    """One run; what fails around it (a machine that is too busy, mostly) makes it one that shows
    nothing, and the worker goes on. Its results before the failed end are kept.
    """
    outcome = Outcome([], hit=False, writes=[])
    try:
        run = Run(
            parts,
            scratch,
            case.scenario,
            target=case.target,
            fault=case.fault,
            interruption=case.interruption,
            played=case.played,
        )
        try:
            outcome = run.execute(reference)
        finally:
            run.close()
    except (AssertionError, OSError, grpc.RpcError, FutureTimeout) as error:
        outcome.disturbed = outcome.disturbed or f"{type(error).__name__}: {str(error)[:300]}"
    return outcome


class Crew:
    """Workers and the queue that feeds them."""

    def __init__(self, place: Path, count: int, *, deadline: float) -> None:
        self._deadline = deadline
        self._todo: queue.SimpleQueue[Case] = queue.SimpleQueue()
        command = [sys.executable, "-m", "tests.campaigns.crashes", "--worker", str(place)]
        environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join((str(ROOT / "operator"), str(ROOT)))}
        pipe = subprocess.PIPE
        self._workers = []
        for number in range(count):
            environment[FIRST_PORT] = str(10000 + number * PORTS_EACH)
            with (place / f"worker-{number}.log").open("wb") as log:
                self._workers.append(
                    subprocess.Popen(
                        command,
                        cwd=ROOT,
                        env=environment,
                        stdin=pipe,
                        stdout=pipe,
                        stderr=log,
                        text=True,
                        start_new_session=True,
                    )
                )

    def run(self, todo: Iterable[Case], *, workers: int | None = None) -> None:
        """Run all cases, or as many as can begin before the deadline, on this number of workers
        (None: on all).
        """
        for case in todo:
            self._todo.put(case)
        done: list[int] = []
        threads = [
            threading.Thread(target=self._feed, args=(worker, done), daemon=True) for worker in self._workers[:workers]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _feed(self, worker: subprocess.Popen[str], done: list[int]) -> None:
        assert worker.stdin is not None
        assert worker.stdout is not None
        while time.monotonic() < self._deadline:
            try:
                case = self._todo.get_nowait()
            except queue.Empty:
                return
            try:
                worker.stdin.write(pickle.dumps(case).hex() + "\n")
                worker.stdin.flush()
                line = worker.stdout.readline()
            except BrokenPipeError:
                line = ""
            if not line:
                self._todo.put(case)
                print(f"a worker has ended; left to the others: {case}", flush=True)
                return
            done.append(1)
            what, seconds, hit, deviations, cpu = json.loads(line)
            word = "ok" if hit else "not reached"
            if deviations:
                word = "no result" if deviations[0].startswith("the play") else "DEVIATION"
            print(
                f"{len(done):4d} {word:11s} {seconds:5.1f} s  cpu {cpu}  {what}"
                + "".join(f"\n       {d[:600]}" for d in deviations),
                flush=True,
            )

    def close(self) -> None:
        """End the workers and all that they have started."""
        for worker in self._workers:
            try:
                os.killpg(worker.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            worker.wait()


def campaign(place: Path, *, workers: int, minutes: float, only: str = "") -> Results:
    """Run the cases without a result, for this number of minutes at most.

    ``only``: a regular expression on the case's sentence.
    """
    results = Results(RESULTS / code_key())
    results.directory.mkdir(parents=True, exist_ok=True)
    mine = os.open(results.directory, os.O_RDONLY)
    fcntl.flock(mine, fcntl.LOCK_EX)  # one campaign at a time: it goes on where the other one ended
    deadline = time.monotonic() + minutes * 60
    # Every run starts the operator once or twice: compiled, it takes half the time.
    compileall.compile_dir(ROOT / "operator", quiet=1)
    table = prepared(RESULTS)
    with servers(place) as (cluster, etcd), s3(place / "storage") as s3_server:
        seen: Etcd = copy.copy(etcd)
        seen._process = None
        setup = {
            "results": results.directory,
            "cluster": cluster,
            "etcd": seen,
            "s3_server": s3_server,
            "prepared": table,
        }
        (place / "setup").write_bytes(pickle.dumps(setup))
        crew = Crew(place, workers, deadline=deadline)
        try:
            results.forget_references()
            crew.run(cases(results))
            todo = [
                c for c in cases(results) if not c.is_reference and results.read(c) is None and re.search(only, str(c))
            ]
            alone = [c for c in todo if c.interruption in DISTURBING]
            crew.run(c for c in todo if c not in alone)
            crew.run(alone, workers=1)
        finally:
            crew.close()
    return results
