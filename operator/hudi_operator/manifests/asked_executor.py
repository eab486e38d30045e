"""One more executor of a driver as Spark would make it, to ask the API server about (F301).

From Spark's part it has the fields that admission judges: name, labels, owner, image, account,
sizes, ports and the scratch volume. The variables with which Spark starts the JVM are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from hudi_operator.api.pod_template import LOCAL_DIRS
from hudi_operator.manifests import spark_conf

JsonDict = dict[str, Any]

NUMBER = 0
"""In the name of the pod: Spark counts from 1, so no executor has this one."""
_BYTES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_LOCAL_DIR = "/var/data/spark"


def executor_pod(files: Mapping[str, str], *, namespace: str, driver: str, uid: str) -> JsonDict:
    """The pod, from the files of the ConfigMap that the driver has mounted.

    ``driver``, ``uid``: its owner. Raises ValueError when the files are not the operator's.
    """
    try:
        pod: JsonDict = yaml.safe_load(files["executor-template.yaml"])
        settings = _settings(files["spark-defaults.conf"])
        _complete(pod, settings, namespace=namespace, driver=driver, uid=uid)
    except (KeyError, TypeError, IndexError, AttributeError, yaml.YAMLError) as error:
        raise ValueError(f"ConfigMap {namespace}/{driver}: {type(error).__name__}: {error}") from error
    return pod


def _complete(pod: JsonDict, settings: Mapping[str, str], *, namespace: str, driver: str, uid: str) -> None:
    meta, spec = pod["metadata"], pod["spec"]
    meta["name"], meta["namespace"] = f"{settings['spark.kubernetes.executor.podNamePrefix']}-exec-{NUMBER}", namespace
    meta["labels"] |= {"spark-role": "executor", "spark-exec-id": str(NUMBER), "spark-exec-resourceprofile-id": "0"}
    meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": driver, "uid": uid, "controller": True}]
    account = settings["spark.kubernetes.authenticate.executor.serviceAccountName"]
    spec |= {"serviceAccountName": account, "serviceAccount": account}
    (container,) = [each for each in spec["containers"] if each["name"] == spark_conf.EXECUTOR_CONTAINER]
    container |= {
        "image": settings["spark.kubernetes.container.image"],
        "args": ["executor"],
        "ports": [
            {"name": "blockmanager", "containerPort": int(settings["spark.blockManager.port"]), "protocol": "TCP"}
        ],
    }
    resources = container.setdefault("resources", {})
    for field, sizes in _sizes(settings).items():
        resources[field] = {**resources.get(field, {}), **sizes}
    if not any(mount["name"].startswith(LOCAL_DIRS) for mount in container["volumeMounts"]):
        container["volumeMounts"].append({"name": f"{LOCAL_DIRS}1", "mountPath": _LOCAL_DIR})
        spec["volumes"].append({"name": f"{LOCAL_DIRS}1", "emptyDir": {}})


def _sizes(settings: Mapping[str, str]) -> dict[str, dict[str, str]]:
    total = _bytes(settings["spark.executor.memory"]) + _bytes(settings["spark.executor.memoryOverhead"])
    if settings.get("spark.memory.offHeap.enabled", "").strip().lower() == "true":
        total += _bytes(settings.get("spark.memory.offHeap.size", "0"))
    memory = {"memory": f"{total >> 20}Mi"}
    limit = settings.get("spark.kubernetes.executor.limit.cores")
    return {
        "requests": {**memory, "cpu": settings["spark.kubernetes.executor.request.cores"]},
        "limits": {**memory, **({"cpu": limit} if limit is not None else {})},
    }


def _bytes(size: str) -> int:
    """A size in Spark's notation."""
    found = re.fullmatch(r"(\d+)\s*([kmgtp]?)b?", size.strip().lower())
    if found is None:
        raise ValueError(f"{size!r} is no size")
    return int(found[1]) * _BYTES[found[2]]


def _settings(properties: str) -> dict[str, str]:
    """Parse the output of :func:`spark_conf.properties`, for values without escapes."""
    lines = (line.partition("=") for line in properties.splitlines())
    return {name: value for name, _, value in lines}
