"""The members of an etcd, each asked at its own endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd_fitness import sizes_of
from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Fatal, Retryable

JsonDict = dict[str, Any]


@dataclass(frozen=True)
class Member:
    """One member. Sizes are bytes of its database; 0: it does not say."""

    id: int
    name: str
    endpoint: str = ""
    """Empty: none of the endpoints that are known is this member's, or it does not answer."""
    cluster_id: int = 0
    leader: bool = False
    version: str = ""
    revision: int = 0
    term: int = 0
    size: int = 0
    in_use: int = 0

    @property
    def unused(self) -> float:
        """The part of its database that a defragmentation gives back: 0 to 1."""
        return 1 - self.in_use / self.size if self.size and self.in_use else 0.0

    def to_json(self) -> JsonDict:
        """As it is shown: ids in hexadecimal, as etcdctl writes them."""
        return {**asdict(self), "id": f"{self.id:x}", "cluster_id": f"{self.cluster_id:x}"}


@contextmanager
def connected(config: EtcdConfig, endpoint: str, *, timeout: float = 5.0) -> Iterator[Connection]:
    """A connection to one endpoint and to no other. ``timeout``: of each call, seconds."""
    connection = Connection(replace(config, endpoints=(endpoint,)), timeout=timeout)
    try:
        yield connection
    finally:
        connection.close()


def look(config: EtcdConfig) -> list[Member]:
    """All members by name: those at the endpoints, and those of which these tell.

    Raises Retryable when no endpoint answers, Fatal when etcd refuses.
    """
    found: dict[int, Member] = {}
    problem: Exception | None = None
    endpoints = list(config.endpoints)
    for endpoint in endpoints:  # it grows meanwhile
        with connected(config, endpoint) as connection:
            try:
                listed = connection.call_now(rpc.cluster, "MemberList", rpc.messages.MemberListRequest(), writes=False)
                status = connection.call_now(rpc.maintenance, "Status", rpc.messages.StatusRequest(), writes=False)
            except (Retryable, Fatal) as error:
                problem = error
                continue
        for each in listed.members:
            found.setdefault(each.ID, Member(each.ID, each.name))
            endpoints += [url for url in each.clientURLs if url not in endpoints]
        header, sizes = status.header, sizes_of(status)
        found[header.member_id] = Member(
            header.member_id,
            next((each.name for each in listed.members if header.member_id == each.ID), ""),
            endpoint,
            header.cluster_id,
            status.leader == header.member_id,
            status.version,
            header.revision,
            status.raftTerm,
            sizes.total,
            sizes.in_use,
        )
    if not found:
        raise problem or Retryable("etcd has no endpoint")
    return sorted(found.values(), key=lambda member: member.name)


def all_well(members: Sequence[Member]) -> None:
    """Require that each member answers, and that they agree who leads. Raises Retryable."""
    silent = [member.name or f"{member.id:x}" for member in members if not member.endpoint]
    if silent:
        raise Retryable(f"member {', '.join(silent)} does not answer, or has not started")
    if len({member.term for member in members}) > 1 or sum(member.leader for member in members) != 1:
        raise Retryable("the members do not agree who leads")
    if len({member.cluster_id for member in members}) > 1:
        raise Fatal("the endpoints are those of different clusters")


def answers(connection: Connection, key: str) -> int:
    """The revision at which a member answers a linearizable read. Raises Retryable or Fatal."""
    request = rpc.messages.RangeRequest(key=key.encode(), count_only=True)
    return int(connection.call_now(rpc.kv, "Range", request, writes=False).header.revision)
