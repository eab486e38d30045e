"""Settings of pods, with podTemplates: what users may set, and what is somebody else's.

Each part of a template is mostly one that may be set. The rest would give a container another
identity, code, the node, or what belongs to somebody else.
"""

from __future__ import annotations

from tests.support.hostile.draw import Draw, JsonDict
from tests.support.hostile.vocabulary import JAVA, PREFIXES, SECRETS, VARIABLES

_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
_TEAM: dict[str, tuple[object, ...]] = {
    "affinity": ({"podAntiAffinity": {}}, {"nodeAffinity": {}}),
    "dnsConfig": ({"options": [{"name": "ndots", "value": "1"}]},),
    "preemptionPolicy": ("Never",),
    "priorityClassName": ("batch", "batch", "system-node-critical"),
    "runtimeClassName": ("gvisor",),
    "schedulerName": ("volcano",),
    "tolerations": ([{"key": "spot", "operator": "Exists"}],),
    "topologySpreadConstraints": ([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],),
    "nodeSelector": ({"disk": "ssd"}, {"zone": "a: b"}),
}
_OPERATORS: dict[str, tuple[object, ...]] = {
    "activeDeadlineSeconds": (1,),
    "automountServiceAccountToken": (True,),
    "enableServiceLinks": (True,),
    "ephemeralContainers": ([{"name": "debug", "image": "registry/x:1"}],),
    "hostAliases": ([{"ip": "10.0.0.1", "hostnames": ["s3"]}],),
    "hostIPC": (True,),
    "hostNetwork": (True,),
    "hostPID": (True,),
    "hostUsers": (True,),
    "hostname": ("x",),
    "imagePullSecrets": ([{"name": "of-others"}],),
    "nodeName": ("control-plane",),
    "overhead": ({"cpu": "1"},),
    "priority": (2_000_000_000,),
    "readinessGates": ([{"conditionType": "x"}],),
    "resourceClaims": ([{"name": "x"}],),
    "restartPolicy": ("Always",),
    "schedulingGates": ([{"name": "x"}],),
    "serviceAccount": ("admin",),
    "serviceAccountName": ("admin",),
    "shareProcessNamespace": (True,),
    "subdomain": ("x",),
    "terminationGracePeriodSeconds": (0,),
    "hostEverything": (True,),
}
_CONTEXT: tuple[JsonDict, ...] = (
    {"runAsUser": 100123}, {"runAsNonRoot": True}, {"seccompProfile": {"type": "RuntimeDefault"}}, {"runAsGroup": 5},
)  # fmt: skip
_ROOT: tuple[JsonDict, ...] = (
    {"runAsUser": 0}, {"runAsNonRoot": False}, {"seccompProfile": {"type": "Unconfined"}}, {"seccompProfile": None},
    {"seLinuxOptions": {"type": "spc_t"}}, {"windowsOptions": {"hostProcess": True}},
    {"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}, {"appArmorProfile": {"type": "Unconfined"}},
    {"runAsNonRoot": None}, {"seccompProfile": {}}, {"seccompProfile": "Unconfined"},
)  # fmt: skip
_PRIVILEGED: tuple[JsonDict, ...] = (
    {"privileged": True}, {"allowPrivilegeEscalation": True}, {"procMount": "Unmasked"},
    {"capabilities": {"add": ["SYS_ADMIN"]}}, {"capabilities": {"drop": []}}, {"allowPrivilegeEscalation": None},
)  # fmt: skip
_PATHS = (
    "/data", "/keys/a", "/scratch", "/etc/hudi/etcd", "/opt/spark/jars", "/data/../etc/hudi", "/", "/tmp",
    "/usr/lib/x", "data", "/etc", "/lib64", "/data/.", "/data\n/etc", "//etc", "/home/a,b",
)  # fmt: skip
_LABELS = (
    "team", "kueue.x-k8s.io/queue-name", "hudioperator.io/table", "hudioperator.io/x\ny", "spark-role",
    "app.kubernetes.io/managed-by", "app.kubernetes.io/name", "HUDIOPERATOR.io/role",
)  # fmt: skip
_ANNOTATIONS = (
    "a/b", "prometheus.io/scrape", "hudioperator.io/hudi-defaults", "container.apparmor.security.beta.kubernetes.io/x",
    "seccomp.security.alpha.kubernetes.io/pod",
)  # fmt: skip
_IMAGES = ("registry/shipper:1", "x:1", "evil:1", "registry/a,b=evil", "")


def pods(draw: Draw, main: str) -> JsonDict:
    """Settings of the pods of a driver, of executors or of an agent. ``main``: the container."""
    names = {draw.some(VARIABLES, 1) for _ in range(draw.random.randrange(3))}
    found: JsonDict = {
        "memory": draw.one(("512Mi", "1Gi")),
        "env": [{"name": name, "value": draw.text("plain")} for name in sorted(names)],
        "javaOptions": [draw.some(JAVA, 3) for _ in range(draw.random.randrange(2))],
        "nodeSelector": draw.one(({}, {"disk": draw.one(("ssd", "a: b", "x\n"))})),
    }
    if draw.chance(0.15):
        amounts = {"cpu": ("500m",), "memory": ("2Gi",), "ephemeral-storage": (1_000_000_000,)}
        found["resources"] = draw.fields(0.8, {
            "requests": lambda: draw.fields(0.5, amounts), "limits": lambda: draw.fields(0.5, amounts),
        })  # fmt: skip
    found |= draw.fields(0.12, {
        "cores": (1, 2),
        "tolerations": lambda: [draw.fields(0.7, {
            "key": ("spot", "a.b/c"), "operator": ("Exists", "Equal"), "value": ("x", draw.text("y")),
            "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"), "tolerationSeconds": (0, 60),
        })],
        "podTemplate": lambda: _template(draw, main),
        # Twice as often as the others.
        "podTemplate.metadata": lambda: _metadata(draw),
    })  # fmt: skip
    return found


def _template(draw: Draw, main: str) -> JsonDict:
    spec = draw.fields(0.1, _TEAM)
    if draw.odd(0.1):
        name = draw.one(tuple(_OPERATORS))
        spec[name] = draw.one(_OPERATORS[name])
    if draw.chance(0.4):
        spec["securityContext"] = _security(draw, _CONTEXT, (*_ROOT, {"sysctls": [{"name": "x", "value": "1"}]}))
    names = ("data", "keys", "spark-local-dir-1", "both")
    if draw.chance(0.7):
        spec["volumes"] = [_volume(draw, name) for name in draw.random.sample(names, draw.one((1, 2)))]
    for field, known in (("containers", (main, "shipper")), ("initContainers", ("fetch", "proxy"))):
        if draw.chance(0.6):
            chosen = draw.random.sample(known, draw.one((1, 2)))
            if draw.odd(0.05):
                chosen[0] = draw.one(("driver", "executor", "agent", "shipper", "Shipper", "a=b,c"))
            volumes = tuple(volume["name"] for volume in spec.get("volumes", ()))
            spec[field] = [
                _container(draw, name, volumes, ours=(name, field) == (main, "containers")) for name in chosen
            ]
    found: JsonDict = {"spec": spec}
    if draw.chance(0.5):
        found["metadata"] = _metadata(draw)
    return found


def _metadata(draw: Draw) -> JsonDict:
    found = draw.fields(0.6, {
        "labels": lambda: {draw.some(_LABELS, 2): draw.one(("lake", "x", ""))},
        "annotations": lambda: {draw.some(_ANNOTATIONS, 2): draw.text("c")},
    })  # fmt: skip
    owned = {"finalizers": (["x/y"],), "ownerReferences": ([{"kind": "Pod", "name": "x", "uid": "y"}],)}
    return found | (draw.fields(0.7, owned) if draw.odd(0.06) else {})


def _security(draw: Draw, fine: tuple[JsonDict, ...], other: tuple[JsonDict, ...]) -> JsonDict:
    found: JsonDict = dict(draw.one(fine))
    return {**found, **draw.one(other)} if draw.odd(0.2) else found


def _named(draw: Draw, name: str) -> JsonDict:
    """Reference to a Secret or a ConfigMap. Another place of Kubernetes' API spells the field
    differently: the checks and the kubelet may read different names.
    """
    found = {name: draw.some(SECRETS, 2)}
    if draw.odd(0.3):
        found = {"secretName" if name == "name" else "name": "keys", name: draw.one(SECRETS)}
    return found | draw.fields(0.2, {"optional": (True, False), "defaultMode": (0o440,)})


def _volume(draw: Draw, name: str) -> JsonDict:
    claim: JsonDict = {"spec": dict(_CLAIM)}
    if draw.odd(0.1):
        claim["spec"] |= draw.one((
            {"volumeName": "of-others"}, {"selector": {}},
            {"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}},
        ))  # fmt: skip
    sources: list[JsonDict] = [
        {"configMap": _named(draw, "name")},
        {"secret": _named(draw, "secretName")},
        {"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"emptyDir": {"sizeLimit": "1Gi"}},
        {"ephemeral": {"volumeClaimTemplate": claim}},
        {"persistentVolumeClaim": {"claimName": draw.one(("data", "data", "a,b"))}},
        {"projected": {"sources": [{"secret": _named(draw, "name")}]}},
        {"projected": {"sources": [{"secret": _named(draw, "name")}, {"configMap": _named(draw, "name")}]}},
    ]
    found: JsonDict = {"name": name, **draw.one(sources)}
    if draw.odd(0.06):
        token = {"audience": "x", "path": "token"}
        found = {"name": name, **draw.one((
            {"hostPath": {"path": "/"}}, {"csi": {"driver": "x"}}, {"emptyDir": {}, "hostPath": {"path": "/"}}, {},
            {"azureFile": {"secretName": "of-others"}}, {"projected": {"sources": [{"serviceAccountToken": token}]}},
            {"projected": {"sources": [{"clusterTrustBundle": {}}]}}, {"secret": None},
            {"projected": {"sources": [{"podCertificate": {"keyType": "x"}}]}}, {"nfs": {"server": "x", "path": "/"}},
        ))}  # fmt: skip
    if "configMap" in found and draw.odd(0.1):
        found = {"name": name, **draw.one((
            {"configMap": {}}, {"projected": {}}, {"projected": {"sources": [{"configMap": {}}, {}]}},
            {"projected": {"sources": [{"configMap": "settings"}]}},
        ))}  # fmt: skip
    if draw.odd(0.04):
        found["name"] = draw.one(("etcd", "conf", "secret-0", "spark-key", "kube-api-access-x", "s3", "tmp"))
    return found


def _container(draw: Draw, name: str, volumes: tuple[str, ...], *, ours: bool) -> JsonDict:
    known = volumes or ("etcd",)
    mounts = [
        {"name": draw.some((*known, "etcd", "s3", "conf", "code"), len(known)), "mountPath": draw.some(_PATHS, 3)}
    ]
    found: JsonDict = {"name": name}
    found |= draw.fields(0.3, {
        "volumeMounts": lambda: [mounts[0] | draw.fields(0.1, {"readOnly": (True,), "subPath": ("a", "../x")})],
        "envFrom": lambda: [{
            "prefix": draw.some(PREFIXES, 2), draw.one(("secretRef", "configMapRef")): _named(draw, "name"),
        }],
    })  # fmt: skip
    if ours:
        found |= draw.fields(0.2, {"resources": (
            {"limits": {"nvidia.com/gpu": 1}}, {"limits": {"a/b": 1}, "requests": {"a/b": 1}}, {"limits": {"cpu": 9}},
        )})  # fmt: skip
    if not ours or draw.odd(0.1):
        found["image"] = draw.some(_IMAGES, 2)
        found |= draw.fields(0.2, {
            "imagePullPolicy": ("Always",), "command": (["sh"],), "args": (["-c", draw.text("x")],),
            "workingDir": ("/data",), "lifecycle": ({"preStop": {"exec": {"command": ["x"]}}},),
            "livenessProbe": ({"exec": {"command": ["x"]}},), "readinessProbe": ({"exec": {"command": ["x"]}},),
            "startupProbe": ({"exec": {"command": ["x"]}},),
            "env": lambda: [{"name": "TOKEN", "valueFrom": {draw.one(("secretKeyRef", "configMapKeyRef")): {
                **_named(draw, "name"), "key": "a",
            }}}],
            "securityContext": lambda: _security(draw, _CONTEXT, (*_ROOT, *_PRIVILEGED)),
        })  # fmt: skip
        found |= draw.fields(0.04, {
            "restartPolicy": ("Always", "Never"), "volumeDevices": ([{"name": "data", "devicePath": "/dev/x"}],),
            "ports": ([{"containerPort": 1}], [{"containerPort": 1, "hostPort": 22}]),
        })  # fmt: skip
    return found
