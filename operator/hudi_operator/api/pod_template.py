"""Rules for a ``podTemplate``, and the objects that it names.

A template is kept as the user wrote it. The CRD refuses fields that are known to be the operator's.
This module, at each launch, refuses every field that is not known to be the user's, including those
of a later Kubernetes. The admission policies of the chart compare pods with the rendered ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from hudi_operator.api.fields import IMAGE, NAME, SpecError
from hudi_operator.api.pod_settings import ENV_PREFIX, PodSettings, check_pods, prefix_problem

JsonDict = dict[str, Any]

OWN_CONTAINERS = ("driver", "executor", "agent")
OWN_LABELS = r"(hudioperator\.io/|spark-).*|app\.kubernetes\.io/(name|managed-by|component)"
"""Labels by which the operator, Spark and NetworkPolicies know a pod."""
OWN_ANNOTATIONS = r"hudioperator\.io/.*|container\.(apparmor|seccomp)\.security\..*|(apparmor|seccomp)\.security\..*"
OWN_VOLUMES = "(conf|code|etcd|tmp|kafka|registry|jdbc|callback|spark-key|s3)|secret-[0-9]+|kube-api-access-.*"
SYSTEM_FOLDERS = "/(bin|boot|dev|etc|lib[^/]*|opt|proc|root|run|sbin|sys|tmp|usr|var)?(/.*)?"
"""Folders of the operator's container in which nothing may be mounted: those of the image, and
those that the operator mounts.
"""
MOST_USES = 64
"""Objects that the podTemplates of one object may name: each look asks for each Secret (F629)."""
LOCAL_DIRS = "spark-local-dir-"
"""Prefix of the names of volumes that Spark uses for shuffle and spill files."""
SPEC = frozenset(
    (
        "affinity",
        "containers",
        "dnsConfig",
        "initContainers",
        "nodeSelector",
        "preemptionPolicy",
        "priorityClassName",
        "runtimeClassName",
        "schedulerName",
        "securityContext",
        "tolerations",
        "topologySpreadConstraints",
        "volumes",
    )
)
_OF_OURS = frozenset(("name", "envFrom", "resources", "volumeMounts"))
_OF_OTHERS = frozenset(
    (
        "name",
        "image",
        "imagePullPolicy",
        "command",
        "args",
        "workingDir",
        "ports",
        "env",
        "envFrom",
        "resources",
        "volumeMounts",
        "securityContext",
        "lifecycle",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "terminationMessagePath",
        "terminationMessagePolicy",
    )
)
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MOUNT = frozenset(("name", "mountPath", "readOnly", "recursiveReadOnly", "subPath"))
_SOURCES = frozenset(
    ("configMap", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret")
)
_OF_SOMEBODY_ELSE = {
    "dataSource": "copy",
    "dataSourceRef": "copy",
    "selector": "bind",
    "volumeName": "bind",
}
_PROJECTED = frozenset(("configMap", "downwardAPI", "secret"))
_POD_SECURITY = frozenset(
    (
        "appArmorProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "seccompProfile",
        "supplementalGroups",
        "supplementalGroupsPolicy",
    )
)
_CONTAINER_SECURITY = frozenset(
    (
        "allowPrivilegeEscalation",
        "appArmorProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "seccompProfile",
    )
)
_MOST = {"containers": 4, "initContainers": 4, "volumes": 16}
_LISTS = frozenset(("env", "envFrom", "ports", "tolerations", "topologySpreadConstraints", "volumeMounts"))
_TEXTS = frozenset(("image", "preemptionPolicy", "priorityClassName", "runtimeClassName", "schedulerName"))
_OBJECTS = frozenset(
    (
        "metadata",
        "spec",
        "labels",
        "annotations",
        "affinity",
        "dnsConfig",
        "nodeSelector",
        "resources",
        "securityContext",
    )
)


class Use(NamedTuple):
    """``field`` of a template names an object ``name`` of ``kind``.

    ``optional``: the pod starts without it.
    """

    field: str
    kind: str
    name: str
    optional: bool = False


def class_of(template: Mapping[str, Any], field: str) -> str:
    """``priorityClassName`` or ``runtimeClassName`` of a template; empty when it names none."""
    return str(_object(template, "spec").get(field, ""))


def check(*pods: tuple[str, PodSettings, str]) -> None:
    """Raise SpecError for settings of pods that one object may not have.

    Each with its field, and the name of the operator's own container.
    """
    named = set[tuple[str, str]]()
    for where, settings, main in pods:
        check_pods(settings, where)
        if found := problem(settings.pod_template, main):
            raise SpecError(f"{where}.podTemplate.{found}")
        named |= {(use.kind, use.name) for use in uses(settings.pod_template)}
        if len(named) > MOST_USES:
            raise SpecError(
                f"{where}.podTemplate: with it the object names {len(named)} Secrets, ConfigMaps and "
                f"PersistentVolumeClaims, must name at most {MOST_USES}"
            )


def problem(template: Mapping[str, Any], main: str) -> str:
    """Why pods are not made with this template; empty when they are.

    ``main``: name of the operator's own container in them.
    """
    return next(_problems(template, main), "")


def _problems(template: Mapping[str, Any], main: str) -> Iterator[str]:
    yield from _other("", template, {"metadata", "spec"})
    yield from _of_types("", template)
    meta, spec = _object(template, "metadata"), _object(template, "spec")
    yield from _other("metadata.", meta, {"labels", "annotations"})
    yield from _of_types("metadata.", meta)
    for field, owned in (("labels", OWN_LABELS), ("annotations", OWN_ANNOTATIONS)):
        for name, value in _object(meta, field).items():
            if re.fullmatch(owned, name, re.DOTALL) or not isinstance(value, str):
                yield f"metadata.{field}: {name} is set by the operator, or no text"
    yield from _other("spec.", spec, SPEC)
    yield from _of_types("spec.", spec)
    if str(spec.get("priorityClassName", "")).startswith("system-"):
        yield f"spec.priorityClassName: {spec['priorityClassName']} is for parts of the system"
    yield from _of_security("spec.securityContext", _object(spec, "securityContext"), _POD_SECURITY)
    for field, most in _MOST.items():
        items = spec.get(field, [])
        if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
            yield f"spec.{field}: expected a list of objects"
            return
        if len(items) > most:
            yield f"spec.{field}: has {len(items)} items, must have at most {most}"
        names = [item.get("name") for item in items]
        for name in names:
            if not isinstance(name, str) or not re.fullmatch(NAME, name) or names.count(name) > 1:
                yield f"spec.{field}: {name!r} is not a valid name, or occurs twice"
                return
    yield from _of_volumes(spec)
    yield from _of_containers(spec, main)
    for use in _uses(template):
        if not re.fullmatch(NAME, use.name):
            yield f"{use.field}: {use.name!r} is not the name of a {use.kind}"


def _of_types(at: str, of: Mapping[str, Any]) -> Iterator[str]:
    for field, value in of.items():
        kind, told = next((each for names, each in _KINDS if field in names), (object, ""))
        items = value if field in _LISTS and isinstance(value, list) else ()
        if not isinstance(value, kind) or not all(isinstance(item, Mapping) for item in items):
            yield f"{at}{field}: expected {told}"


_KINDS: tuple[tuple[frozenset[str], tuple[type[Any], str]], ...] = (
    (_LISTS, (list, "a list of objects")),
    (_TEXTS, (str, "a text")),
    (_OBJECTS, (dict, "an object")),
)


def _of_volumes(spec: JsonDict) -> Iterator[str]:
    for volume in spec.get("volumes") or ():
        at, sources = f"spec.volumes[{volume['name']}]", set(volume) - {"name"}
        if re.fullmatch(OWN_VOLUMES, volume["name"]):
            yield f"{at}: a volume of the operator has this name"
        if len(sources) != 1 or not sources <= _SOURCES:
            yield f"{at}: needs one of {', '.join(sorted(_SOURCES))}, not {', '.join(sorted(sources)) or 'nothing'}"
            continue
        (kind,) = sources
        if not isinstance(volume[kind], Mapping):
            yield f"{at}.{kind}: expected an object, found {volume[kind]!r:.80}"
            continue
        source = _object(volume, kind)
        if kind == "projected":
            parts = source.get("sources", [])
            for each in parts if isinstance(parts, list) else (parts,):
                if not isinstance(each, Mapping) or not set(each) <= _PROJECTED:
                    yield f"{at}.projected: only {', '.join(sorted(_PROJECTED))}: no token of an account"
                elif texts := [name for name, part in each.items() if not isinstance(part, Mapping)]:
                    yield f"{at}.projected.{texts[0]}: expected an object, found {each[texts[0]]!r:.80}"
        claim = _object(_object(source, "volumeClaimTemplate"), "spec")
        if kind == "ephemeral" and not claim:
            yield f"{at}.ephemeral: needs volumeClaimTemplate.spec, an object that says what volume is asked for"
        for field, told in _OF_SOMEBODY_ELSE.items():
            if field in claim:
                yield f"{at}.ephemeral: {field} would {told} a volume that may belong to another user"


def _of_containers(spec: JsonDict, main: str) -> Iterator[str]:
    volumes = {volume["name"] for volume in spec.get("volumes") or ()}
    regular = {container["name"] for container in spec.get("containers") or ()}
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            name = container["name"]
            at = f"spec.{field}[{name}]"
            yield from _of_types(f"{at}.", container)
            if name == main and field == "containers":
                yield from _other(f"{at}.", container, _OF_OURS)
                yield from _of_our_variables(at, container)
                yield from _of_our_resources(at, container)
            elif name in OWN_CONTAINERS:
                yield f"{at}: the operator's own container is {main}, in spec.containers"
            elif field == "initContainers" and name in regular:
                yield f"{at}: spec.containers has one of this name"
            else:
                known = _OF_OTHERS | ({"restartPolicy"} if field == "initContainers" else set())
                yield from _other(f"{at}.", container, known)
                if not re.fullmatch(IMAGE, container.get("image", "")):
                    yield f"{at}.image: {container.get('image', '')!r} is not an image reference"
                if container.get("restartPolicy", "Always") != "Always":
                    yield f"{at}.restartPolicy: Always (a sidecar) or unset"
                yield from _of_security(
                    f"{at}.securityContext", _object(container, "securityContext"), _CONTAINER_SECURITY
                )
                if any(_object({"port": port}, "port").get("hostPort") for port in container.get("ports") or ()):
                    yield f"{at}.ports: hostPort is a port of the node"
                yield from _of_handlers(at, container)
            yield from _of_mounts(at, container, volumes, ours=name == main)


def _of_handlers(at: str, container: JsonDict) -> Iterator[str]:
    """Problems of probes and handlers, whose requests the kubelet sends from the node's network."""
    lifecycle = _object(container, "lifecycle")
    handlers = {probe: _object(container, probe) for probe in _PROBES}
    handlers |= {f"lifecycle.{moment}": _object(lifecycle, moment) for moment in ("postStart", "preStop")}
    for where, handler in handlers.items():
        for kind in ("httpGet", "tcpSocket"):
            if host := _object(handler, kind).get("host"):
                yield f"{at}.{where}.{kind}.host: {host!r:.80}: the kubelet asks the pod itself; leave it out"


def _of_our_variables(at: str, container: JsonDict) -> Iterator[str]:
    for each in container.get("envFrom") or ():
        prefix = str(each.get("prefix", "")) if isinstance(each, Mapping) else ""
        if not re.fullmatch(ENV_PREFIX, prefix):
            yield f"{at}.envFrom: needs a prefix of letters, digits and _ that ends with _, not {prefix!r}"
        elif told := prefix_problem(prefix):
            yield f"{at}.envFrom: prefix {told}"
        elif not set(each) <= {"prefix", "secretRef", "configMapRef"}:
            yield f"{at}.envFrom: only prefix, secretRef and configMapRef"


def _of_our_resources(at: str, container: JsonDict) -> Iterator[str]:
    resources = _object(container, "resources")
    yield from _other(f"{at}.resources.", resources, {"limits", "requests"})
    for field in ("limits", "requests"):
        if not isinstance(resources.get(field, {}), Mapping):
            yield f"{at}.resources.{field}: expected an object, found {resources[field]!r:.80}"
        for name in _object(resources, field):
            if "/" not in name:
                yield f"{at}.resources.{field}: {name} is set by memory and resources beside podTemplate"


def _of_mounts(at: str, container: JsonDict, volumes: set[str], *, ours: bool) -> Iterator[str]:
    for mount in container.get("volumeMounts") or ():
        name = mount.get("name") if isinstance(mount, Mapping) else None
        if not isinstance(name, str) or name not in volumes:
            yield f"{at}.volumeMounts: {mount!r:.80} names no volume of the podTemplate"
            continue
        path = str(mount.get("mountPath", ""))
        if ours:
            yield from _other(f"{at}.volumeMounts.", mount, _MOUNT)
            if re.fullmatch(SYSTEM_FOLDERS, path) or not re.fullmatch(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+", path):
                yield f"{at}.volumeMounts: {path!r} is none of the folders where something may be mounted, as /data"


def _of_security(at: str, context: JsonDict, known: frozenset[str]) -> Iterator[str]:
    yield from _other(f"{at}.", context, known)
    if context.get("runAsUser", 1) == 0 or context.get("runAsNonRoot", True) is not True:
        yield f"{at}: runs as root"
    if context.get("allowPrivilegeEscalation", False) is not False or set(_object(context, "capabilities")) - {"drop"}:
        yield f"{at}: allowPrivilegeEscalation is false, and capabilities are dropped only"
    for field in ("seccompProfile", "appArmorProfile"):
        # Null would take the operator's profile away.
        if field in context and _object(context, field).get("type") not in ("RuntimeDefault", "Localhost"):
            yield f"{at}.{field}: must be RuntimeDefault or Localhost"


def _other(at: str, found: Mapping[str, Any], known: Iterable[str]) -> Iterator[str]:
    if other := sorted(set(found) - set(known)):
        yield f"{at}{other[0]}: not for a podTemplate, which sets {', '.join(sorted(known))}"


def _object(of: Mapping[str, Any], name: str) -> JsonDict:
    """An object at ``name``; empty when there is none, or something else."""
    found = of.get(name)
    return dict(found) if isinstance(found, Mapping) else {}


def containers(template: Mapping[str, Any]) -> list[JsonDict]:
    """All containers that a template names, the operator's too."""
    spec = _object(template, "spec")
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def images(template: Mapping[str, Any]) -> dict[str, str]:
    """Images of the containers that a template adds, by their names."""
    return {each["name"]: str(each["image"]) for each in containers(template) if "image" in each}


def uses(template: Mapping[str, Any]) -> tuple[Use, ...]:
    """Every Secret, ConfigMap and PersistentVolumeClaim that a template names."""
    return tuple(_uses(template))


def _uses(template: Mapping[str, Any]) -> Iterator[Use]:
    for volume in _object(template, "spec").get("volumes") or ():
        yield from _of_volume(f"spec.volumes[{volume['name']}]", volume)
    for container in containers(template):
        at = f"spec.containers[{container['name']}]"
        for each in container.get("envFrom") or ():
            yield from _of_variable(f"{at}.envFrom", each, "secretRef", "configMapRef")
        for each in container.get("env") or ():
            yield from _of_variable(f"{at}.env", _object(each, "valueFrom"), "secretKeyRef", "configMapKeyRef")


def _of_volume(at: str, volume: JsonDict) -> Iterator[Use]:
    # Kubernetes ignores a field of another name: it must not be the one that is checked (F344).
    yield from _of_source(at, volume, "secretName")
    for source in _object(volume, "projected").get("sources") or ():
        yield from _of_source(at, source, "name")
    if claim := _object(volume, "persistentVolumeClaim").get("claimName"):
        yield Use(at, "PersistentVolumeClaim", str(claim))


def _of_source(at: str, source: JsonDict, name_of_secret: str) -> Iterator[Use]:
    for kind, field, name in (("Secret", "secret", name_of_secret), ("ConfigMap", "configMap", "name")):
        found = _object(source, field)
        if said := found.get(name):
            yield Use(at, kind, str(said), bool(found.get("optional")))


def _of_variable(at: str, of: Mapping[str, Any], secret: str, config_map: str) -> Iterator[Use]:
    for kind, field in (("Secret", secret), ("ConfigMap", config_map)):
        found = _object(of, field)
        if found.get("name"):
            yield Use(at, kind, str(found["name"]), bool(found.get("optional")))


def names(template: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    """Names of the objects of a kind that a template names, each once, sorted."""
    return tuple(sorted({use.name for use in _uses(template) if use.kind == kind}))
