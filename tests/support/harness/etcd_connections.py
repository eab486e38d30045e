"""Connections of the operator's etcd adapter to the etcd of a test, with the certificate of the
named user.
"""

from __future__ import annotations

from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.model.config import EtcdConfig
from tests.support.harness.servers import Etcd


def connect(
    etcd: Etcd, *, identity: str = "operator", endpoints: tuple[str, ...] = (), timeout: float = 3.0
) -> Connection:
    pki = etcd.pki
    config = EtcdConfig(
        endpoints or (etcd.endpoint,),
        "/hudi",
        str(pki / "ca.crt"),
        str(pki / f"{identity}.crt"),
        str(pki / f"{identity}.key"),
    )
    return Connection(config, timeout=timeout)
