"""Requests that the console may send to the API server, always with the token of the user.

Paths are built of checked names, never taken from a browser. Of a browser's headers only the token
is forwarded. The only method is GET.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlencode

METHOD = "GET"
MOST_NAMESPACES = 50
MOST_OF_A_TOKEN = 16_384
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_VERSION = re.compile(r"[0-9A-Za-z._-]{0,64}")
OWN_SITES = ("same-origin", "none")
"""Values of Sec-Fetch-Site of our own page, and of what a user has typed."""


class Refused(Exception):
    """A request that is not answered, with HTTP's status and a sentence for the user."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status, self.said = status, said


class Kind(Enum):
    """Readable resources: path of the API, resource, and fixed parts of the selectors."""

    TABLES = ("/apis/hudioperator.io/v1alpha1", "huditables", "", "")
    WRITERS = ("/apis/hudioperator.io/v1alpha1", "hudiwriters", "", "")
    PODS = ("/api/v1", "pods", "hudioperator.io/writer,hudioperator.io/role=driver", "")
    EVENTS_OF_TABLES = ("/api/v1", "events", "", "involvedObject.kind=HudiTable")
    EVENTS_OF_WRITERS = ("/api/v1", "events", "", "involvedObject.kind=HudiWriter")

    @property
    def resource(self) -> str:
        """As the API calls it."""
        return self.value[1]

    @property
    def is_optional(self) -> bool:
        """Whether a page is of use to a user who may not list it."""
        return self not in (Kind.TABLES, Kind.WRITERS)


@dataclass(frozen=True)
class Question:
    """A list of objects.

    ``namespace``: empty: of all namespaces, which is for tables and writers alone. ``name``: the
    object with that name, or the Events about it; empty: every one.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        if self.namespace:
            of_namespace(self.namespace)
        elif self.kind.is_optional or self.name:
            raise Refused(400, f"{self.kind.resource} are asked for within one namespace")
        if self.name:
            of_object(self.name)

    @property
    def path(self) -> str:
        """Path at the API server."""
        group, resource, _, _ = self.kind.value
        return f"{group}/namespaces/{self.namespace}/{resource}" if self.namespace else f"{group}/{resource}"

    def query(self, *, limit: int = 0, more: str = "", watch_from: str | None = None, seconds: int = 0) -> str:
        """The query: a page of the list that begins at ``more``, or a watch from a version on."""
        _, _, labels, fields = self.kind.value
        own = f"{'involvedObject' if fields else 'metadata'}.name={self.name}" if self.name else ""
        selected = {"labelSelector": labels, "fieldSelector": ",".join(filter(None, (fields, own)))}
        given = {name: value for name, value in selected.items() if value}
        if watch_from is not None:
            if not _VERSION.fullmatch(watch_from):
                raise Refused(502, "the API server has given no resourceVersion")
            given |= {"watch": "true", "resourceVersion": watch_from, "allowWatchBookmarks": "true"}
            given["timeoutSeconds"] = str(seconds)
        elif limit:
            given["limit"] = str(limit)
            if more:
                given["continue"] = more
        return urlencode(given)


# ---------------------------------------------------------------- what a browser sends
def of_namespace(given: str) -> str:
    """The name of a namespace."""
    if not _LABEL.fullmatch(given):
        raise Refused(400, f"namespace {given[:80]!r}: it must be a DNS label: lower case letters, digits and '-'")
    return given


def of_namespaces(given: str) -> tuple[str, ...]:
    """Names with commas between them; none: all namespaces."""
    names = tuple(dict.fromkeys(of_namespace(one.strip()) for one in given.split(",") if one.strip()))
    if len(names) > MOST_NAMESPACES:
        raise Refused(400, f"namespace: {len(names)} names: at most {MOST_NAMESPACES} are asked for at once")
    return names


def of_object(given: str) -> str:
    """The name of a HudiTable or HudiWriter."""
    if not _NAME.fullmatch(given) or ".." in given or ".-" in given or "-." in given:
        raise Refused(400, f"name {given[:80]!r}: it must be a DNS subdomain: lower case letters, digits, '-' and '.'")
    return given


def checked_query(given: Sequence[tuple[str, str]], known: Sequence[str]) -> dict[str, str]:
    """The query of a request; each name once, and no other names."""
    found: dict[str, str] = {}
    for name, value in given:
        if name not in known:
            # Not repeated: it may be a secret that was put there by mistake.
            raise Refused(400, f"the query has a name that is none of {', '.join(known) or 'nothing'}")
        if name in found:
            raise Refused(400, f"the query has {name} twice")
        found[name] = value
    if found.get("watch", "false") not in ("true", "false"):
        raise Refused(400, "watch: it must be true or false")
    return found


def token(given: Sequence[str]) -> str:
    """The token of the user, of the headers Authorization of a request."""
    if not given:
        raise Refused(401, "a bearer token is required: Authorization: Bearer TOKEN")
    scheme, _, found = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not _TOKEN.fullmatch(found) or len(found) > MOST_OF_A_TOKEN:
        raise Refused(401, "Authorization: it must be one header with Bearer and a token")
    return found


def passed_on(found: str) -> dict[str, str]:
    """All headers of a request to the API server."""
    return {"Authorization": f"Bearer {found}", "Accept": "application/json", "User-Agent": "hudi-console"}


def from_own_page(method: str, headers: Mapping[str, str]) -> None:
    """Refuse what the page does not send: other methods, and requests of other sites.

    A proxy that signs users in may add their token to whatever their browser sends, also for a page
    of somebody else. That page could not read the answer, so the request is not sent at all.
    """
    if method not in ("GET", "HEAD"):
        raise Refused(405, f"method {method[:16]}: the console only reads")
    site = headers.get("Sec-Fetch-Site", "none")
    if site not in OWN_SITES:
        raise Refused(403, "the request comes from a page of another site")
