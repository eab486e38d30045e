"""hudi-console: arguments, logs, and the process."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import ssl
import sys
from collections.abc import Sequence
from contextlib import suppress

from aiohttp import web

from hudi_console import asking
from hudi_console.cluster import connected
from hudi_console.server import MOST_STREAMS, Pages

LOG = logging.getLogger("hudi_console")
CERTIFICATE_SECONDS = 60.0
"""Interval at which the certificate and the authorities are reread; they may have been renewed."""


class _NoWords(logging.Filter):
    """Reduce aiohttp's log of requests that it cannot read to the type of the error.

    The message quotes the request, and with it a token.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.exc_info[0] if record.exc_info else None
        record.msg, record.args = f"a request is not answered: {kind.__name__ if kind else 'no HTTP'}", ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True


def configure_logging() -> None:
    """Lines to stderr."""
    logging.basicConfig(format="%(asctime)s %(levelname).1s %(message)s", level=logging.INFO, stream=sys.stderr)
    for name in ("aiohttp.server", "aiohttp.web", "aiohttp.client", "aiohttp.internal", "asyncio"):
        logging.getLogger(name).addFilter(_NoWords())


def in_cluster() -> str:
    """The API server that Kubernetes names to every container; empty: this is none."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT_HTTPS", "443")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}" if host else ""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="hudi-console", description="HudiTables and HudiWriters on a web page.")
    made.add_argument("--api-server", default=in_cluster(), metavar="URL", help="default: that of the cluster")
    made.add_argument("--ca-file", default="", metavar="FILE", help="its authorities (default: those of the system)")
    made.add_argument("--address", default="", help="where to listen (default: everywhere)")
    made.add_argument("--port", type=int, default=8080)
    made.add_argument("--tls-cert", default="", metavar="FILE", help="serve https with this certificate")
    made.add_argument("--tls-key", default="", metavar="FILE")
    made.add_argument("--namespaces", default="", help="those of the operator, with commas (default: all)")
    made.add_argument("--max-streams", type=int, default=MOST_STREAMS, help="open pages at once (default: %(default)s)")
    return made


def served(app: web.Application) -> web.AppRunner:
    """The server of an application, without aiohttp's own log of paths and queries."""
    return web.AppRunner(
        app,
        access_log=None,
        keepalive_timeout=75,
        max_field_size=asking.MOST_OF_A_TOKEN + 100,
        # A stream ends with its process: nothing of it is worth waiting for.
        shutdown_timeout=1,
        handler_cancellation=True,
    )


async def serve(given: argparse.Namespace, until: asyncio.Event) -> None:
    """Serve until told to end."""
    namespaces = tuple(one for one in given.namespaces.split(",") if one)
    async with connected(given.api_server, given.ca_file) as cluster:
        app = Pages(cluster, namespaces, given.max_streams).application()
        runner = served(app)
        await runner.setup()
        context = _context(given)
        await web.TCPSite(runner, given.address or None, given.port, ssl_context=context).start()
        (host, port, *_) = runner.addresses[0]
        LOG.info("serving %s://%s:%s for %s", "https" if context else "http", host, port, given.api_server)
        try:
            while not until.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(until.wait(), CERTIFICATE_SECONDS)
                cluster.read_authorities()
                if context is not None:
                    _read(context, given)
        finally:
            await runner.cleanup()


def _context(given: argparse.Namespace) -> ssl.SSLContext | None:
    if not given.tls_cert:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(given.tls_cert, given.tls_key)
    return context


def _read(context: ssl.SSLContext, given: argparse.Namespace) -> None:
    """Reload the certificate; if it cannot be read, the previous one stays."""
    try:
        context.load_cert_chain(given.tls_cert, given.tls_key)
    except (OSError, ssl.SSLError) as error:
        LOG.warning("the certificate %s cannot be read, the one before is served: %s", given.tls_cert, error)


async def _main(given: argparse.Namespace) -> None:
    until = asyncio.Event()
    for one in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(one, until.set)
    await serve(given, until)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    made = parser()
    given = made.parse_args(arguments)
    if bool(given.tls_cert) != bool(given.tls_key):
        made.error("--tls-cert and --tls-key: both or none")
    if not given.api_server.startswith("https://"):
        made.error(f"--api-server {given.api_server!r}: it must be https://HOST:PORT, because tokens go there")
    configure_logging()
    asyncio.run(_main(given))
    return 0


if __name__ == "__main__":
    sys.exit(main())
