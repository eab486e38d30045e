"""``spec.commitCallback``: a receiver that is notified of each commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address

from hudi_contract.assignment import CallbackOrder
from hudi_operator.api.addresses import MOST_PORT, NEVER, NOTHING_IS_SENT, PORT
from hudi_operator.api.fields import NAME, flag, number, text

WHERE = "spec.commitCallback"

_URL = (
    "^https?://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?"
    "(/[A-Za-z0-9._~!$&()*+,;=:@%/-]*)?([?][A-Za-z0-9._~!$&()*+,;=:@%/?-]*)?$"
)
_WITH_PORT = re.compile("https?://[^/?]*:([0-9]+)(?:[/?].*)?")
_IN_BRACKETS = re.compile(r"https?://\[([^]]*)].*")
_OF_THE_CLUSTER = re.compile("http://[a-z0-9-]+[.][a-z0-9-]+[.]svc([.]cluster[.]local)?(:[0-9]+)?([/?].*)?")
_NEVER = re.compile(
    f"https?://({NEVER}"
    r"|\[::1?]|\[fe[89ab][0-9a-f]:.*]|\[.*:(127|169[.]254)[.].*])(:[0-9]+)?([/?].*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Callback:
    """The receiver to which commits are posted.

    ``secret``: name of the Secret with headers, token and CA; empty when there is none.
    """

    url: str = text(required=True, at_least=10, at_most=1024, matches=_URL)
    secret: str = text(at="secretRef.name", unset="", required=True, at_least=1, at_most=253, matches=NAME)
    timeout_seconds: int = number(10, at_least=1, at_most=60)
    table_services: bool = flag(False)
    """Whether compaction, log compaction and clustering are delivered, too."""

    def order(self) -> CallbackOrder:
        """The callback in the agent's assignment."""
        return CallbackOrder(
            url=self.url,
            timeout_seconds=self.timeout_seconds,
            secret=bool(self.secret),
            table_services=self.table_services,
        )


def problem(wanted: Callback | None) -> str:
    """Why nothing is sent to this receiver (field and rule); empty when it is, or there is none.

    The CRD refuses the same. The agent checks the addresses of the name at each request.
    """
    if wanted is None:
        return ""
    address = _IN_BRACKETS.fullmatch(wanted.url)
    try:
        IPv6Address(address[1] if address is not None else "::1")
    except ValueError:
        return f"{WHERE}.url: what stands in brackets is no IPv6 address"
    port = _WITH_PORT.fullmatch(wanted.url)
    if port is not None and not 0 < int(port[1]) <= MOST_PORT:
        return f"{WHERE}.url: {PORT}"
    if wanted.url.startswith("http:") and not _OF_THE_CLUSTER.fullmatch(wanted.url):
        return (
            f"{WHERE}.url: http is for Services of the cluster (http://NAME.NAMESPACE.svc or .svc.cluster.local); "
            "use https"
        )
    if _NEVER.fullmatch(wanted.url):
        return f"{WHERE}.url: {NOTHING_IS_SENT}"
    return ""
