"""A stand-in for the metadata server of Google's cloud, and a proxy before fake-gcs-server that
asks for its tokens: fake-gcs-server itself asks nobody who they are.

It is no metadata server: it has the one path of access tokens, and knows a pod by the port that the
pod was given, where GKE knows it by its address. Tokens live for seconds, where GKE's live for an
hour. The proxy checks the token of each request, and nothing that a role allows.
"""

from __future__ import annotations

import http.client
import http.server
import json
import secrets
import threading
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.harness.gcs_server import GcsServer
from tests.support.ports import free_port

PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "authorization"}


class Pod:
    """The metadata server as one pod sees it."""

    def __init__(self, bucket: Bucket, seconds: float) -> None:
        self._bucket, self._seconds = bucket, seconds
        self.bound = True
        """Whether the pod's account may have tokens."""
        self.given: list[str] = []
        """Tokens, oldest first."""
        self.refused = 0
        self._server = _serve(type("Metadata", (_Metadata,), {"pod": self}))
        self.environment = {"GCE_METADATA_HOST": f"127.0.0.1:{self._server.server_address[1]}"}
        """Variable that leads the connector to the stand-in. A pod on GKE does not have it."""

    def token(self) -> tuple[int, bytes]:
        """Status and body of an answer."""
        if not self.bound:
            self.refused += 1
            return HTTPStatus.FORBIDDEN, b"Unable to generate access token; IAM returned 403 Forbidden"
        token = f"ya29.{secrets.token_urlsafe(60)}"
        self._bucket.accept(token, time.monotonic() + self._seconds)
        self.given.append(token)
        said = {"access_token": token, "expires_in": int(self._seconds), "token_type": "Bearer"}
        return HTTPStatus.OK, json.dumps(said).encode()

    def stop(self) -> None:
        _end(self._server)


class Bucket:
    """fake-gcs-server behind the proxy. Start with `start()`, end with `stop()`."""

    name = GcsServer.bucket

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._gcs = GcsServer(folder, external_url=self.url)
        self.options = {**self._gcs.options}
        """For a reader that bypasses the proxy."""
        self._until: dict[str, float] = {}
        self._pods: list[Pod] = []
        self._port = port
        self.refused = 0
        """Requests without a token that is good."""
        self._server: http.server.ThreadingHTTPServer | None = None

    def start(self) -> None:
        self._gcs.start()
        self._server = _serve(type("Proxy", (_Proxy,), {"bucket": self, "to": self._gcs.url}), self._port)

    def pod(self, *, seconds: float) -> Pod:
        """A pod whose account may have tokens, which live for `seconds`."""
        self._pods.append(Pod(self, seconds))
        return self._pods[-1]

    def stop(self) -> None:
        for each in (*self._pods,):
            each.stop()
        if self._server is not None:
            _end(self._server)
        self._gcs.stop()

    def accept(self, token: str, until: float) -> None:
        """`until`: of the monotonic clock."""
        self._until[token] = until

    def accepts(self, token: str) -> bool:
        return self._until.get(token, 0.0) > time.monotonic()


def _serve(handler: type[http.server.BaseHTTPRequestHandler], port: int = 0) -> http.server.ThreadingHTTPServer:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _end(server: http.server.ThreadingHTTPServer) -> None:
    server.shutdown()
    server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests have tokens."""

    def answer(self, status: int, body: bytes, headers: list[tuple[str, str]]) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Metadata(_Handler):
    pod: Pod

    def do_GET(self) -> None:
        asked = self.headers.get("Metadata-Flavor") == "Google" and urlsplit(self.path).path == PATH
        status, body = self.pod.token() if asked else (int(HTTPStatus.NOT_FOUND), b"")
        self.answer(status, body, [("Metadata-Flavor", "Google"), ("Content-Type", "application/json")])


class _Proxy(_Handler):
    bucket: Bucket
    to: str

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _forward(self) -> None:
        body = self._body()
        if not self.bucket.accepts(self.headers.get("Authorization", "").removeprefix("Bearer ")):
            self.bucket.refused += 1
            said = {"error": {"code": 401, "message": "Invalid Credentials", "errors": [{"reason": "authError"}]}}
            self.answer(HTTPStatus.UNAUTHORIZED, json.dumps(said).encode(), [("Content-Type", "application/json")])
            return
        where = urlsplit(self.to)
        upstream = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
        try:
            kept = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            upstream.request(self.command, self.path, body=body, headers=kept)
            found = upstream.getresponse()
            content = found.read()
            headers = [(name, value) for name, value in found.getheaders() if name.lower() not in _HOP]
        finally:
            upstream.close()
        if self.command == "HEAD":
            content = b""
        self.answer(found.status, content, headers)


for _method in ("GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"):
    setattr(_Proxy, f"do_{_method}", _Proxy._forward)
