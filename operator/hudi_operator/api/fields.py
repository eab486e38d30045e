"""Typed reading of objects that the API server has validated already. Raises SpecError, which names the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

_T = TypeVar("_T")


class SpecError(ValueError):
    """An object whose spec cannot be understood; the message names the field."""


def get(source: Mapping[str, Any], key: str, kind: type[_T], default: _T, where: str) -> _T:
    """Typed look-up: missing or null means ``default``. Raises SpecError for another type, also of ``source`` itself."""
    if not isinstance(source, Mapping):
        raise SpecError(f"{where}: expected an object, found {source!r}")
    value = source.get(key)
    if value is None:
        return default
    if kind is int and isinstance(value, float) and value.is_integer():
        return cast(_T, int(value))
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SpecError(f"{where}.{key}: expected {kind.__name__}, found {value!r}")
    return value


def strings(source: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """A list of strings; missing or null means an empty one."""
    return tuple(str(item) for item in get(source, key, list, [], where))


def string_map(source: Mapping[str, Any], key: str, where: str) -> dict[str, str]:
    """A map of strings; missing or null means an empty one."""
    return {str(k): _scalar(v) for k, v in get(source, key, dict, {}, where).items()}


def _scalar(value: object) -> str:
    """Options may be written as YAML booleans and numbers; Spark and Hudi read them in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)
