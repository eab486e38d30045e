"""A driver whose wall clock is not everybody's (maxClockSkewSeconds is 5): 4 s ahead it writes, 6 s
ahead it is fenced; 4 s behind it waits and writes, 30 s behind it is refused the lock. Nobody moves
the table's clock further ahead than that.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from demo.cluster import kubectl

from tests.support import CACHE
from tests.support.cluster import clock_image
from tests.support.cluster.scene import Scene
from tests.support.cluster.space import OUT, SMALL, Space, wait_for
from tests.support.harness import other_clock
from tests.support.harness.s3proxy import Proxy

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1200)]

MAX_SKEW_SECONDS = 5


@pytest.fixture(scope="module")
def image() -> str:
    clock_image.make(CACHE / "images" / "oci", OUT / "clock")
    return clock_image.IMAGE


def victim(seconds: int, **more: Any) -> dict[str, Any]:
    return {"driver": {**SMALL, "env": [{"name": other_clock.VARIABLE, "value": str(seconds)}]}, **more}


def the_clock_was_never_far_ahead(scene: Scene) -> None:
    """Everybody waits for the table's clock: what a wrong one does to it is bounded (F382, I10)."""
    moves = [c for c in scene.space.watch.changes(f"/{scene.table_id}/clock") if c.value]
    assert moves
    for move in moves:
        value = str((move.value or {})["value"])
        promised = datetime.strptime(value[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
        # The gateway lets a second more pass: dates of the API server have no fractions.
        assert promised - move.at < MAX_SKEW_SECONDS + 1, value
    values = [str((move.value or {})["value"]) for move in moves]
    assert values == sorted(values), "the table's clock went back"


def registered(scene: Scene) -> dict[str, Any] | None:
    """The victim's registration, and when this program saw it (Unix milliseconds)."""
    found = [
        c
        for c in scene.space.watch.changes(f"/{scene.table_id}/writer/")
        if c.value and "-victim-" in c.value.get("pod", "")
    ]
    return {**(found[0].value or {}), "seenMs": found[0].at * 1000} if found else None


def test_a_clock_that_is_ahead_by_less_than_the_bound(space: Space, proxy: Proxy, image: str) -> None:
    scene = Scene(space, proxy, "ahead4", batches=2, victim=victim(4), image=image)
    instant, pod = scene.inflight()
    said = wait_for("its registration", lambda: registered(scene), seconds=10)
    assert 2500 < said["wallClockMs"] - said["seenMs"] < 4100, said
    assert space.settling(pod) is None
    scene.goes_on(time.time())
    scene.finish()
    assert [driver["metadata"]["name"] for driver in space.drivers(scene.victim)] == [pod]
    the_clock_was_never_far_ahead(scene)
    completed = [i for i in space.lake.timeline(scene.path) if i.completed and i.requested == instant]
    assert completed, "the writer with the other clock has not committed"


def test_a_clock_that_is_ahead_by_more_than_the_bound(space: Space, proxy: Proxy, image: str) -> None:
    scene = Scene(space, proxy, "ahead6", victim=victim(6), image=image)
    said = wait_for("its registration", lambda: registered(scene), seconds=240)
    record = scene.settled("clock ahead by 6 s", said["pod"], said["seenMs"] / 1000)
    assert scene.record(said["pod"])["reason"] == "ClockSkew", scene.record(said["pod"])
    assert "Completed" not in record.outcomes.values(), record
    scene.goes_on(record.phases["Settled"])
    scene.suspend(scene.victim)  # what is lost to a clock counts for no limit of retries (F47)
    scene.finish(batches=0, end="Suspended")
    the_clock_was_never_far_ahead(scene)


def test_a_clock_that_is_behind_by_less_than_the_bound(space: Space, proxy: Proxy, image: str) -> None:
    """It waits until its clock is past the table's, which the other writer moves on, and its times
    are past those of the commits before it (I10).
    """
    scene = Scene(space, proxy, "behind4", batches=2, victim=victim(-4), image=image)
    instant, pod = scene.inflight()
    said = wait_for("its registration", lambda: registered(scene), seconds=10)
    assert -5600 < said["wallClockMs"] - said["seenMs"] < -3900, said
    scene.goes_on(time.time())
    scene.finish()
    assert [driver["metadata"]["name"] for driver in space.drivers(scene.victim)] == [pod]
    assert space.settling(pod) is None
    timeline = {i.requested: i for i in space.lake.timeline(scene.path)}
    assert timeline[instant].completed > instant
    the_clock_was_never_far_ahead(scene)


def test_a_clock_that_is_behind_by_more_than_the_bound(space: Space, proxy: Proxy, image: str) -> None:
    """It is told so, and does not get the lock; nobody waits for it."""
    scene = Scene(space, proxy, "behind30", image=image, victim=victim(-30, suspend=True))
    scene.goes_on(time.time())
    kubectl(
        "patch", "hudiwriter", scene.victim, "-n", space.namespace, "--type=merge", "-p", '{"spec":{"suspend":false}}'
    )
    said = wait_for("its registration", lambda: registered(scene), seconds=240)
    ended = scene.attempt(said["pod"])
    assert ended["class"] == "ClockSkew", ended
    assert "behind the table's clock" in ended["message"], ended
    assert not space.instants(scene.victim), "it has begun a commit"
    scene.goes_on(time.time())
    scene.suspend(scene.victim)
    scene.finish(batches=0, end="Suspended")
