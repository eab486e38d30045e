"""Prose of Markdown wraps at 100 columns.

`python -m tests.support.evidence.prose FILE...` wraps files in place. Paragraphs and list items
that fit stay as they are; tables, headings, quotations, HTML, code, and what has no place for a
break (a long name in backticks, an address) may be longer.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

P = ParamSpec("P")
COLUMNS = 100
_CODE = re.compile(r"((?<!`)(?:`[^`]+`|``(?!`).*?(?<!`)``)(?!`))")
"""A span of code, which may be in two back quotes when it contains one."""
_FENCE = ("```", "~~~")
_ITEM = r"(?:[-*+]|\d+[.)]) "
_NO_PROSE = re.compile(r"\s*(?:\||#|>|<|---|\[[^\]]+\]:)")
_ENDS_BLOCK = re.compile(rf"\s*(?:\||#|>|<|---|{'|'.join(map(re.escape, _FENCE))}|{_ITEM})")
_MEANS_MORE_AT_THE_BEGINNING = re.compile(r"[-+*]$|\d+[.)]$|[#>|]")


def _words(text: str) -> list[str]:
    """Text between the places at which a line may end: not within code."""
    found, word = [], ""
    for part in _CODE.split(text):
        if _CODE.fullmatch(part):
            word += part
            continue
        for piece in re.split(r"(\s+)", part):
            if piece.isspace():
                found += [word] if word else []
                word = ""
            else:
                word += piece
    return [*found, word] if word else found


def _units(text: str) -> list[str]:
    """The same; what would mean more at the beginning of a line stays behind the word before it."""
    found: list[str] = []
    for word in _words(text):
        if found and _MEANS_MORE_AT_THE_BEGINNING.match(word):
            found[-1] += f" {word}"
        else:
            found.append(word)
    return found


def _lines(first: str, others: str, text: str) -> list[str]:
    lines, line, empty = [], first, True
    for word in _units(text):
        if not empty and len(line) + 1 + len(word) > COLUMNS:
            lines.append(line)
            line = others + word
        else:
            line += word if empty else f" {word}"
        empty = False
    return [*lines, line]


def wrapped(markdown: str) -> str:
    """The same text without a line of prose that is too long."""
    lines, out, at, code, is_code = markdown.split("\n"), [], 0, False, False
    while at < len(lines):
        line = lines[at]
        if line.strip().startswith(_FENCE):
            code = not code
            alone = True
        else:
            begins = not re.match(rf"\s*{_ITEM}", line) and not (out and out[-1].strip())
            is_code = (line.startswith("    ") and (begins or is_code)) or (is_code and not line.strip())
            alone = code or is_code or not line.strip() or bool(_NO_PROSE.match(line))
        if alone:
            out.append(line)
            at += 1
            continue
        end = at + 1
        while end < len(lines) and lines[end].strip() and not _ENDS_BLOCK.match(lines[end]):
            end += 1
        block = lines[at:end]
        if any(len(line) > COLUMNS for line in block) and not any(line.endswith("  ") for line in block[:-1]):
            match = re.match(rf"(\s*(?:{_ITEM} *)?)(.*)", line)
            assert match is not None
            first = match.group(1)
            indent = len(block[1]) - len(block[1].lstrip()) if len(block) > 1 else len(first)
            block = _lines(first, " " * indent, " ".join([match.group(2), *(line.strip() for line in block[1:])]))
        out += block
        at = end
    return "\n".join(out)


def wrapping(page: Callable[P, str]) -> Callable[P, str]:
    """A function that returns a page: its prose is wrapped."""

    @functools.wraps(page)
    def made(*args: P.args, **kwargs: P.kwargs) -> str:
        return wrapped(page(*args, **kwargs))

    return made


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(wrapped(path.read_text(encoding="utf-8")), encoding="utf-8")
