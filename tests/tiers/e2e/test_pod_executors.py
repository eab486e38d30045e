"""Executors on a real node: lost while their driver lives, and alive after its death."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from demo import cluster

from tests.support.cluster.scene import EXECUTOR, Scene, executors
from tests.support.cluster.space import Space, wait_for
from tests.support.harness.s3proxy import Proxy, data_file

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1200)]


def at_work(space: Space, driver: str) -> str:
    """The executor pod that runs the rows through Python, that is, writes the file."""

    def probe() -> str | None:
        for name in executors(space, driver):
            for pid in cluster.host_pids(space.namespace, name):
                if "python" in os.path.basename(_program(pid)):
                    return name
        return None

    return wait_for(f"an executor of {driver} at work", probe, seconds=60, every=0.2)


def _program(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


def scene_with_executors(space: Space, proxy: Proxy, name: str, instances: int, **more: Any) -> Scene:
    return Scene(space, proxy, name, delay=0.4, victim={"executors": {"instances": instances, **EXECUTOR}}, **more)


def test_loss_of_an_executor_is_no_fault_of_the_writer(space: Space, proxy: Proxy) -> None:
    """The executor that writes is killed, its file arrives afterwards: Spark writes again in the
    same attempt, which succeeds, and every row is there once.

    F36: a task of that executor may write after the commit. So the attempt is fenced when it is
    over, and settled when the executor's pod is proven dead, or gone: its instant stays
    `Completed`.
    """
    scene = scene_with_executors(space, proxy, "lost", 2)
    instant, pod = scene.inflight()
    executor = at_work(space, pod)
    uid = executors(space, pod)[executor]
    held = scene.hold(data_file, instant)
    at = time.time()
    space.signal_all(executor, signal.SIGKILL)
    held.deliver.set()
    assert held.delivered.wait(20)
    record = scene.settled("executor killed, attempt succeeded", pod, at)
    assert record.outcomes == {instant: "Completed"}, record
    # In the record, or no pod is left of it. Why the pod has gone is not looked at here.
    assert uid in scene.record(pod)["proofs"] or executor not in executors(space, pod)
    scene.finish()
    assert len(scene.published(data_file, instant)) > 1, "no other executor wrote the file again"
    assert [driver["metadata"]["name"] for driver in space.drivers(scene.victim)] == [pod], "an attempt was lost"


def test_an_executor_that_outlives_its_driver(space: Space, proxy: Proxy) -> None:
    """It is frozen when its driver dies, and goes on; its file arrives in the drain.

    Settling waits for its proof, and the file goes.
    """
    scene = scene_with_executors(space, proxy, "orphans", 1)
    instant, pod = scene.inflight()
    executor = at_work(space, pod)
    uid = executors(space, pod)[executor]
    held = scene.hold(data_file, instant)
    space.signal_all(executor, signal.SIGSTOP)
    at = time.time()
    space.signal(pod, signal.SIGKILL)
    scene.wait_phase(pod, "Fenced")
    space.signal_all(executor, signal.SIGCONT)
    scene.wait_phase(pod, "Draining")
    held.deliver.set()
    assert held.delivered.wait(20)
    record = scene.settled("driver killed, executor frozen and resumed", pod, at)
    kept = scene.record(pod)
    assert uid in kept["proofs"], f"settled without proof of {executor}: {kept['proofs']}"
    assert kept["proofs"][uid]["atMs"] <= kept["times"]["Draining"]
    assert record.outcomes == {instant: "RolledBack"}, record
    scene.assert_gone(instant)
    scene.finish()
