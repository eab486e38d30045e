"""The table services, and the actions on the timeline that they are executed from. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping


class Kind(enum.Enum):
    """The services, in the order in which they are looked at; the value is the field of `spec.services`."""

    COMPACTION = "compaction"
    CLUSTERING = "clustering"
    TTL = "ttl"
    CLEAN = "clean"
    ARCHIVE = "archive"


#: Actions of pending instants that are executed again, never rolled back away, and the service that does it.
SERVICE_ACTIONS: Mapping[str, Kind] = {"compaction": Kind.COMPACTION, "clustering": Kind.CLUSTERING, "clean": Kind.CLEAN}
