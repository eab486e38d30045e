"""Logs, probes, and the servers of probes and metrics."""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import os
import re
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader
from pathlib import Path
from socketserver import BaseServer, StreamRequestHandler, ThreadingMixIn
from typing import Any, cast
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app

from hudi_operator.model.config import MetricsConfig

LOG = logging.getLogger(__name__)


_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters, and what some readers take for the end of a line."""


class _Format(logging.Formatter):
    """Text or JSON; a protocol line is not changed (docs/design/contracts.md §3).

    In text only the first line of a record begins with a time: log messages contain names that
    others have chosen.
    """

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._json = as_json

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.name == "hudi_operator.protocol":
            return message
        if record.exc_info:
            message = f"{message}\n{self.formatException(record.exc_info)}"
        at = datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._json:
            return json.dumps(
                {"time": at, "level": record.levelname.lower(), "logger": record.name, "message": message}
            )
        text = "\n    ".join(_UNPRINTABLE.sub(_escaped, line) for line in message.split("\n"))
        return f"{at} {record.levelname[0]} {record.name.removeprefix('hudi_operator.')}: {text}"


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def configure_logging(*, as_json: bool, level: int = logging.INFO) -> None:
    """Log everything to stderr; libraries only from level WARNING."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Format(as_json=as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("hudi_operator").setLevel(level)
    # kopf logs every event that it dispatches.
    logging.getLogger("kopf.objects").setLevel(logging.ERROR)


def configure_from_environment() -> None:
    """:func:`configure_logging` as HUDI_OPERATOR_LOG_FORMAT and HUDI_OPERATOR_LOG_LEVEL say."""
    level = os.environ.get("HUDI_OPERATOR_LOG_LEVEL", "INFO").upper()
    configure_logging(
        as_json=os.environ.get("HUDI_OPERATOR_LOG_FORMAT", "text") == "json",
        level=logging.getLevelNamesMapping().get(level, logging.INFO),
    )


class Limited(ThreadingMixIn, BaseServer):
    """Limits connections, their time and the size of requests, before any authentication.

    Each connection has a thread. When the total limit is reached, the address with the most
    connections loses its newest one to an address that has clearly fewer, so that a kubelet and
    Prometheus can connect. The gateway has the same rule (`gateway/connections.go`).
    """

    of_address, of_all = 16, 64
    seconds = 10.0
    """After which a connection gives way to another one, whatever it does."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        self._lock = threading.Lock()
        self._open: dict[Any, tuple[str, float]] = {}
        """Oldest first: address, and when it was accepted, by this process's monotonic clock."""
        super().__init__(*args, **settings)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection on a thread of its own, or close it."""
        address, now = str(client_address[0]), time.monotonic()
        with self._lock:
            closed = self._leaving(address, now)
            if closed is not None:
                self._open[request] = address, now
        for one in closed or ():
            with contextlib.suppress(OSError):
                socket.socket.shutdown(one, socket.SHUT_RDWR)  # its thread ends; TLS says no goodbye
        if closed is None:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def _leaving(self, address: str, now: float) -> list[Any] | None:
        """Connections that a new one of this address replaces; None: there is no room for it."""
        gone = [one for one, (_, since) in self._open.items() if now - since > self.seconds]
        for one in gone:
            del self._open[one]
        counts = Counter(of for of, _ in self._open.values())
        if counts[address] >= self.of_address:
            return None
        if len(self._open) < self.of_all:
            return gone
        heaviest, most = counts.most_common(1)[0]
        if most <= counts[address] + 1:
            return None
        newest = [one for one, (of, _) in self._open.items() if of == heaviest][-1]
        del self._open[newest]
        return [*gone, newest]

    def shutdown_request(self, request: Any) -> None:
        """Give the connection's place back."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)


class _Head:
    """What a client sends before its request is known, of which no more than this is read."""

    LONGEST = 16 * 1024

    def __init__(self, inner: Any) -> None:
        self._inner, self._left = inner, self.LONGEST

    def readline(self, limit: int = -1) -> bytes:
        """A line; empty, as at the end of a connection, when no more may be read."""
        line: bytes = self._inner.readline(self._left if limit < 0 else min(limit, self._left))
        self._left -= len(line)
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Brief(StreamRequestHandler):
    """Reads no more than a request's head needs, and waits for none of it for long."""

    timeout = 5
    """Seconds that a client may keep a thread waiting with each read."""

    def setup(self) -> None:
        super().setup()
        self.rfile = cast(BufferedReader, _Head(self.rfile))


class _LimitedServer(Limited, ThreadingHTTPServer):
    """The server of probes."""


class Probes:
    """``/healthz``: the event loop is running.

    ``/readyz``: the operator has started; followers are ready, too.
    """

    def __init__(self, *, stalled_after: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        """``stalled_after``: how long a process may be silent, in seconds.

        After so long without a :meth:`beat` it counts as hung.
        """
        self._clock = clock
        self._stalled_after = stalled_after
        self._beat = clock()
        self.not_ready = "starting"
        """Why the operator is not ready; empty when it is."""

    def beat(self) -> None:
        """Record a turn of the event loop."""
        self._beat = self._clock()

    def healthy(self) -> str:
        """Why the process should be restarted; empty when it should not."""
        lag = self._clock() - self._beat
        return f"the event loop has been blocked for {lag:.0f} s" if lag > self._stalled_after else ""

    def answer(self, path: str) -> tuple[int, str]:
        """Status and text for a request."""
        checks: dict[str, Callable[[], str]] = {"/healthz": self.healthy, "/readyz": lambda: self.not_ready}
        check = checks.get(path.partition("?")[0])
        if check is None:
            return 404, "not found"
        problem = check()
        return (503, problem) if problem else (200, "ok")

    def serve(self, port: int) -> ThreadingHTTPServer:
        """Serve on ``port`` (0 = a free one) from a thread; returns the server."""
        probes = self

        class Handler(_Brief, BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, text = probes.answer(self.path)
                body = f"{text}\n".encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Probes are not logged."""

        server = _LimitedServer(("", port), Handler)
        threading.Thread(target=server.serve_forever, name="probes", daemon=True).start()
        return server


class _MetricsServer(Limited, ThreadingWSGIServer):
    """Metrics behind a token, a certificate, or nothing.

    Files are read again when they change. Handshakes are made on the thread of the connection: a
    client that does not speak keeps nobody else waiting.
    """

    access = MetricsConfig()
    _context: ssl.SSLContext | None = None
    _read_at: tuple[int, ...] = ()

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        try:
            context = self._current()
            if context is not None:
                wrapped = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                return wrapped, address
        except OSError as error:
            connection.close()
            LOG.warning("metrics: %s", error)
            raise
        return connection, address

    def _current(self) -> ssl.SSLContext | None:
        access = self.access
        if not access.cert_file:
            return None
        files = [name for name in (access.cert_file, access.key_file, access.client_ca_file) if name]
        stamps = tuple(Path(name).stat().st_mtime_ns for name in files)
        if self._context is None or stamps != self._read_at:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(access.cert_file, access.key_file)
            if access.client_ca_file:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(access.client_ca_file)
            self._context, self._read_at = context, stamps
        return self._context

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks off, or shows no certificate, is the client's affair."""
        LOG.debug("metrics: connection of %s failed", client_address, exc_info=True)


class _MetricsHandler(_Brief, WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


def serve_metrics(registry: CollectorRegistry, port: int, access: MetricsConfig) -> ThreadingWSGIServer:
    """Serve ``/metrics`` on ``port`` (0 = a free one) from a thread; returns the server."""
    application = make_wsgi_app(registry)

    def guarded(environment: Any, start: Any) -> Any:
        refused = _refused(access.token_file, str(environment.get("HTTP_AUTHORIZATION", "")))
        if not refused:
            return application(environment, start)
        start(refused, [("Content-Type", "text/plain"), ("WWW-Authenticate", "Bearer")])
        return [f"{refused}\n".encode()]

    server = make_server("", port, guarded, _MetricsServer, handler_class=_MetricsHandler)
    server.access = access
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


def _refused(token_file: str, authorization: str) -> str:
    """The status of a refusal; empty when the request carries the token, or none is needed."""
    if not token_file:
        return ""
    try:
        token = Path(token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        token = ""
    if not token:
        return "503 Service Unavailable"
    scheme, _, given = authorization.partition(" ")
    same = hmac.compare_digest(given.strip().encode(), token.encode())
    return "" if scheme.lower() == "bearer" and same else "401 Unauthorized"
