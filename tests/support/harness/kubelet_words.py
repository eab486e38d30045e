"""Contract for the pod status that every kubelet writes, as a check: the real one passes it on a
cluster (tests/tiers/e2e/test_kubelet_words.py), and so do the statuses that tests without a kubelet
write. It covers everything that the operator reads of a pod.

These are left out, because a test plays them on purpose: pods that a kubelet refuses, pods that it
has lost, and pods whose status a person has written.
"""

from __future__ import annotations

from typing import Any

JsonDict = dict[str, Any]
LISTS = (
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
)
FIELDS = {"name": str, "image": str, "imageID": str, "ready": bool, "restartCount": int, "state": dict}
STATES = {
    "waiting": {"reason"},
    "running": {"startedAt"},
    "terminated": {"exitCode", "reason", "startedAt", "finishedAt", "containerID"},
}
CONDITIONS = {"PodScheduled", "Initialized", "ContainersReady", "Ready"}
MESSAGE_LIMIT = 4096


def unlike(pod: JsonDict) -> list[str]:
    """Differences from the status that a kubelet writes for a running pod; empty: none."""
    status, spec = pod.get("status") or {}, pod["spec"]
    found = [f"{field} is missing" for field in ("phase", "hostIP", "startTime") if not status.get(field)]
    found += [
        f"condition {kind} is missing"
        for kind in sorted(CONDITIONS - {c["type"] for c in status.get("conditions") or ()})
    ]
    entries: list[JsonDict] = []
    for declared, told in LISTS:
        wanted, said = [c["name"] for c in spec.get(declared) or ()], [c.get("name") for c in status.get(told) or ()]
        if sorted(wanted) != sorted(str(name) for name in said):
            found.append(f"{told} names {said}, the pod has {wanted}")
        entries += status.get(told) or ()
    for entry in entries:
        found += [f"{entry.get('name')}: {text}" for text in _entry(entry)]
    states = {next(iter(entry.get("state") or {}), "") for entry in status.get("containerStatuses") or ()}
    if status.get("phase") in ("Succeeded", "Failed") and states != {"terminated"}:
        found.append(f"phase {status['phase']} with containers {sorted(states)}")
    if status.get("phase") == "Running" and not status.get("podIP"):
        found.append("podIP is missing")
    codes = {
        entry["state"]["terminated"]["exitCode"]
        for entry in status.get("containerStatuses") or ()
        if "terminated" in (entry.get("state") or {})
    }
    if status.get("phase") == "Succeeded" and codes != {0}:
        found.append(f"phase Succeeded with exit codes {sorted(codes)}")
    return found


def _entry(entry: JsonDict) -> list[str]:
    found = [f"{name} is {entry.get(name)!r}" for name, kind in FIELDS.items() if not isinstance(entry.get(name), kind)]
    state = entry.get("state") or {}
    if len(state) != 1 or next(iter(state)) not in STATES:
        return [*found, f"state is {sorted(state)}"]
    ((kind, value),) = state.items()
    found += [f"state.{kind}.{name} is missing" for name in sorted(STATES[kind] - set(value))]
    if kind != "waiting" and not entry.get("containerID"):
        found.append("containerID is missing, although it was started")
    # An init container that has ended well is called ready.
    if entry.get("ready") and kind != "running" and value.get("exitCode") != 0:
        found.append(f"ready, and {kind}")
    if len(str(value.get("message") or "").encode()) > MESSAGE_LIMIT:
        found.append("the message is longer than a kubelet keeps")
    return found
