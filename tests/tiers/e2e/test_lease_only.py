"""Why a lease is no lock: the same pause with a lock that ends with its lease, and with ours.

A writer's completed file is on its way (a proxy holds the PUT), its JVM is frozen, its lease runs
out, a second writer of the same file group comes, and then the PUT arrives. With
`fencing.mode: LeaseOnly` both commits stand although they overlap. With the default the second
writer gets the lock only after the first one's death is proven and drained, sees its
commit, and conflicts.
"""

from __future__ import annotations

import signal
import time

import pandas as pd
import pytest
from demo import cluster

from tests.support.cluster.node import HOST
from tests.support.cluster.space import Space, wait_for, written
from tests.support.harness.s3proxy import Held, Proxy, completed

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("tables")]
MODES = ("LeaseOnly", "PodTermination")


@pytest.fixture(scope="module")
def tables(space: Space, proxy: Proxy) -> None:
    """Two tables behind the S3 proxy, one for each mode, each with one commit."""
    for mode in MODES:
        name = table_of(mode)
        storage = space.table(name, apply=False)["spec"]["storage"]
        storage["options"]["fs.s3a.endpoint"] = f"http://{HOST}:{proxy.port}"
        space.table(name, storage=storage, fencing={"mode": mode})
        space.writer(f"{name}-seed", name, rows=20)
    for mode in MODES:
        space.wait(f"hudiwriter/{table_of(mode)}-seed", "Finished", seconds=300)


def table_of(mode: str) -> str:
    """Name of the table in that mode."""
    return f"pause-{mode.lower()}"


def run_pause(space: Space, proxy: Proxy, mode: str) -> tuple[str, str, Held]:
    """Up to the point where the first writer is frozen with its completed file held.

    Returns table, its driver pod, the held PUT.
    """
    name = table_of(mode)
    # No second attempt of the first writer comes between. Both begin their commits at about the
    # same time; the second one writes for longer. Each changes one half of the file group's rows:
    # what one of them does not see of the other is missing or old in the end.
    space.writer(f"{name}-second", name, rows=10, first=10, add=2, delay=5, operation="Upsert")
    wait_for("the second writer's instant", lambda: space.instants(f"{name}-second") or None, seconds=120)
    space.writer(f"{name}-first", name, rows=10, add=1, delay=0.6, operation="Upsert", retryPolicy={"limit": 0})
    recorded = wait_for(
        "the first writer's instant", lambda: space.instants(f"{name}-first") or None, seconds=120, every=0.1
    )
    published = f"/{list(recorded)[-1]}_"
    held = proxy.hold_next(lambda line: completed(line) and published in line)
    assert held.arrived.wait(120), "the first writer did not come to its commit"
    pod = space.drivers(f"{name}-first")[-1]["metadata"]["name"]
    space.signal_all(pod, signal.SIGSTOP)
    return name, pod, held


def due() -> pd.DataFrame:
    """What both writers have left of the seed's rows."""
    return pd.concat([written(batches=1, rows=10, add=1), written(batches=1, rows=10, first=10, add=2)])


@pytest.mark.extra
def test_lease_only_lets_two_overlapping_commits_stand(space: Space, proxy: Proxy) -> None:
    name, _, held = run_pause(space, proxy, "LeaseOnly")

    def second_done() -> bool:
        return cluster.is_true(space.get("hudiwriter", f"{name}-second"), "Succeeded")

    wait_for("the second writer's commit", second_done, seconds=240)
    held.deliver.set()
    assert held.delivered.wait(20)
    assert " 200 " in held.answer, held.answer
    # Both wrote log files of one file group, which readers merge: no row is missing or wrong yet.
    outcomes = space.audit(name, due()).outcomes
    assert outcomes["overlap"] == "violated", "LeaseOnly was expected to let two overlapping commits stand"
    assert (outcomes["rows"], outcomes["unique"]) == ("ok", "ok"), outcomes


def test_default_mode_makes_the_second_writer_wait_and_conflict(space: Space, proxy: Proxy) -> None:
    name, pod, held = run_pause(space, proxy, "PodTermination")

    def draining() -> bool:
        record = space.settling(pod)
        return record is not None and bool({"Draining"} & record.phases.keys())

    wait_for("proof of death", draining, seconds=120, every=0.2)
    held.deliver.set()  # before the drain ends
    assert held.delivered.wait(20)
    at = time.time()
    record = space.wait_settled(pod, seconds=120)
    assert record.phases["Unlocked"] > at, "the PUT was delivered after the drain"
    assert set(record.outcomes.values()) == {"Completed"}, record
    space.wait(f"hudiwriter/{name}-second", "Finished", seconds=300)
    writer = space.get("hudiwriter", f"{name}-second")
    assert cluster.is_true(writer, "Succeeded"), writer["status"]
    assert writer["status"]["conflicts"] >= 1
    space.audited(name, due())  # nothing is stray (F77)
    space.read_by_own_rows(name, due())
