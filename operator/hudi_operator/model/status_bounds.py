"""What the CRDs hold of a status, and a status that fits.

Most of a status is told by pods and by etcd. One value that the API server refuses would keep the
whole status of its object from being written, and with it all that follows from it. A test compares
these bounds with the CRDs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hudi_contract import naming
from hudi_operator.model.conditions import from_rfc3339

JsonDict = dict[str, Any]
IDENTIFIER = 64
"""A text whose bound is at most this is an identifier or a time: one that is too long is left out.
Longer texts are for people, or may be cut.
"""
MOST_INT32 = (1 << 31) - 1
MOST_INT64 = (1 << 63) - 1
_MOST = {"int32": MOST_INT32, "int64": MOST_INT64}
_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


def _text(most: int, least: int = 0) -> JsonDict:
    return {"type": "string", "maxLength": most, **({"minLength": least} if least else {})}


def _one_of(*words: str) -> JsonDict:
    return {"type": "string", "enum": list(words)}


def _list(most: int, item: JsonDict) -> JsonDict:
    return {"type": "array", "maxItems": most, "items": item}


def _object(fields: JsonDict, required: tuple[str, ...] = ()) -> JsonDict:
    return {"type": "object", "properties": fields, **({"required": list(required)} if required else {})}


_MOMENT: JsonDict = {"type": "string", "format": "date-time"}
_FLAG: JsonDict = {"type": "boolean"}
_COUNT32: JsonDict = {"type": "integer", "format": "int32", "minimum": 0}
_COUNT64: JsonDict = {"type": "integer", "format": "int64", "minimum": 0}
_FROM_ONE: JsonDict = {"type": "integer", "format": "int32", "minimum": 1}
_NUMBER32: JsonDict = {"type": "integer", "format": "int32"}
_SERVICE = _object(
    {
        "lastInstant": _text(32),
        "lastTime": _MOMENT,
        "outcome": _text(32),
        "message": _text(1024),
        "failures": _COUNT32,
        "nextTime": _MOMENT,
        "windowOpens": _MOMENT,
        "windowCloses": _MOMENT,
        "commitsUntilNext": _COUNT32,
    }
)
_CONDITIONS = _list(
    32,
    _object(
        {
            "type": _text(64),
            "status": _one_of("True", "False", "Unknown"),
            "observedGeneration": _COUNT64,
            "reason": _text(128, least=1),
            "message": _text(4096),
            "lastTransitionTime": _MOMENT,
        },
        required=("type", "status", "reason", "message", "lastTransitionTime"),
    ),
)

TABLE = _object(
    {
        "observedGeneration": _COUNT64,
        "conditions": _CONDITIONS,
        "tableId": _text(32),
        "agent": _text(63),
        "writersSummary": _text(64),
        "blockedBy": _text(512),
        "timeline": _object(
            {
                "lastInstant": _text(32),
                "lastCompletionTime": _text(32),
                "lastCommitTime": _MOMENT,
                "lowestPendingRequestedTime": _text(32),
                "pendingCount": _COUNT32,
                "activeLength": _COUNT32,
                "pending": _list(
                    20,
                    _object(
                        {
                            "instant": _text(32),
                            "action": _text(32),
                            "state": _text(16),
                            "owner": _text(317),
                        },
                        required=("instant",),
                    ),
                ),
                "commits": _list(
                    10,
                    _object(
                        {
                            "instant": _text(32),
                            "action": _text(32),
                            "completionTime": _text(32),
                            "writer": _text(317),
                            "attempt": _text(317),
                            "records": _COUNT64,
                        },
                        required=("instant",),
                    ),
                ),
                "foreign": _list(
                    20,
                    _object(
                        {
                            "instant": _text(32),
                            "action": _text(32),
                            "completionTime": _text(32),
                        },
                        required=("instant",),
                    ),
                ),
            }
        ),
        "readCost": _object(
            {
                "baseBytes": _COUNT64,
                "logBytes": _COUNT64,
                "logToBasePercent": _COUNT64,
                "fileGroups": _COUNT64,
                "fileGroupsWithLogs": _COUNT64,
            }
        ),
        "writers": _object(
            {
                "running": _COUNT32,
                "queued": _COUNT32,
                "suspended": _COUNT32,
                "finished": _COUNT32,
            }
        ),
        "services": _object(
            {
                "clean": _SERVICE,
                "archive": _SERVICE,
                "compaction": _SERVICE,
                "clustering": _SERVICE,
                "ttl": _SERVICE,
            }
        ),
        "metadataTable": _object(
            {
                "wanted": _text(128),
                "outcome": _text(32),
                "partitions": _list(16, _text(64)),
                "message": _text(1024),
                "failures": _COUNT32,
                "lastTime": _MOMENT,
            },
            required=("wanted", "outcome"),
        ),
        "commitCallback": _object(
            {
                "delivered": _COUNT64,
                "undelivered": _COUNT32,
                "undeliveredSince": _MOMENT,
                "failures": _COUNT32,
                "archivedUndelivered": _COUNT64,
                "lastInstant": _text(32),
                "lastCompletionTime": _text(32),
                "lastDeliveryTime": _MOMENT,
                "message": _text(512),
            }
        ),
        "catalog": _object(
            {
                "database": _text(128),
                "table": _text(128),
                "lastInstant": _text(32),
                "lastCompletionTime": _text(32),
                "lastSyncTime": _MOMENT,
                "failures": _COUNT32,
                "message": _text(512),
            },
            required=("database", "table"),
        ),
        "bootstrap": _object(
            {
                "outcome": _text(32),
                "mode": _text(32),
                "source": _text(1024),
                "beginTime": _MOMENT,
                "endTime": _MOMENT,
                "instant": _text(32),
                "completionTime": _text(32),
                "records": _COUNT64,
                "files": _COUNT64,
                "bytes": _COUNT64,
                "failures": _COUNT32,
                "message": _text(1024),
            },
            required=("outcome",),
        ),
        "savepoints": _list(
            16,
            _object(
                {
                    "name": _text(63),
                    "outcome": _text(32),
                    "instant": _text(32),
                    "completionTime": _text(32),
                    "boundaryCompletionTime": _text(32),
                    "time": _MOMENT,
                    "message": _text(1024),
                },
                required=("name", "outcome"),
            ),
        ),
        "restore": _object(
            {
                "nonce": _text(64),
                "savepoint": _text(63),
                "outcome": _text(32),
                "instant": _text(32),
                "completionTime": _text(32),
                "boundaryCompletionTime": _text(32),
                "undone": _COUNT32,
                "undoneInstants": _list(20, _text(32)),
                "beginTime": _MOMENT,
                "endTime": _MOMENT,
                "failures": _COUNT32,
                "message": _text(1024),
            },
            required=("nonce", "savepoint", "outcome"),
        ),
        "settling": _list(
            20,
            _object(
                {
                    "incarnation": _text(64),
                    "attempt": _text(317),
                    "pod": _text(253),
                    "phase": _one_of(
                        "Fenced", "Terminating", "Draining", "Unlocked", "RollingBack", "Swept", "Settled"
                    ),
                    "reason": _text(128),
                    "since": _MOMENT,
                    "waitingFor": _text(1024),
                },
                required=("incarnation", "phase"),
            ),
        ),
        "lock": _object(
            {
                "owner": _text(64),
                "attempt": _text(317),
                "since": _MOMENT,
            }
        ),
    }
)
WRITER = _object(
    {
        "observedGeneration": _COUNT64,
        "conditions": _CONDITIONS,
        "state": _text(64),
        "mode": _one_of("Once", "Scheduled", "Streaming"),
        "attempt": _COUNT32,
        "attempts": _list(
            64,
            _object(
                {
                    "number": _FROM_ONE,
                    "run": _FROM_ONE,
                    "generation": _COUNT64,
                    "executors": _COUNT32,
                    "pod": _text(253),
                    "podUID": _text(64),
                    "incarnation": _text(64),
                    "class": _text(64),
                    "exitCode": _NUMBER32,
                    "message": _text(4096),
                    "startTime": _MOMENT,
                    "endTime": _MOMENT,
                    "gated": _FLAG,
                    "ungatedTime": _MOMENT,
                    "records": _COUNT64,
                    "advanced": _FLAG,
                    "conflicts": _COUNT32,
                    "instants": _list(20, _text(32)),
                },
                required=("number",),
            ),
        ),
        "earlierAttempts": _object(
            {
                "records": _COUNT64,
                "conflicts": _COUNT32,
            }
        ),
        "lastCommit": _object(
            {
                "instant": _text(32),
                "completionTime": _text(32),
                "time": _MOMENT,
            }
        ),
        "records": _COUNT64,
        "conflicts": _COUNT32,
        "recentConflicts": _list(
            10,
            _object(
                {
                    "instant": _text(32),
                    "retriedAs": _text(32),
                    "with": _text(317),
                    "yielded": _FLAG,
                    "fileGroups": _list(5, _text(512)),
                    "time": _MOMENT,
                }
            ),
        ),
        "nextRetryTime": _MOMENT,
        "schedule": _object(
            {
                "cron": _text(128),
                "timeZone": _text(64),
                "since": _MOMENT,
            }
        ),
        "lastScheduleTime": _MOMENT,
        "nextScheduleTime": _MOMENT,
        "queue": _object(
            {
                "position": _FROM_ONE,
                "since": _MOMENT,
                "blockedBy": _text(512),
            }
        ),
        "executedNonce": _text(64),
    }
)

OF_KIND: Mapping[str, JsonDict] = {naming.TABLE_KIND: TABLE, naming.WRITER_KIND: WRITER}


_NOTHING = object()


def fitted(kind: str, status: JsonDict) -> JsonDict:
    """The status as far as the CRD of ``kind`` holds it; one that fits is returned as it is.

    Numbers are moved into their bounds, texts for people are cut, lists lose their last items. What
    cannot be made to fit is left out, and so is an object that lacks a required field then. A field
    that this version does not know stays.
    """
    found = _fit(status, OF_KIND[kind])
    return found if isinstance(found, dict) else {}


def count32(value: int) -> int:
    """A number from 0 to the largest that the CRDs' 32-bit fields hold."""
    return max(0, min(value, MOST_INT32))


def count64(value: int) -> int:
    """A number from 0 to the largest that the CRDs' 64-bit fields hold."""
    return max(0, min(value, MOST_INT64))


def _fit(value: Any, bounds: JsonDict) -> Any:
    match bounds["type"]:
        case "object":
            return _fit_object(value, bounds)
        case "array":
            if not isinstance(value, list | tuple):
                return _NOTHING
            items = (_fit(item, bounds["items"]) for item in value)
            return [item for item in items if item is not _NOTHING][: bounds["maxItems"]]
        case "integer":
            if not isinstance(value, int) or isinstance(value, bool):
                return _NOTHING
            most = _MOST[bounds["format"]]
            return max(bounds.get("minimum", -most - 1), min(value, most))
        case "boolean":
            return value if isinstance(value, bool) else _NOTHING
        case _:
            return _fit_text(value, bounds)


def _fit_object(value: Any, bounds: JsonDict) -> Any:
    if not isinstance(value, Mapping):
        return _NOTHING
    fields = bounds["properties"]
    known = ((name, _fit(one, fields[name]) if name in fields else one) for name, one in value.items())
    found = {name: one for name, one in known if one is not _NOTHING}
    return found if all(name in found for name in bounds.get("required", ())) else _NOTHING


def _fit_text(value: Any, bounds: JsonDict) -> Any:
    if not isinstance(value, str):
        return _NOTHING
    text = value.encode("utf-8", "replace").decode()
    if "enum" in bounds:
        return text if text in bounds["enum"] else _NOTHING
    if bounds.get("format") == "date-time":
        return text if _WHEN.fullmatch(text) and from_rfc3339(text) is not None else _NOTHING
    if len(text) < bounds.get("minLength", 0):
        return _NOTHING
    most = bounds["maxLength"]
    return text if len(text) <= most else text[:most] if most > IDENTIFIER else _NOTHING
