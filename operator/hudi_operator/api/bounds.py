"""How much an object may say: what one look costs must not depend on one tenant.

The API server bounds every field with a schema, and the bytes of an object. It does not bound the
number of values in the free parts of a ``podTemplate``, nor how deep they are nested: 1.4 MB are
470,000 lists, which take minutes to compare and hundreds of MiB to keep (F628, F644).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from hudi_operator.api.fields import VALUE_LIMIT, SpecError

JsonDict = dict[str, Any]

MOST_VALUES = 5_000
"""Values in one spec: objects, lists and what is in them. The largest that means anything, with
eight sidecars of 64 variables in each podTemplate, has about as many.
"""
MOST_LEVELS = 48
"""Levels of objects and lists in one spec; affinities have about 15."""
_WAYS_SHOWN = 8
_FREE = (
    ("agent", "podTemplate"),
    ("agent", "executors", "podTemplate"),
    ("driver", "podTemplate"),
    ("executors", "podTemplate"),
)
"""Fields that the CRDs leave free."""


class TooLarge(dict[str, Any]):
    """Stands for a part of a spec that is not kept; ``why`` names field, value and rule."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why


def check_size(spec: object, where: str = "spec") -> None:
    """Raise SpecError for a spec that is too large to be read. It is the first thing to check."""
    for way in _FREE:
        if isinstance(found := _at(spec, way), TooLarge):
            raise SpecError(found.why)
    if found := problem(spec, where):
        raise SpecError(found)


def problem(value: object, where: str) -> str:
    """Why ``value`` is too large (field, value, rule); empty when it is not.

    The walk ends at the bound: its cost does not depend on the value.
    """
    told = _excess(value)
    if not told:
        return ""
    for _ in range(_WAYS_SHOWN):
        inner = value.items() if isinstance(value, Mapping) else ()
        worse = next(((name, each) for name, each in islice(inner, 64) if _excess(each)), None)
        if worse is None:
            break
        where, value, told = f"{where}.{str(worse[0])[:VALUE_LIMIT]}", worse[1], _excess(worse[1])
    return f"{where}: {told}"


def _excess(value: object) -> str:
    counted, level = 1, [value]
    for _ in range(MOST_LEVELS):
        below: list[object] = []
        for each in level:
            inner = each.values() if isinstance(each, Mapping) else each if isinstance(each, list) else ()
            counted += len(inner)
            if counted > MOST_VALUES:
                return f"has more than {MOST_VALUES} values, the most that one object may have"
            below.extend(inner)
        if not below:
            return ""
        level = below
    return f"is nested deeper than {MOST_LEVELS} levels, the most that one object may have"


def kept(spec: Any) -> Any:
    """The same spec without podTemplates that are too large: :class:`TooLarge` is in their place.

    Neither it nor its parts are changed.
    """
    for way in _FREE:
        template = _at(spec, way)
        if template is not None and (why := problem(template, ".".join(("spec", *way)))):
            spec = _with(spec, way, TooLarge(why))
    return spec


def _at(spec: object, way: tuple[str, ...]) -> object:
    for name in way:
        spec = spec.get(name) if isinstance(spec, Mapping) else None
    return spec


def _with(spec: JsonDict, way: tuple[str, ...], value: object) -> JsonDict:
    name, *rest = way
    return {**spec, name: _with(spec[name], tuple(rest), value) if rest else value}
