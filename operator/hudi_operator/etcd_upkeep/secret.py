"""The Secret of etcd's user root."""

from __future__ import annotations

import base64

from hudi_operator.adapters.kubernetes import RESOURCES, ApiError, ApiServer, load_configuration, translate
from hudi_operator.model.ports import Fatal

ENTRIES = ("ca.crt", "tls.crt", "tls.key")


async def read(namespace: str, name: str) -> list[bytes]:
    """Authorities, certificate and key.

    Raises Fatal when it has not all of them, Retryable when the API server does not answer.
    """
    api = ApiServer(await load_configuration())
    try:
        found = await api.request("GET", RESOURCES["Secret"].path(namespace, name))
    except ApiError as error:
        raise translate(error, f"read Secret {namespace}/{name}", writes=False) from error
    finally:
        await api.close()
    data = found.get("data") or {}
    missing = [entry for entry in ENTRIES if entry not in data]
    if missing:
        raise Fatal(f"Secret {namespace}/{name} has no {', '.join(missing)}")
    return [base64.b64decode(data[entry]) for entry in ENTRIES]
