"""A receiver of commits (`spec.commitCallback`): it keeps every event that it gets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def receiver(host: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Port of an HTTP server of this machine, and the events that it got."""
    told: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            return

    server = ThreadingHTTPServer((host, 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    try:
        yield int(server.server_address[1]), told
    finally:
        server.shutdown()
        server.server_close()
