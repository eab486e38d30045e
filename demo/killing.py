"""Kills one writer while it writes data, and measures the times of the following steps."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field

from demo import cluster
from demo.flights import CORRECTIONS
from demo.lake import DataFile, data_files
from demo.protocol import Settling, attempts, settlings
from demo.screen import DemoFailed
from demo.world import NAMESPACE, World
from hudi_contract.keys import Kind
from hudi_contract.settle import Phase
from hudi_contract.table_keys import InstantRecord, Lock

KILLS = 4
"""Maximum number of kills. A kill may come too late for its instant; then the writer of the next
commit is killed as well.
"""


@dataclass
class Kill:
    """One SIGKILL of a driver's JVM, and the instant's state on S3 right before it."""

    pod: str
    attempt: str
    instant: str
    files: list[DataFile]
    at: float
    times: dict[str, float] = field(default_factory=dict)
    """Seconds from the kill until each of: fenced, proven, unlocked, rolled back, settled, next
    attempt's pod.
    """
    next_pod: str = ""


def kill_while_writing(world: World, writer: str) -> Kill:
    """Kill the driver's JVM of ``writer`` as soon as S3 shows an inflight instant with a data file,
    after at least one commit.
    """
    for _ in range(KILLS):
        kill = _kill_once(world, writer)
        world.screen.fact(
            f"SIGKILL to the JVM of pod {kill.pod}: instant {kill.instant} was inflight with {len(kill.files)} data "
            "file(s) on S3:"
        )
        for file in kill.files:
            world.screen.fact(f"    {file.path} ({file.size:,} bytes)")
        if not _completed(world, kill.instant, seconds=2):
            return kill
        world.screen.fact(f"too late: {kill.instant} was committed; once more")
    raise DemoFailed(f"{writer} was killed {KILLS} times, each time after its commit")


def _kill_once(world: World, writer: str) -> Kill:
    tried: set[str] = set()

    def ready() -> tuple[Kill | None, str]:
        instants = _instants(world, writer)
        timeline = {instant.requested: instant for instant in world.lake.timeline(world.path)}
        done = [i for i in instants if i in timeline and timeline[i].completed]
        pending = [
            i for i in instants if i in timeline and not timeline[i].completed and "inflight" in timeline[i].states
        ]
        seen = f"{writer}: {len(done)} commit(s), {len(pending)} instant(s) inflight"
        if not done or not pending or pending[-1] in tried:
            return None, seen
        instant, attempt = pending[-1], instants[pending[-1]]
        pod = attempt.split(".", 1)[1]
        pid = cluster.jvm_pid(NAMESPACE, pod)
        files = _first_files(world, instant)
        late = _holds_lock(world, attempt) and len(done) < len(CORRECTIONS) - 1
        if pid is None or not files or late:  # late: it is already committing; the next commit is used instead
            tried.add(instant)
            return None, seen
        kill = Kill(pod, attempt, instant, files, time.time())
        os.kill(pid, signal.SIGKILL)
        return kill, ""

    return world.screen.wait(f"{writer} to write data, to kill it then", ready, seconds=900, every=0.2)


def _instants(world: World, writer: str) -> dict[str, str]:
    """Instants of the writer's attempts, as recorded in etcd before their files were made,
    with the attempt.
    """
    changes = world.watch.changes()
    who = attempts(changes)
    found = {}
    for change in changes:
        kind, name = change.of
        if kind == Kind.INSTANT and change.value is not None:
            attempt = who.get(change.read(InstantRecord).inc, "")
            if attempt.startswith(f"{NAMESPACE}.{writer}-"):
                found[name] = attempt
    return dict(sorted(found.items()))


def _first_files(world: World, instant: str) -> list[DataFile]:
    """Poll quickly until a data file of the instant is on S3.

    Empty when the instant ends before one is seen.
    """
    partitions = [name for name in world.lake.names(world.path) if not name.startswith(".")]
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        listed = {
            f"{partition}/{name}": size
            for partition in partitions
            for name, size in world.lake.files(f"{world.path}/{partition}").items()
        }
        files = [file for file in data_files(listed) if file.instant == instant]
        names = world.lake.names(f"{world.path}/.hoodie/timeline")
        if any(name.startswith(f"{instant}_") for name in names) or f"{instant}.deltacommit.inflight" not in names:
            return []
        if files:
            return files
        time.sleep(0.02)
    return []


def _holds_lock(world: World, attempt: str) -> bool:
    last = {change.key: change for change in world.watch.changes() if change.of[0] == Kind.LOCK}
    return any(change.read(Lock).attempt == attempt for change in last.values())


def _completed(world: World, instant: str, *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if any(name.startswith(f"{instant}_") for name in world.lake.names(f"{world.path}/.hoodie/timeline")):
            return True
        time.sleep(0.2)
    return False


def follow(world: World, kill: Kill, writer: str) -> None:
    """Wait until the dead attempt is settled and the next one has a pod; fills ``kill.times``."""

    def settled() -> tuple[bool | None, str]:
        record = next((s for s in settlings(world.watch.changes()) if s.attempt == kill.attempt), None)
        if record is not None:
            _note(kill, record)
        following = [
            (name, at)
            for name, (_, at) in world.logs.seen.items()
            if _is_driver(name, writer) and at.timestamp() > kill.at and name != kill.pod
        ]
        if following:
            kill.next_pod, moment = min(following, key=lambda pair: pair[1])
            kill.times.setdefault("next attempt's pod", moment.timestamp() - kill.at)
        if {"settled", "next attempt's pod"} <= kill.times.keys():
            return True, ""
        return None, ", ".join(f"{name} +{seconds:.1f} s" for name, seconds in kill.times.items()) or "not noticed yet"

    world.screen.wait(f"the operator to settle what {kill.pod} has left", settled, seconds=600, every=0.5)
    for name, seconds in sorted(kill.times.items(), key=lambda pair: pair[1]):
        world.screen.fact(f"    kill → {name:18s} {seconds:6.1f} s")


def _is_driver(pod: str, writer: str) -> bool:
    return pod.startswith(f"{writer}-") and "-exec-" not in pod


PROVEN = tuple(phase.name for phase in Phase if phase >= Phase.Draining)


def _note(kill: Kill, record: Settling) -> None:
    """Translate phases into steps for people.

    A phase that passed too quickly to be seen has the time of the next one.
    """
    phases = record.phases
    steps = {
        "fenced": tuple(phase.name for phase in Phase),
        "proven": PROVEN,
        "unlocked": PROVEN[1:],
        "settled": (Phase.Settled.name,),
    }
    for step, names in steps.items():
        seen = [phases[name] for name in names if name in phases]
        if seen:
            kill.times.setdefault(step, min(seen) - kill.at)
    if kill.instant in record.rolled_back:
        kill.times.setdefault("rolled back", record.rolled_back[kill.instant] - kill.at)
