"""A TCP connection's way between two processes, which a test cuts or holds up."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class Wire:
    """Forwards connections to ``host``:``port``; enter it to begin."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._flows = threading.Event()
        self._flows.set()
        self._cut = False
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Wire:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        self._flows.set()
        self._server.close()

    def cut(self) -> None:
        """End all connections, and each new one at once."""
        self._cut = True
        with self._lock:
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def hold(self) -> None:
        """Bytes stay where they are until it is mended; connections stay open."""
        self._flows.clear()

    def leads_to(self, port: int) -> None:
        """Each connection that is new from now on goes to another port of that host."""
        self._to = (self._to[0], port)

    def mend(self) -> None:
        """Everything goes through again."""
        self._cut = False
        self._flows.set()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            if self._cut:
                near.close()
                continue
            try:
                far = socket.create_connection(self._to)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._sockets |= {near, far}
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._sockets -= {source, sink}
