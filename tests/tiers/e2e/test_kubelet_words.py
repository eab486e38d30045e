"""What tests without a kubelet take for granted of a kubelet's words, held against a real one:
running, ended, killed, with init and side containers.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from demo import cluster
from demo.cluster import kubectl

from hudi_operator.adapters.kubernetes_facts import pod_facts
from tests.support.cluster.space import Space, wait_for
from tests.support.harness.kubelet_words import unlike

pytestmark = [pytest.mark.extra, pytest.mark.timeout(300)]
IMAGE = "localhost/hudi-operator/spark:dev"


def start(space: Space, name: str, command: str, **spec: Any) -> None:
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["sh", "-c", command],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    meta = {"name": name, "namespace": space.namespace}
    body = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 2, "containers": [container], **spec}
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}))


def reached(space: Space, name: str, *phases: str) -> dict[str, Any]:
    def probe() -> dict[str, Any] | None:
        found = space.get("pod", name)
        return found if found["status"].get("phase") in phases else None

    return wait_for(f"{name} to be {' or '.join(phases)}", probe, seconds=120)


def test_a_kubelet_says_what_the_tests_take_for_granted(space: Space) -> None:
    beside = {"name": "beside", "image": IMAGE, "command": ["sleep", "600"], "restartPolicy": "Always"}
    setup = {"name": "setup", "image": IMAGE, "command": ["true"]}
    start(space, "words-runs", "sleep 600", initContainers=[setup, beside])
    start(space, "words-ends", "exit 0", initContainers=[beside])
    start(space, "words-fails", "echo last words; exit 13")
    running = reached(space, "words-runs", "Running")
    assert unlike(running) == [], json.dumps(running["status"], indent=1)
    kinds = {container.name: (container.kind, container.terminated) for container in pod_facts(running).containers}
    assert kinds == {"main": ("container", False), "setup": ("init", True), "beside": ("sidecar", False)}
    for name, code in (("words-ends", 0), ("words-fails", 13)):
        ended = reached(space, name, "Succeeded", "Failed")
        assert unlike(ended) == [], json.dumps(ended["status"], indent=1)
        main = next(c for c in pod_facts(ended).containers if c.name == "main")
        assert (main.exit_code, main.terminated) == (code, True)
        assert code == 0 or "last words" in main.message
    kubectl("delete", "pod", "words-runs", "words-ends", "words-fails", "-n", space.namespace, "--wait=false")
