"""The operator with exactly the rights that the chart gives it, under the
chart's admission policies.
"""

from __future__ import annotations

import subprocess

from hudi_operator.api.references import ANNOTATION
from tests.support import CACHE, ROOT, quick_yaml
from tests.support.harness.operator_world import EVIDENCE, World
from tests.support.harness.servers import JsonDict, wait_for

KINDS = {
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
NAMESPACE = "hudi-operator"
CONSENT = "hudi-operator-consent"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def test_the_charts_rights_are_enough(world: World) -> None:
    chart = subprocess.run(
        [
            CACHE / "bin/helm",
            "template",
            NAMESPACE,
            ROOT / "charts/hudi-operator",
            "-n",
            NAMESPACE,
            "--set",
            "crds.enabled=false,images.registry=localhost/hudi-operator,images.tag=dev",
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    rights = quick_yaml.dump_all(
        [manifest for manifest in quick_yaml.load_all(chart) if manifest and manifest["kind"] in KINDS]
    )
    world.cluster.kubectl("create", "namespace", NAMESPACE)
    # The world of these tests has made a role of this name for itself.
    world.cluster.kubectl("delete", "clusterrole", "hudi-operator-driver")
    world.cluster.kubectl("apply", "-f", "-", stdin=rights)
    try:
        _whole_life(world)
    finally:
        policies = quick_yaml.dump_all(
            [manifest for manifest in quick_yaml.load_all(rights) if manifest["kind"].startswith("ValidatingAdmission")]
        )
        world.cluster.kubectl("delete", "-f", "-", stdin=policies)


def test_the_event_says_why_a_reference_is_not_allowed(world: World) -> None:
    """An account whose owner allows no table, named by a table and by a writer that are stored
    already: neither starts a pod, and an Event of each says why.
    """
    world.settings = {"consent": {"serviceAccounts": "Required"}}
    world.start_operator()
    world.cluster.kubectl("-n", world.namespace, "create", "serviceaccount", "default-admin")

    def event(kind: str, name: str, field: str) -> None:
        said = (
            f"{field}: ServiceAccount default-admin allows no table: its owner allows this one with: kubectl annotate "
            f"serviceaccount default-admin -n {world.namespace} --overwrite {ANNOTATION}=flights"
        )
        path = f"/apis/events.k8s.io/v1/namespaces/{world.namespace}/events"

        def find() -> list[JsonDict]:
            items = (world.cluster.request("GET", path) or {"items": []})["items"]
            return [one for one in items if (one["regarding"]["kind"], one["regarding"]["name"]) == (kind, name)]

        (found,) = wait_for(f"an event of {kind} {name}", lambda: find() or None)
        assert (found["type"], found["reason"], found["note"]) == ("Warning", "ReferenceNotAllowed", said)

    world.table(storage={"options": {"fs.s3a.endpoint": "http://s3"}, "serviceAccountName": "default-admin"})
    event("HudiTable", "flights", "spec.storage.serviceAccountName")
    assert not world.pods("agent")
    spec = {"storage": {"serviceAccountName": None}}
    world.cluster.request("PATCH", world.path("huditables", "flights"), {"spec": spec}, "application/merge-patch+json")
    agent = world.pod("agent")
    world.run_pod(agent)
    table_id = str((world.get("huditables", "flights") or {})["status"]["tableId"])
    world.report_timeline(table_id, world.register(table_id, agent, role="agent"))
    world.writer("load", serviceAccountName="default-admin")
    event("HudiWriter", "load", "spec.serviceAccountName")
    assert not world.pods("driver")


def _stalled(world: World, message: str) -> None:
    def found() -> bool:
        return message in (world.condition("huditables", "flights", "Stalled") or {"message": ""})["message"]

    wait_for(message, found, seconds=60)


def _asks_why_executors_do_not_come(world: World) -> None:
    """F301: its own policy lets the question pass, and those of drivers have nothing against it."""

    def asked() -> JsonDict | None:
        found = world.condition("hudiwriters", "load", "ExecutorsMissing")
        return found if found is not None and "API server would accept another one" in found["message"] else None

    found = wait_for("the API server was asked", asked, seconds=80)
    assert (found["status"], found["reason"]) == ("True", "Pending")
    assert not world.pods("executor")


def _may_read_secrets(world: World) -> None:
    """F403: in the namespace of the table, and neither beside itself nor anywhere else."""
    wait_for("the role is bound", lambda: world.cluster.request("GET", world.path("rolebindings", CONSENT, RBAC)))

    def may(namespace: str) -> bool:
        asked = {
            "user": f"system:serviceaccount:{NAMESPACE}:{NAMESPACE}",
            "resourceAttributes": {"verb": "get", "resource": "secrets", "name": "lake", "namespace": namespace},
        }
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
        answer = world.cluster.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer is not None and answer["status"]["allowed"])

    wait_for("the right holds", lambda: may(world.namespace))
    assert not [namespace for namespace in (NAMESPACE, "kube-system", "default") if may(namespace)]


def _may_read_secrets_again(world: World) -> None:
    """Somebody deletes the binding: it is there again with the next look."""
    world.cluster.kubectl("-n", world.namespace, "delete", "rolebinding", CONSENT)
    patch = {"spec": {"concurrency": {"maxWriters": 7}}}
    world.cluster.request("PATCH", world.path("huditables", "flights"), patch, "application/merge-patch+json")
    _may_read_secrets(world)


def _whole_life(world: World) -> None:
    """Create, write, die, settle, delete; with an account of the table's own."""
    token = world.cluster.kubectl("-n", NAMESPACE, "create", "token", "hudi-operator").strip()
    kubeconfig = quick_yaml.load(world.cluster.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": token}
    world.operator_kubeconfig = world.directory / "token.kubeconfig"
    world.operator_kubeconfig.write_text(quick_yaml.dump(kubeconfig))
    world.operator_namespace = NAMESPACE
    for kind in ("serviceaccount", "secret generic"):
        world.cluster.kubectl("-n", world.namespace, "create", *kind.split(), "lake")
    world.settings = {
        "consent": {"secrets": "Required", "serviceAccounts": "Required"},
        "consentBinding": {"role": CONSENT, "serviceAccount": NAMESPACE, "namespace": NAMESPACE},
    }
    world.network_policies = True
    operator = world.start_operator()
    storage = {"serviceAccountName": "lake", "secretRefs": [{"name": "lake", "as": "Env", "prefix": "APP_"}]}
    table_id = world.table(storage=storage)
    # Of its own accord, before the first question.
    _may_read_secrets(world)
    # Its owner's word: first the account's alone, then the Secret's alone, then both.
    for said, refusal in (
        ("serviceaccount", "Secret lake allows no table"),
        ("secret", "ServiceAccount lake allows no table"),
    ):
        world.cluster.kubectl("-n", world.namespace, "annotate", said, "lake", f"{ANNOTATION}=flights")
        _stalled(world, refusal)
        assert not world.pods("agent")
        world.cluster.kubectl("-n", world.namespace, "annotate", said, "lake", f"{ANNOTATION}-")
    for said in ("serviceaccount", "secret"):
        world.cluster.kubectl("-n", world.namespace, "annotate", said, "lake", f"{ANNOTATION}=flights")
    agent = world.pod("agent")
    _may_read_secrets_again(world)
    world.run_pod(agent)
    agent_inc = world.register(table_id, agent, role="agent")
    world.report_timeline(table_id, agent_inc)
    # No second attempt, which would be deleted before or after it is scheduled.
    retries = {"backoffSeconds": 100, "maxBackoffSeconds": 100}
    pod, inc = world.running_writer(table_id, executors={"instances": 1}, retryPolicy=retries)
    assert pod["spec"]["serviceAccountName"] == "lake"
    world.cluster.kubectl("-n", world.namespace, "get", "rolebinding", "hudi-driver-lake")
    world.cluster.kubectl("-n", world.namespace, "get", "networkpolicy", "hudi-driver", "hudi-executor", "hudi-agent")
    _asks_why_executors_do_not_come(world)
    world.lock(table_id, inc, pod)
    world.end_pod(pod, exit_code=137)
    world.phase(table_id, inc, "Settled")
    wait_for(
        "evidence dropped",
        lambda: (
            EVIDENCE
            not in (
                (world.get("pods", pod["metadata"]["name"]) or {"metadata": {}})["metadata"].get("finalizers") or []
            )
        ),
    )
    for plural, name in (("hudiwriters", "load"), ("huditables", "flights")):
        world.cluster.request("DELETE", world.path(plural, name))
    assert len(world.pods("driver", writer="load")) <= 1
    world.revoke(agent_inc)
    world.etcd.delete(world.key(table_id, f"writer/{agent_inc}"))
    world.kubelet_kills(agent)
    for plural, name in (("hudiwriters", "load"), ("huditables", "flights")):
        wait_for(f"{name} gone", lambda plural=plural, name=name: world.get(plural, name) is None, seconds=40)
    bound = world.cluster.kubectl("-n", world.namespace, "get", "rolebinding", "-o", "name").split()
    assert {name.rpartition("/")[2] for name in bound} == {"hudi-driver", CONSENT}, "the account's own went with it"
    refused = [line for line in operator.log.read_text().splitlines() if "forbidden" in line]
    assert not refused, refused
