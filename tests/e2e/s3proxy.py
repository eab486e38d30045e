"""An HTTP proxy before the S3 server that can hold one request: what a slow network does to the PUT of a completed instant.

A held request was received whole; it is delivered when the test says so, whether or not its sender still lives.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

COMPLETED = re.compile(r"^PUT /[^ ]*/\.hoodie/timeline/(\d{17,})_\d{17,}\.[a-z]+[ ?]")


@dataclass
class Held:
    """A request that is held."""

    line: str
    arrived: threading.Event = field(default_factory=threading.Event)
    deliver: threading.Event = field(default_factory=threading.Event)
    delivered: threading.Event = field(default_factory=threading.Event)
    answer: str = ""
    """Status line of the server's answer."""


class Proxy:
    """Listens on ``host`` and forwards to ``server`` (host, port); runs in a thread of its own."""

    def __init__(self, host: str, server: tuple[str, int]) -> None:
        self._host, self._server = host, server
        self._loop = asyncio.new_event_loop()
        self._wanted: tuple[Callable[[str], bool], Held] | None = None
        self._ready = threading.Event()
        self.port = 0
        threading.Thread(target=self._run, daemon=True).start()
        self._ready.wait(10)

    def hold_next(self, wanted: Callable[[str], bool]) -> Held:
        """Hold the next request whose request line is wanted (one only)."""
        held = Held("")
        self._wanted = (wanted, held)
        return held

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, self._host, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            line, *headers = head.decode("latin-1").rstrip("\r\n").split("\r\n")
            names = {name.lower(): value.strip() for name, _, value in (header.partition(":") for header in headers)}
            if "100-continue" in names.get("expect", "").lower():
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                await writer.drain()
            body = await reader.readexactly(int(names.get("content-length", "0")))
            held = await self._maybe_hold(line)
            kept = [header for header in headers if header.split(":")[0].lower() not in {"expect", "connection"}]
            answer = await self._forward("\r\n".join([line, *kept, "Connection: close", "", ""]).encode("latin-1") + body)
            if held is not None:
                held.answer = answer.split(b"\r\n", 1)[0].decode("latin-1")
                held.delivered.set()
            writer.write(answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    async def _maybe_hold(self, line: str) -> Held | None:
        if self._wanted is None or not self._wanted[0](line):
            return None
        held = self._wanted[1]
        self._wanted = None
        held.line = line
        held.arrived.set()
        while not held.deliver.is_set():
            await asyncio.sleep(0.05)
        return held

    async def _forward(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*self._server)
        try:
            writer.write(request)
            await writer.drain()
            return await reader.read(-1)
        finally:
            writer.close()
