"""Properties of a rendered pod, for all its settings and podTemplates."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

from tests.support.hostile.launch import ALLOWED_IMAGES, CONFIG
from tests.support.hostile.readers import expanded
from tests.support.hostile.vocabulary import OF_OTHERS, TAKEN

JsonDict = dict[str, Any]

_OF_THE_TEAM = (
    "affinity", "dnsConfig", "preemptionPolicy", "priorityClassName", "runtimeClassName", "schedulerName",
    "topologySpreadConstraints",
)  # fmt: skip
_OWN_LABEL = re.compile(r"hudioperator\.io/|spark-|app\.kubernetes\.io/(name|managed-by|component)$")
_CLASS = "hudioperator.io/priority-class"
"""Label of executors whose podTemplate names a priority class."""
_OWN_ANNOTATION = re.compile(r"hudioperator\.io/|.*(apparmor|seccomp)\.security\.")
_FOLDERS = re.compile(r"/(etc|opt|usr|bin|sbin|lib|lib64|tmp|var|root|proc|sys|dev|run|boot|srv/hudi)(/|$)")
_VARIES = re.compile(
    "HUDI_OPERATOR_(TABLE_ID|TABLE_PATH|PRIORITY|STOP_GRACE_SECONDS|SECRET_PREFIXES|SECRET_FOLDERS)|SPARK_LOCAL_DIRS"
)
_MADE_OF_A_TEMPLATE = {"HUDI_OPERATOR_SECRET_PREFIXES", "HUDI_OPERATOR_SECRET_FOLDERS", "SPARK_LOCAL_DIRS"}


def check(pod: JsonDict, plain: JsonDict, settings: JsonDict, role: str, secrets: set[str]) -> None:
    """``plain``: the pod of a spec of the same shape with ordinary texts and no podTemplate.

    ``role``: argument of the operator's container; empty: an executor. ``secrets``: names of those
    that fields outside of these settings name. Raises AssertionError.
    """
    template = settings.get("podTemplate") or {}
    wanted = template.get("spec") or {}
    labels = {} if role or not wanted.get("priorityClassName") else {_CLASS: str(wanted["priorityClassName"])}
    of_class = {**plain["metadata"], "labels": plain["metadata"].get("labels", {}) | labels}
    _metadata(pod["metadata"], of_class, template.get("metadata") or {})
    spec, ordinary = pod["spec"], plain["spec"]
    _placement(spec, ordinary, settings, wanted)
    _security(spec["securityContext"], ordinary["securityContext"], wanted.get("securityContext") or {})
    theirs = wanted.get("volumes") or []
    ours = spec["volumes"][: len(spec["volumes"]) - len(theirs)]
    assert spec["volumes"][len(ours) :] == theirs
    assert [volume["name"] for volume in ours] == [volume["name"] for volume in ordinary["volumes"]]
    names = [volume["name"] for volume in spec["volumes"]]
    assert len(names) == len(set(names)), names
    for volume in theirs:
        _volume(volume)
    container, *others = spec["containers"]
    _containers([*others, *spec.get("initContainers", [])], template, container["name"], {v["name"] for v in theirs})
    _main(container, ordinary["containers"][0], settings, wanted, role)
    _secrets(pod, wanted, secrets)


def _metadata(found: JsonDict, plain: JsonDict, wanted: JsonDict) -> None:
    assert found.keys() - {"labels", "annotations"} == plain.keys() - {"labels", "annotations"}
    for key in plain.keys() - {"labels", "annotations"}:
        assert found[key] == plain[key], key
    for key, own in (("labels", _OWN_LABEL), ("annotations", _OWN_ANNOTATION)):
        ours, theirs = plain.get(key, {}), wanted.get(key) or {}
        assert found.get(key, {}).keys() == ours.keys() | theirs.keys()
        assert not [name for name in theirs if own.match(name)], theirs
        varies = {name for name in ours if name.endswith(("/hudi-defaults", "/agent"))}
        # An annotation of the chart's values is not ours: the template comes first.
        kept = ours.keys() - varies - theirs.keys()
        assert {n: found[key][n] for n in kept} == {n: ours[n] for n in kept}
        assert {n: v for n, v in found.get(key, {}).items() if n in theirs} == theirs


def _placement(spec: JsonDict, ordinary: JsonDict, settings: JsonDict, wanted: JsonDict) -> None:
    more = {*_OF_THE_TEAM, "nodeSelector", "tolerations", "initContainers", "activeDeadlineSeconds", "imagePullSecrets"}
    assert spec.keys() - more == ordinary.keys() - more
    for key in ("restartPolicy", "enableServiceLinks", "automountServiceAccountToken"):
        assert spec[key] == ordinary[key], key
    for key in _OF_THE_TEAM:
        assert spec.get(key) == wanted.get(key), key
    assert not str(spec.get("priorityClassName")).startswith("system-")
    assert spec.get("nodeSelector", {}) == {
        **(wanted.get("nodeSelector") or {}),
        **(settings.get("nodeSelector") or {}),
    }
    assert spec.get("tolerations", []) == [*(settings.get("tolerations") or []), *(wanted.get("tolerations") or [])]


def _security(found: JsonDict, plain: JsonDict, wanted: JsonDict) -> None:
    known = {"runAsUser", "runAsGroup", "fsGroup", "runAsNonRoot", "seccompProfile"}
    assert {key: value for key, value in found.items() if key not in wanted} == {
        key: value for key, value in plain.items() if key not in wanted
    }
    assert found["runAsNonRoot"] is True
    assert found.get("runAsUser") != 0
    assert found["seccompProfile"]["type"] in ("RuntimeDefault", "Localhost"), found
    assert found.keys() - known <= {"supplementalGroups", "fsGroupChangePolicy", "appArmorProfile"}, found


def _volume(volume: JsonDict) -> None:
    (kind,) = volume.keys() - {"name"}
    assert kind in (
        "configMap", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
    ), kind  # fmt: skip
    if kind == "projected":
        assert not [
            part for part in volume[kind].get("sources", []) if part.keys() - {"secret", "configMap", "downwardAPI"}
        ]
    if kind == "ephemeral":
        claim = volume[kind]["volumeClaimTemplate"]["spec"]
        assert claim, volume
        assert not claim.keys() & {"volumeName", "selector", "dataSource", "dataSourceRef"}, claim


def _containers(found: list[JsonDict], template: JsonDict, main: str, volumes: set[str]) -> None:
    """Check the containers that a template adds: they have no more rights than the operator's."""
    spec = template.get("spec") or {}
    theirs = [c for c in spec.get("containers") or [] if c["name"] != main] + list(spec.get("initContainers") or [])
    assert [one["name"] for one in found] == [one["name"] for one in theirs]
    names = [main, *(one["name"] for one in found)]
    assert len(names) == len(set(names)), names
    for made, said in zip(found, theirs, strict=True):
        assert {k: v for k, v in made.items() if k != "securityContext"} == {
            k: v for k, v in said.items() if k != "securityContext"
        }
        rights = made["securityContext"]
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["capabilities"] == {"drop": ["ALL"]}
        assert rights.get("runAsNonRoot", True) is True, rights
        assert rights.get("runAsUser") != 0, rights
        assert (rights.get("seccompProfile") or {"type": "RuntimeDefault"})["type"] in ("RuntimeDefault", "Localhost")
        assert not rights.keys() & {"privileged", "procMount", "seLinuxOptions", "windowsOptions"}, rights
        assert any(fnmatch(made["image"], each) for each in (*ALLOWED_IMAGES, CONFIG.spark_image)), made["image"]
        assert not made.keys() & {"volumeDevices"}
        assert not [port for port in made.get("ports", ()) if port.get("hostPort")]
        # The operator's volumes have the pod's tokens, keys and credentials.
        assert {mount["name"] for mount in made.get("volumeMounts", ())} <= volumes, made["volumeMounts"]


def _main(container: JsonDict, theirs: JsonDict, settings: JsonDict, wanted: JsonDict, role: str) -> None:
    more: JsonDict = next((c for c in wanted.get("containers") or [] if c["name"] == container["name"]), {})
    assert container.keys() - {"resources"} == theirs.keys() - {"resources"}
    assert container.get("args") == theirs.get("args") == ([role] if role else None)
    for key in ("securityContext", "name", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"):
        assert container[key] == theirs[key], key
    assert container.get("ports") == theirs.get("ports")
    assert any(fnmatch(container["image"], each) for each in (*ALLOWED_IMAGES, CONFIG.spark_image)), container["image"]
    added = more.get("volumeMounts") or []
    ours = container["volumeMounts"][: len(container["volumeMounts"]) - len(added)]
    assert container["volumeMounts"][len(ours) :] == added
    assert [(m["name"], m.get("readOnly")) for m in ours] == [
        (m["name"], m.get("readOnly")) for m in theirs["volumeMounts"]
    ]
    for mount in added:
        path = mount["mountPath"]
        assert posixpath.normpath(path) == path, path
        assert path != "/", path
        assert path.isprintable(), path
        assert not _FOLDERS.match(path), path
    _resources(container.get("resources", {}), settings, more, role)
    _environment(container, theirs, settings, more)
    _places(container, wanted)


def _resources(found: JsonDict, settings: JsonDict, more: JsonDict, role: str) -> None:
    asked, added = settings.get("resources") or {}, more.get("resources") or {}
    for kind in ("requests", "limits"):
        for name, amount in ((asked.get(kind) or {}) if role else {}).items():
            assert found[kind][name] == amount, (kind, name)
        own = found.get(kind, {}).keys() - (asked.get(kind) or {}).keys()
        assert all("/" in name for name in own - {"cpu", "memory"}), own
        assert {n: v for n, v in found.get(kind, {}).items() if "/" in n and n in (added.get(kind) or {})} == (
            added.get(kind) or {}
        )


def _environment(container: JsonDict, theirs: JsonDict, settings: JsonDict, more: JsonDict) -> None:
    names = [each["name"] for each in container["env"]]
    owned = {each["name"]: each for each in theirs["env"]}
    assert len(names) == len(set(names)), names
    wanted = {each["name"]: each["value"] for each in settings.get("env") or []}
    assert set(names) - _MADE_OF_A_TEMPLATE == owned.keys() - _MADE_OF_A_TEMPLATE | wanted.keys(), names
    assert not {name.upper() for name in wanted} & {*TAKEN, *(name.upper() for name in owned)}, wanted
    known = dict.fromkeys(names, "REPLACED")
    for each in container["env"]:
        if each["name"] in wanted:
            assert expanded(each["value"], known) == wanted[each["name"]], each
        elif _VARIES.fullmatch(each["name"]):
            assert expanded(each["value"], known) == each["value"], each
        else:
            assert each == owned[each["name"]], each
    added = more.get("envFrom") or []
    assert container["envFrom"][len(container["envFrom"]) - len(added) :] == added
    for each in container["envFrom"]:
        assert each["prefix"], each
        assert not [name for name in TAKEN if name.startswith(each["prefix"].upper())], each


def _places(container: JsonDict, wanted: JsonDict) -> None:
    """The process knows what comes from a Secret: it is kept out of messages."""
    said = {each["name"]: each.get("value", "").split(",") for each in container["env"]}
    prefixes = {each["prefix"] for each in container["envFrom"] if "secretRef" in each}
    assert {*said.get("HUDI_OPERATOR_SECRET_PREFIXES", [])} == prefixes, prefixes
    of = {v["name"] for v in wanted.get("volumes") or [] if "secret" in v or "projected" in v}
    secret = [m["mountPath"] for m in container["volumeMounts"] if m["name"] in of or m["name"].startswith("secret-")]
    assert {*secret} <= {*said.get("HUDI_OPERATOR_SECRET_FOLDERS", [])}, secret


def used(pod: JsonDict) -> set[str]:
    """Names of the Secrets that the kubelet would give to a pod: the fields of Kubernetes' API."""
    return {name for name in _used(pod["spec"]) if name is not None}


def _used(spec: JsonDict) -> Iterator[str | None]:
    for volume in spec["volumes"]:
        yield (volume.get("secret") or {}).get("secretName")
        for part in (volume.get("projected") or {}).get("sources") or ():
            yield (part.get("secret") or {}).get("name")
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        for each in container.get("envFrom") or ():
            yield (each.get("secretRef") or {}).get("name")
        for each in container.get("env") or ():
            yield ((each.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
    for each in spec.get("imagePullSecrets") or ():
        yield each["name"]


def _secrets(pod: JsonDict, wanted: JsonDict, others: set[str]) -> None:
    named = used({"spec": {"volumes": [], "containers": [], **wanted, "imagePullSecrets": []}})
    assert used(pod) <= named | others, used(pod) - named - others
    assert OF_OTHERS not in named | others
    for name in named:
        assert not name.startswith("hudi-operator-"), name
        assert not name.endswith(("-spark-key", "-storage-key")), name
