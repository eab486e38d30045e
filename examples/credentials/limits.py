"""Time limits before an S3 server that has none: every request ends, whatever its client does.

    python limits.py --listen 0.0.0.0:9000 --to 127.0.0.1:9001 --seconds 60

A server checks credentials when a request begins. versitygw then waits for the rest of the body
without limit: a client that was paused in the middle of an upload completes it an hour later, with
credentials that are revoked meanwhile. Here a connection ends when

* nothing has been sent for SECONDS, in neither direction, or
* SECONDS have passed since it began to send and the server has not answered.

Requests that only read (GET, HEAD) may last: a client may take what it reads slowly. An answer
`100 Continue` comes between: a request ends within 3 x SECONDS. That is what
`requestSeconds` of the operator must be at least.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import time

PIECE = 65536
READS = re.compile(rb"(GET|HEAD) /[^ ]* HTTP/1\.[01]\r\n")
"""How a request begins that changes nothing."""


class Limits:
    """Both directions of one connection."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        now = time.monotonic()
        self.heard = now
        """When something was last sent, in either direction."""
        self.since: float | None = None
        """Since when the server owes an answer; None: it owes none."""
        self.reads = False
        """Whether the last request only reads."""

    def client_sent(self, piece: bytes) -> None:
        """Bytes of the client."""
        self.reads = self.since is None and READS.match(piece) is not None
        self.heard = time.monotonic()
        self.since = self.heard if self.since is None else self.since

    def server_sent(self) -> None:
        """Bytes of the server."""
        self.heard = time.monotonic()
        self.since = None

    def over(self) -> bool:
        """Whether the connection must end."""
        if self.reads:
            return False
        now = time.monotonic()
        return now - self.heard > self._seconds or (self.since is not None and now - self.since > self._seconds)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: Limits, *, client: bool) -> None:
    while piece := await reader.read(PIECE):
        if limits.over():
            return  # this process itself may have stood still
        if client:
            limits.client_sent(piece)
        else:
            limits.server_sent()
        writer.write(piece)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()


async def _watch(limits: Limits) -> None:
    while not limits.over():
        await asyncio.sleep(0.2)


async def serve(listen: tuple[str, int], to: tuple[str, int], seconds: float) -> None:
    """Serve until cancelled."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        limits = Limits(seconds)
        upstream: asyncio.StreamWriter | None = None
        tasks: list[asyncio.Task[None]] = []
        try:
            answers, upstream = await asyncio.open_connection(*to)
            tasks = [
                asyncio.create_task(_copy(reader, upstream, limits, client=True)),
                asyncio.create_task(_copy(answers, writer, limits, client=False)),
                asyncio.create_task(_watch(limits)),
            ]
            await asyncio.wait(tasks[1:], return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for each in (writer, upstream):
                if each is not None:
                    each.transport.abort() if limits.over() else each.close()

    server = await asyncio.start_server(connected, *listen)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description="Time limits before an S3 server")
    parser.add_argument("--listen", required=True)
    parser.add_argument("--to", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    places = [(host, int(port)) for host, _, port in (each.rpartition(":") for each in (options.listen, options.to))]
    asyncio.run(serve(places[0], places[1], options.seconds))


if __name__ == "__main__":
    main()
