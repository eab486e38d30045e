"""The timeline actions of table services. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_contract.words import Service

#: Actions of pending instants that are executed again and never removed by a rollback, with the
# service that executes them.
SERVICE_ACTIONS: Mapping[str, Service] = {
    "compaction": Service.COMPACTION,
    "clustering": Service.CLUSTERING,
    "clean": Service.CLEAN,
}
