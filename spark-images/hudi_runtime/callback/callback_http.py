"""One HTTP request to a receiver of commits, with limits.

Time, addresses, no redirects, nothing secret in an error.

The URL is user input. The request leaves from the agent's pod, in the user's own namespace and
under its network policies. It never goes to loopback and link-local addresses or to a cloud's
metadata service, whatever the name resolves to at that moment. Other addresses of the pod and of
its node are addresses as any: network policies are about them.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from hudi_contract.environment import CALLBACK_DIR, CALLBACK_KEYS
from hudi_runtime.process.addresses import Address, NotResolved, Refused, connected, forbidden, resolved
from hudi_runtime.process.errors import first_line

SECRET_FOLDER = Path(CALLBACK_DIR)
TOKEN, HEADERS, CA = CALLBACK_KEYS
_LIMIT = 16384
_HEADERS = 32
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_VALUE = re.compile(r"[\x20-\x7e]{1,8192}")
_OURS = frozenset(
    {
        "host",
        "content-type",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "user-agent",
    }
)


class Undelivered(Exception):
    """The receiver has not answered 2xx.

    `reason` is one word; the text contains neither the URL's path nor any part of the Secret
    or the answer.
    """

    def __init__(self, reason: str, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after = retry_after


@dataclass(frozen=True)
class Credentials:
    """The content of the Secret: request headers, and the CA file (None: the CAs of the image)."""

    headers: tuple[tuple[str, str], ...] = ()
    ca: Path | None = None


def credentials(folder: Path) -> Credentials:
    """Read the Secret's files again, so that a change applies from the next try on.

    Raises Undelivered when the Secret cannot be used.
    """
    token, lines = _file(folder / TOKEN), _file(folder / HEADERS)
    ca = folder / CA if (folder / CA).is_file() else None
    if not token and not lines and ca is None:
        raise Undelivered(
            "SecretMissing",
            f"the Secret of commitCallback.secretRef does not exist, or has none of the keys {TOKEN}, {HEADERS}, {CA}",
        )
    headers = [_header(number, line) for number, line in enumerate(lines.splitlines(), 1) if line.strip()]
    if token:
        headers.append(("Authorization", f"Bearer {token}"))
    names = [name.lower() for name, _ in headers]
    if len(headers) > _HEADERS:
        raise Undelivered("SecretInvalid", f"key {HEADERS} of the Secret has more than {_HEADERS} lines")
    for name in names:
        if name in _OURS:
            raise Undelivered("SecretInvalid", f"key {HEADERS} of the Secret sets {name}, which cannot be set")
        if names.count(name) > 1:
            raise Undelivered("SecretInvalid", f"the Secret sets {name} twice")
    if any(not _VALUE.fullmatch(value) for _, value in headers):
        raise Undelivered(
            "SecretInvalid",
            f"keys {TOKEN} and {HEADERS} of the Secret may have printable ASCII characters only, 8192 in a value",
        )
    return Credentials(tuple(headers), ca)


def _file(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip() if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise Undelivered(
            "SecretInvalid", f"key {path.name} of the Secret cannot be read: {type(error).__name__}"
        ) from error
    if len(text) > _LIMIT:
        raise Undelivered("SecretInvalid", f"key {path.name} of the Secret has more than {_LIMIT} characters")
    return text


def _header(number: int, line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not _NAME.fullmatch(name.strip()):
        raise Undelivered("SecretInvalid", f"line {number} of key {HEADERS} of the Secret is not `Name: value`")
    return name.strip(), value.strip()


class Sender:
    """Posts to one URL; used by one thread, `abort` by any.

    `timeout` is the limit of a whole request in seconds, including a slow answer.
    """

    def __init__(
        self, url: str, *, timeout: float, folder: Path | None, refused: Callable[[Address], bool] = forbidden
    ) -> None:
        """`folder`: files of the Secret; None: no credentials are sent.

        `refused`: addresses that are never connected to.
        """
        parts = urlsplit(url)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._timeout = timeout
        self._folder = folder
        self._refused = refused
        self._socket: socket.socket | None = None
        self._aborted = False

    def post(self, body: bytes, content_type: str) -> None:
        """Send `body`; returns when the receiver has answered 2xx. Raises Undelivered otherwise."""
        known = credentials(self._folder) if self._folder is not None else Credentials()
        late = threading.Event()
        deadline = time.monotonic() + self._timeout
        timer = threading.Timer(self._timeout, self._give_up, (late,))
        timer.daemon = True
        timer.start()
        try:
            self._exchange(body, content_type, known, deadline, late)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._explained(error, known, late=late.is_set() or isinstance(error, TimeoutError)) from None
        finally:
            timer.cancel()
            self._shut()

    def abort(self) -> None:
        """End the running request, and begin no other."""
        self._aborted = True
        self._shut()

    def _give_up(self, late: threading.Event) -> None:
        late.set()
        self._shut()

    def _shut(self) -> None:
        found, self._socket = self._socket, None
        if found is not None:
            with contextlib.suppress(OSError):  # no longer connected
                found.shutdown(socket.SHUT_RDWR)
            found.close()

    def _exchange(
        self, body: bytes, content_type: str, known: Credentials, deadline: float, late: threading.Event
    ) -> None:
        context = ssl.create_default_context(cafile=str(known.ca) if known.ca else None) if self._secure else None
        self._socket = connected = self._connect(deadline)
        if context is not None:
            self._socket = wrapped = context.wrap_socket(
                connected, server_hostname=self._host, do_handshake_on_connect=False
            )
            wrapped.do_handshake()
            connected = wrapped
        connection = (http.client.HTTPSConnection if self._secure else http.client.HTTPConnection)(
            self._host, self._port
        )
        connection.sock = connected
        if self._aborted or late.is_set():
            raise TimeoutError  # the abort came before the socket existed
        headers = {
            "Content-Type": content_type,
            "User-Agent": "hudi-operator",
            "Connection": "close",
            **dict(known.headers),
        }
        connection.request("POST", self._target, body=body, headers=headers)
        answer = connection.getresponse()
        if self._aborted or late.is_set():
            raise TimeoutError  # aborted within the headers of the answer
        if 200 <= answer.status < 300:
            return
        if 300 <= answer.status < 400:
            raise Undelivered(
                f"HTTP{answer.status}", f"{self._host} answered {answer.status}: redirects are not followed"
            )
        after = answer.getheader("Retry-After") or ""
        raise Undelivered(
            f"HTTP{answer.status}",
            f"{self._host} answered {answer.status}",
            retry_after=float(after) if after.isdecimal() else 0.0,
        )

    def _connect(self, deadline: float) -> socket.socket:
        """Connect to an address that was checked."""
        try:
            found = resolved(self._host, self._port, refused=self._refused)
        except NotResolved as error:
            raise Undelivered("NameNotResolved", str(error)) from error
        except Refused as error:
            raise Undelivered("AddressRefused", str(error)) from error
        return connected(found, lambda: deadline - time.monotonic())

    def _explained(self, error: Exception, known: Credentials, *, late: bool) -> Undelivered:
        if self._aborted:
            return Undelivered("Aborted", "the agent is stopping")
        if late:
            return Undelivered("Timeout", f"{self._host} has not answered within {self._timeout:g} s")
        if isinstance(error, ssl.SSLError):
            said = getattr(error, "verify_message", "") or error.reason or "handshake failed"
            return Undelivered("TLSFailed", f"TLS with {self._host}: {first_line(str(said), limit=200)}")
        if isinstance(error, OSError) and error.strerror:
            return Undelivered("ConnectionFailed", f"{self._host} port {self._port}: {error.strerror}")
        # The text of other errors may quote the request or the answer.
        return Undelivered("ConnectionFailed", f"{self._host} port {self._port}: {type(error).__name__}")
