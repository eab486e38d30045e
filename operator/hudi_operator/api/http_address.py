"""Rules for URLs of HTTP servers that a spec names, beyond their form.

The CRDs have the same rules. Whoever sends a request checks the addresses of the name once more.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address

from hudi_operator.api.addresses import MOST_PORT, NEVER, NOTHING_IS_SENT, PORT

_WITH_PORT = re.compile("https?://[^/?]*:([0-9]+)(?:[/?].*)?")
_IN_BRACKETS = re.compile(r"https?://\[([^]]*)].*")
_OF_THE_CLUSTER = re.compile("http://[a-z0-9-]+[.][a-z0-9-]+[.]svc([.]cluster[.]local)?(:[0-9]+)?([/?].*)?")
_NEVER = re.compile(
    f"https?://({NEVER}"
    r"|\[::1?]|\[fe[89ab][0-9a-f]:.*]|\[.*:(127|169[.]254)[.].*])(:[0-9]+)?([/?].*)?",
    re.IGNORECASE,
)


def problem(url: str) -> str:
    """The rule that a URL breaks; empty: none."""
    address = _IN_BRACKETS.fullmatch(url)
    try:
        IPv6Address(address[1] if address is not None else "::1")
    except ValueError:
        return "what stands in brackets is no IPv6 address"
    port = _WITH_PORT.fullmatch(url)
    if port is not None and not 0 < int(port[1]) <= MOST_PORT:
        return PORT
    if url.startswith("http:") and not _OF_THE_CLUSTER.fullmatch(url):
        return "http is for Services of the cluster (http://NAME.NAMESPACE.svc or .svc.cluster.local); use https"
    return NOTHING_IS_SENT if _NEVER.fullmatch(url) else ""
