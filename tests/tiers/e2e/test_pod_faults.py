"""What happens to driver processes on a real node: killed and frozen at named points, cut from the
network, hung.

A named point is a request to the store that the proxy holds (or the answer to it): the first thing
that a commit writes under the lock, the completed file, its answer. After each: every acknowledged
row once, nothing else, by the audit; and the protocol log conforms.
"""

from __future__ import annotations

import signal
import time

import pytest

from tests.support.cluster.node import HOST, cut
from tests.support.cluster.scene import Scene, etcd_addresses, kill_container
from tests.support.cluster.space import Space, wait_for
from tests.support.harness.s3proxy import Proxy, begun_in_metadata, completed, completed_in_metadata, data_file

pytestmark = pytest.mark.timeout(1200)


@pytest.mark.extra
def test_killed_at_named_points(space: Space, proxy: Proxy) -> None:
    """The container of the first attempt is killed after acquire, the second one's JVM before its
    completed file, the third one's before release.
    """
    scene = Scene(space, proxy, "points", batches=3, victim={"podHistory": {"limit": 10}})
    points = (
        ("killed after acquire", begun_in_metadata, False, "RolledBack"),
        ("killed before the completed file", completed, False, "RolledBack"),
        ("killed before release", completed, True, "Completed"),
    )
    pods = []
    for what, wanted, answer, outcome in points:
        instant, pod = scene.inflight()
        scene.hold(wanted, instant, answer=answer)
        assert scene.holds_lock(pod), f"{pod} does not hold the lock"
        at = time.time()
        if pods:
            space.signal(pod, signal.SIGKILL)
        else:
            kill_container(space, pod)
        record = scene.settled(what, pod, at)
        assert record.outcomes == {instant: outcome}, f"{what}: {record}"
        scene.assert_blocked(at, record)
        if outcome == "RolledBack":
            scene.assert_gone(instant)
        pods.append(pod)
    scene.finish()
    drivers = space.drivers(scene.victim)
    assert {driver["metadata"]["name"] for driver in drivers} >= set(pods), "a pod whose process was killed is gone"
    statuses = [status for driver in drivers for status in driver["status"]["containerStatuses"]]
    assert all(status["restartCount"] == 0 for status in statuses), "a container was restarted in its pod"
    incs = {
        c.value["inc"]
        for c in space.watch.changes(f"/{scene.table_id}/writer/")
        if c.value and c.value.get("pod") in pods
    }
    assert len(incs) == len(set(pods)) == len(points)


@pytest.mark.extra
def test_frozen_before_acquire(space: Space, proxy: Proxy) -> None:
    """Frozen until its lease is over and resumed: no consequences.

    Frozen until it is fenced and resumed: it halts, its late file goes.
    """
    scene = Scene(space, proxy, "frozen", batches=2)
    _, pod = scene.inflight()
    inc = next(
        c.value["inc"]
        for c in space.watch.changes(f"/{scene.table_id}/writer/")
        if c.value and c.value.get("pod") == pod
    )
    space.signal_all(pod, signal.SIGSTOP)
    wait_for(
        "the end of its lease", lambda: not space.watch.latest(f"/{scene.table_id}/alive/{inc}"), seconds=30, every=0.1
    )
    space.signal_all(pod, signal.SIGCONT)
    instant, same = scene.inflight()
    assert same == pod, "a pause shorter than lease and suspicion has cost an attempt"
    assert space.settling(pod) is None
    held = scene.hold(data_file, instant)
    at = time.time()
    space.signal_all(pod, signal.SIGSTOP)
    scene.wait_phase(pod, "Fenced")
    held.deliver.set()
    space.signal_all(pod, signal.SIGCONT)
    assert scene.attempt(pod)["class"] == "Fenced", scene.attempt(pod)
    record = scene.settled("frozen before acquire", pod, at)
    assert record.outcomes == {instant: "RolledBack"}, record
    assert scene.commits(at, record.phases["Settled"]) > 0, "a writer without the lock has blocked another one"
    assert held.delivered.wait(1)
    scene.assert_gone(instant)
    scene.finish()


def test_frozen_in_the_critical_section(space: Space, proxy: Proxy) -> None:
    """The writer wakes up fenced, its next step would be the completed file: it never comes.

    Others waited for the proof.
    """
    scene = Scene(space, proxy, "section")
    instant, pod = scene.inflight()
    held = scene.hold(completed_in_metadata, instant)
    at = time.time()
    space.signal_all(pod, signal.SIGSTOP)
    scene.wait_phase(pod, "Fenced")
    held.deliver.set()
    space.signal_all(pod, signal.SIGCONT)
    record = scene.settled("frozen in the critical section", pod, at)
    assert scene.attempt(pod)["class"] == "Fenced", scene.attempt(pod)
    assert record.outcomes == {instant: "RolledBack"}, record
    assert not scene.published(completed, instant), "a fenced writer has published"
    scene.assert_blocked(at, record)
    scene.assert_gone(instant)
    scene.finish()


@pytest.mark.extra
def test_frozen_while_it_publishes(space: Space, proxy: Proxy) -> None:
    """Frozen with its completed file on the wire, then before release, each until it is fenced.

    Then it goes on and halts.
    """
    scene = Scene(space, proxy, "publishing", batches=2)
    for what, answer, outcome in (
        ("frozen before the completed file", False, "RolledBack"),
        ("frozen before release", True, "Completed"),
    ):
        instant, pod = scene.inflight()
        scene.hold(completed, instant, answer=answer)
        assert scene.holds_lock(pod), f"{pod} does not hold the lock"
        at = time.time()
        space.signal_all(pod, signal.SIGSTOP)
        scene.wait_phase(pod, "Fenced")
        space.signal_all(pod, signal.SIGCONT)
        record = scene.settled(what, pod, at)
        assert scene.attempt(pod)["class"] == "Fenced", scene.attempt(pod)
        assert record.outcomes == {instant: outcome}, f"{what}: {record}"
        scene.assert_blocked(at, record)
        if outcome == "RolledBack":
            scene.assert_gone(instant)
    scene.finish()


@pytest.mark.extra
def test_cut_from_etcd(space: Space, proxy: Proxy) -> None:
    """For 5 s: it goes on.

    For longer than lease and suspicion: fenced, ended, settled; others are not blocked.
    """
    scene = Scene(space, proxy, "noetcd", batches=2)
    _, pod = scene.inflight()
    with cut(scene.pid(pod), etcd_addresses()):
        time.sleep(5)
    instant, same = scene.inflight()
    assert same == pod, "5 s without etcd have cost an attempt"
    assert space.settling(pod) is None
    at = time.time()
    with cut(scene.pid(pod), etcd_addresses()):
        record = scene.settled("cut from etcd", pod, at)
    assert record.phases["Fenced"] - at > 5, "fenced before its lease was over"
    assert record.outcomes == {instant: "RolledBack"}, record
    assert scene.commits(at, record.phases["Settled"]) > 0, "a writer without the lock has blocked another one"
    scene.assert_gone(instant)
    scene.finish()


@pytest.mark.extra
def test_cut_from_storage_while_it_publishes(space: Space, proxy: Proxy) -> None:
    """The completed file arrives, its answer does not, and the store cannot be asked: the lock
    stays; when it can, the commit stands.
    """
    scene = Scene(space, proxy, "nostore")
    instant, pod = scene.inflight()
    held = scene.hold(completed, instant)
    at = time.time()
    with cut(scene.pid(pod), [HOST], reset=True):
        held.deliver.set()
        assert held.delivered.wait(20)
        time.sleep(25)
        assert scene.holds_lock(pod), "the lock was released while the outcome of a publication was unknown"
        assert scene.commits(at, time.time()) == 0
    scene.goes_on(at)
    scene.finish()
    assert [driver["metadata"]["name"] for driver in space.drivers(scene.victim)] == [pod], (
        "the commit was not taken for one"
    )
    assert space.settling(pod) is None


@pytest.mark.extra
def test_cut_from_everything_in_the_critical_section(space: Space, proxy: Proxy) -> None:
    """A driver without network holds the lock: fenced when its lease is over, proven dead by the
    kubelet, rolled back.
    """
    scene = Scene(space, proxy, "nothing")
    instant, pod = scene.inflight()
    held = scene.hold(completed_in_metadata, instant)
    at = time.time()
    with cut(scene.pid(pod), ["0.0.0.0/0"]):
        held.deliver.set()
        record = scene.settled("cut from etcd and storage", pod, at)
    assert record.outcomes == {instant: "RolledBack"}, record
    assert not scene.published(completed, instant)
    scene.assert_blocked(at, record)
    scene.assert_gone(instant)
    scene.finish()


@pytest.mark.extra
def test_hung_in_user_code(space: Space, proxy: Proxy) -> None:
    """A driver that hangs with a living heartbeat is no suspect and blocks nobody.

    Its deadline ends it, or a person with `suspend`.
    """
    scene = Scene(
        space, proxy, "hung", rows=1, delay=3600, victim={"stop": {"graceSeconds": 5}, "activeDeadlineSeconds": 120}
    )
    first, pod = scene.inflight()
    at = time.time()
    time.sleep(20)  # longer than lease and suspicion
    scene.goes_on(at)
    assert space.settling(pod) is None, "a driver with a heartbeat was fenced"
    wait_for(f"the deadline of {pod}", lambda: scene.attempt(pod)["class"] == "DeadlineExceeded", seconds=180)
    instant, pod = scene.inflight()
    assert instant != first
    scene.suspend(scene.victim)
    at = time.time()
    wait_for(f"the end of {pod}", lambda: scene.attempt(pod)["class"] == "Cancelled", seconds=60)
    print(f"\nhung in user code: suspended after {time.time() - at:.1f} s")
    wait_for(
        "the instant to go", lambda: instant not in {i.requested for i in space.lake.timeline(scene.path)}, seconds=90
    )
    scene.assert_gone(first)
    scene.assert_gone(instant)
    scene.finish(batches=0, end="Suspended")


@pytest.mark.extra
def test_hung_in_the_critical_section(space: Space, proxy: Proxy) -> None:
    """A driver with a living heartbeat that holds the lock for longer than maxHoldSeconds is
    fenced, and settled after proof.
    """
    # On a busy machine the table's first commit may hold it for long. After 60 s S3A sends a
    # request anew, and the driver goes on.
    scene = Scene(space, proxy, "holds", lock={"maxHoldSeconds": 45})
    instant, pod = scene.inflight()
    scene.hold(completed_in_metadata, instant)
    at = time.time()
    record = scene.settled("hung in the critical section", pod, at)
    assert scene.record(pod)["reason"] == "HeldTooLong", scene.record(pod)
    assert record.outcomes == {instant: "RolledBack"}, record
    scene.assert_blocked(at, record)
    scene.assert_gone(instant)
    scene.finish()
