"""Objects as YAML: blocks, in the order of their fields.

It uses nothing else of the plugin, and below it is only the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(:[A-Za-z0-9_./][A-Za-z0-9_./:-]*)?")
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
_BLOCK = re.compile(r"[\x20-\x7e\u00a0-\ud7ff\n]+")
_UNSAFE = re.compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def dump(obj: Any) -> str:
    """One document, without a line before it."""
    return "".join(f"{line}\n" for line in _lines(obj))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from _entry(f"{_scalar(name)}:", entry, "  ")
    elif isinstance(value, list):
        for entry in value:
            yield from _entry("-", entry, "  ")
    else:
        yield _scalar(value)


def _entry(head: str, value: Any, deeper: str) -> Iterator[str]:
    if isinstance(value, (dict, list)) and value:
        inner = list(_lines(value))
        if head == "-":
            yield f"- {inner[0]}"
            yield from (f"{deeper}{line}" for line in inner[1:])
        else:
            yield head
            yield from (f"{deeper}{line}" for line in inner)
    elif isinstance(value, str) and "\n" in value and _fits_a_block(value):
        yield f"{head} |-"
        yield from (f"{deeper}{line}" if line else "" for line in value.split("\n"))
    else:
        yield f"{head} {_scalar(value)}"


def _fits_a_block(text: str) -> bool:
    first = text.split("\n")[0]
    return bool(_BLOCK.fullmatch(text) and first and first[0] != " " and text[-1] not in "\n ")


def _scalar(value: Any) -> str:
    if value == {} and isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[]"
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))
