"""Readers of what was rendered, each written from the documentation of who reads it.

Java, Hudi, the kubelet, Hadoop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

BLANKS = "".join(map(chr, range(33)))
"""Characters that Java's `trim` removes."""


def properties(text: str) -> dict[str, str]:
    """A file as `java.util.Properties` reads it, written from its documentation."""
    found: dict[str, str] = {}
    for line in _logical(text):
        key, rest = "", ""
        at = 0
        while at < len(line):
            if line[at] == "\\":
                at += 2
            elif line[at] in "=: \t\f":
                break
            else:
                at += 1
        key, rest = line[:at], line[at:].lstrip(" \t\f")
        if rest[:1] in ("=", ":") and rest:
            rest = rest[1:].lstrip(" \t\f")
        found[_unescaped(key)] = _unescaped(rest)
    return found


def _logical(text: str) -> Iterator[str]:
    whole = ""
    for natural in re.split(r"\r\n|\n|\r", text):
        line = natural.lstrip(" \t\f")
        if not whole and (not line or line[0] in "#!"):
            continue
        whole += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            whole = whole[:-1]
            continue
        yield whole
        whole = ""
    if whole:
        yield whole


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    letters = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}
    return re.sub(
        r"\\(u[0-9A-Fa-f]{4}|.)",
        lambda found: chr(int(found[1][1:], 16)) if len(found[1]) == 5 else letters.get(found[1], found[1]),
        text,
        flags=re.DOTALL,
    )


def hudi_file(text: str) -> dict[str, str]:
    """A file as Hudi reads it: lines, split at the first `=`, no escapes."""
    found: dict[str, str] = {}
    for line in re.split(r"\r\n|\n|\r", text):
        if line.strip() and not line.startswith("#"):
            assert not line.startswith("include="), line
            key, equals, value = line.partition("=")
            assert equals, line
            assert key not in found, line
            found[key.strip(BLANKS)] = value.strip(BLANKS)
    return found


def expanded(value: str, known: Mapping[str, str]) -> str:
    """A variable's value after the kubelet has replaced references in it."""
    out, at = "", 0
    while at < len(value):
        if value.startswith("$$", at):
            out, at = out + "$", at + 2
        elif (found := re.compile(r"\$\(([^)]*)\)").match(value, at)) is not None:
            out, at = out + known.get(found[1], found[0]), found.end()
        else:
            out, at = out + value[at], at + 1
    return out


def alternatives(pattern: str) -> list[str]:
    """Alternatives of a glob pattern, with its braces resolved."""
    found = re.search(r"(?<!\\)\{([^{}]*)\}", pattern)
    if found is None:
        return [re.sub(r"\\(.)", r"\1", pattern)]
    parts = found[1].split(",")
    return [each for part in parts for each in alternatives(pattern[: found.start()] + part + pattern[found.end() :])]
