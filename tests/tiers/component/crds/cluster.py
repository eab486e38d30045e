"""A real API server without kubelet, with the chart's CRDs and admission policies, and the objects
that the tests of this folder send to it.
"""

from __future__ import annotations

import functools
import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import CACHE, ROOT, quick_yaml
from tests.tiers.component.crds import asking

EVIDENCE = "hudioperator.io/evidence"
POD_UID = "0d3c0b54-6c0e-4c8e-9a55-7f2b9d1f0c11"

IMAGES = "--set=images.registry=registry.example.com/data"
"""Without it the chart is refused."""
WRITTEN_LAST = "written-last"
"""The policy that tells when all others are enforced."""
DEFAULT_IMAGES = "--set=images.registry=localhost/hudi-operator,images.tag=dev"
"""Those of an OperatorConfig without settings, which renders the pods that policies judge."""
CHART = ROOT / "charts" / "hudi-operator"
BIN = CACHE / "bin"
JsonDict = dict[str, Any]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm without a cluster."""
    return subprocess.run([str(BIN / "helm"), *arguments], capture_output=True, text=True, timeout=120)


def render(*arguments: str, namespace: str = "hudi-system") -> list[JsonDict]:
    """All objects of the chart that an installation creates."""
    return [dict(document) for document in json.loads(_rendered(namespace, *arguments))]


def module_folder(module: str, checksum: str) -> Path:
    """The files of a Go module (`path@version`), which must have this checksum."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", module], cwd="/", capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["Sum"] == checksum
    return Path(found["Dir"])


@functools.cache
def _rendered(namespace: str, *arguments: str) -> str:
    """As JSON: whoever asks gets objects of its own, and reading YAML takes its time."""
    done = helm("template", "hudi-operator", str(CHART), "--namespace", namespace, "--skip-tests", IMAGES, *arguments)
    assert done.returncode == 0, done.stderr
    return json.dumps([document for document in quick_yaml.load_all(done.stdout) if document])


@dataclass(frozen=True)
class Cluster:
    """The administrator's kubectl of a light cluster.

    Output is standard output and error together, as a user sees it.
    """

    kubeconfig: Path

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(BIN / "kubectl"), "--kubeconfig", str(self.kubeconfig), *arguments]
        return subprocess.run(
            command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60
        )

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def get_config(self) -> dict[str, str]:
        """URL of the API server, and the file with its authority."""
        server = quick_yaml.load(self.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        return {"server": server, "ca": str(self.kubeconfig.parent / "pki" / "ca.crt")}

    def apply(self, *objects: JsonDict, user: str = "", groups: tuple[str, ...] = ()) -> str:
        """What `kubectl apply` prints of the first object that is not simply created, and of those
        behind it; empty when all are new.
        """
        left = list(objects)
        while left and asking.made(self.kubeconfig, left[0], user=user, groups=groups):
            left.pop(0)
        if not left:
            return ""
        return self.kubectl("apply", "-f", "-", *_as(user, groups), stdin=quick_yaml.dump_all(left))

    def refused(self, *objects: JsonDict, user: str = "", groups: tuple[str, ...] = ()) -> str:
        """Why the API server refuses objects; what `kubectl apply` prints where one is there."""
        if len(objects) == 1:
            code, said = asking.create(self.kubeconfig, objects[0], user=user, groups=groups)
            if code not in (200, 201, 409):
                return said
        done = self.run("apply", "-f", "-", *_as(user, groups), stdin=quick_yaml.dump_all(objects))
        assert done.returncode != 0, f"accepted: {done.stdout}"
        return done.stdout

    def change_refused(self, changed: JsonDict, *, user: str = "", groups: tuple[str, ...] = ()) -> str:
        """Why the API server refuses a change of an object that is there. `refused` asks for its
        creation first, which rules of creations may refuse with the same words (F609).
        """
        done = self.run("apply", "-f", "-", *_as(user, groups), stdin=quick_yaml.dump_all([changed]))
        assert done.returncode != 0, f"accepted: {done.stdout}"
        return done.stdout

    def with_token(self, token: str, file: Path) -> Cluster:
        """The same cluster in the name of a token; ``file`` is where its kubeconfig is written."""
        kubeconfig = quick_yaml.load(self.kubeconfig.read_text())
        kubeconfig["users"][0]["user"] = {"token": token}
        file.write_text(quick_yaml.dump(kubeconfig))
        return Cluster(file)

    def get(self, *arguments: str, stdin: str = "") -> JsonDict:
        result: JsonDict = json.loads(self.kubectl("get", *arguments, "-o", "json", stdin=stdin))
        return result


def _as(user: str, groups: tuple[str, ...]) -> list[str]:
    return [f"--as={user}", *(f"--as-group={group}" for group in groups)] if user else []


def install(cluster: Cluster, *values: str) -> None:
    """CRDs, policies and roles of the chart with these values; no operator."""
    kinds = {
        "CustomResourceDefinition",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    }
    cluster.kubectl("create", "namespace", "hudi-system")
    cluster.apply(*(o for o in render(DEFAULT_IMAGES, *values) if o["kind"] in kinds))
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    _wait_for_policies(cluster)


def _wait_for_policies(cluster: Cluster) -> None:
    """Return when the API server enforces every policy applied so far.

    It learns of policies and of bindings in the order in which they were written, each kind
    from a watch of its own: one that is written last and answers has all others before it.
    """
    last = {"metadata": {"name": WRITTEN_LAST}, "apiVersion": "admissionregistration.k8s.io/v1"}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    named = {"name": "probe", "expression": f"object.metadata.name == '{WRITTEN_LAST}'"}
    policy = {
        **last,
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [named],
            "validations": [{"expression": "false", "message": "policies are enforced"}],
        },
    }
    binding = {
        **last,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": WRITTEN_LAST, "validationActions": ["Deny"]},
    }
    cluster.apply(policy, binding)
    wait_until(
        lambda: (
            "policies are enforced"
            in cluster.run("create", "configmap", WRITTEN_LAST, "-n", "hudi-system", "--dry-run=server").stdout
        )
    )


def allow(cluster: Cluster, namespace: str, name: str, *rules: JsonDict) -> None:
    """Give ann these rights."""
    meta = {"name": name, "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    cluster.apply(
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": list(rules)},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "ann"}],
        },
    )
    # The API server learns of roles and of bindings from watches: it answers a moment later.
    for rule in rules:
        wait_until(lambda rule=rule: asking.may(cluster.kubeconfig, "ann", namespace, rule))


def grant(cluster: Cluster, namespace: str, verb: str, resource: str, name: str = "") -> None:
    """Give ann one verb."""
    group = "hudioperator.io" if resource.startswith("hudi") else ""
    rule: JsonDict = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
    named = {"resourceNames": [name]} if name else {}
    allow(cluster, namespace, f"{verb}-{resource}-{name}".rstrip("-"), {**rule, **named})


def wait_until(condition: Any, seconds: float = 30, every: float = 0.1) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(every)


def table(namespace: str, name: str = "flights", **spec: Any) -> JsonDict:
    """A HudiTable; a field set to None is left out."""
    default = {
        "path": "s3a://lake/flights",
        "type": "MergeOnRead",
        "recordKeyFields": ["time_hour", "carrier", "flight"],
        "partitionFields": ["month"],
        "orderingFields": ["updated_at"],
    }
    return _object("HudiTable", namespace, name, {**default, **spec})


def writer(namespace: str, name: str = "backfill", **spec: Any) -> JsonDict:
    """A HudiWriter; a field set to None is left out."""
    default = {
        "tableRef": {"name": "flights"},
        "source": {"files": {"format": "csv", "paths": ["s3a://landing/corrections/"]}},
    }
    return _object("HudiWriter", namespace, name, {**default, **spec})


def _object(kind: str, namespace: str, name: str, spec: JsonDict) -> JsonDict:
    return {
        "apiVersion": "hudioperator.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {k: v for k, v in spec.items() if v is not None},
    }


def pod(name: str, namespace: str = "default", labels: dict[str, str] | None = None, **spec: Any) -> JsonDict:
    """A pod without evidence."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": "none"}],
            **spec,
        },
    }


def executor(namespace: str, name: str = "w-12345678-1-exec-1") -> JsonDict:
    """A pod as Spark makes it from the operator's template."""
    result = pod(
        name,
        namespace,
        labels={
            "app.kubernetes.io/name": "hudi",
            "app.kubernetes.io/managed-by": "hudi-operator",
            "app.kubernetes.io/component": "executor",
            "hudioperator.io/role": "executor",
            "hudioperator.io/driver": "w-12345678-1",
        },
        securityContext={"runAsNonRoot": True, "runAsUser": 185, "seccompProfile": {"type": "RuntimeDefault"}},
        containers=[
            {
                "name": "executor",
                "image": "none",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "conf", "mountPath": "/etc/hudi/conf"}],
            }
        ],
        volumes=[{"name": "conf", "configMap": {"name": "w-12345678-1"}}],
    )
    result["metadata"]["finalizers"] = [EVIDENCE]
    result["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "w-12345678-1", "uid": POD_UID, "controller": True}
    ]
    return result


def compared(namespace: str, name: str = "w-12345678-1") -> JsonDict:
    """A ConfigMap with which executors are compared; without one in the namespace none starts."""
    labels = {"app.kubernetes.io/managed-by": "hudi-operator", "app.kubernetes.io/component": "driver"}
    meta = {"name": name, "namespace": namespace, "labels": labels, "finalizers": [EVIDENCE]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def applied_executor(cluster: Cluster, namespace: str) -> None:
    """An executor of `w-12345678-1` that exists.

    The API server learns of the ConfigMap by a watch of its own.
    """
    cluster.apply(compared(namespace))
    made = quick_yaml.dump(executor(namespace))
    wait_until(lambda: cluster.run("apply", "-f", "-", stdin=made).returncode == 0)


def driver_account(cluster: Cluster, namespace: str) -> str:
    """A namespace as the operator prepares it; returns the drivers' user name."""
    cluster.kubectl("create", "serviceaccount", "hudi-driver", "-n", namespace)
    cluster.kubectl(
        "create",
        "rolebinding",
        "hudi-driver",
        "--clusterrole=hudi-operator-driver",
        f"--serviceaccount={namespace}:hudi-driver",
        "-n",
        namespace,
    )
    return f"system:serviceaccount:{namespace}:hudi-driver"


def create(cluster: Cluster, obj: JsonDict, user: str = "", *, validate: str = "Strict") -> tuple[int, str]:
    """`kubectl create --dry-run=server` in somebody's name: its exit code, and what it prints."""
    code, said = asking.create(cluster.kubeconfig, obj, user=user, validate=validate)
    return int(code not in (200, 201)), said
