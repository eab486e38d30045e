"""``python -m hudi_operator.checkup``: does a release answer? The pod of ``helm test`` runs it.

It asks over the network, without any right: each pod behind an ``http://`` URL whether it is ready,
and each ``https://`` URL for a certificate of the authority that pods of tables are told. A URL
that does not answer is asked again until the time is over: names and NetworkPolicies need a moment.
"""

from __future__ import annotations

import argparse
import http.client
import socket
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from urllib.parse import SplitResult, urlsplit

ASK_SECONDS = 5.0
"""For one answer."""
AGAIN_SECONDS = 1.0


def addresses(url: SplitResult) -> list[str]:
    """All addresses of the name. Raises OSError when it is not known."""
    found = socket.getaddrinfo(url.hostname, url.port, type=socket.SOCK_STREAM)
    return sorted({str(address[0]) for *_, address in found})


def ready(url: SplitResult) -> str:
    """Say how many pods answered that they are ready.

    Raises OSError when one of them does not answer, and ValueError with its answer when that is
    another one.
    """
    asked = addresses(url)
    for address in asked:
        connection = http.client.HTTPConnection(address, url.port, timeout=ASK_SECONDS)
        try:
            connection.request("GET", url.path)
            answer = connection.getresponse()
            text = answer.read(500).decode("utf-8", "replace").strip()
        except (OSError, http.client.HTTPException) as error:
            raise OSError(f"{address}: {error}") from error
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise ValueError(f"{address} answers {answer.status} {text!a}")
    return f"{len(asked)} ready"


def trusted(url: SplitResult, authority: str) -> str:
    """Say when the certificate that is shown for this name, as gRPC asks for it, ends.

    Raises OSError when there is no connection, or when the certificate is not one of the authority
    in this file for this name.
    """
    context = ssl.create_default_context(cafile=authority)
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection((url.hostname, url.port or 443), timeout=ASK_SECONDS) as connection,
        context.wrap_socket(connection, server_hostname=url.hostname) as secured,
    ):
        shown = secured.getpeercert() or {}
    return f"certificate until {shown.get('notAfter')}"


def checked(urls: Sequence[str], authority: str, *, seconds: float, say: Callable[[str], None]) -> bool:
    """Ask each URL until it answers; False: one has not, within these seconds."""
    wrong = dict.fromkeys(urls, "")
    until = time.monotonic() + seconds
    while True:
        for url in list(wrong):
            parts = urlsplit(url)
            try:
                told = ready(parts) if parts.scheme == "http" else trusted(parts, authority)
            except (OSError, ValueError) as error:
                wrong[url] = f"{type(error).__name__}: {error}"
            else:
                say(f"ok      {url}: {told}")
                del wrong[url]
        if not wrong or time.monotonic() >= until:
            break
        time.sleep(AGAIN_SECONDS)
    for url, why in wrong.items():
        say(f"FAILED  {url}: {why}")
    return not wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="hudi_operator.checkup", description=__doc__)
    parser.add_argument("--ca", required=True, help="file with the authority of https:// URLs")
    parser.add_argument("--seconds", type=float, default=60, help="how long to ask again (default: 60)")
    parser.add_argument("url", nargs="+", help="http://HOST:PORT/PATH or https://HOST:PORT")
    given = parser.parse_args(arguments)
    return 0 if checked(given.url, given.ca, seconds=given.seconds, say=lambda text: print(text, flush=True)) else 1


if __name__ == "__main__":
    sys.exit(main())
