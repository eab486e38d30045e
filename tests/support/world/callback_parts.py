"""Parts for the tests of the commit callback: a scripted HTTP server, etcd's compare-and-set, and a
timeline to commit to.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hudi_runtime.process.etcd import Entry
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.storage import Missing

WRITER = {"hudioperator.writer": "lake/live", "hudioperator.attempt": "lake.live-1"}


def t(number: int) -> str:
    """A time of the table."""
    return f"20260101000000{number:03d}"


class Receiver(ThreadingHTTPServer):
    """Keeps what it was sent.

    `answers` are given first, one a request: a status, or "hang", "drip", or an address to redirect
    to; then 204.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[int | str] = []
        self.events: list[dict[str, Any]] = []
        self.begun: list[str] = []
        """Positions at which callbacks have begun, instead of events of that kind."""
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.more: dict[str, str] = {}
        """Headers of its answers."""
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook?x=1"

    def told(self) -> list[str]:
        """Requested times, in the order of the requests."""
        return [event["subject"] for event in self.events]


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def do_GET(self) -> None:
        self._answer({"subject": "a redirect was followed"})

    def _answer(self, event: dict[str, Any]) -> None:
        if event.get("type") == "io.hudioperator.table.started.v1":
            self.server.begun.append(event["data"]["afterCompletionTime"])
        else:
            self.server.events.append(event)
        self.server.headers.append(dict(self.headers))
        self.server.paths.append(self.path)
        said = self.server.answers.pop(0) if self.server.answers else 204
        if said in ("hang", "drip"):
            self.wfile.write(b"" if said == "hang" else b"HTTP/1.0 204 No Content\r\n")
            while not self.server.released.wait(0.05):
                with suppress(OSError):
                    self.wfile.write(b"" if said == "hang" else b"X-Drip: 1\r\n")
            return
        self.send_response(int(said) if not isinstance(said, str) else 302)
        for name, value in ({"Location": said} if isinstance(said, str) else self.server.more).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"secret")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A receiver that serves."""
    made = Receiver()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.released.set()
        made.shutdown()
        made.server_close()


@dataclass
class Store:
    """Keys with revisions, as `hudi_runtime.process.etcd.Etcd` has them.

    Encoded, so that only what can be stored is. It lacks abilities of etcd: a lease, a transaction
    over several keys, a permission that is denied, a stale read.
    """

    keys: dict[str, tuple[str, int]] = field(default_factory=dict)
    revision: int = 0
    silent: bool = False

    def get(self, key: str) -> Entry | None:
        self._ask()
        found = self.keys.get(key)
        return Entry(key, json.loads(found[0]), found[1]) if found else None

    def range(self, prefix: str) -> list[Entry]:
        self._ask()
        return [
            Entry(key, json.loads(value), at)
            for key, (value, at) in sorted(self.keys.items())
            if key.startswith(prefix)
        ]

    def ranges(self, *prefixes: str) -> list[list[Entry]]:
        return [self.range(prefix) for prefix in prefixes]

    def cas(self, key: str, value: Mapping[str, Any], revision: int) -> int | None:
        self._ask()
        if self.keys.get(key, ("", 0))[1] != revision:
            return None
        return self.put(key, value)

    def put(self, key: str, value: Mapping[str, Any]) -> int:
        self._ask()
        self.revision += 1
        self.keys[key] = (json.dumps(value), self.revision)
        return self.revision

    def delete(self, key: str, revision: int) -> bool:
        self._ask()
        return self.keys.get(key, ("", 0))[1] == revision and bool(self.keys.pop(key))

    def _ask(self) -> None:
        if self.silent:
            raise ConnectionError("etcd is silent")


@dataclass
class Commits:
    """A timeline whose files are kept by name, with an archive."""

    names: list[str] = field(default_factory=list)
    archive: list[tl.Instant] = field(default_factory=list)
    archive_reads: int = 0

    def add(self, requested: int, completed: int, action: str = "commit", *, planned: str = "") -> None:
        """A completed instant."""
        self.names += [f"{t(requested)}.{planned or action}.requested", f"{t(requested)}_{t(completed)}.{action}"]

    def archived(self, *requested: int) -> None:
        """Move instants to the archive."""
        for number in requested:
            found = tl.parse(self.names).get(t(number))
            assert found is not None
            self.archive.append(found)
            self.undo(number)

    def undo(self, number: int) -> None:
        """Remove an instant."""
        self.names = [name for name in self.names if not name.startswith(t(number))]

    def listing(self) -> tl.Timeline:
        return tl.parse(self.names)

    def metadata(self, instant: tl.Instant) -> dict[str, Any]:
        if tl.parse(self.names).get(instant.requested) is None:
            raise Missing(instant.requested)
        stats = [{"numInserts": 3, "numUpdateWrites": 2, "numDeletes": 1}, {"numInserts": 1, "numUpdateWrites": None}]
        return {"operationType": "UPSERT", "extraMetadata": WRITER, "partitionToWriteStats": {"p": stats}}

    def has_archive(self) -> bool:
        return bool(self.archive)

    def archived_instants(self) -> tuple[tl.Instant, ...]:
        self.archive_reads += 1
        return tuple(self.archive)
