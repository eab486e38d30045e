"""Check whether this etcd may hold tables: its authentication and its version."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from etcd3.etcdrpc import rpc_pb2_grpc
from google.protobuf.unknown_fields import UnknownFieldSet

from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.model.facts import EtcdFitness
from hudi_operator.model.ports import Fatal, Retryable

FIRST_RELEASES = {(3, 5): 33, (3, 6): 14, (3, 7): 1}
"""First patch of each minor version that tables may use (docs/operate/operations.md, etcd)."""
ASKED_AGAIN_SECONDS = 60.0
"""Seconds for which an answer is used: authentication may be disabled while the operator runs."""
REFUSED_SECONDS = 5.0
"""Seconds for which an answer is used that keeps tables from being served."""


def outdated(version: str) -> str:
    """Why a version is too old; empty when it is not."""
    parts = version.partition("-")[0].split(".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        return f"etcd does not say which version it is: {version!r}"
    major, minor, patch = map(int, parts)
    if (major, minor) > max(FIRST_RELEASES) or patch >= FIRST_RELEASES.get((major, minor), patch + 1):
        return ""
    wanted = ", ".join(f"{a}.{b}.{c}" for (a, b), c in sorted(FIRST_RELEASES.items()))
    return f"etcd is {version}: {wanted} or newer is needed"


_IN_USE, _QUOTA = 9, 12
"""Fields of StatusResponse that etcd3's stubs are too old for: dbSizeInUse, and dbSizeQuota of etcd
3.6.
"""


@dataclass(frozen=True)
class EtcdSizes:
    """Bytes of the database of the member that answered; 0: it does not say."""

    total: int
    in_use: int
    quota: int


def sizes_of(status: rpc.Message) -> EtcdSizes:
    """Sizes in a member's answer to Status."""
    newer = {field.field_number: field.data for field in UnknownFieldSet(status) if field.wire_type == 0}
    return EtcdSizes(int(status.dbSize), newer.get(_IN_USE, 0), newer.get(_QUOTA, 0))


class FitnessCheck:
    """Asks etcd at the start and every minute."""

    def __init__(
        self,
        connection: Connection,
        *,
        allow_unauthenticated: bool,
        sizes: Callable[[EtcdSizes], None] = lambda sizes: None,
        shown: Callable[[float], None] = lambda expires: None,
    ) -> None:
        """``allow_unauthenticated``: tables are served although etcd has no authentication enabled.

        ``sizes`` and ``shown`` get, for metrics, the size of the database and the Unix time at
        which the member's certificate ends; 0: it shows none.
        """
        self._connection = connection
        self._allowed = allow_unauthenticated
        self._sizes, self._shown = sizes, shown
        self._known = EtcdFitness()
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def __call__(self) -> EtcdFitness:
        """Current state of etcd. Raises Retryable or Fatal when it cannot be found out."""
        async with self._asking:  # one question for all tables that are looked at meanwhile
            if time.monotonic() >= self._until:
                self._known = await self._ask()
                self._shown(await asyncio.to_thread(self._connection.certificate_ends))
                self._until = time.monotonic() + (REFUSED_SECONDS if self._known.refused else ASKED_AGAIN_SECONDS)
        return self._known

    async def _ask(self) -> EtcdFitness:
        accepted = ""
        if not await self._authenticates():
            said = (
                "authentication is not enabled in etcd: any client that can connect to it can remove fences and "
                "take locks"
            )
            if not self._allowed:
                hint = (
                    "enable it (python -m hudi_operator.etcd_auth), or set externalEtcd.allowUnauthenticated in the "
                    "chart"
                )
                return EtcdFitness("EtcdUnauthenticated", f"{said}: {hint}", refused=True)
            accepted = f"{said}; etcd.allowUnauthenticated is set, so tables are served nevertheless"
        old = outdated((await self._status()).version)
        if old:  # F343: an accepted problem does not hide one that is not accepted
            return EtcdFitness("EtcdVersion", f"{old}; {accepted}" if accepted else old)
        return EtcdFitness("EtcdUnauthenticated", accepted) if accepted else EtcdFitness()

    async def _status(self) -> rpc.Message:
        request = rpc.messages.StatusRequest()
        status = await self._connection.call(rpc_pb2_grpc.MaintenanceStub, "Status", request, writes=False)
        self._sizes(sizes_of(status))
        return status

    async def _authenticates(self) -> bool:
        """A user that cannot exist is refused by name, or because there are no users at all.

        Everybody may ask that; only root may read the state of authentication itself.
        """
        request = rpc.messages.AuthenticateRequest(name="hudi-operator/asks", password="-")  # noqa: S106
        try:
            await self._connection.call(rpc.auth, "Authenticate", request, writes=False)
        except (Retryable, Fatal) as error:
            if "authentication is not enabled" in str(error):
                return False
            if "authentication failed" not in str(error):
                raise
        return True
