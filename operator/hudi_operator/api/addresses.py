"""Addresses in a spec to which nothing is sent: what `kubectl apply` can know of them.

The pod that connects checks the addresses of a name again (``hudi_runtime.process.addresses``).
"""

from __future__ import annotations

MOST_PORT = 65_535
PORT = f"its port must be between 1 and {MOST_PORT}"
NEVER = r"(.*[.])?localhost|127[.].*|0[.].*|0|169[.]254[.].*|metadata|metadata[.]google[.]internal"
"""Regular expression of such hosts: names and IPv4; to be compared without regard to case."""
NOTHING_IS_SENT = "nothing is sent to loopback, link-local and metadata addresses"
