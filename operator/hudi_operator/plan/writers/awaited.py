"""Reasons for which a writer waits, and whether their end comes as an event.

Events are: a HudiTable or a HudiWriter of this table, the defaults of its namespace, a pod of the
operator's, a change of the table's keys in etcd other than lock, queue and instants, and the end of
a lease. While each writer of a table waits for such an event alone, the table need not be looked
at.

The end of any other wait is polled: Secrets, ServiceAccounts, nodes, namespaces and the operator's
own rights are not watched, and an event of another HudiTable leads to no look at this one. A reason
that is in neither list, such as one that an agent reports, is polled, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_contract.words import WriterState
from hudi_operator.model import conditions
from hudi_operator.model.status import attempt_entries
from hudi_operator.plan.core import launch

EVENTS: Mapping[str, str] = {
    "MaxWriters": "an attempt ends: its pod, its keys, and its HudiWriter's status",
    "SingleWriter": "an incarnation leaves or is fenced: its keys",
    "OverlappingPartitions": "an attempt of the other writer ends, or a HudiWriter is edited",
    "BackOff": "nothing but its time, which status.nextRetryTime tells",
    "InvalidSpec": "the HudiWriter or its HudiTable is edited",
    launch.INVALID_DEFAULTS: "the ConfigMap with the defaults is edited, or the HudiWriter",
    "OptionNotAllowed": "the HudiWriter is edited; with another configuration every table is looked at",
    launch.IMAGE_NOT_ALLOWED: "the HudiWriter is edited; with another configuration every table is looked at",
    launch.FENCING_MODE_NOT_POSSIBLE: "the HudiWriter or its HudiTable is edited",
}
"""Reasons of waits that end with an event, or at a time that is in status; with that event."""

POLLED: Mapping[str, str] = {
    "PreviousAttempt": "its death may be proven by a node, or by the time since it was seen",
    "TableStalled": "a Secret, another HudiTable or etcd itself may have to change",
    "TableDeleted": "a namespace that is being deleted tells nobody",
    "TableNotReady": "its agent may have to be replaced, because a node is lost",
    "TableBootstrap": "its agent may have to be replaced, because a node is lost",
    "TableRestore": "its agent may have to be replaced, because a node is lost",
    "TableSavepoint": "its agent may have to be replaced, because a node is lost",
    "TableMetadata": "its agent may have to be replaced, because a node is lost",
    "TableChanging": "runs that do not end are stopped after some time",
    "SourceNotFound": "another HudiTable",
    "SourceNotReady": "another HudiTable",
    "SourceNotAllowed": "another HudiTable",
    "PathNotAllowed": "another HudiTable, in whose folder the event log would be",
    launch.REFERENCE_NOT_ALLOWED: "a Secret or a ServiceAccount",
    "AwaitingRights": "the operator's right to read Secrets",
    "PlanningFailed": "nobody knows",
}
"""Reasons of waits that end without an event; with the cause of their end."""

_CONDITION = {
    WriterState.WAITING: "Admitted",
    WriterState.RETRYING: "Admitted",
    WriterState.STALLED: WriterState.STALLED.value,
}
"""States of writers that start nothing now, and the condition with the reason."""


def waits(status: Mapping[str, Any]) -> bool:
    """Whether a HudiWriter of this status starts nothing now, although it would."""
    return status.get("state") in _CONDITION


def comes_as_event(status: Mapping[str, Any]) -> bool:
    """True when the end of this writer's wait comes as an event, or at a time that is in status.

    False for a writer whose spec cannot be read, while one of its attempts has not ended.
    """
    found = conditions.find(dict(status), _CONDITION[WriterState(status["state"])])
    going_on = any(not entry.class_ for entry in attempt_entries(status))
    return found.get("reason") in EVENTS and not going_on
