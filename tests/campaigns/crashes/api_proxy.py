"""A proxy in front of the API server: ends the operator's TLS, sees each request, and applies a
fault to one of its writes.

It also follows what happens to the objects of the run's namespace, with the administrator's own
watches, to count what is created and deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from tests.campaigns.crashes.faults import LATE_SECONDS, Fault, Injector
from tests.campaigns.crashes.monitor import Monitor
from tests.campaigns.crashes.naming import Names, api_write

JsonDict = dict[str, Any]
READS = frozenset({"GET", "HEAD", "OPTIONS"})
_HOP_HEADERS = frozenset(
    {"host", "connection", "transfer-encoding", "content-length", "accept-encoding", "authorization"}
)
_REFUSALS = {
    Fault.CONFLICT: (409, "Conflict", "Operation cannot be fulfilled: the object has been modified"),
    Fault.TOO_MANY: (429, "TooManyRequests", "too many requests, please try again later"),
    Fault.ERROR: (500, "InternalError", "Internal error occurred: etcdserver: request timed out"),
}


FIRST_PORT, PORTS_EACH = "CRASHES_FIRST_PORT", 2500
_PORTS = itertools.count()


def lasting_port() -> int:
    """A port that is this proxy's for the whole run, also while it is away: outgoing connections
    take theirs from 32768 on, other workers of the campaign use separate ranges, and this process
    takes none twice.
    """
    first = int(os.environ.get(FIRST_PORT, "10000"))
    while True:
        with (
            contextlib.suppress(OSError),
            socket.create_server(("127.0.0.1", first + next(_PORTS) % PORTS_EACH)) as found,
        ):
            return int(found.getsockname()[1])


class LoopThread:
    """An event loop on its own thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # Connections are cut on purpose here: what asyncio has to say about them is no news.
        self.loop.set_exception_handler(lambda loop, context: None)
        self._thread = threading.Thread(target=self.loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[Any, Any, Any], seconds: float = 30.0) -> Any:
        return self.start(work).result(timeout=seconds)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=5)


class ApiProxy:
    """One proxy of one run."""

    def __init__(
        self, loop: LoopThread, *, pki: Path, cluster: Path, injector: Injector, monitor: Monitor, names: Names
    ) -> None:
        """``pki``: certificates of the proxy; ``cluster``: directory of the light cluster."""
        self.loop, self._injector, self._monitor, self._names = loop, injector, monitor, names
        self._pki, self._cluster = pki, cluster
        self.upstream = str(yaml.safe_load((cluster / "kubeconfig").read_text())["clusters"][0]["cluster"]["server"])
        self.port = lasting_port()
        self.frozen = False
        """Watches stay open and deliver nothing."""
        self.drop_events: Callable[[JsonDict], bool] = lambda event: False
        """Watch events for which this is true are not delivered."""
        self.stale: dict[str, bytes] | None = None
        """Lists of kopf's as they were recorded, by path, that it gets instead of fresh ones; None:
        fresh ones.
        """
        self.recorded: dict[str, bytes] = {}
        """The last list that kopf got, by path."""
        self.held_back = self.dropped = self.served_stale = self.cut = 0
        """Effects on the operator: events that came while watches were frozen, events that were not
        delivered, lists that were old, requests that ended with the connection.
        """
        self._handlers: set[asyncio.Task[Any]] = set()
        loop.run(self._open())
        self.start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def kubeconfig(self, path: Path) -> Path:
        """Write the operator's kubeconfig that leads here."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "p",
            "contexts": [{"name": "p", "context": {"cluster": "p", "user": "p"}}],
            "clusters": [
                {"name": "p", "cluster": {"server": self.url, "certificate-authority": str(self._pki / "ca.crt")}}
            ],
            "users": [
                {
                    "name": "p",
                    "user": {
                        "client-certificate": str(self._pki / "operator.crt"),
                        "client-key": str(self._pki / "operator.key"),
                    },
                }
            ],
        }
        path.write_text(json.dumps(config))
        return path

    # ---- life

    async def _open(self) -> None:
        tls = ssl.create_default_context(cafile=str(self._cluster / "pki/ca.crt"))
        tls.load_cert_chain(self._cluster / "pki/admin.crt", self._cluster / "pki/admin.key")
        connector = aiohttp.TCPConnector(ssl=tls, limit=0)
        self.session = aiohttp.ClientSession(
            connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None, connect=5)
        )

    def start(self) -> None:
        """Listen."""
        self.loop.run(self._start())

    async def _start(self) -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self._pki / "server.crt", self._pki / "server.key")
        tls.load_verify_locations(self._pki / "ca.crt")
        tls.verify_mode = ssl.CERT_REQUIRED
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=tls, reuse_address=True)
        await site.start()

    def stop(self) -> None:
        """Stop listening on this port, and close all connections."""
        self.loop.run(self._stop())

    async def _stop(self) -> None:
        self.cut += len(self._handlers)
        for task in list(self._handlers):
            task.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._runner.cleanup()

    def close(self) -> None:
        """For good."""
        self.stop()
        self.loop.run(self.session.close())

    # ---- requests

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            if request.query.get("watch") in ("true", "1"):
                return await self._watch(request)
            body = await request.read()
            if request.method in READS:
                return await self._read(request, body)
            return await self._write(request, body)
        except aiohttp.ClientError as error:
            return self._refusal(500, "InternalError", f"the API server does not answer: {error}")
        finally:
            self._handlers.discard(task)

    async def _forward(self, request: web.Request, body: bytes) -> tuple[int, dict[str, str], bytes]:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_HEADERS}
        async with self.session.request(
            request.method, self.upstream + request.path_qs, data=body or None, headers=headers
        ) as answer:
            kept = {k: v for k, v in answer.headers.items() if k.lower() in ("content-type", "retry-after")}
            return answer.status, kept, await answer.read()

    async def _read(self, request: web.Request, body: bytes) -> web.StreamResponse:
        cached = "kopf" in request.headers.get("User-Agent", "").lower() and request.path.endswith(
            ("pods", "huditables", "hudiwriters")
        )
        if cached and self.stale is not None and request.path in self.stale:
            self.served_stale += 1
            return web.Response(body=self.stale[request.path], content_type="application/json")
        status, headers, answer = await self._forward(request, body)
        if cached and status == 200:
            self.recorded[request.path] = answer
        return web.Response(status=status, headers=headers, body=answer)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_HEADERS}
        async with self.session.get(self.upstream + request.path_qs, headers=headers) as answer:
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers.get("Content-Type", "application/json")}
            )
            await response.prepare(request)
            with contextlib.suppress(ConnectionError, aiohttp.ClientError):
                async for line in _lines(answer.content):
                    event = json.loads(line)
                    tells = event["type"] != "BOOKMARK"
                    self.held_back += self.frozen and tells
                    while self.frozen:
                        await asyncio.sleep(0.05)
                    if self.drop_events(event):
                        self.dropped += tells
                    else:
                        await response.write(line)
                await response.write_eof()
            return response

    def _refusal(self, code: int, reason: str, message: str) -> web.Response:
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        }
        return web.json_response(status, status=code, headers={"Retry-After": "1"} if code == 429 else {})

    async def _write(self, request: web.Request, body: bytes) -> web.StreamResponse:
        parsed = json.loads(body) if body else {}
        fault = self._injector.sent(api_write(self._names, request.method, request.path, parsed))
        if fault in _REFUSALS:
            return self._refusal(*_REFUSALS[fault])
        if fault is Fault.KILLED_BEFORE:
            await asyncio.to_thread(self._injector.kill)
            self._monitor.killed()
            return self._cut(request)
        if fault is Fault.LATE:
            self.loop.loop.call_later(
                LATE_SECONDS, lambda: self.loop.loop.create_task(self._execute(request, body, parsed))
            )
            return self._cut(request)
        status, headers, answer = await self._execute(request, body, parsed)
        if fault is Fault.KILLED_AFTER:
            await asyncio.to_thread(self._injector.kill)
            self._monitor.killed()
        if fault is Fault.TIMEOUT:
            while request.transport is not None and not request.transport.is_closing():
                await asyncio.sleep(0.1)
        if fault in (Fault.KILLED_AFTER, Fault.TIMEOUT, Fault.LOST):
            return self._cut(request)
        return web.Response(status=status, headers=headers, body=answer)

    async def _execute(self, request: web.Request, body: bytes, parsed: Any) -> tuple[int, dict[str, str], bytes]:
        status, headers, answer = await self._forward(request, body)
        self._monitor.api_done(
            request.method, request.path, parsed, status, json.loads(answer) if answer.startswith(b"{") else {}
        )
        return status, headers, answer

    @staticmethod
    def _cut(request: web.Request) -> web.StreamResponse:
        """The connection ends, no answer."""
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


async def _lines(content: aiohttp.StreamReader) -> Any:
    """Whole lines of any length."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line + b"\n"


class Objects:
    """The objects of one namespace, and how many came and went, by the
    administrator's own watches.
    """

    KINDS = (
        "/api/v1/pods",
        "/api/v1/configmaps",
        "/api/v1/secrets",
        "/api/v1/serviceaccounts",
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
        "/apis/hudioperator.io/v1alpha1/huditables",
        "/apis/hudioperator.io/v1alpha1/hudiwriters",
        "/apis/events.k8s.io/v1/events",
    )

    def __init__(self, proxy: ApiProxy, namespace: str, names: Names) -> None:
        self._proxy, self._namespace, self._names = proxy, namespace, names
        self.created: dict[str, set[str]] = {}
        """Uids by kind and normalised name."""
        self.deleted: dict[str, set[str]] = {}
        self.latest: dict[str, dict[str, JsonDict]] = {}
        """Objects as they are now, by plural and name."""
        self._ready: set[str] = set()
        self._tasks = [proxy.loop.start(self._follow(kind)) for kind in self.KINDS]

    def path(self, kind: str) -> str:
        """Collection of one kind in the namespace."""
        group, _, plural = kind.rpartition("/")
        return f"{group}/namespaces/{self._namespace}/{plural}"

    async def _follow(self, kind: str) -> None:
        plural, revision = kind.rpartition("/")[2], ""
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                revision = revision or await self._list(kind)
                query = {"watch": "1", "resourceVersion": revision}
                async with self._proxy.session.get(self._proxy.upstream + self.path(kind), params=query) as answer:
                    if answer.status == 410:
                        revision = ""
                    if answer.status != 200:
                        raise aiohttp.ClientError(f"status {answer.status}")
                    self._ready.add(kind)
                    async for line in _lines(answer.content):
                        event = json.loads(line)
                        if event["type"] == "ERROR":  # a server that has just started does not know older revisions
                            revision = ""
                            break
                        revision = self._seen(plural, event) or revision
            await asyncio.sleep(0.1)

    async def _list(self, kind: str) -> str:
        """List the objects as the events that a watch would have brought.

        Returns the revision to go on with.
        """
        plural = kind.rpartition("/")[2]
        async with self._proxy.session.get(self._proxy.upstream + self.path(kind)) as answer:
            if answer.status != 200:
                raise aiohttp.ClientError(f"status {answer.status}")
            found = await answer.json()
        names = {item["metadata"]["name"] for item in found["items"]}
        for gone in [known for name, known in self.latest.get(plural, {}).items() if name not in names]:
            self._seen(plural, {"type": "DELETED", "object": gone})
        for item in found["items"]:
            self._seen(plural, {"type": "MODIFIED", "object": item})
        return str(found["metadata"]["resourceVersion"])

    def _seen(self, plural: str, event: JsonDict) -> str:
        meta = event["object"].get("metadata") or {}
        if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
            name = (
                meta["name"].rpartition(".")[0] + ".E" + meta["name"].rpartition(".")[2]
                if plural == "events"
                else meta["name"]
            )
            key = f"{plural}/{name}" if plural == "events" else self._names.text(f"{plural}/{name}")
            self.created.setdefault(key, set()).add(meta["uid"])
            self.latest.setdefault(plural, {})[meta["name"]] = event["object"]
            if event["type"] == "DELETED":
                self.latest[plural].pop(meta["name"], None)
                self.deleted.setdefault(key, set()).add(meta["uid"])
        return str(meta.get("resourceVersion") or "")

    @property
    def ready(self) -> bool:
        """True when every kind is watched: nothing will be missed."""
        return len(self._ready) == len(self.KINDS)

    def counts(self) -> dict[str, list[int]]:
        """Created and deleted objects by name, events excepted."""
        return {
            key: [len(uids), len(self.deleted.get(key, ()))]
            for key, uids in sorted(self.created.items())
            if not key.startswith("events/")
        }

    def repeated_events(self) -> list[str]:
        """Names of events that exist, or existed, more than once."""
        return sorted(key for key, uids in self.created.items() if key.startswith("events/") and len(uids) > 1)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
