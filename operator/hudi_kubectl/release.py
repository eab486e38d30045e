"""The release's etcd, as its objects describe it, and the pod that has the identity of its root."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import JsonDict

LABEL = "app.kubernetes.io/component"
DEPLOYMENTS, STATEFUL_SETS = "deployments.apps", "statefulsets.apps"
IDENTITY = "etcd-identity"
"""Label and container of the pod with the identity of root."""
_COMMAND = ("python", "-m", "hudi_operator.etcd_upkeep")


@dataclass(frozen=True)
class Etcd:
    """The release's etcd as its StatefulSet says."""

    raw: JsonDict
    helper: JsonDict
    """The container of the operator's image, which sets data aside."""

    @property
    def name(self) -> str:
        """Name of the StatefulSet."""
        return str(self.raw["metadata"]["name"])

    @property
    def container(self) -> JsonDict:
        """Container of etcd."""
        found: JsonDict = self.raw["spec"]["template"]["spec"]["containers"][0]
        return found

    def flag(self, name: str, member: str = "") -> str:
        """An argument of etcd. Raises Failed when it is not given."""
        found = [one.split("=", 1)[1] for one in self.container["args"] if one.startswith(f"--{name}=")]
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

    def member(self, number: int) -> tuple[str, str]:
        """Name and peer address of a member that there may not be yet."""
        name = f"{self.name}-{number}"
        return name, self.flag("initial-advertise-peer-urls", name)


def etcd(kubectl: Kubectl) -> Etcd:
    """The one of the namespace. Raises Failed when there is none, or more of them."""
    sets = kubectl.objects(STATEFUL_SETS, selector=f"{LABEL}=etcd")
    helpers = kubectl.objects(DEPLOYMENTS, selector=f"{LABEL}={IDENTITY}")
    if len(sets) != 1 or len(helpers) != 1:
        raise Failed(
            "there is not one release with an etcd of the chart in this namespace: -n names that of the release"
        )
    return Etcd(sets[0], helpers[0]["spec"]["template"]["spec"]["containers"][0])


def identity(kubectl: Kubectl) -> str:
    """Name of the Deployment with the identity of root."""
    found = kubectl.objects(DEPLOYMENTS, selector=f"{LABEL}={IDENTITY}")
    if len(found) != 1:
        said = "no release" if not found else f"{len(found)} releases"
        raise Failed(
            f"{said} with an etcd of the chart in this namespace: -n names that of the release. An etcd of your own "
            "(externalEtcd) is kept with etcdctl"
        )
    return str(found[0]["metadata"]["name"])


def upkeep(
    kubectl: Kubectl, place: str, arguments: Sequence[str], output: IO[bytes] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of `hudi_operator.etcd_upkeep` there. Raises Failed with its reason."""
    done = kubectl.execute(f"deployment/{place}", IDENTITY, [*_COMMAND, *arguments], output)
    if done.returncode:
        raise Failed(f"etcd {arguments[0]}: {last(done.stderr)}")
    return done


def last(text: str) -> str:
    """The last line that is the program's and not kubectl's."""
    lines = [one.strip() for one in text.splitlines() if one.strip()]
    own = [one for one in lines if not one.startswith(("command terminated with exit code", "Defaulted container"))]
    return (own or lines or ["no reason was given"])[-1]
