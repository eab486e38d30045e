"""Several members of one etcd cluster with TLS and users, as processes."""

from __future__ import annotations

from pathlib import Path

from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Retryable
from tests.support.harness.servers import Etcd, wait_for


def answers(etcd: Etcd) -> bool:
    """Whether it answers a linearizable read."""
    try:
        return etcd.revision() > 0
    except Retryable:
        return False


class Members:
    """A cluster of one member, or of more that begin together. Each may be added later."""

    def __init__(self, directory: Path, *more: str) -> None:
        """``more``: further arguments of each server."""
        self._directory, self._more = directory, more
        self.all: list[Etcd] = []

    def make(self) -> Etcd:
        """One more member, which does not run yet; all have the certificates of the first one."""
        name = f"e{len(self.all)}"
        folder = self._directory / name
        folder.mkdir()
        made = Etcd(folder, f"--name={name}", *self._more)
        if self.all:
            made.pki = self.all[0].pki
        self.all.append(made)
        return made

    @property
    def initial(self) -> str:
        """`--initial-cluster` of all that were made."""
        return ",".join(f"e{number}={member.peer}" for number, member in enumerate(self.all))

    def begin(self, count: int) -> None:
        """Start a cluster, and set up its users."""
        made = [self.make() for _ in range(count)]
        for member in made:
            member.more.append(f"--initial-cluster={self.initial}")
            member.start()
        made[0].set_up_users()
        for member in made:
            wait_for("it answers", lambda each=member: answers(each))

    def config(self, identity: str = "root") -> EtcdConfig:
        """The connection of a user to all of them."""
        pki = self.all[0].pki
        files = (str(pki / "ca.crt"), str(pki / f"{identity}.crt"), str(pki / f"{identity}.key"))
        return EtcdConfig(tuple(member.endpoint for member in self.all), "/hudi", *files)

    def stop(self) -> None:
        for member in self.all:
            member.stop()
