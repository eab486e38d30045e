"""`kubectl hudi etcd restore`: the volumes of etcd's members from a backup, while nothing runs.

It changes nothing as long as anything of the release may reach etcd: what the backup has forgotten
(a fence, a lock that was released) must be acted on by nobody before the operator has frozen every
table. Old data is set aside, not deleted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from hudi_kubectl import release
from hudi_kubectl.changing import How, confirm
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import JsonDict
from hudi_kubectl.release import Etcd
from hudi_kubectl.screen import Screen

INSTANCE = "app.kubernetes.io/instance"
STOPPED = ("operator", "gateway", "etcd-identity", "etcd")
"""Components that reach etcd, or are it: none of their pods may be there."""
BUMP = 1_000_000_000
"""Amount by which the revision is raised: more than can have been written since the backup, so no
revision that a process remembers, the token of a lock for example, is ever given again.
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


def restore(kubectl: Kubectl, screen: Screen, wanted: Wanted, how: How) -> int:
    """Make the files of each member from a backup, and say what has to follow."""
    if not _FILE.fullmatch(wanted.file) or not wanted.claim:
        raise Failed("--claim CLAIM and --from FILE: the PersistentVolumeClaim and the name of the backup in it")
    etcd = release.etcd(kubectl)
    if not etcd.raw["spec"].get("volumeClaimTemplates"):
        raise Failed("etcd.persistence.enabled is false: there is no volume that a backup could be restored to")
    count = _count(etcd, wanted)
    pods = [pod(etcd, number, count, wanted) for number in range(len(etcd.members))]
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
    for one in pods:
        _run(kubectl, screen, one, wanted.timeout)
    if screen.as_json:
        screen.give({"cluster_id": etcd.cluster_id(count), "members": count})
        return 0
    for line in _next(etcd, count):
        screen.say(line)
    return 0


def pod(etcd: Etcd, number: int, count: int, wanted: Wanted) -> JsonDict:
    """The pod that makes the files of a member; one beyond ``count`` gets none."""
    member, data = etcd.members[number][0], etcd.flag("data-dir")
    like = etcd.raw["spec"]["template"]["spec"]
    volume = next(one["mountPath"] for one in etcd.container["volumeMounts"] if one["name"] == "data")
    mounts = [{"name": "data", "mountPath": volume}, {"name": "backup", "mountPath": "/backup", "readOnly": True}]
    aside = ["python", "-m", "hudi_operator.etcd_upkeep", "set-aside", f"--folder={data}"]
    steps = [_step("set-aside", etcd.helper, aside, mounts)]
    if number < count:
        begin = ",".join(f"{name}={url}" for name, url in etcd.members[:count])
        command = [
            "/usr/local/bin/etcdutl",
            "snapshot",
            "restore",
            f"/backup/{wanted.file}",
            f"--data-dir={data}",
            f"--name={member}",
            f"--initial-cluster={begin}",
            f"--initial-cluster-token={etcd.flag('initial-cluster-token')}",
            f"--initial-advertise-peer-urls={etcd.flag('initial-advertise-peer-urls', member)}",
            f"--bump-revision={BUMP}",
            "--mark-compacted",
        ]
        steps.append(_step("restore", etcd.container, command, mounts))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{member}-restore",
            "labels": {release.LABEL: "etcd-restore", INSTANCE: etcd.raw["metadata"]["labels"][INSTANCE]},
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


def _step(name: str, like: JsonDict, command: Sequence[str], mounts: Sequence[JsonDict]) -> JsonDict:
    kept: JsonDict = {key: like[key] for key in ("image", "imagePullPolicy", "securityContext") if key in like}
    made: JsonDict = {"name": name, "command": list(command), "volumeMounts": list(mounts)}
    return made | kept


def _count(etcd: Etcd, wanted: Wanted) -> int:
    """Number of members with which the restored cluster is the one that tables know."""
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
        chosen = f"{instance},{release.LABEL}={component}"
        for kind in (release.DEPLOYMENTS, release.STATEFUL_SETS):
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
    """Next steps, in this order."""
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
