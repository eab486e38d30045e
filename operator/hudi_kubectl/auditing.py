"""`kubectl hudi audit`: a Job that reads a table, and is deleted at the end, however that comes."""

from __future__ import annotations

import json
import signal
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hudi_kubectl import finding, why
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import JsonDict, Table
from hudi_kubectl.screen import Screen

CONTAINER = "audit"
UNKNOWN = 2
"""Exit code when nothing is violated, and something could not be checked."""
INTERRUPTED = 130
KEPT_SECONDS = 600
"""Time to live of the Job after its end, in case this program is killed before it deletes it."""
_DEFAULT_USER = {"runAsNonRoot": True, "runAsUser": 185, "runAsGroup": 0, "fsGroup": 185}
_FROM_THE_OPERATORS_POD = ("securityContext", "nodeSelector", "tolerations", "imagePullSecrets")
_ETCD = "HUDI_OPERATOR_ETCD_"
_ETCD_VOLUME = "etcd"
_MAIN = ("agent", "driver")
"""Containers of the operator's pods that have the image of the audit."""
_S3 = (("AWS_ACCESS_KEY_ID", "accessKeyId"), ("AWS_SECRET_ACCESS_KEY", "secretAccessKey"))
_SESSION = ("AWS_SESSION_TOKEN", "sessionToken")
_UNITS = {"Mi": 1, "Gi": 1024}


@dataclass(frozen=True)
class Wanted:
    """``arguments``: of the audit itself, besides the path. ``image``: empty: that of the table.

    ``memory``: of the pod, in Mi or Gi; half of it is the JVM's heap. ``timeout``: seconds.
    """

    arguments: tuple[str, ...] = ()
    image: str = ""
    memory: str = "2Gi"
    timeout: float = 3600
    dry_run: str = "none"


def job(table: Table, pod: JsonDict | None, wanted: Wanted, name: str, *, as_json: bool = False) -> JsonDict:
    """The Job. ``pod``: one of the table's agent or writers, which has its image and its place.

    None: there is none; then the owners of pending instants are not asked for.
    """
    like: JsonDict = (pod or {}).get("spec") or {}
    main: JsonDict = next((one for one in like.get("containers") or [] if one.get("name") in _MAIN), {})
    image = wanted.image or str(table.spec.get("image") or main.get("image") or "")
    if not image:
        raise Failed(
            f"HudiTable {table.name} names no image, and no pod of its agent or writers is here to take it from: "
            "add --image, the image of drivers and agents"
        )
    storage = table.spec.get("storage") or {}
    env, env_from, volumes, mounts = _credentials(storage)
    env += [one for one in main.get("env") or [] if str(one.get("name", "")).startswith(_ETCD)]
    for volume in like.get("volumes") or []:
        if volume.get("name") == _ETCD_VOLUME:
            volumes.append(volume)
            mounts += [one for one in main.get("volumeMounts") or [] if one.get("name") == _ETCD_VOLUME]
    options = [f"--option={key}={value}" for key, value in sorted((storage.get("options") or {}).items())]
    heap = [f"--conf=spark.driver.memory={_mebibytes(wanted.memory) // 2}m"]
    container: JsonDict = {
        "name": CONTAINER,
        "image": image,
        "args": [
            "audit",
            str(table.spec["path"]),
            *options,
            *heap,
            *(["--json"] if as_json else []),
            *wanted.arguments,
        ],
        "env": env,
        "resources": {"requests": {"cpu": "100m", "memory": wanted.memory}, "limits": {"memory": wanted.memory}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *mounts],
        **({"envFrom": env_from} if env_from else {}),
        **({"imagePullPolicy": main["imagePullPolicy"]} if main.get("imagePullPolicy") else {}),
    }
    spec: JsonDict = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {**_DEFAULT_USER, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {}}, *volumes],
        **{key: like[key] for key in _FROM_THE_OPERATORS_POD if like.get(key)},
    }
    if table.spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = table.spec["imagePullSecrets"]
    if storage.get("serviceAccountName"):
        spec["serviceAccountName"] = storage["serviceAccountName"]
    labels = {"app.kubernetes.io/component": CONTAINER, "app.kubernetes.io/managed-by": "hudi-operator"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": table.namespace, "labels": {"app.kubernetes.io/component": CONTAINER}},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": int(wanted.timeout),
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            # The second label lets it reach the gateway, by the chart's NetworkPolicy.
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _credentials(storage: JsonDict) -> tuple[list[JsonDict], list[JsonDict], list[JsonDict], list[JsonDict]]:
    """Variables, their sources, volumes and mounts of the table's Secrets."""
    env: list[JsonDict] = [{"name": "HOME", "value": "/tmp"}]
    env_from: list[JsonDict] = []
    volumes: list[JsonDict] = []
    mounts: list[JsonDict] = []
    for number, ref in enumerate(storage.get("secretRefs") or []):
        name = ref["name"]
        if ref.get("as") == "S3":
            env += [_variable(variable, name, key) for variable, key in _S3]
            env.append(_variable(_SESSION[0], name, _SESSION[1], optional=True))
        elif ref.get("as") == "Env":
            env_from.append({"prefix": ref["prefix"], "secretRef": {"name": name}})
        elif ref.get("as") == "Files":
            volumes.append({"name": f"secret-{number}", "secret": {"secretName": name, "defaultMode": 0o440}})
            place = f"/etc/hudi/secrets/{name}"
            mounts.append({"name": f"secret-{number}", "mountPath": place, "readOnly": True})
    return env, env_from, volumes, mounts


def _variable(variable: str, secret: str, key: str, *, optional: bool = False) -> JsonDict:
    found: JsonDict = {"name": secret, "key": key, **({"optional": True} if optional else {})}
    return {"name": variable, "valueFrom": {"secretKeyRef": found}}


def _mebibytes(memory: str) -> int:
    number, unit = memory[:-2], memory[-2:]
    if unit not in _UNITS or not number.isdigit() or int(number) * _UNITS[unit] < 1024:
        raise Failed(f"--memory {memory}: it must be a whole number of Mi or Gi, and 1Gi at least")
    return int(number) * _UNITS[unit]


# ---------------------------------------------------------------- the run
def audit(kubectl: Kubectl, screen: Screen, name: str, wanted: Wanted) -> int:
    """Audit a table; exit code 0: ok, 1: violated, 2: something could not be checked."""
    table = finding.table_of(kubectl, name)
    there = kubectl.within(table.namespace)
    pod = _like(there, table)
    called = f"audit-{table.name[:40].rstrip('-.')}-{uuid.uuid4().hex[:8]}"
    made = job(table, pod, wanted, called, as_json=screen.as_json)
    if wanted.dry_run != "none":
        screen.give(made if wanted.dry_run == "client" else there.create(made, dry_run=wanted.dry_run))
        return 0
    if pod is None:
        screen.tell("no pod of the table's agent or writers is here: who owns pending instants is not asked")
    with _ends_by_exception():
        try:
            there.create(made)
            code = _followed(there, screen, called, wanted)
        except KeyboardInterrupt:
            code = INTERRUPTED
        except BaseException:  # also an output that nobody reads any more
            _deleted(there, screen, called, is_sure=False)
            raise
        _deleted(there, screen, called, is_sure=True)
    return code


def _deleted(kubectl: Kubectl, screen: Screen, called: str, *, is_sure: bool) -> None:
    """Delete the Job. ``is_sure``: it was made; if not, a failure here is not reported."""
    with _undisturbed():
        try:
            kubectl.delete("jobs.batch", called)
        except Failed as error:
            if is_sure:
                raise Failed(f"job {called} is not deleted: {error}; it goes {KEPT_SECONDS} s after its end") from None
            return
        if is_sure:
            screen.tell(f"job {called} is deleted")


def _like(kubectl: Kubectl, table: Table) -> JsonDict | None:
    """A pod with the table's image and access: its agent's, else one of a writer of its."""
    try:
        pods = finding.agent_pods(kubectl, table)
    except Failed:
        pods = []
    if not pods:
        pods = (
            kubectl.optional("pods", selector=f"hudioperator.io/table={table.name},hudioperator.io/role=driver") or []
        )
    return pods[-1] if pods else None


def _followed(kubectl: Kubectl, screen: Screen, called: str, wanted: Wanted) -> int:
    end = time.monotonic() + wanted.timeout
    pod = _started(kubectl, screen, called, end)
    name = str(pod["metadata"]["name"])
    if not screen.as_json:
        kubectl.show_logs(name, f"--container={CONTAINER}", "--follow")
    code = _exit_code(kubectl, called, end)
    if screen.as_json:
        screen.give(_report(kubectl.logs(name, f"--container={CONTAINER}")))
    return code


def _pods(kubectl: Kubectl, called: str) -> list[JsonDict]:
    return kubectl.objects("pods", selector=f"batch.kubernetes.io/job-name={called}")


def _started(kubectl: Kubectl, screen: Screen, called: str, end: float) -> JsonDict:
    """The Job's pod, when its container has begun."""
    said = ""
    while True:
        pods = _pods(kubectl, called)
        if pods and (pods[0].get("status") or {}).get("phase") not in (None, "Pending"):
            return pods[0]
        told = [one.fact for one in why.of_pod(str(pods[0]["metadata"]["name"]), pods[0])] if pods else []
        state = "; ".join(told) or ("" if pods else _refused(kubectl, called))
        if state and state != said:
            screen.tell(state)
            said = state
        _not_over(kubectl, called, end, said)
        time.sleep(1)


def _refused(kubectl: Kubectl, called: str) -> str:
    """Why the Job has no pod, by its Events; empty when nothing says so."""
    events = kubectl.optional("events") or []
    mine = [
        one
        for one in events
        if (one.get("involvedObject") or {}).get("name") == called and one.get("type") == "Warning"
    ]
    return f"job {called}: {mine[-1].get('reason')}: {mine[-1].get('message')}" if mine else ""


def _not_over(kubectl: Kubectl, called: str, end: float, said: str) -> None:
    """Raises Failed when the Job has failed without its container, or the time is over."""
    failed = _condition(kubectl.get("jobs.batch", called), "Failed")
    if failed:
        raise Failed(f"job {called}: {failed.get('reason')}: {failed.get('message')}{f' ({said})' if said else ''}")
    if time.monotonic() >= end:
        raise Failed(f"job {called} is not over in time{f': {said}' if said else ''}")


def _condition(raw: JsonDict, kind: str) -> Mapping[str, Any]:
    found = (raw.get("status") or {}).get("conditions") or []
    return next((one for one in found if one.get("type") == kind and one.get("status") == "True"), {})


def _exit_code(kubectl: Kubectl, called: str, end: float) -> int:
    """The container's exit code: that of the audit."""
    while True:
        pods = _pods(kubectl, called)
        statuses = ((pods[0].get("status") or {}) if pods else {}).get("containerStatuses") or []
        for one in statuses:
            ended = (one.get("state") or {}).get("terminated")
            if one.get("name") == CONTAINER and ended:
                if ended.get("reason") not in (None, "Completed", "Error"):
                    raise Failed(f"the audit ended by {ended['reason']} (exit code {ended.get('exitCode')})")
                return int(ended.get("exitCode", UNKNOWN))
        _not_over(kubectl, called, end, "")
        time.sleep(1)


def _report(log: str) -> Any:
    """The audit's JSON in its log, which has lines of the JVM beside it."""
    lines = log.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.startswith("{"):
            try:
                return json.JSONDecoder().raw_decode("".join(lines[number:]))[0]
            except ValueError:
                continue
    raise Failed(f"the audit has printed no report: {''.join(lines[-5:]).strip()}")


@contextmanager
def _ends_by_exception() -> Iterator[None]:
    """A signal ends this process as Ctrl-C does, not at once: the objects that it made go."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    names: Sequence[str] = ("SIGTERM", "SIGHUP")
    known = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {one: signal.signal(one, interrupt) for one in known}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals wait: kubectl, which has our terminal, ignores them too."""
    known = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {one: signal.signal(one, signal.SIG_IGN) for one in known}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
