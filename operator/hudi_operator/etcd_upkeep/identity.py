"""The identity of etcd's user root: files that are mounted, or a Secret that is read when needed.

Keys are never in arguments or in the environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hudi_contract.keys import PREFIX
from hudi_operator.adapters.authority import KeyPair
from hudi_operator.adapters.identity_files import IdentityFiles
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Fatal

_VARIABLE = "HUDI_OPERATOR_ETCD_"
_FILES = ("CA", "CERT", "KEY")


@contextmanager
def root(environment: Mapping[str, str]) -> Iterator[EtcdConfig]:
    """The connection of root, by the variables of the pod.

    ``HUDI_OPERATOR_ETCD_ENDPOINTS``: of each member one; ``..._CA``, ``..._CERT``, ``..._KEY``:
    files, or ``..._NAMESPACE`` and ``..._ROOT_SECRET``: a Secret with ca.crt, tls.crt and tls.key.
    Raises Fatal that names what is missing, Retryable when the API server does not answer.
    """
    endpoints = tuple(filter(None, environment.get(f"{_VARIABLE}ENDPOINTS", "").split(",")))
    if not endpoints:
        raise Fatal(f"{_VARIABLE}ENDPOINTS is not set: expected https://HOST:PORT of each member, with commas")
    prefix = environment.get(f"{_VARIABLE}PREFIX") or PREFIX
    files = [environment.get(f"{_VARIABLE}{name}", "") for name in _FILES]
    if all(files):
        yield EtcdConfig(endpoints, prefix, *files)
        return
    where, name = (environment.get(f"{_VARIABLE}{one}", "") for one in ("NAMESPACE", "ROOT_SECRET"))
    if not where or not name:
        raise Fatal(
            f"no identity of etcd's user root: set {', '.join(_VARIABLE + one for one in _FILES)}, or "
            f"{_VARIABLE}NAMESPACE and {_VARIABLE}ROOT_SECRET"
        )
    from hudi_operator.etcd_upkeep import secret  # Kubernetes' client alone takes a second to import

    bundle, *pair = asyncio.run(secret.read(where, name))
    with IdentityFiles(bundle, KeyPair(*pair)) as paths:
        yield EtcdConfig(endpoints, prefix, *paths)
