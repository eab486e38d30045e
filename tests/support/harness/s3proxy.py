"""An HTTP proxy before the S3 server that does to single requests what networks and stores do: hold
them, or answer with an error.

A held request was received whole; it is delivered when the test says so, whether or not its sender
still lives. The request of a held answer has reached the server, and its sender does not know. A
request that is answered with an error does not reach the server. Every request line is kept, so
that a test can say what was not asked (no deletion).
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

COMPLETED = re.compile(r"^PUT /[^ ]*/\.hoodie/timeline/(\d{17,})_\d{17,}\.[a-z]+[ ?]")
BEGUN = re.compile(r"^PUT /[^ ]*/\.hoodie/metadata/\.hoodie/timeline/\d{17,}\.[a-z]+\.inflight[ ?]")
ARCHIVE_VERSION = re.compile(r"^PUT /[^ ]*/\.hoodie/timeline/history/_version_[ ?]")
Wanted = Callable[[str], bool]


def completed(line: str) -> bool:
    """The PUT of a completed instant of the table itself."""
    return bool(COMPLETED.match(line)) and ".hoodie/metadata" not in line


def begun_in_metadata(line: str) -> bool:
    """The PUT of the metadata table's inflight file: the first thing that a commit writes in the
    critical section.
    """
    return bool(BEGUN.match(line))


def completed_in_metadata(line: str) -> bool:
    """The PUT of a completed instant of the metadata table: its writer is inside the critical
    section, the table's own file is not sent yet.
    """
    return bool(COMPLETED.match(line)) and ".hoodie/metadata" in line


def archive_version(line: str) -> bool:
    """The PUT of the archived timeline's version, of the table itself."""
    return bool(ARCHIVE_VERSION.match(line)) and ".hoodie/metadata" not in line


def data_file(line: str) -> bool:
    """The PUT of a base file of the table itself."""
    return line.startswith("PUT ") and ".parquet" in line and "/.hoodie/" not in line


def log_file(line: str) -> bool:
    """The PUT of a log file of the table itself."""
    return line.startswith("PUT ") and ".log." in line and "/.hoodie/" not in line


def listing(line: str) -> bool:
    """A listing of objects."""
    return line.startswith("GET ") and "list-type=2" in line


def deletion(line: str) -> bool:
    """A deletion, of one object or of many."""
    return line.startswith("DELETE ") or (line.startswith("POST ") and bool(re.search(r"[?&]delete[=& ]", line)))


@dataclass
class Held:
    """A request that is held, or (`after`) the answer to it."""

    line: str
    after: bool = False
    arrived: threading.Event = field(default_factory=threading.Event)
    deliver: threading.Event = field(default_factory=threading.Event)
    delivered: threading.Event = field(default_factory=threading.Event)
    answer: str = ""
    """Status line of the server's answer."""


@dataclass
class Refused:
    """Requests that are answered with an error instead of being forwarded."""

    wanted: Wanted
    status: int
    left: float
    """Number of requests left; infinite: until `stop`."""
    lines: list[str] = field(default_factory=list)
    """Request lines that were refused."""

    def stop(self) -> None:
        self.left = 0


def end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what runs on a loop that has stopped."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


class Proxy:
    """Listens on ``host`` and forwards to ``server`` (host, port); runs in a separate thread."""

    def __init__(self, host: str, server: tuple[str, int]) -> None:
        self._host = host
        self.server = server
        """Target of the requests; may be changed."""
        self._loop = asyncio.new_event_loop()
        self._held: list[tuple[Wanted, Held]] = []
        self._refused: list[Refused] = []
        self.lines: list[str] = []
        """Request lines in the order of their arrival."""
        self.answered: list[tuple[str, str]] = []
        """Request lines with the status lines of the server's answers to them."""
        self._ready = threading.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(10)

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self.port}"

    def hold_next(self, wanted: Wanted) -> Held:
        """Hold the next request whose request line is wanted (one only)."""
        held = Held("")
        self._held.append((wanted, held))
        return held

    def hold_answer(self, wanted: Wanted) -> Held:
        """Let the next wanted request through and hold the server's answer to it (one only).

        `arrived` when the answer is there.
        """
        held = Held("", after=True)
        self._held.append((wanted, held))
        return held

    def refuse(self, wanted: Wanted, *, status: int = 503, times: float = float("inf")) -> Refused:
        """Answer the next `times` wanted requests with an error."""
        found = Refused(wanted, status, times)
        self._refused.append(found)
        return found

    def published(self, instant: str) -> bool:
        """Whether the server has taken the completed file of an instant of the table."""
        return any(
            completed(line) and f"/{instant}_" in line and " 2" in status[: len("HTTP/1.1 2")]
            for line, status in self.answered
        )

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, self._host, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        end_tasks(self._loop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            line, *headers = head.decode("latin-1").rstrip("\r\n").split("\r\n")
            names = {name.lower(): value.strip() for name, _, value in (header.partition(":") for header in headers)}
            if "100-continue" in names.get("expect", "").lower():
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                await writer.drain()
            body = await reader.readexactly(int(names.get("content-length", "0")))
            self.lines.append(line)
            if refusal := self._refusal(line):
                writer.write(refusal)
                await writer.drain()
                return
            held = self._taken(line)
            if held is not None and not held.after:
                await self._hold(held)
            kept = [header for header in headers if header.split(":")[0].lower() not in {"expect", "connection"}]
            answer = await self._forward(
                "\r\n".join([line, *kept, "Connection: close", "", ""]).encode("latin-1") + body
            )
            status = answer.split(b"\r\n", 1)[0].decode("latin-1")
            self.answered.append((line, status))
            if held is not None:
                held.answer = status
                held.delivered.set()
                if held.after:
                    await self._hold(held)
            writer.write(answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _refusal(self, line: str) -> bytes:
        for refused in self._refused:
            if refused.left > 0 and refused.wanted(line):
                refused.left -= 1
                refused.lines.append(line)
                body = (
                    b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request '
                    b"rate.</Message></Error>"
                )
                head = (
                    f"HTTP/1.1 {refused.status} Refused\r\n"
                    "Content-Type: application/xml\r\n"
                    f"Content-Length: {len(body)}\r\n"
                    "Connection: close\r\n"
                    "\r\n"
                )
                return head.encode() + (b"" if line.startswith("HEAD ") else body)
        return b""

    def _taken(self, line: str) -> Held | None:
        for entry in self._held:
            wanted, held = entry
            if wanted(line):
                self._held.remove(entry)
                held.line = line
                return held
        return None

    @staticmethod
    async def _hold(held: Held) -> None:
        held.arrived.set()
        while not held.deliver.is_set():
            await asyncio.sleep(0.02)

    async def _forward(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*self.server)
        try:
            writer.write(request)
            await writer.drain()
            return await reader.read(-1)
        finally:
            writer.close()
