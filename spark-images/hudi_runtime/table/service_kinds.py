"""The actions on the timeline that table services are executed from. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_contract.words import Service

#: Actions of pending instants that are executed again, never rolled back away, and the service that does it.
SERVICE_ACTIONS: Mapping[str, Service] = {"compaction": Service.COMPACTION, "clustering": Service.CLUSTERING, "clean": Service.CLEAN}
