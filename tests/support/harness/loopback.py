"""Traffic on the loopback interface: the payloads of TCP, separately for each direction of a
connection, as a neighbour on the network sees them.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import defaultdict
from types import TracebackType

_ALL = 0x0003
"""ETH_P_ALL."""
_OUTGOING = 4
"""PACKET_OUTGOING: on loopback each packet is seen twice, as sent and as received."""


class Sniffer:
    """Collects while it is entered. Needs root."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 1 << 28)  # SO_RCVBUFFORCE: nothing is dropped
        self._socket.settimeout(0.2)
        self._socket.bind(("lo", 0))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.flows: dict[tuple[int, int], bytearray] = defaultdict(bytearray)
        """Bytes by ports, from and to, in the order in which they were sent."""

    def __enter__(self) -> Sniffer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(10)
        self._socket.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                packet, (_, _, kind, *_) = self._socket.recvfrom(1 << 17)
            except TimeoutError:
                continue
            if kind == _OUTGOING:
                self._take(packet[14:])

    def _take(self, packet: bytes) -> None:
        if len(packet) < 20 or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            return
        size = struct.unpack("!H", packet[2:4])[0] or len(packet)
        segment = packet[(packet[0] & 15) * 4 : size]
        source, target = struct.unpack("!HH", segment[:4])
        self.flows[source, target] += segment[(segment[12] >> 4) * 4 :]

    def carried(self, text: bytes) -> set[tuple[int, int]]:
        """Ports of the flows that have this text in them."""
        return {ports for ports, content in self.flows.items() if text in content}
