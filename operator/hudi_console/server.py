"""Web server: the files of the page, and the data of `views`, once or as a stream.

A stream is one JSON document for each line, as a watch of Kubernetes is. The page reads it with its
token in a header, which it could not do with server-sent events.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import socket
import time
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from hudi_console import asking, views
from hudi_console.asking import Kind, Question, Refused
from hudi_console.cluster import Cluster
from hudi_console.mirror import Mirror, table_key
from hudi_kubectl import lanes, why
from hudi_kubectl.objects import Table, Writer, now

LOG = logging.getLogger(__name__)
JsonDict = dict[str, Any]
FILES = Path(__file__).with_name("files")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer."""
CALM = 1.0
"""Seconds that a change waits for others."""
AT_LEAST = 15.0
"""Seconds after which a stream says something: times such as "for 40s" go on, and a browser that
has gone is noticed.
"""
LONGEST = 3600.0
"""Duration of a stream in seconds; the page then requests it again."""
MOST_STREAMS = 40
MOST_ANSWERS = 8
"""Requests without a stream that are answered at once."""
SILENT = 60_000
"""Milliseconds after which a browser that takes nothing is taken to be gone, with its stream."""
_METHODS = {"GET": "GET", "HEAD": "HEAD"}
Document = AsyncGenerator[JsonDict]


class Places:
    """Limit on concurrent requests, and a quarter of it for those with one token."""

    def __init__(self, number: int) -> None:
        self._free, self._most = number, max(1, number // 4)
        self._of: Counter[bytes] = Counter()

    @contextmanager
    def taken(self, token: str) -> Iterator[None]:
        """A place; 503 where there is none."""
        whose = hashlib.sha256(token.encode()).digest()
        if self._of[whose] >= self._most:
            raise Refused(503, f"with one token the console serves {self._most} pages at once; close one")
        if not self._free:
            raise Refused(503, "the console serves as many pages as it can; try again later")
        self._free -= 1
        self._of[whose] += 1
        try:
            yield
        finally:
            self._free += 1
            self._of[whose] -= 1
            self._of += Counter()  # without those that have none


class Pages:
    """The console. ``namespaces``: those that the operator watches; empty: all."""

    def __init__(self, cluster: Cluster, namespaces: Sequence[str] = (), most_streams: int = MOST_STREAMS) -> None:
        self._cluster, self._namespaces = cluster, tuple(map(asking.of_namespace, namespaces))
        self._streams, self._answers = Places(most_streams), Places(MOST_ANSWERS)
        self._files = {path.name: path.read_bytes() for path in sorted(FILES.iterdir()) if path.suffix in TYPES}

    def application(self) -> web.Application:
        """Build the aiohttp application."""
        app = web.Application(middlewares=[_guarded])
        app.on_response_prepare.append(_with_headers)
        app.router.add_get("/", self._page)
        app.router.add_get("/files/{name}", self._page)
        app.router.add_get("/livez", _alive)
        app.router.add_get("/readyz", _alive)
        app.router.add_get("/api/v1/tables", self._answer_with(self._tables, "namespace"))
        app.router.add_get("/api/v1/tables/{namespace}/{name}", self._answer_with(self._table))
        app.router.add_get("/api/v1/writers/{namespace}/{name}", self._answer_with(self._writer))
        return app

    # ------------------------------------------------------------ files
    async def _page(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info.get("name", "index.html")
        content = self._files.get(name)
        if content is None:
            raise Refused(404, "there is no such file")
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache", "Content-Type": TYPES[Path(name).suffix]}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=content, headers=headers)

    # ------------------------------------------------------------ answers
    def _answer_with(
        self, view: Callable[[str, JsonDict, bool], Document], *known: str
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def answer(request: web.Request) -> web.StreamResponse:
            asking.from_own_page(request.method, request.headers)
            query = asking.checked_query(list(request.query.items()), ("watch", *known))
            token = asking.token(request.headers.getall("Authorization", []))
            given = {**query, **request.match_info}
            if query.get("watch") == "true" and request.method == "GET":
                with self._streams.taken(token):
                    return await self._stream(request, view(token, given, True))
            with self._answers.taken(token):
                async with aclosing(view(token, given, False)) as documents:
                    return web.json_response(await anext(documents))

        return answer

    async def _stream(self, request: web.Request, documents: Document) -> web.StreamResponse:
        """The documents, one a line; the first one is made before anything is answered."""
        async with aclosing(documents):
            first = await anext(documents)
            # Not compressed: a compressor keeps a line until there are more.
            headers = {"Content-Type": "application/x-ndjson", "X-Accel-Buffering": "no"}
            response = web.StreamResponse(headers=headers)
            await response.prepare(request)
            _is_gone_when_silent(request)
            await _write(response, first)
            try:
                async with asyncio.timeout(LONGEST):
                    async for document in documents:
                        await _write(response, document)
            except TimeoutError:
                LOG.debug("a stream has ended after %d s", LONGEST)
            except Refused as error:
                await _write(response, _as_json(error))
            await response.write_eof()
            return response

    # ------------------------------------------------------------ views
    async def _tables(self, token: str, given: JsonDict, watch: bool) -> Document:
        namespaces = asking.of_namespaces(given.get("namespace", ""))
        if not namespaces and self._namespaces:
            namespaces = await self._allowed(token)
        questions = [Question(kind, space) for space in namespaces or ("",) for kind in (Kind.TABLES, Kind.WRITERS)]
        mirror = Mirror(self._cluster, token, questions, views.kept_in_short)
        await mirror.begin()
        told = {"namespaces": list(namespaces)}
        rows = {_key(one): one for one in _rows(mirror)}
        yield {**told, "at": _now(), "all": True, "rows": list(rows.values())}
        if not watch:
            return
        said = time.monotonic()
        async with aclosing(_changes(mirror)) as changes:
            async for changed in changes:
                again = set(changed)
                if time.monotonic() - said >= AT_LEAST:
                    again |= {key for key, one in rows.items() if one["why"]}  # "for 40s" goes on without a change
                    said = time.monotonic()
                current = {_key(one): one for one in _rows(mirror, again)}
                gone = [key for key in changed if key in rows and key not in current]
                fresh = [one for key, one in current.items() if rows.get(key) != one]
                rows |= current
                for key in gone:
                    del rows[key]
                yield {**told, "at": _now(), "all": False, "rows": fresh, "gone": gone}

    async def _allowed(self, token: str) -> tuple[str, ...]:
        """Namespaces of the operator in which the user may list tables and writers."""
        found: list[str] = []
        refused: Refused | None = None
        for space in self._namespaces:
            try:
                for kind in (Kind.TABLES, Kind.WRITERS):
                    await self._cluster.items(Question(kind, space), token, views.kept_in_short)
                found.append(space)
            except Refused as error:
                if error.status != 403:
                    raise
                refused = refused or error
        if not found and refused is not None:
            raise refused
        return tuple(found)

    async def _table(self, token: str, given: JsonDict, watch: bool) -> Document:
        space, name = given["namespace"], given["name"]
        questions = [Question(Kind.TABLES, space, name), Question(Kind.WRITERS, space)]
        events = [Question(Kind.EVENTS_OF_TABLES, space, name), Question(Kind.EVENTS_OF_WRITERS, space)]
        before: Sequence[lanes.Lane] = ()
        async with aclosing(self._worlds(token, questions, events, watch)) as worlds:
            async for world, told in worlds:
                table = next(iter(world.tables), None)
                if table is None:
                    raise Refused(404, f"there is no HudiTable {name} in namespace {space}")
                shown, before = views.of_one_table(world, table, told, before)
                yield shown

    async def _writer(self, token: str, given: JsonDict, watch: bool) -> Document:
        space, name = given["namespace"], given["name"]
        questions = [Question(Kind.WRITERS, space, name), Question(Kind.TABLES, space)]
        events = [Question(Kind.EVENTS_OF_WRITERS, space, name)]
        async with aclosing(self._worlds(token, questions, events, watch)) as worlds:
            async for world, told in worlds:
                writer = next(iter(world.writers), None)
                if writer is None:
                    raise Refused(404, f"there is no HudiWriter {name} in namespace {space}")
                yield views.of_one_writer(world, writer, told)

    async def _worlds(
        self, token: str, questions: Sequence[Question], events: Sequence[Question], watch: bool
    ) -> AsyncGenerator[tuple[why.World, list[JsonDict] | None]]:
        """A namespace now, and after each change that concerns the table, or the writer's table.

        The first question is about it. Changes of other objects are sent after a while; pods and
        Events are listed periodically.
        """
        mirror = Mirror(self._cluster, token, questions, views.kept)
        await mirror.begin()
        pods, told = await self._beside(token, events)
        looked = said = time.monotonic()
        own = set(map(table_key, mirror.of(questions[0].kind)))
        yield _world(mirror, pods), told
        if not watch:
            return
        async with aclosing(_changes(mirror)) as changes:
            async for changed in changes:
                before, own = own, set(map(table_key, mirror.of(questions[0].kind)))
                if changed.isdisjoint(before | own) and time.monotonic() - said < AT_LEAST / 2:
                    continue
                if time.monotonic() - looked >= AT_LEAST / 2:
                    pods, told = await self._beside(token, events)
                    looked = time.monotonic()
                said = time.monotonic()
                yield _world(mirror, pods), told

    async def _beside(self, token: str, events: Sequence[Question]) -> tuple[list[JsonDict], list[JsonDict] | None]:
        """Pods of drivers, and Events; None where these may not be listed, or are too long."""
        pods = await self._cluster.optional(Question(Kind.PODS, events[0].namespace), token, views.kept_of_a_pod)
        found = [await self._cluster.optional(one, token, views.kept_of_an_event) for one in events]
        return pods or [], None if None in found else [event for some in found for event in some or ()]


def _world(mirror: Mirror, pods: Sequence[JsonDict]) -> why.World:
    tables, writers = map(Table, mirror.of(Kind.TABLES)), map(Writer, mirror.of(Kind.WRITERS))
    return why.World(list(tables), list(writers), {pod["metadata"]["name"]: pod for pod in pods}, now())


def _rows(mirror: Mirror, only: set[tuple[str, str]] | None = None) -> list[JsonDict]:
    """The rows of all tables, or of some."""
    tables, writers = mirror.of(Kind.TABLES), mirror.of(Kind.WRITERS)
    if only is not None:
        tables = [raw for raw in tables if table_key(raw) in only]
        writers = [raw for raw in writers if table_key(raw) in only]
    return views.rows(map(Table, tables), map(Writer, writers), now())


async def _changes(mirror: Mirror) -> AsyncGenerator[set[tuple[str, str]]]:
    """The tables that have changed, again and again; empty when a while has passed."""
    following = asyncio.create_task(mirror.follow())
    tasks: set[asyncio.Task[Any]] = {following}
    try:
        while True:
            waiting = asyncio.create_task(mirror.changed(AT_LEAST))
            tasks = {following, waiting}
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                following.result()
            changed = await waiting
            if changed:
                await asyncio.sleep(CALM)
                changed |= await mirror.changed(0)
            yield changed
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _key(row: JsonDict) -> tuple[str, str]:
    return row["namespace"], row["name"]


def _now() -> str:
    return now().isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_gone_when_silent(request: web.Request) -> None:
    """Notice a peer that has vanished by what it does not acknowledge: TCP alone waits 15 min."""
    transport = request.transport
    own = transport.get_extra_info("socket") if transport is not None else None
    if own is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT)


async def _write(response: web.StreamResponse, document: JsonDict) -> None:
    await response.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")


async def _alive(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _with_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.pop("Server", None)


def _as_json(error: Refused) -> JsonDict:
    return {"error": {"status": error.status, "message": error.said}}


def _refusal(error: Refused) -> web.Response:
    # Bearer, so that no browser asks for a password by itself.
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
    return web.json_response(_as_json(error), status=error.status, headers=headers)


@web.middleware
async def _guarded(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Refusals as JSON, and one line of log: the route, never a path, a query or a header."""
    begun = time.monotonic()
    resource = request.match_info.route.resource
    name = "no page" if resource is None else resource.canonical
    status = 499  # the browser has gone
    try:
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "the console only reads")
        if resource is None:
            raise Refused(404, "there is no such page")
        response = await handler(request)
        status = response.status
    except Refused as error:
        status = error.status
        response = _refusal(error)
    except ConnectionError:
        raise
    except Exception as error:  # its words may have a token in them: where it was raised is enough
        status = 500
        places = "".join(traceback.format_tb(error.__traceback__))
        LOG.error("%s: %s\n%s", name, type(error).__name__, places)
        response = _refusal(Refused(500, "the console has failed; its log says where"))
    finally:
        LOG.info(
            "%s %s %s %.0f ms", _METHODS.get(request.method, "other"), name, status, 1000 * (time.monotonic() - begun)
        )
    return response
