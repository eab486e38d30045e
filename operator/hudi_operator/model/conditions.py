"""Conditions after the kstatus convention.

A list by type, with kept transition times and the observed generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hudi_contract.shape import MAX_MS

JsonDict = dict[str, Any]
MESSAGE_LIMIT = 4096


@dataclass(frozen=True)
class Condition:
    """One condition; ``status`` is ``True``, ``False`` or ``Unknown``."""

    type: str
    status: str
    reason: str
    message: str = ""


def condition(kind: str, value: bool, reason: str, message: str = "") -> Condition:
    """A condition with status True or False."""
    return Condition(kind, "True" if value else "False", reason, message)


def reported(reason: str, *, otherwise: str) -> str:
    """A reason that a pod has reported, where it has the form of one."""
    return reason if reason.isalnum() and len(reason) <= 64 and reason[0].isalpha() else otherwise


def rfc3339(ms: int) -> str:
    """Unix milliseconds in Kubernetes' time format (seconds, UTC); at most the end of year 9999."""
    return datetime.fromtimestamp(max(0, min(ms, MAX_MS)) / 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_rfc3339(text: str) -> int | None:
    """Unix milliseconds of a Kubernetes time; None when it cannot be read."""
    try:
        return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
    except (ValueError, AttributeError):
        return None


def is_hudi_time(text: str) -> bool:
    """Whether a text is the time of an instant: 14 digits, or 17 with milliseconds."""
    return text.isascii() and text.isdigit() and len(text) in (14, 17)


def hudi_time(instant: str) -> str:
    """RFC 3339 time of a Hudi instant or completion time (``yyyyMMddHHmmssSSS``, UTC).

    Empty when it is none.
    """
    try:
        parsed = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return ""
    return parsed.strftime("%Y-%m-%dT%H:%M:%SZ")


def merge(old: Sequence[JsonDict], new: Iterable[Condition], *, generation: int, now_ms: int) -> list[JsonDict]:
    """The list to store.

    Each new condition keeps its old transition time while its status does not change.

    Types that ``new`` does not name are dropped; the order is that of ``new``, so equal facts give
    an equal list.
    """
    before = {c.get("type"): c for c in old}
    merged: list[JsonDict] = []
    for item in new:
        previous = before.get(item.type, {})
        same = previous.get("status") == item.status and bool(previous.get("lastTransitionTime"))
        merged.append(
            {
                "type": item.type,
                "status": item.status,
                "reason": item.reason,
                "message": item.message[:MESSAGE_LIMIT],
                "lastTransitionTime": previous["lastTransitionTime"] if same else rfc3339(now_ms),
                "observedGeneration": generation,
            }
        )
    return merged


def find(status: JsonDict, kind: str) -> JsonDict:
    """Stored condition of a type; empty when there is none."""
    for item in status.get("conditions") or []:
        if item.get("type") == kind:
            return dict(item)
    return {}


def is_true(status: JsonDict, kind: str) -> bool:
    """True when the stored condition is True."""
    return find(status, kind).get("status") == "True"
