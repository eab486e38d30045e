"""Bounds of a status in the CRDs, and reduction of a status to them.

Most of a status is reported by pods and by etcd. One value that the API server refuses would keep
the whole status of its object from being written, and with it everything that follows from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any, cast

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


def _of_kind() -> Mapping[str, JsonDict]:
    text = resources.files("hudi_operator.model").joinpath("statuses.json").read_text(encoding="utf-8")
    return cast(Mapping[str, JsonDict], json.loads(text))


OF_KIND = _of_kind()
"""The bounds of a status by kind, as a schema: hack/crds/statuses.py makes them of the CRDs."""
_NOTHING = object()


def fitted(kind: str, status: JsonDict) -> JsonDict:
    """The status within the bounds of the CRD of ``kind``; one that fits is returned unchanged.

    Numbers are moved into their bounds, texts for people are cut, lists lose their last items. A
    value that cannot be made to fit is left out, and so is an object that then lacks a required
    field. A field that this version does not know stays.
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
