"""Nodes that are drained or announced to be gone, with the operator and without it: `kubectl drain`
itself, drivers and agents as processes, a real commit under way.

A finished commit is not lost, an unfinished one is repeated, and nothing waits for a person. What
waits for the operator is the object of a pod whose end is evidence: a drain returns when the
operator has seen it. The kubelet is ours (`local_kubelet`), and so is the end of the machine.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import CACHE
from tests.support.harness.local import rows
from tests.support.harness.servers import Cluster, Etcd, wait_for
from tests.support.harness.together import LONG, Together

pytestmark = [pytest.mark.extra, pytest.mark.timeout(900)]

NOTICE_SECONDS = 30
"""From the notice of a spot instance to its end, on the clouds that give the least."""
FIRST, SECOND = rows(range(10), "a", "one", 1), rows(range(5, 20), "a", "two", 2)
BESIDE = rows(range(40, 50), "b", "beside", 3)
DUE = [row for row in FIRST if row[0] < 5] + SECOND


@pytest.fixture
def whole(cluster: Cluster, etcd: Etcd, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Together]:
    """A namespace with two nodes; new pods go to the second one while the first is cordoned."""
    made = Together(cluster, etcd, tmp_path, f"drain-{os.urandom(2).hex()}")
    failed = request.session.testsfailed
    try:
        made.start()
        yield made
    finally:
        made.close()
        if request.session.testsfailed > failed:
            print(made.told())


class Drain:
    """``kubectl drain`` of the first node, as a process."""

    def __init__(self, whole: Together, *, seconds: int) -> None:
        self._out = whole.directory / "drain.log"
        self.began = time.monotonic()
        flags = ("--force", "--delete-emptydir-data", "--ignore-daemonsets", f"--timeout={seconds}s")
        kubectl = (str(CACHE / "bin/kubectl"), "--kubeconfig", str(whole.cluster.kubeconfig))
        with self._out.open("wb") as out:
            self._process = subprocess.Popen([*kubectl, "drain", whole.kubelet.node, *flags], stdout=out, stderr=out)

    @property
    def returned(self) -> bool:
        return self._process.poll() is not None

    def end(self, seconds: float) -> tuple[int, float, str]:
        """Its exit code, how long it took, and what it said."""
        try:
            code = self._process.wait(seconds)
        finally:
            self._process.kill()
        return code, time.monotonic() - self.began, self._out.read_text()


def under_way(whole: Together, table: str, *, grace: int = 60) -> tuple[dict[str, Any], Path, str]:
    """A writer whose second commit waits in a task; its pod, the file it waits for, its instant."""
    whole.table(table)
    whole.ready(table)
    gate = whole.directory / f"gate-{table}"
    whole.writer(table, table, {"rows": FIRST}, {"rows": SECOND, "gate": str(gate)}, stop={"graceSeconds": grace})
    driver = whole.pod("driver", writer=table, number=1)
    wait_for("the second commit is under way", Path(f"{gate}.reached").exists, seconds=LONG)
    (instant,) = whole.files(table).pending()
    return driver, gate, instant


def deleting(whole: Together, pod: dict[str, Any]) -> bool:
    found = whole.world.get("pods", pod["metadata"]["name"])
    return bool(found and found["metadata"].get("deletionTimestamp"))


def ended(whole: Together, pod: dict[str, Any]) -> bool:
    """The kubelet has told the end of its container."""
    found = whole.world.get("pods", pod["metadata"]["name"]) or {}
    statuses = (found.get("status") or {}).get("containerStatuses") or []
    return any("terminated" in one["state"] for one in statuses)


def completed(whole: Together, table: str) -> set[str]:
    return {i.requested for i in whole.files(table).timeline().completed}


def test_a_commit_at_hand_is_finished_and_the_writer_goes_on_elsewhere(whole: Together) -> None:
    """`stop.graceSeconds` lets it finish; nothing has to be settled."""
    driver, gate, instant = under_way(whole, "drained")
    drain = Drain(whole, seconds=240)
    wait_for("the driver is told to end", lambda: deleting(whole, driver))
    time.sleep(3)
    assert not drain.returned, "the commit is under way"
    gate.touch()
    code, took, said = drain.end(LONG)
    assert code == 0, said
    print(f"drained in {took:.1f} s, 3 s of them the commit's")
    assert instant in completed(whole, "drained"), "the commit at hand was wasted"
    status = whole.finished("drained")
    assert [attempt["class"] for attempt in status["attempts"]] == ["Eviction", "Succeeded"], status["attempts"]
    assert whole.pod("driver", writer="drained", number=2)["spec"]["nodeName"] == whole.kubelet.spare
    settle = whole.keys("drained", "settle/")
    assert driver["metadata"]["uid"] not in {record.get("podUID") for record in settle.values()}, settle
    whole.audited("drained", DUE)
    whole.conform("drained")


def test_without_an_operator_only_the_objects_of_pods_wait(whole: Together) -> None:
    """The driver finishes and leaves, and the other writer commits; then the operator comes."""
    driver, gate, instant = under_way(whole, "alone")
    other = whole.directory / "gate-other"
    whole.kubelet.places["beside"] = whole.kubelet.spare
    whole.writer("beside", "alone", {"rows": BESIDE, "after": str(other)})
    wait_for("the other writer is at work", Path(f"{other}.reached").exists, seconds=LONG)
    whole.world.operators[-1].kill()
    drain = Drain(whole, seconds=500)
    wait_for("the driver is told to end", lambda: deleting(whole, driver))
    gate.touch()
    wait_for("the driver has ended", lambda: ended(whole, driver), seconds=LONG)
    took = time.monotonic() - drain.began
    before = completed(whole, "alone")
    assert instant in before, "the commit at hand was wasted"
    other.touch()
    wait_for("the other writer commits without operator and agent", lambda: completed(whole, "alone") - before)
    assert not drain.returned, "the end of the pod is evidence that nobody has seen"
    assert deleting(whole, driver)
    back = time.monotonic()
    whole.world.start_operator()
    code, _, said = drain.end(LONG)
    assert code == 0, said
    print(f"driver ended {took:.1f} s after the drain began; it returned {time.monotonic() - back:.1f} s after "
          "the operator was started")  # fmt: skip
    for name in ("alone", "beside"):
        whole.finished(name)
    whole.audited("alone", [*DUE, *BESIDE])
    whole.conform("alone")


@pytest.mark.parametrize("operator", [True, False], ids=["operator", "no-operator"])
def test_a_spot_notice_of_thirty_seconds_is_enough(whole: Together, operator: bool) -> None:
    """The commit at hand cannot be finished. The driver gives up in time, and its kubelet tells of
    its end before the machine is gone: nobody has to prove or attest anything.
    """
    driver, gate, instant = under_way(whole, "spot", grace=20)
    node = whole.kubelet.node
    if not operator:
        whole.world.operators[-1].kill()
    notice = time.monotonic()
    drain = Drain(whole, seconds=NOTICE_SECONDS)  # as a handler of such notices does
    wait_for("the driver has ended", lambda: ended(whole, driver) or gone(whole, driver), seconds=NOTICE_SECONDS)
    print(f"the driver had ended {time.monotonic() - notice:.1f} s after the notice")
    time.sleep(max(0.0, NOTICE_SECONDS - (time.monotonic() - notice)))
    assert whole.kubelet.power_off(node) == [], "something still ran when the machine ended"
    whole.cluster.request("DELETE", f"/api/v1/nodes/{node}")
    code, _, said = drain.end(60)
    assert (code == 0) == operator, said
    if not operator:
        time.sleep(10)
        whole.world.start_operator()
    gate.touch()
    status = whole.finished("spot")
    print(f"the writer had finished {time.monotonic() - notice:.1f} s after the notice")
    assert [attempt["class"] for attempt in status["attempts"]] == ["Eviction", "Succeeded"], status["attempts"]
    assert instant not in completed(whole, "spot")
    assert "attestations" not in (whole.world.get("huditables", "spot") or {})["spec"].get("fencing", {})
    whole.audited("spot", DUE)
    whole.conform("spot")


def gone(whole: Together, pod: dict[str, Any]) -> bool:
    return whole.world.get("pods", pod["metadata"]["name"]) is None
