"""An API server that is played for the console: tables and writers, and who may list them where.

It judges nothing but tokens and namespaces; that RBAC decides is shown with a real one
(`component/crds/test_console.py`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from hudi_console.__main__ import served
from hudi_console.cluster import Cluster
from hudi_console.server import Pages

JsonDict = dict[str, Any]
ANN, BOB = "ann.secret-1_x~/+==", "bob.secret"
GROUP = "/apis/hudioperator.io/v1alpha1"
EVERYWHERE = "*"


class Api:
    """``rights``: the namespaces of each token. ``asked``: every request that has come."""

    def __init__(self, *objects: JsonDict, rights: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self.objects = list(objects)
        self.rights = dict(rights or {ANN: (EVERYWHERE,), BOB: ("team-b",)})
        self.asked: list[tuple[str, str, dict[str, list[str]]]] = []
        self.page = 500
        self.fails: web.Response | None = None
        """Answered instead of anything else."""
        self.gone = 0
        """How many watches end with 410."""
        self._watchers: list[asyncio.Queue[JsonDict | None]] = []

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.asked]

    async def tell(self, what: str, obj: JsonDict) -> None:
        """Change an object, for all who watch."""
        same = (obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"])
        self.objects = [
            o for o in self.objects if (o["kind"], o["metadata"]["namespace"], o["metadata"]["name"]) != same
        ]
        if what != "DELETED":
            self.objects.append(obj)
        for watcher in self._watchers:
            watcher.put_nowait({"type": what, "object": obj})

    def end_watches(self) -> None:
        for watcher in self._watchers:
            watcher.put_nowait(None)

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        headers: dict[str, list[str]] = {}
        for name, value in request.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        self.asked.append((request.method, request.path_qs, headers))
        if self.fails is not None:
            return web.Response(status=self.fails.status, body=self.fails.body, headers=dict(self.fails.headers))
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.rights:
            return web.json_response({"kind": "Status", "message": "Unauthorized"}, status=401)
        *before, resource = request.path.strip("/").split("/")
        namespace = before[-1] if before[-2] == "namespaces" else ""
        if EVERYWHERE not in self.rights[token] and namespace not in self.rights[token]:
            where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
            said = f'{resource} is forbidden: User "u" cannot list resource "{resource}" {where}'
            return web.json_response({"kind": "Status", "message": said}, status=403)
        kind = {"huditables": "HudiTable", "hudiwriters": "HudiWriter"}.get(resource, resource)

        def fits(obj: JsonDict) -> bool:
            name = request.query.get("fieldSelector", "").partition("metadata.name=")[2]
            meta = obj["metadata"]
            return obj["kind"] == kind and namespace in ("", meta["namespace"]) and name in ("", meta["name"])

        if request.query.get("watch") == "true":
            return await self._watch(request, fits)
        found = [obj for obj in self.objects if fits(obj)]
        begin = int(request.query.get("continue") or 0)
        end = begin + min(self.page, int(request.query.get("limit") or self.page))
        meta = {"resourceVersion": "7", **({"continue": str(end)} if end < len(found) else {})}
        return web.json_response({"kind": "List", "metadata": meta, "items": found[begin:end]})

    async def _watch(self, request: web.Request, fits: Any) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if self.gone:
            self.gone -= 1
            await response.write(json.dumps({"type": "ERROR", "object": {"code": 410}}).encode() + b"\n")
            return response
        queue: asyncio.Queue[JsonDict | None] = asyncio.Queue()
        self._watchers.append(queue)
        while (one := await queue.get()) is not None:
            if fits(one["object"]):
                await response.write(json.dumps(one).encode() + b"\n")
        return response


@dataclass(frozen=True)
class Browser:
    """What a browser, or anybody else, can send to a console."""

    session: aiohttp.ClientSession
    host: str
    port: int

    def get(self, path: str, **more: Any) -> Any:
        return self.session.get(path, **more)

    def request(self, method: str, path: str, **more: Any) -> Any:
        return self.session.request(method, path, **more)


@asynccontextmanager
async def console(api: Api, **more: Any) -> AsyncIterator[Browser]:
    """A console that asks this API server, served as the process serves it."""
    cookies = aiohttp.DummyCookieJar()
    server = TestServer(api.application())
    await server.start_server(access_log=None)  # what it logs is not the console's
    async with server, aiohttp.ClientSession(cookie_jar=cookies) as session:
        runner = served(Pages(Cluster(str(server.make_url("")), session), **more).application())
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        async with aiohttp.ClientSession(f"http://{host}:{port}", cookie_jar=cookies) as asking:
            try:
                yield Browser(asking, host, port)
            finally:
                api.end_watches()
                await runner.cleanup()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def table(namespace: str = "team-a", name: str = "flights", **status: Any) -> JsonDict:
    told = {"observedGeneration": 1, "conditions": [condition("Ready", "True", "Ready")], **status}
    meta = {"namespace": namespace, "name": name, "generation": 1, "resourceVersion": "8"}
    return {
        "kind": "HudiTable",
        "metadata": meta,
        "spec": {"type": "MergeOnRead", "path": "s3a://lake/f"},
        "status": told,
    }


def writer(namespace: str = "team-a", name: str = "load", of: str = "flights", **status: Any) -> JsonDict:
    told = {"observedGeneration": 1, "state": "Running", **status}
    meta = {"namespace": namespace, "name": name, "generation": 1, "resourceVersion": "9"}
    return {"kind": "HudiWriter", "metadata": meta, "spec": {"tableRef": {"name": of}}, "status": told}


def condition(kind: str, value: str, reason: str, message: str = "") -> JsonDict:
    told = {"type": kind, "status": value, "reason": reason, "message": message}
    return {**told, "lastTransitionTime": "2026-03-01T11:59:00Z"}
