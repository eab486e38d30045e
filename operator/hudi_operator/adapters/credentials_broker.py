"""The broker of storage credentials, over HTTP (docs/operate/credentials-broker.md).

Its answers are not trusted: they are small, typed, on time, or none. No message says more of them
than their status.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from pathlib import Path
from typing import Any

import aiohttp

from hudi_operator.adapters import store_request
from hudi_operator.model.config import CredentialsBrokerConfig
from hudi_operator.model.ports import Fatal, OutcomeUnknown, Retryable
from hudi_operator.model.store_access import Credentials, StoreAnswer, Verdict

SECONDS = 5.0
"""Time-out of one request: the table waits for it."""
LARGEST_ANSWER = 16384
_FIELDS = {
    "accessKeyId": r"[!-~]{1,128}",
    "secretAccessKey": r"[!-~]{1,256}",
    "sessionToken": r"[!-~]{0,8192}",
}
_REQUIRED = ("accessKeyId", "secretAccessKey")


class CredentialsBroker:
    """Implements :class:`hudi_operator.model.ports.CredentialsPort`."""

    def __init__(self, config: CredentialsBrokerConfig, *, seconds: float = SECONDS) -> None:
        """``seconds``: time-out of each request."""
        self._config = config
        self._limit = aiohttp.ClientTimeout(total=seconds)

    async def issue(self, id: str, *, table: str, attempt: str, path: str) -> Credentials:
        """PUT /v1/credentials/ID."""
        status, raw = await self._request("PUT", id, {"table": table, "attempt": attempt, "path": path})
        if status == 410:
            raise Fatal(f"the broker issues no credentials for {attempt}: they were revoked")
        if status not in (200, 201):
            raise _refused(f"the broker issues no credentials for {attempt}", status)
        return read_credentials(raw)

    async def revoke(self, id: str) -> None:
        """DELETE /v1/credentials/ID."""
        status, _ = await self._request("DELETE", id, None)
        if status != 204:
            raise _refused("the broker does not say that the credentials are revoked", status)

    async def ask_store(self, credentials: Credentials, path: str) -> StoreAnswer:
        """DELETE of a name that never exists, on a separate connection."""
        request = store_request.signed(
            credentials, endpoint=self._config.store_endpoint, region=self._config.region, path=path
        )
        try:
            status, raw = await self._send(
                "DELETE", request.url, headers=request.headers, authority=self._config.store_ca_file
            )
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            return StoreAnswer(Verdict.UNKNOWN, f"no answer of the store: {type(error).__name__}")
        return store_request.judge(status, raw)

    async def _request(self, method: str, id: str, body: dict[str, str] | None) -> tuple[int, bytes]:
        url = f"{self._config.url.rstrip('/')}/v1/credentials/{id}"
        headers = {"Accept": "application/json"}
        if self._config.token_file:
            headers["Authorization"] = f"Bearer {await asyncio.to_thread(_token, self._config.token_file)}"
        try:
            return await self._send(method, url, headers=headers, authority=self._config.ca_file, body=body)
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            raise OutcomeUnknown(f"no answer of the credentials broker: {type(error).__name__}") from None

    async def _send(
        self, method: str, url: str, *, headers: dict[str, str], authority: str, body: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status, and at most :data:`LARGEST_ANSWER` bytes; no redirect is followed."""
        secure = await asyncio.to_thread(_tls, authority) if url.startswith("https://") else False
        connector = aiohttp.TCPConnector(force_close=True, ssl=secure)
        async with aiohttp.ClientSession(connector=connector, timeout=self._limit, auto_decompress=False) as session:
            address = store_request.exactly(url)
            async with session.request(method, address, headers=headers, json=body, allow_redirects=False) as answer:
                raw = await answer.content.read(LARGEST_ANSWER + 1)
                while 0 < len(raw) <= LARGEST_ANSWER and not answer.content.at_eof():
                    raw += await answer.content.read(LARGEST_ANSWER + 1 - len(raw))
                if len(raw) > LARGEST_ANSWER:
                    raise ValueError("the answer is too long")
                return answer.status, raw


def read_credentials(raw: bytes) -> Credentials:
    """The credentials of an answer. Raises Fatal without any value of it."""
    try:
        said: Any = json.loads(raw)
    except (ValueError, RecursionError):
        raise Fatal("the answer of the credentials broker is not JSON") from None
    if not isinstance(said, dict):
        raise Fatal("the answer of the credentials broker is not an object")
    if unknown := sorted(str(name) for name in said if name not in _FIELDS):
        shown = ", ".join(name if re.fullmatch("[A-Za-z]{1,32}", name) else "?" for name in unknown[:5])
        raise Fatal(f"the answer of the credentials broker has unknown fields: {shown} (credentials may not expire)")
    for name, pattern in _FIELDS.items():
        value = said.get(name, "" if name not in _REQUIRED else None)
        if not isinstance(value, str) or not re.fullmatch(pattern, value, re.ASCII):
            raise Fatal(f"the answer of the credentials broker has no usable {name}")
    return Credentials(said["accessKeyId"], said["secretAccessKey"], said.get("sessionToken", ""))


def _refused(what: str, status: int) -> Exception:
    return Fatal(f"{what}: status {status}") if 400 <= status < 500 else Retryable(f"{what}: status {status}")


def _token(file: str) -> str:
    try:
        token = Path(file).read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise Retryable(f"the token for the credentials broker cannot be read: {type(error).__name__}") from None
    if not re.fullmatch("[!-~]{1,16384}", token):
        raise Retryable("the token for the credentials broker is empty or not one word")
    return token


def _tls(authority: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority or None)
