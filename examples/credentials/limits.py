"""Time limits before an S3 server that has none: every request ends, whatever its client does.

    python limits.py --listen 0.0.0.0:9000 --to 127.0.0.1:9001 --seconds 60

A server checks credentials when a request begins. versitygw then waits for the rest of the body
without limit: a client that was paused in the middle of an upload completes it an hour later, with
credentials that are revoked meanwhile. Here a connection ends when

* the client has sent nothing for SECONDS, or
* SECONDS have passed since it began to send and the server has not answered.

An answer `100 Continue` comes between: a request ends within 3 x SECONDS. That is what
`requestSeconds` of the operator must be at least.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import time

PIECE = 65536


class Limits:
    """Both directions of one connection."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        now = time.monotonic()
        self.heard = now
        """When the client has last sent something."""
        self.since: float | None = None
        """Since when the server owes an answer; None: it owes none."""

    def client_sent(self) -> None:
        """Bytes of the client."""
        self.heard = time.monotonic()
        self.since = self.heard if self.since is None else self.since

    def server_sent(self) -> None:
        """Bytes of the server."""
        self.since = None

    def over(self) -> bool:
        """Whether the connection must end."""
        now = time.monotonic()
        return now - self.heard > self._seconds or (self.since is not None and now - self.since > self._seconds)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: Limits, *, client: bool) -> None:
    while piece := await reader.read(PIECE):
        (limits.client_sent if client else limits.server_sent)()
        if limits.over():
            return
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
