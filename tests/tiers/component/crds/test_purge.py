"""docs/operate/uninstall.md: its Steps and its Purge, each command as it stands in the page.

The real helm, API server and controllers, and the operator as a process, with the token of the
release's account, under the release's policies. The test plays kubelet and JVMs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_contract.naming import spark_key_name
from tests.support import CACHE, ROOT, quick_yaml
from tests.support.harness import servers
from tests.support.harness.kubelet_parts import Looking
from tests.support.harness.operator_world import World
from tests.support.harness.servers import wait_for
from tests.tiers.component.crds.certificates import Played, options
from tests.tiers.component.crds.cluster import CHART, DEFAULT_IMAGES, Cluster, JsonDict, helm

PAGE = (ROOT / "docs" / "operate" / "uninstall.md").read_text()
RELEASE = SYSTEM = "hudi-operator"
BUSY, QUIET = "lake-a", "lake-b"
"""Two namespaces; the table of the second one is deleted before."""
VALUES = (
    DEFAULT_IMAGES,
    # None of the two may use the other one's paths: the agents that are played make no trials.
    '--set-json=config.pathPrefixes={"lake-a": ["s3a://lake/lake-a/"], "lake-b": ["s3a://lake/lake-b/"]}',
    "--set=networkPolicy.enabled=true,monitoring.dashboards.enabled=true",
)
Named = tuple[str, str, str]
"""Kind, namespace (empty for what has none) and name."""


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def steps() -> list[str]:
    """The command of each numbered step."""
    found = re.findall(r"^\d\. `([^`]+)`", section("Steps"), re.MULTILINE)
    assert len(found) == len(re.findall(r"^\d\. ", section("Steps"), re.MULTILINE)) == 4
    return found


def purge() -> list[str]:
    """One command a line."""
    block = textwrap.dedent("\n".join(line for line in section("Purge").splitlines() if line.startswith("    ")))
    return [line for line in block.splitlines() if line]


def remaining() -> set[Named]:
    """The table of the page, for this release and these namespaces."""
    made: set[Named] = set()
    for kind, where, names in re.findall(r"^\| (\w+) \| ([^|]+) \| ([^|]+) \|$", section("Steps"), re.MULTILINE):
        if kind == "kind":
            continue
        spaces = {"the cluster": [""], "the release's namespace": [SYSTEM], "namespaces of tables": [BUSY, QUIET]}
        for namespace in spaces[where]:
            made |= {(kind, namespace, name) for name in re.findall(r"`([^`]+)`", names)}
    assert made
    return made


class Life(Looking):
    """The kubelets' half of a deletion: a pod that somebody deletes ends, and its object goes."""

    def __init__(self, *worlds: World) -> None:
        self._worlds = worlds
        self.look_on("kubelets", every=0.3)

    def _look(self) -> None:
        for world in self._worlds:
            for pod in world.cluster.request("GET", world.path("pods", group="/api/v1"))["items"]:  # type: ignore[index]
                if not pod["metadata"].get("deletionTimestamp") or not pod["spec"].get("nodeName"):
                    continue
                if pod["status"]["phase"] == "Running":
                    world.end_pod(pod, exit_code=143)
                name = pod["metadata"]["name"]
                world.cluster.request("DELETE", f"{world.path('pods', name, '/api/v1')}?gracePeriodSeconds=0")


class Installed:
    """A cluster with the release, and what its users have beside it."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster, self.directory = cluster, directory
        self.api = servers.Cluster(cluster.kubeconfig)
        self.etcd = servers.Etcd(directory)
        self.worlds: dict[str, World] = {}

    def start(self) -> None:
        self.api.node("node1")
        self.etcd.start()
        self.etcd.set_up_users()
        self.before = self.everything()
        done = helm(
            *("install", RELEASE, str(CHART), "--kubeconfig", str(self.cluster.kubeconfig)),
            *("-n", SYSTEM, "--create-namespace", *VALUES),
        )
        assert done.returncode == 0, done.stderr
        with Played(self.cluster, options(DEFAULT_IMAGES, namespace=SYSTEM)) as process:
            process.turn()
        self.cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        for namespace in (BUSY, QUIET):
            folder = self.directory / namespace
            folder.mkdir()
            self.worlds[namespace] = World(self.api, self.etcd, folder, namespace)
        self.life = Life(*self.worlds.values())
        self.foreign = self._foreign()

    def stop(self) -> None:
        self.life.look_no_more(20)
        for world in self.worlds.values():
            world.close()
        self.etcd.stop()
        self.api.close()

    def operator(self) -> None:
        """Start it with the release's own configuration, but for where etcd is."""
        world = self.worlds[BUSY]
        token = self.cluster.kubectl("create", "token", RELEASE, "-n", SYSTEM).strip()
        world.operator_kubeconfig = self.cluster.with_token(token, self.directory / "operator.kubeconfig").kubeconfig
        world.operator_namespace = SYSTEM
        config = quick_yaml.load(self.cluster.get("configmap", RELEASE, "-n", SYSTEM)["data"]["config.yaml"])
        elsewhere = ("etcd", "podEtcd", "metricsPort", "probePort")
        world.settings = {name: value for name, value in config.items() if name not in elsewhere}
        world.start_operator()

    def _foreign(self) -> dict[Named, str]:
        """Objects of users beside those of the release, in its namespace and in those of tables."""
        rbac = "rbac.authorization.k8s.io"
        role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "view"}
        user = [{"apiGroup": rbac, "kind": "User", "name": "ann"}]
        labels = {"app.kubernetes.io/name": "hudi", "app.kubernetes.io/managed-by": "Helm"}
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        bodies: tuple[JsonDict, ...] = (
            {"apiVersion": "v1", "kind": "Secret", "stringData": {"k": "v"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}},
            {"apiVersion": "v1", "kind": "ServiceAccount"},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": claim},
            {"apiVersion": f"{rbac}/v1", "kind": "Role", "rules": []},
            {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "roleRef": role, "subjects": user},
            {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}}},
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {}},
        )
        allowed = {"hudioperator.io/allowed-tables": "*"}
        named = [
            {**body, "metadata": {"name": "lake", "namespace": space, "labels": labels, "annotations": allowed}}
            for space in (BUSY, QUIET, SYSTEM)
            for body in bodies
        ]
        cluster_wide = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "rules": []}
        named.append({**cluster_wide, "metadata": {"name": "lake", "labels": labels}})
        self.cluster.apply(*named)
        wanted = {(o["kind"], o["metadata"].get("namespace", ""), "lake") for o in named}
        return {name: uid for name, uid in self.everything().items() if name in wanted}

    def everything(self) -> dict[Named, str]:
        """Every object of every kind, to its uid.

        Without events, which end by themselves, and without what Kubernetes gives each namespace.
        """
        kinds = self.api.kubectl("api-resources", "--verbs=list", "-o", "name").split()
        listed = [kind for kind in kinds if not kind.startswith(("events", "componentstatuses"))]
        assert {"secrets", "rolebindings.rbac.authorization.k8s.io"} < set(listed)
        found = {
            (o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o["metadata"]["uid"]
            for o in json.loads(self.api.kubectl("get", ",".join(listed), "-A", "-o", "json"))["items"]
        }
        given = {("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")}
        return {name: uid for name, uid in found.items() if (name[0], name[2]) not in given}

    def new(self) -> set[Named]:
        """What is there and was not before, but for what is its users': that must be as ever."""
        now = self.everything()
        assert self.foreign.items() <= now.items(), f"gone: {self.foreign.keys() - now.keys()}"
        users = {("Namespace", "", BUSY), ("Namespace", "", QUIET), *self.foreign}
        found = now.keys() - self.before.keys() - users
        return {
            (kind, space, re.sub("^hudi-agent-[0-9a-f]{32}$", "hudi-agent-HASH", name)) for kind, space, name in found
        }

    def run(self, command: str) -> None:
        """As an administrator types it."""
        path = f"{CACHE / 'bin'}:{os.environ['PATH']}"
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig), "PATH": path}
        done = subprocess.run(
            ["bash", "-ec", command], env=environment, capture_output=True, text=True, timeout=150, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"

    def table(self, namespace: str) -> None:
        """A HudiTable that is served, with an account and a Secret of its users."""
        storage = {"serviceAccountName": "lake", "secretRefs": [{"name": "lake", "as": "Env", "prefix": "APP_"}]}
        world = self.worlds[namespace]
        world.running_table(**({"storage": storage} if namespace == BUSY else {}))


@pytest.fixture
def installed(bare_cluster: Cluster, tmp_path: Path) -> Iterator[Installed]:
    made = Installed(bare_cluster, tmp_path)
    made.start()
    try:
        yield made
    finally:
        made.stop()
        print("\n".join(world.logs() for world in made.worlds.values()))


@pytest.mark.extra
def test_what_the_page_leaves_and_what_it_removes(installed: Installed) -> None:
    """After the Steps exactly what the page lists, after Purge nothing; all of others'."""
    installed.operator()
    for namespace in (QUIET, BUSY):
        installed.table(namespace)
    installed.run(f"kubectl delete huditable flights -n {QUIET}")
    busy = installed.worlds[BUSY]
    (table_id,) = busy.tables
    busy.writer(executors={"instances": 1})
    pod = busy.pod("driver", number=1, writer="load")
    # A kubelet waits for it, too.
    wait_for("the key of Spark's connections", lambda: busy.get("secrets", spark_key_name(pod["metadata"]["name"])))
    busy.run_pod(pod)
    busy.register(table_id, pod)
    kinds = {"Pod", "Secret", "ConfigMap", "HudiTable", "HudiWriter", "RoleBinding", "NetworkPolicy"}
    wait_for("its objects", lambda: kinds <= {kind for kind, namespace, _ in installed.new() if namespace == BUSY})

    uninstall = steps().pop()
    for command in steps()[:-1]:
        installed.run(command)
    assert not [name for name in installed.new() if name[0] in ("HudiTable", "HudiWriter")]
    installed.run(uninstall)
    busy.operators[0].kill()  # its Deployment is gone
    held = remaining()
    # The API server keeps one for each version that CRDs have.
    of_crds = {("APIService", "", "v1alpha1.hudioperator.io")}

    def settled() -> bool:
        return installed.new() == held | of_crds

    try:
        wait_for("what the page says", settled)
    except AssertionError:
        found = installed.new() - of_crds
        difference = {"not in the page": sorted(found - held), "not there": sorted(held - found)}
        raise AssertionError(json.dumps(difference, indent=1)) from None

    for command in purge():
        installed.run(command)
    namespace = {("Namespace", "", SYSTEM)}
    assert namespace < held
    try:
        wait_for("nothing is left", lambda: installed.new() == namespace)
    except AssertionError:
        raise AssertionError(f"left: {sorted(installed.new() - namespace)}") from None
