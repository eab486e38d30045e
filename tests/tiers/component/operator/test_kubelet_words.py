"""Statuses of pods that tests without a kubelet write are like those of a real one, as the API
server keeps them.
"""

from __future__ import annotations

from tests.support.harness.kubelet_words import unlike
from tests.support.harness.operator_world import World


def test_played_pods_are_like_real_ones(world: World) -> None:
    world.start_operator()
    world.table()
    agent = world.pod("agent")
    assert unlike(agent), "nobody has taken it yet"
    world.run_pod(agent)
    running = world.get("pods", agent["metadata"]["name"])
    assert running is not None
    assert unlike(running) == []
    for code in (0, 137):
        world.end_pod(running, exit_code=code, message="x" * 4096)
        ended = world.get("pods", agent["metadata"]["name"])
        assert ended is not None
        assert unlike(ended) == []


def test_what_is_unlike() -> None:
    """Each field that is left out is named."""
    entry = {"name": "a", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "containerID": "c://1"}
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": "t", "finishedAt": "t", "containerID": "c://1"}
    conditions = [{"type": kind} for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]
    status = {
        "phase": "Succeeded",
        "hostIP": "h",
        "startTime": "t",
        "conditions": conditions,
        "containerStatuses": [{**entry, "state": {"terminated": ended}}],
    }
    pod = {"spec": {"containers": [{"name": "a"}]}, "status": status}
    assert unlike(pod) == []
    for name in ("exitCode", "finishedAt", "containerID"):
        fewer = {
            **entry,
            "state": {
                "terminated": {k: v for k, v in ended.items() if k != name}
                | ({"exitCode": 0} if name != "exitCode" else {"exitCode": 1})
            },
        }
        assert unlike({**pod, "status": {**status, "containerStatuses": [fewer]}}), name
    assert unlike({**pod, "status": {**status, "containerStatuses": []}}), "a container of which nothing is said"
    assert unlike({**pod, "status": {**status, "phase": "Running"}}), "podIP"
    assert unlike({**pod, "status": {**status, "containerStatuses": [{**entry, "state": {}}]}})
