"""Independent observer of custom resources and pods.

    python -m tests.campaigns.bench.launch_observer KUBECONFIG OUT NAMESPACE GROUP VERSION PLURAL

One JSON line for each event of a plain watch, with CLOCK_MONOTONIC of the moment in which its line
was read: no operator's own word about itself is part of a measurement. A watch that is lost ends
the process, and the run with it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import kubernetes
from kubernetes.watch.watch import iter_resp_lines

JsonDict = dict[str, Any]
READY = "ready"
LOST = 3


def follow(kind: str, lists: Any, out: Any, lock: threading.Lock) -> None:
    """Write the events of a list from now on. `lists` is a call of the client's API."""
    try:
        listed = json.loads(lists(_preload_content=False).data)
        version = listed["metadata"]["resourceVersion"]
        with lock:
            out.write(json.dumps({"kind": READY, "t": time.monotonic()}) + "\n")
        answer = lists(watch=True, resource_version=version, _preload_content=False)
        for line in iter_resp_lines(answer):
            now = time.monotonic()
            event = json.loads(line)
            if event["type"] not in ("ADDED", "MODIFIED", "DELETED"):
                break
            row = {"kind": kind, "t": now, "type": event["type"], "object": _short(event["object"])}
            with lock:
                out.write(json.dumps(row) + "\n")
    finally:
        os._exit(LOST)


def _short(given: JsonDict) -> JsonDict:
    meta = given["metadata"]
    return {
        "name": meta["name"],
        "uid": meta["uid"],
        "labels": meta.get("labels") or {},
        "status": {k: v for k, v in (given.get("status") or {}).items() if k in ("phase", "state", "applicationState")},
    }


def main(arguments: list[str]) -> int:
    kubeconfig, path, namespace, group, version, plural = arguments
    client = kubernetes.config.new_client_from_config(kubeconfig)
    core, custom = kubernetes.client.CoreV1Api(client), kubernetes.client.CustomObjectsApi(client)
    lock = threading.Lock()
    with Path(path).open("w", buffering=1) as out:

        def pods(**more: Any) -> Any:
            return core.list_namespaced_pod(namespace, **more)

        def resources(**more: Any) -> Any:
            return custom.list_namespaced_custom_object(group, version, namespace, plural, **more)

        threading.Thread(target=follow, args=("pod", pods, out, lock), daemon=True).start()
        follow("resource", resources, out, lock)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
