"""`kubectl hudi etcd restore`: the volumes of etcd's members from a backup, while nothing runs.

It changes nothing as long as anything of the release may reach etcd: what the backup has forgotten
(a fence, a lock that was released) must be acted on by nobody before the operator has frozen every
table. Old data is set aside, not deleted.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from hudi_kubectl.changing import How, confirm
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import JsonDict
from hudi_kubectl.screen import Screen

COMPONENT = "app.kubernetes.io/component"
INSTANCE = "app.kubernetes.io/instance"
STOPPED = ("operator", "gateway", "etcd-identity", "etcd")
"""Components that reach etcd, or are it: none of their pods may be there."""
BUMP = 1_000_000_000
"""What the revision is raised by: more than can have been written since the backup, so no revision
that a process remembers, the token of a lock for example, is ever given again.
"""
DOCS = "docs/operate/operations.md, Restore etcd"
_CLUSTER = re.compile(r"etcd-([0-9a-f]+)-\d{8}T\d{6}Z-r\d+\.db")
_FILE = re.compile(r"[A-Za-z0-9._-]+")
_FROM_ETCDS_PODS = ("securityContext", "nodeSelector", "tolerations", "imagePullSecrets", "priorityClassName")
_EVERY_SECONDS = 1.0


@dataclass(frozen=True)
class Wanted:
    """``claim``: with the backup. ``file``: its name there. ``timeout``: seconds for each member.

    ``another``: also as a cluster of another id, which no table's marker names.
    """

    claim: str
    file: str
    another: bool = False
    timeout: float = 600


@dataclass(frozen=True)
class Etcd:
    """The release's etcd as its StatefulSet says."""

    raw: JsonDict
    helper: JsonDict
    """The container of the operator's image, which sets data aside."""

    @property
    def name(self) -> str:
        """Of the StatefulSet."""
        return str(self.raw["metadata"]["name"])

    @property
    def _container(self) -> JsonDict:
        found: JsonDict = self.raw["spec"]["template"]["spec"]["containers"][0]
        return found

    def flag(self, name: str, member: str = "") -> str:
        """An argument of etcd. Raises Failed when it is not given."""
        found = [one.split("=", 1)[1] for one in self._container["args"] if one.startswith(f"--{name}=")]
        if not found:
            raise Failed(f"StatefulSet {self.name} gives etcd no --{name}: it is none of the chart")
        return str(found[-1]).replace("$(POD_NAME)", member)

    @property
    def members(self) -> list[tuple[str, str]]:
        """Names and peer addresses."""
        return [(one.split("=", 1)[0], one.split("=", 1)[1]) for one in self.flag("initial-cluster").split(",")]

    def cluster_id(self, count: int) -> str:
        """The id of a cluster that begins with the first members: etcd computes it from these."""
        token = self.flag("initial-cluster-token")
        ids = sorted(hashlib.sha1((url + token).encode()).digest()[:8] for _, url in self.members[:count])  # noqa: S324
        return f"{int.from_bytes(hashlib.sha1(b''.join(ids)).digest()[:8], 'big'):x}"  # noqa: S324

    def pod(self, number: int, count: int, wanted: Wanted) -> JsonDict:
        """The pod that makes the files of a member; one beyond ``count`` gets none."""
        member, data = self.members[number][0], self.flag("data-dir")
        like = self.raw["spec"]["template"]["spec"]
        volume = next(one["mountPath"] for one in self._container["volumeMounts"] if one["name"] == "data")
        mounts = [{"name": "data", "mountPath": volume}, {"name": "backup", "mountPath": "/backup", "readOnly": True}]
        aside = ["python", "-m", "hudi_operator.etcd_upkeep", "set-aside", f"--folder={data}"]
        steps = [self._step("set-aside", self.helper, aside, mounts)]
        if number < count:
            begin = ",".join(f"{name}={url}" for name, url in self.members[:count])
            command = [
                "/usr/local/bin/etcdutl",
                "snapshot",
                "restore",
                f"/backup/{wanted.file}",
                f"--data-dir={data}",
                f"--name={member}",
                f"--initial-cluster={begin}",
                f"--initial-cluster-token={self.flag('initial-cluster-token')}",
                f"--initial-advertise-peer-urls={self.flag('initial-advertise-peer-urls', member)}",
                f"--bump-revision={BUMP}",
                "--mark-compacted",
            ]
            steps.append(self._step("restore", self._container, command, mounts))
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{member}-restore",
                "labels": {COMPONENT: "etcd-restore", INSTANCE: self.raw["metadata"]["labels"][INSTANCE]},
            },
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "initContainers": steps[:-1],
                "containers": steps[-1:],
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{member}"}},
                    {"name": "backup", "persistentVolumeClaim": {"claimName": wanted.claim, "readOnly": True}},
                ],
                **{key: like[key] for key in _FROM_ETCDS_PODS if like.get(key)},
            },
        }

    @staticmethod
    def _step(name: str, like: JsonDict, command: Sequence[str], mounts: Sequence[JsonDict]) -> JsonDict:
        kept: JsonDict = {key: like[key] for key in ("image", "imagePullPolicy", "securityContext") if key in like}
        made: JsonDict = {"name": name, "command": list(command), "volumeMounts": list(mounts)}
        return made | kept


def restore(kubectl: Kubectl, screen: Screen, wanted: Wanted, how: How) -> int:
    """Make the files of each member from a backup, and say what has to follow."""
    if not _FILE.fullmatch(wanted.file) or not wanted.claim:
        raise Failed("--claim CLAIM and --from FILE: the PersistentVolumeClaim and the name of the backup in it")
    etcd = _found(kubectl)
    count = _count(etcd, wanted)
    pods = [etcd.pod(number, count, wanted) for number in range(len(etcd.members))]
    if how.is_dry:
        screen.give(pods)
        return 0
    _nothing_runs(kubectl, etcd)
    names = ", ".join(name for name, _ in etcd.members)
    confirm(
        f"The data of {names} is set aside, and {wanted.file} of PersistentVolumeClaim {wanted.claim} takes its place. "
        "Every table will be frozen until you accept that for it.",
        how,
    )
    for pod in pods:
        _run(kubectl, screen, pod, wanted.timeout)
    if screen.as_json:
        screen.give({"cluster_id": etcd.cluster_id(count), "members": count})
        return 0
    for line in _next(etcd, count):
        screen.say(line)
    return 0


def _found(kubectl: Kubectl) -> Etcd:
    sets = kubectl.objects("statefulsets.apps", selector=f"{COMPONENT}=etcd")
    helpers = kubectl.objects("deployments.apps", selector=f"{COMPONENT}=etcd-identity")
    if len(sets) != 1 or len(helpers) != 1:
        raise Failed(
            "there is not one release with an etcd of the chart in this namespace: -n names that of the release"
        )
    if not sets[0]["spec"].get("volumeClaimTemplates"):
        raise Failed("etcd.persistence.enabled is false: there is no volume that a backup could be restored to")
    return Etcd(sets[0], helpers[0]["spec"]["template"]["spec"]["containers"][0])


def _count(etcd: Etcd, wanted: Wanted) -> int:
    """How many members the restored cluster begins with, so that it is the one that tables know."""
    every = len(etcd.members)
    told = _CLUSTER.fullmatch(wanted.file)
    if told is None:
        if wanted.another:
            return every
        raise Failed(
            f"--from {wanted.file}: only a name like etcd-CLUSTER-TIME-rREVISION.db, as the chart's backups have it, "
            "says of which cluster it is. Each table's marker names that; --another-cluster restores it nevertheless"
        )
    for count in range(every, 0, -1):
        if etcd.cluster_id(count) == told[1]:
            return count
    if wanted.another:
        return every
    raise Failed(
        f"--from {wanted.file}: it is of cluster {told[1]}, and these members would be {etcd.cluster_id(every)}: no "
        "table's marker would name that, and each table would be refused (OtherLockAuthority). --another-cluster "
        "restores it nevertheless"
    )


def _nothing_runs(kubectl: Kubectl, etcd: Etcd) -> None:
    instance = f"{INSTANCE}={etcd.raw['metadata']['labels'][INSTANCE]}"
    for component in STOPPED:
        chosen = f"{instance},{COMPONENT}={component}"
        for kind in ("deployments.apps", "statefulsets.apps"):
            for one in kubectl.objects(kind, selector=chosen):
                if one["spec"].get("replicas", 1):
                    raise Failed(
                        f"{kind.partition('.')[0]} {one['metadata']['name']} has {one['spec'].get('replicas', 1)} "
                        "replicas: scale it to 0 first, and keep whatever would scale it up again (GitOps) from it"
                    )
        left = [one["metadata"]["name"] for one in kubectl.objects("pods", selector=chosen)]
        if left:
            raise Failed(f"pod {left[0]} is still there: wait until it has ended")


def _run(kubectl: Kubectl, screen: Screen, pod: JsonDict, timeout: float) -> None:
    name = str(kubectl.create(pod)["metadata"]["name"])
    end, phase = time.monotonic() + timeout, ""
    while phase not in ("Succeeded", "Failed"):
        if time.monotonic() > end:
            raise Failed(
                f"pod {name} is {phase or 'not started'} after {timeout:.0f} s: see kubectl describe pod {name}"
            )
        time.sleep(_EVERY_SECONDS)
        phase = str((kubectl.get("pods", name).get("status") or {}).get("phase") or "")
    log = kubectl.logs(name, "--all-containers", "--tail=20").strip()
    if phase == "Failed":
        raise Failed(f"pod {name} has failed, and is kept: {log.splitlines()[-1] if log else 'it has said nothing'}")
    kubectl.delete("pods", name)
    screen.tell(f"{pod['metadata']['name'].removesuffix('-restore')}: its data was set aside, and made from the backup")


def _next(etcd: Etcd, count: int) -> list[str]:
    """What has to follow, in this order."""
    found = [
        f"The members are restored, and nothing runs yet. Now, in this order ({DOCS}):",
        f"1. kubectl scale statefulset {etcd.name} --replicas={count}",
        f"2. the Deployments of the operator and {etcd.name}-identity: --replicas as before",
        "3. wait until every HudiTable is Frozen, and two minutes: kubectl hudi status -A",
        "4. the StatefulSet of the gateway: --replicas as before",
        "5. of each table, when no process that may write to it runs anywhere: kubectl hudi unfreeze TABLE",
    ]
    if count < len(etcd.members):
        found.insert(
            2, f"   (no more: the other {len(etcd.members) - count} are added again as on the way to three members)"
        )
    return found
