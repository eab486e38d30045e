"""F301: a dry run stores nothing, and only admission's own word is a refusal."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from kubernetes.aio import client

from hudi_operator.adapters.kubernetes import ApiServer, KubernetesStore
from hudi_operator.model.ports import Fatal, Refused, Retryable

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "ns", "name": "a-exec-0"}}


@contextmanager
def api_server(status: int, message: str, asked: list[str]) -> Iterator[str]:
    """URL of a server that answers each POST like this."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            body = json.dumps({"message": message}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(status: int, message: str) -> list[str]:
    """The paths that were asked."""
    asked: list[str] = []

    async def request(url: str) -> None:
        api = ApiServer(client.Configuration(host=url), timeout=5)
        try:
            await KubernetesStore(api, instance="one").would_create(POD)
        finally:
            await api.close()

    with api_server(status, message, asked) as url:
        asyncio.run(request(url))
    return asked


@pytest.mark.parametrize(("status", "message"), [(201, ""), (409, 'pods "a-exec-0" already exists')])
def test_what_would_be_made(status: int, message: str) -> None:
    assert ask(status, message) == ["/api/v1/namespaces/ns/pods?fieldManager=hudi-operator&dryRun=All"]


@pytest.mark.parametrize(
    ("status", "message", "error"),
    [
        (403, 'pods "a" is forbidden: exceeded quota: few', Refused),
        (409, 'admission webhook "w.example" denied the request: no', Refused),
        (400, 'admission webhook "w.example" does not support dry run', Fatal),
        (503, "oops", Retryable),
    ],
)
def test_why_not(status: int, message: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=message) as raised:
        ask(status, message)
    assert type(raised.value) is error or error is Retryable
