"""An example of a receiver of commits (docs/use/callbacks.md): `receiver.py FOLDER [PORT]`.

It needs only Python's standard library.

Each event is stored once, as one line of FOLDER/events.jsonl: a repeat is recognized by its id,
answered 2xx and dropped. The answer is sent after the line is on disk: an event that was answered
2xx is not sent again. With TOKEN in the environment, requests without `Authorization: Bearer TOKEN`
are refused.
"""

from __future__ import annotations

import hmac
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LIMIT = 1_000_000


class Receiver(ThreadingHTTPServer):
    """Stores events in a file, and their ids in memory."""

    def __init__(self, folder: Path, *, port: int, token: str, host: str = "") -> None:
        """`port` 0: any free port."""
        super().__init__((host, port), Handler)
        self.token = token
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / "events.jsonl").open("a+", encoding="utf-8")
        self._file.seek(0)
        self._seen = {json.loads(line)["id"] for line in self._file if line.endswith("\n")}

    def keep(self, event: dict[str, object]) -> None:
        """Store the event, unless its id is known."""
        with self._lock:
            if event["id"] not in self._seen:
                self._file.write(json.dumps(event) + "\n")
                self._file.flush()
                os.fsync(self._file.fileno())
                self._seen.add(event["id"])


class Handler(BaseHTTPRequestHandler):
    """Answers 204 when the event is stored, and 4xx when it cannot be."""

    server: Receiver

    def do_POST(self) -> None:
        """Receive one event."""
        self.send_response(self._status())
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _status(self) -> int:
        given = self.headers.get("Authorization") or ""
        if self.server.token and not hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode()):
            return 401
        length = self.headers.get("Content-Length") or ""
        if not length.isdecimal() or int(length) > LIMIT:
            return 413
        try:
            event = json.loads(self.rfile.read(int(length)))
            self.server.keep({**event, "id": str(event["id"])})
        except (ValueError, KeyError, TypeError):
            return 400
        return 204

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the events are in the file."""


if __name__ == "__main__":
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8080
    Receiver(Path(sys.argv[1]), port=port, token=os.environ.get("TOKEN", "")).serve_forever()
