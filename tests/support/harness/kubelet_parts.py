"""Shared parts of programs that act as a kubelet in tests: they poll pods, bind them, and write
their states.

`local_kubelet` runs a process for each pod as it was rendered; `tests/campaigns/crashes/agents.py`
tells a JVM that is warm already which agent pod it is; `operator_world` has no process at all.
`kubelet_words` has the statuses that a real kubelet writes.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from tests.support.harness.servers import Cluster

JsonDict = dict[str, Any]


class Looking(ABC):
    """A thread that polls the pods from `look_on` to `look_no_more`.

    A look that fails is recorded in `failure`, and the next one follows.
    """

    failure = ""

    def look_on(self, name: str, *, every: float) -> None:
        """Begin. ``every``: seconds between two looks."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, args=(every,), name=name, daemon=True)
        self._thread.start()

    def look_no_more(self, seconds: float) -> None:
        """End, and wait for a look that is under way; nothing when none was ever taken."""
        if hasattr(self, "_ended"):
            self._ended.set()
            self._thread.join(seconds)

    def _loop(self, every: float) -> None:
        while not self._ended.wait(every):
            try:
                self._look()
            except (AssertionError, OSError) as error:
                self.failure = f"{type(error).__name__}: {error}"

    @abstractmethod
    def _look(self) -> None:
        """Look at every pod once."""


def token(cluster: Cluster, pod: JsonDict, audience: str) -> str:
    """Request a token as a kubelet does: of the pod's account, bound to the pod."""
    meta, account = pod["metadata"], pod["spec"].get("serviceAccountName") or "default"
    bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    spec = {"audiences": [audience], "expirationSeconds": 3600, "boundObjectRef": bound}
    path = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{account}/token"
    made = cluster.request("POST", path, {"spec": spec})
    assert made is not None, path
    return str(made["status"]["token"])


@dataclass(frozen=True)
class Host:
    """Host of the pods of a namespace, according to their status."""

    cluster: Cluster
    namespace: str
    host_ip: str
    pod_ip: str
    runtime: str
    """Scheme of the containers' ids."""

    def path(self, name: str = "") -> str:
        """Path of a pod in the API, or of all pods."""
        return f"/api/v1/namespaces/{self.namespace}/pods" + (f"/{name}" if name else "")

    def bind(self, pod: JsonDict, node: str) -> None:
        """Schedule a pod."""
        name = pod["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self.cluster.request("POST", f"{self.path(name)}/binding", binding)

    def waits(self, pod: JsonDict, *, reason: str, since: str) -> None:
        """Its container is not there yet."""
        self._tell(pod, "Pending", {"waiting": {"reason": reason}}, since)

    def runs(self, pod: JsonDict, *, since: str) -> None:
        """Its container runs. ``since``: RFC 3339."""
        self._tell(pod, "Running", {"running": {"startedAt": since}}, since)

    def has_ended(self, pod: JsonDict, *, exit_code: int, message: str, since: str, at: str) -> None:
        """Its container has ended at that time."""
        terminated = {
            "exitCode": exit_code,
            "reason": "Completed" if exit_code == 0 else "Error",
            "message": message,
            "startedAt": since,
            "finishedAt": at,
            "containerID": self._id(pod),
        }
        self._tell(pod, "Succeeded" if exit_code == 0 else "Failed", {"terminated": terminated}, since)

    def _id(self, pod: JsonDict) -> str:
        return f"{self.runtime}://{pod['metadata']['uid']}"

    def _tell(self, pod: JsonDict, phase: str, state: JsonDict, since: str) -> None:
        container, runs = pod["spec"]["containers"][0], phase == "Running"
        ready = "True" if runs else "False"
        conditions = {"PodScheduled": "True", "Initialized": "True", "ContainersReady": ready, "Ready": ready}
        status = {
            "phase": phase,
            "conditions": [{"type": kind, "status": value} for kind, value in conditions.items()],
            "hostIP": self.host_ip,
            "podIP": self.pod_ip,
            "podIPs": [{"ip": self.pod_ip}],
            "startTime": since,
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": self.runtime,
                    "ready": runs,
                    "started": runs,
                    "restartCount": 0,
                    **({} if "waiting" in state else {"containerID": self._id(pod)}),
                    "lastState": {},
                    "state": state,
                }
            ],
        }
        self.cluster.request(
            "PATCH", f"{self.path(pod['metadata']['name'])}/status", {"status": status}, "application/merge-patch+json"
        )
