"""The pods' identity for etcd, as files that the operator copies into namespaces with tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hudi_operator.manifests.namespace import ETCD_FILES
from hudi_operator.model.config import PodEtcdConfig
from hudi_operator.model.ports import Retryable


def pod_identity(config: PodEtcdConfig) -> Mapping[str, bytes]:
    """Content of ``podEtcd.secretDir`` by file name; empty without TLS.

    It is read again at each call, so that rotated files are picked up.

    Raises Retryable.
    """
    if all(endpoint.startswith("http://") for endpoint in config.endpoints):
        return {}
    directory = Path(config.secret_dir)
    try:
        return {name: (directory / name).read_bytes() for name in ETCD_FILES}
    except OSError as error:
        raise Retryable(
            f"the pods' identity for etcd cannot be read (podEtcd.secretDir): {error}", delay=10.0
        ) from error
