"""A kubelet for one namespace that runs pods as processes of this machine: whatever the operator
has rendered is what runs.

Environment, ConfigMaps, Secrets and arguments are those of the pod. It lacks features of a real
one: a container image, a sandbox with its own network (F7), limits, a root that cannot be written,
executors, Services except by name. The e2e tier has these.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support import ROOT
from tests.support.harness.kubelet_parts import Host, Looking, token
from tests.support.harness.kubelet_words import MESSAGE_LIMIT
from tests.support.harness.local import CLASS_PATH, JAVA_OPTIONS, RUNTIME_PATH
from tests.support.harness.processes import Process
from tests.support.harness.servers import Cluster

JsonDict = dict[str, Any]
ADDRESS = "127.0.0.1"
POLL_SECONDS = 0.2
_FILES = "/etc/hudi/"
"""Folder in which pods find their files; here it lies below the pod's own folder."""
_VARIABLE = re.compile(r"\$\((\w+)\)")


@dataclass
class Running:
    """A pod whose process was started."""

    pod: JsonDict
    process: Process
    started_at: str
    deadline: float = 0.0
    """Time of SIGKILL, monotonic; 0: nobody has deleted the pod."""
    over: bool = False
    """Its end is in its status."""

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])


@dataclass
class Kubelet(Looking):
    """Runs every pod of the namespace from `start` to `close`."""

    cluster: Cluster
    namespace: str
    directory: Path
    node: str = "local"
    running: dict[str, Running] = field(default_factory=dict)
    """By uid."""
    places: dict[str, str] = field(default_factory=dict)
    """Another node for pods whose name begins so; it must exist."""
    lost: set[str] = field(default_factory=set)
    """Nodes of which nothing is heard any more: their processes go on, or stand still."""

    @property
    def _host(self) -> Host:
        return Host(self.cluster, self.namespace, ADDRESS, ADDRESS, "local")

    @property
    def _services(self) -> Path:
        return self.directory / "services.json"

    def service(self, name: str, address: str) -> str:
        """A Service of the namespace behind which this address listens; returns its host name."""
        host = f"{name}.{self.namespace}.svc"
        known = json.loads(self._services.read_text()) if self._services.exists() else {}
        self.directory.mkdir(exist_ok=True)
        self._services.write_text(json.dumps(known | {host: address}))
        return host

    def start(self) -> None:
        self.cluster.node(self.node, boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        self.look_on("local kubelet", every=POLL_SECONDS)

    def close(self) -> None:
        """End every process."""
        self.look_no_more(30)
        for one in self.running.values():
            if one.process.poll() is None:
                one.process.kill()

    def process(self, pod: str) -> Process:
        """The process of a pod; raises KeyError before it is started."""
        found = [one.process for one in self.running.values() if one.name == pod]
        if not found:
            raise KeyError(pod)
        return found[-1]

    @property
    def logs(self) -> list[Path]:
        """Folders of all pods that ever ran."""
        return [one.process.folder / "log" for one in self.running.values()]

    # ---- the loop

    def _look(self) -> None:
        pods = (self.cluster.request("GET", self._host.path()) or {"items": []})["items"]
        for pod in pods:
            meta = pod["metadata"]
            if pod["spec"].get("nodeName") in self.lost:
                continue
            known = self.running.get(meta["uid"])
            if (
                known is None
                and not meta.get("deletionTimestamp")
                and not (pod.get("status") or {}).get("containerStatuses")
            ):
                self._run(pod)
            elif known is not None:
                known.pod = pod
                self._tend(known)

    def _tend(self, one: Running) -> None:
        meta = one.pod["metadata"]
        if meta.get("deletionTimestamp") and not one.deadline:
            one.deadline = time.monotonic() + float(meta.get("deletionGracePeriodSeconds") or 0)
            if one.process.poll() is None:
                one.process.terminate()
        if one.process.poll() is None and one.deadline and time.monotonic() > one.deadline:
            one.process.kill()
        code = one.process.poll()
        if code is None:
            return
        if not one.over:
            self._end(one, code)
        elif meta.get("deletionTimestamp"):
            options = {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": meta["uid"]},
            }
            self.cluster.request("DELETE", self._host.path(one.name), options)

    def _end(self, one: Running, code: int) -> None:
        one.process.end_rest()
        message = one.process.folder / "termination"
        text = message.read_text(errors="replace") if message.exists() else one.process.log()[-2048:]
        said = text.encode()[:MESSAGE_LIMIT].decode(errors="ignore")
        self._host.has_ended(
            one.pod, exit_code=code if code >= 0 else 128 - code, message=said, since=one.started_at, at=_now()
        )
        one.over = True

    def _run(self, pod: JsonDict) -> None:
        meta = pod["metadata"]
        node = next((place for name, place in self.places.items() if meta["name"].startswith(name)), self.node)
        if not pod["spec"].get("nodeName"):
            self._host.bind(pod, node)
        if not self._mountable(pod):
            return
        place = self.directory / meta["uid"]
        environment = self._prepare(pod, place)
        at = _now()
        role = pod["spec"]["containers"][0]["args"][0]
        self._host.runs(pod, since=at)
        self.running[meta["uid"]] = Running(
            pod, Process(meta["name"], place, module=f"hudi_runtime.{role}", env=environment), at
        )

    def _mountable(self, pod: JsonDict) -> bool:
        """A container waits for a Secret that is not optional."""
        sources = [volume["secret"] for volume in pod["spec"]["volumes"] if "secret" in volume]
        names = [source["secretName"] for source in sources if not source.get("optional")]
        path = f"/api/v1/namespaces/{self.namespace}/secrets/"
        return all(self.cluster.request("GET", path + name) is not None for name in names)

    def lose(self, node: str) -> None:
        """Nothing is heard of a node any more, and the API server calls it NotReady."""
        self.lost.add(node)
        condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        body = {"status": {"conditions": [condition]}}
        self.cluster.request("PATCH", f"/api/v1/nodes/{node}/status", body, "application/strategic-merge-patch+json")

    # ---- what a container sees

    def _prepare(self, pod: JsonDict, place: Path) -> dict[str, str]:
        """Lay the volumes below `place`; returns the container's environment."""
        (place / "tmp").mkdir(parents=True)
        container = pod["spec"]["containers"][0]
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        for mount in container["volumeMounts"]:
            for name, content in self._files(volumes[mount["name"]], pod):
                inside = name.removeprefix(f"{mount['subPath']}/") if mount.get("subPath") else name
                if mount.get("subPath") and inside == name:
                    continue
                file = place / mount["mountPath"].lstrip("/") / inside
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content if b"\0" in content else self._here(content.decode(), place).encode())
        self._class_path(place)
        keep = {key: value for key, value in os.environ.items() if key in {"PATH", "LANG", "JAVA_HOME"}}
        return {
            **keep,
            "PYTHONPATH": os.pathsep.join(
                (str(Path(__file__).with_name("cluster_dns")), *(str(ROOT / part) for part in RUNTIME_PATH))
            ),
            "LOCAL_SERVICES": str(self._services),
            "PYSPARK_PYTHON": sys.executable,
            **{name: self._here(value, place) for name, value in self._environment(pod, container)},
            # The runtime knows the container's path for these two.
            "HUDI_OPERATOR_JOB": str(place / "etc/hudi/job/job.json"),
            "HUDI_OPERATOR_TERMINATION_LOG": str(place / "termination"),
        }

    @staticmethod
    def _here(text: str, place: Path) -> str:
        return text.replace(_FILES, f"{place}{_FILES}")

    @staticmethod
    def _class_path(place: Path) -> None:
        """An image has these jars where Spark looks; and JVMs of tests are small."""
        file = place / "etc/hudi/spark/spark-defaults.conf"
        lines = file.read_text().replace("=/tmp/", f"={place}/tmp/").splitlines()
        options = next(line.partition("=")[2] for line in lines if line.startswith("spark.driver.extraJavaOptions="))
        lines = [line for line in lines if not line.startswith("spark.driver.extraJavaOptions=")]
        lines += [
            f"spark.driver.extraClassPath={CLASS_PATH}",
            f"spark.driver.extraJavaOptions={options} {JAVA_OPTIONS} -Djava.io.tmpdir={place}/tmp",
            f"spark.local.dir={place}/tmp",
        ]
        file.write_text("\n".join(lines) + "\n")

    def _files(self, volume: JsonDict, pod: JsonDict) -> Iterator[tuple[str, bytes]]:
        for part in (volume.get("projected") or {}).get("sources", ()):
            if wanted := part.get("serviceAccountToken"):
                yield wanted["path"], token(self.cluster, pod, wanted["audience"]).encode()
            else:
                yield from self._files(part, pod)
        if source := volume.get("configMap"):
            data = self._object("configmaps", source["name"])["data"]
            yield from self._chosen({key: value.encode() for key, value in data.items()}, source)
        elif source := volume.get("secret"):
            data = (
                self._object("secrets", source["secretName"], optional=bool(source.get("optional"))).get("data") or {}
            )
            yield from self._chosen({key: base64.b64decode(value) for key, value in data.items()}, source)

    @staticmethod
    def _chosen(data: Mapping[str, bytes], source: JsonDict) -> Iterator[tuple[str, bytes]]:
        items = source.get("items") or [{"key": key, "path": key} for key in data]
        yield from ((item["path"], data[item["key"]]) for item in items if item["key"] in data)

    def _environment(self, pod: JsonDict, container: JsonDict) -> Iterator[tuple[str, str]]:
        for source in container.get("envFrom") or ():
            for key, value in (self._object("secrets", source["secretRef"]["name"]).get("data") or {}).items():
                yield key, base64.b64decode(value).decode()
        facts = {
            "spec.nodeName": pod["spec"].get("nodeName") or self.node,
            "status.podIP": ADDRESS,
            **{f"metadata.{key}": pod["metadata"][key] for key in ("name", "namespace", "uid")},
        }
        known: dict[str, str] = {}
        for item in container["env"]:
            if "value" in item:
                known[item["name"]] = _VARIABLE.sub(lambda match: known.get(match[1], match[0]), item["value"])
            elif "fieldRef" in (item.get("valueFrom") or {}):
                known[item["name"]] = str(facts[item["valueFrom"]["fieldRef"]["fieldPath"]])
            elif "secretKeyRef" in (item.get("valueFrom") or {}):
                source = item["valueFrom"]["secretKeyRef"]
                data = self._object("secrets", source["name"]).get("data") or {}
                if source["key"] in data:
                    known[item["name"]] = base64.b64decode(data[source["key"]]).decode()
                assert source["key"] in data or source.get("optional"), (
                    f"Secret {source['name']} has no {source['key']}"
                )
        yield from known.items()

    def _object(self, plural: str, name: str, *, optional: bool = False) -> JsonDict:
        found = self.cluster.request("GET", f"/api/v1/namespaces/{self.namespace}/{plural}/{name}")
        assert found is not None or optional, f"{plural}/{name} is not there"
        return found or {}


def _now() -> str:
    return datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
