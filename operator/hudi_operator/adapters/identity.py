"""The authority of the gateway before etcd; the operator copies it into the namespaces of pods."""

from __future__ import annotations

from pathlib import Path

from hudi_operator.model.config import PodEtcdConfig
from hudi_operator.model.ports import Retryable


def pods_authority(config: PodEtcdConfig) -> str:
    """The certificate authority in ``podEtcd.caFile``, as PEM; empty without TLS (tests only).

    It is read again at each call, so that a rotated file is picked up.

    Raises Retryable.
    """
    if all(endpoint.startswith("http://") for endpoint in config.endpoints):
        return ""
    try:
        return Path(config.ca_file).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise Retryable(
            f"the certificate authority for pods cannot be read (podEtcd.caFile): {error}", delay=10.0
        ) from error
