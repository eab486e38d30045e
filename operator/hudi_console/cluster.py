"""The API server, asked in the name of a user."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
from yarl import URL

from hudi_console import asking
from hudi_console.asking import Question, Refused

LOG = logging.getLogger(__name__)
JsonDict = dict[str, Any]
PAGE = 500
"""Objects of one answer to a list."""
MOST_BYTES = 64 << 20
"""Limit for one answer, and for one line of a watch; an object of Kubernetes has at most 3 MiB."""
MOST_OPTIONAL = 8 << 20
"""Limit for a whole list of pods or Events: their authors choose how long these are."""
MOST_REFUSAL = 64 << 10
MOST_LISTS = 3
"""Answers to lists that are read at once, for all users: each is held whole until it is read."""
WATCH_SECONDS = 240
"""After so long a watch is asked for again: by then a right that was taken away is felt."""
_LISTS = 3
_CONNECT = aiohttp.ClientTimeout(total=30, connect=10)
_WATCH = aiohttp.ClientTimeout(total=WATCH_SECONDS + 30, connect=10, sock_read=90)  # a bookmark comes each minute


class Gone(Exception):
    """The API server no longer has the changes since that version: it must be listed again."""


class TooLong(Refused):
    """The API server says more than the console holds."""


class Cluster:
    """Lists and watches. Nothing of a user is kept between two calls."""

    def __init__(
        self, server: str, session: aiohttp.ClientSession, context: ssl.SSLContext | None = None, ca_file: str = ""
    ) -> None:
        self._server, self._session = server.rstrip("/"), session
        self._context, self._ca_file = context, ca_file
        self._lists = asyncio.Semaphore(MOST_LISTS)

    def read_authorities(self) -> None:
        """Trust what the file has now, too: a cluster may renew its authority."""
        if self._context is not None and self._ca_file:
            try:
                self._context.load_verify_locations(self._ca_file)
            except (OSError, ssl.SSLError) as error:
                LOG.warning("the authorities %s cannot be read, those before are trusted: %s", self._ca_file, error)

    async def items(
        self, question: Question, token: str, kept: Callable[[JsonDict], JsonDict]
    ) -> tuple[list[JsonDict], str]:
        """List all objects, reduced by ``kept``, and return them with the version of the list."""
        for _ in range(_LISTS):
            with suppress(Gone):  # a list that takes long may lose its rest
                return await self._listed(question, token, kept)
        raise Refused(502, f"the API server has not kept a list of {question.kind.resource} until its end")

    async def _listed(
        self, question: Question, token: str, kept: Callable[[JsonDict], JsonDict]
    ) -> tuple[list[JsonDict], str]:
        found: list[JsonDict] = []
        more, most = "", MOST_OPTIONAL if question.kind.is_optional else MOST_BYTES
        while True:
            query = question.query(limit=PAGE, more=more)
            async with self._lists, self._asked(question.path, query, token, _CONNECT) as answer:
                text = await _whole(answer, most)
                most -= len(text) if question.kind.is_optional else 0
                page = _object(text)
                del text
            meta = page.get("metadata") or {}
            found += map(kept, page.get("items") or [])
            more = str(meta.get("continue") or "")
            if not more:
                return found, str(meta.get("resourceVersion") or "")

    async def optional(
        self, question: Question, token: str, kept: Callable[[JsonDict], JsonDict]
    ) -> list[JsonDict] | None:
        """The objects; None where the user may not list them, or where they are too long."""
        try:
            return (await self.items(question, token, kept))[0]
        except TooLong:
            return None
        except Refused as error:
            if error.status == 403:
                return None
            raise

    async def changes(self, question: Question, token: str, version: str) -> AsyncIterator[tuple[str, JsonDict]]:
        """Watch changes from a version on, until the API server ends the watch.

        Yields what happened (ADDED, MODIFIED, DELETED, BOOKMARK), and the object.
        """
        query = question.query(watch_from=version, seconds=WATCH_SECONDS)
        async with self._asked(question.path, query, token, _WATCH) as answer:
            async for line in _lines(answer):
                one = _object(line)
                if one.get("type") == "ERROR":
                    code = (one.get("object") or {}).get("code")
                    if code == 410:
                        raise Gone
                    raise Refused(502, f"the API server has ended a watch with {code}")
                yield str(one.get("type")), one.get("object") or {}

    @asynccontextmanager
    async def _asked(
        self, path: str, query: str, token: str, timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        url = URL(f"{self._server}{path}?{query}" if query else f"{self._server}{path}", encoded=True)
        try:
            # A redirect would take the token elsewhere.
            async with self._session.request(
                asking.METHOD, url, headers=asking.passed_on(token), timeout=timeout, allow_redirects=False
            ) as answer:
                if answer.status != 200:
                    await _refuse(answer, token)
                yield answer
        except (aiohttp.ClientError, TimeoutError) as error:
            # The words of such an error may have headers in them.
            raise Refused(502, f"the API server does not answer ({type(error).__name__})") from None


async def _refuse(answer: aiohttp.ClientResponse, token: str) -> None:
    """Hand on why the API server refuses a user; what else it says is its own affair."""
    status = answer.status
    if status == 410:
        raise Gone
    if status == 401:
        raise Refused(401, "the API server does not know this token: it may have expired")
    if status in (403, 404, 429):
        try:
            said = str(_object(await _whole(answer, MOST_REFUSAL)).get("message") or "")
        except Refused:
            said = ""
        said = said.replace(token, "…")[:500] or {403: "forbidden", 404: "not found", 429: "too many requests"}[status]
        raise Refused(status, said)
    raise Refused(502, f"the API server answers with {status}")


async def _whole(answer: aiohttp.ClientResponse, most: int) -> bytes:
    found = bytearray()
    async for part in answer.content.iter_any():
        found += part
        if len(found) > most:
            raise TooLong(502, f"the API server's answer is longer than {most} bytes")
    return bytes(found)


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    rest = bytearray()
    async for part in answer.content.iter_any():
        rest += part
        *whole, left = rest.split(b"\n")
        for line in whole:
            if line:
                yield bytes(line)
        rest = bytearray(left)
        if len(rest) > MOST_BYTES:
            raise Refused(502, f"the API server's line is longer than {MOST_BYTES} bytes")


def _object(text: bytes) -> JsonDict:
    """Parse a line or an answer as a JSON object."""
    try:
        found = json.loads(text)
    except ValueError:
        raise Refused(502, "the API server's answer is no JSON") from None
    if not isinstance(found, dict):
        raise Refused(502, "the API server's answer is no object")
    return found


@asynccontextmanager
async def connected(server: str, ca_file: str = "") -> AsyncIterator[Cluster]:
    """The API server at a URL. ``ca_file``: its authorities; empty: those of the system."""
    if not server.startswith("https://"):
        raise ValueError(f"the API server {server!r}: it must be https://HOST:PORT, because tokens go there")
    context = await asyncio.to_thread(ssl.create_default_context, cafile=ca_file or None)
    connector = aiohttp.TCPConnector(ssl=context, limit=0, keepalive_timeout=30)
    # Requests contain only data of the user, and go nowhere else: no cookies, no proxy, no .netrc.
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=True
    ) as session:
        yield Cluster(server, session, context, ca_file)
