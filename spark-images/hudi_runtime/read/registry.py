"""The registry of the schemas with which Kafka's values were written.

A value begins with a byte 0 and four bytes with the id of its schema, the most significant one
first. `GET /schemas/ids/<id>` is the same call at the registries of Confluent, Apicurio and
Karapace. The schema of an id never changes, so it is asked for once in a process.

The URL is user input. Requests leave from the driver's pod, and never go to loopback and
link-local addresses or to a cloud's metadata service, whatever the name resolves to at that moment.
Other addresses of the pod and of its node are addresses as any: network policies are about them.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import KafkaRegistry
from hudi_runtime.process.addresses import Address, NotResolved, Refused, connected, forbidden, resolved
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError

WHERE = "source.kafka.value.registry"
LOOKS, LOOK_SECONDS = 4, 10.0
"""How often an id is asked for before it counts as unknown, and the pause between two looks."""
TIMEOUT_SECONDS = 10.0
"""For connecting, and for each part of an answer."""
MAX_BYTES = 4 * 1024 * 1024
"""Of an answer."""
AVRO, JSON = "AVRO", "JSON"
NOT_FOUND = 404


@dataclass(frozen=True)
class Schema:
    """A schema of the registry; `kind` is `AVRO`, `JSON`, `PROTOBUF` or another word."""

    kind: str
    text: str


_known: dict[tuple[str, int], Schema] = {}
"""By URL and id."""


def schemas(
    registry: KafkaRegistry, ids: Iterable[int], *, refused: Callable[[Address], bool] = forbidden
) -> Mapping[int, Schema]:
    """The schemas of these ids, without those that the registry does not know.

    One replica answers, and may not know yet what another one has just been told: an id is asked
    for several times before it counts as unknown (F639). Raises RuntimeFailure(Infrastructure) when
    the registry does not answer, UserCodeError for an unusable Secret or address.
    """
    wanted = sorted(set(ids))
    for left in reversed(range(LOOKS)):
        missing = [number for number in wanted if (registry.url, number) not in _known]
        for number in missing:
            found = _schema(registry, number, refused)
            if found is not None:
                _known[registry.url, number] = found
        if not left or all((registry.url, number) in _known for number in missing):
            break
        time.sleep(LOOK_SECONDS)
    return {number: _known[registry.url, number] for number in wanted if (registry.url, number) in _known}


def _schema(registry: KafkaRegistry, number: int, refused: Callable[[Address], bool]) -> Schema | None:
    status, body = _get(registry, f"/schemas/ids/{number}", refused)
    if status == NOT_FOUND:
        return None
    if status in (401, 403):
        raise UserCodeError(f"{WHERE}: the registry answered {status}: it wants other credentials")
    if status != 200:
        raise RuntimeFailure(
            FailureClass.INFRASTRUCTURE, f"{WHERE}: the registry answered {status} for the schema {number}"
        )
    try:
        told = json.loads(body)
        return Schema(str(told.get("schemaType") or AVRO).upper(), str(told["schema"]))
    except (ValueError, KeyError, AttributeError) as error:
        raise UserCodeError(
            f"{WHERE}.url: what answered is no registry of schemas: its answer for the schema {number} is not JSON "
            "with a field schema"
        ) from error


def _get(registry: KafkaRegistry, path: str, refused: Callable[[Address], bool]) -> tuple[int, bytes]:
    """Status and body of an answer. Redirects are not followed."""
    parts = urlsplit(registry.url)
    secure, host = parts.scheme == "https", parts.hostname or ""
    port = parts.port or (443 if secure else 80)
    headers, authority = _credentials(registry.folder)
    try:
        with _connected(host, port, refused) as plain:
            if secure:
                context = ssl.create_default_context(cafile=authority)
                connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, port)
                connection.sock = context.wrap_socket(plain, server_hostname=host)
            else:
                connection = http.client.HTTPConnection(host, port)
                connection.sock = plain
            asked = {"Accept": "application/vnd.schemaregistry.v1+json, application/json", "Connection": "close"}
            connection.request("GET", f"{parts.path.rstrip('/')}{path}", headers={**asked, **headers})
            answer = connection.getresponse()
            body = answer.read(MAX_BYTES + 1)
            connection.close()
    except NotResolved as error:
        raise RuntimeFailure(FailureClass.INFRASTRUCTURE, f"{WHERE}: {error}") from error
    except Refused as error:
        raise UserCodeError(f"{WHERE}.url: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        said = getattr(error, "verify_message", "") or getattr(error, "strerror", "") or type(error).__name__
        raise RuntimeFailure(
            FailureClass.INFRASTRUCTURE, f"{WHERE}: no answer from {host} port {port}: {said}"
        ) from error
    if len(body) > MAX_BYTES:
        raise UserCodeError(f"{WHERE}: the registry's answer has more than {MAX_BYTES} bytes")
    return answer.status, body


def _connected(host: str, port: int, refused: Callable[[Address], bool]) -> socket.socket:
    """Connect to an address that was checked."""
    return connected(resolved(host, port, refused=refused), lambda: TIMEOUT_SECONDS)


def _credentials(folder: str) -> tuple[dict[str, str], str | None]:
    """Headers, and the file of the only trusted CA (None: those of the image)."""
    if not folder:
        return {}, None
    root = Path(folder)
    authority = str(root / "ca.crt") if (root / "ca.crt").is_file() else None
    given = [name for name in ("username", "password") if (root / name).is_file()]
    if len(given) == 1:
        raise UserCodeError(f"{WHERE}.secretRef: the Secret has the key {given[0]} alone: username and password")
    if not given:
        return {}, authority
    user, word = ((root / name).read_text(encoding="utf-8").strip() for name in ("username", "password"))
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{word}'.encode()).decode()}"}, authority
