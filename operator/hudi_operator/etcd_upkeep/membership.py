"""Joining of members: one by one, first as a learner, which has no vote.

It is promoted when it has all data, so the quorum never depends on a member that is still empty.
"""

from __future__ import annotations

from typing import Any

import grpc

from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.etcd_upkeep import members as of
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Fatal

JsonDict = dict[str, Any]

_AS_LEARNER = b"\x10\x01"
"""Field 2 of MemberAddRequest, isLearner, for which etcd3's stubs are too old: true."""
_PROMOTE = "/etcdserverpb.Cluster/MemberPromote"
"""The same for this call; its request is that of MemberRemove, an id."""


def add(config: EtcdConfig, name: str, peer: str) -> JsonDict:
    """Add a learner with this peer address, which is to be started then; again: nothing more.

    All members must be well. ``name`` is only told: a member has its name when it has started.
    Raises Retryable or Fatal.
    """
    listed = _listed(config)
    there = next((member for member in listed if peer in member.peerURLs), None)
    if there is not None:
        return {"name": name, "id": f"{there.ID:x}", "added": False}
    of.all_well(of.look(config))
    request = rpc.messages.MemberAddRequest.FromString(
        rpc.messages.MemberAddRequest(peerURLs=[peer]).SerializeToString() + _AS_LEARNER
    )
    with of.connected(config, config.endpoints[0]) as connection:
        answer = connection.call_now(rpc.cluster, "MemberAdd", request, writes=True)
    return {"name": name, "id": f"{answer.member.ID:x}", "added": True}


def promote(config: EtcdConfig, name: str) -> JsonDict:
    """Give a learner its vote. Raises Fatal when it has not all data yet, or is none."""
    member = next((member for member in _listed(config) if member.name == name), None)
    if member is None:
        raise Fatal(f"etcd has no member {name} that has started")
    request = rpc.messages.MemberRemoveRequest(ID=member.ID)
    with of.connected(config, config.endpoints[0]) as connection:
        call = connection.channel().unary_unary(
            _PROMOTE,
            request_serializer=rpc.messages.MemberRemoveRequest.SerializeToString,
            response_deserializer=rpc.messages.MemberRemoveResponse.FromString,
        )
        try:
            call(request, timeout=connection.timeout)
        except grpc.RpcError as error:
            if "can only promote a learner" in (error.details() or ""):
                return {"name": name, "id": f"{member.ID:x}", "promoted": False}
            raise rpc.translate(error.code(), error.details(), method="MemberPromote", writes=False) from error
    return {"name": name, "id": f"{member.ID:x}", "promoted": True}


def _listed(config: EtcdConfig) -> list[Any]:
    with of.connected(config, config.endpoints[0]) as connection:
        answer = connection.call_now(rpc.cluster, "MemberList", rpc.messages.MemberListRequest(), writes=False)
    return list(answer.members)
