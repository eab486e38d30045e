"""Output for a terminal or for a program."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from hudi_kubectl.objects import FAILED, RUNNING, STALLED, SUCCEEDED

_GREEN, _YELLOW, _RED, _PLAIN = "\033[32m", "\033[33m", "\033[31m", "\033[0m"
_COLOURS = re.compile(r"(\x1b\[(?:0|3[123])m)")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_GOOD = (RUNNING, SUCCEEDED, "Ready")
_BAD = (FAILED, STALLED)


def printable(text: str) -> str:
    """The text with control characters escaped, except our own colours.

    A status has words of a driver, which are not trusted: a terminal would obey them (F543).
    """
    parts = _COLOURS.split(text)  # every second one is a colour
    return "".join(
        part if n % 2 else _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), part)
        for n, part in enumerate(parts)
    )


class Screen:
    """Destination of a command's output. ``colour``: whether words are coloured."""

    def __init__(self, *, colour: bool = False, as_json: bool = False) -> None:
        self.colour, self.as_json = colour, as_json

    def say(self, *lines: str) -> None:
        """Lines, one after the other."""
        for line in lines:
            print(printable(line))

    def tell(self, *lines: str) -> None:
        """Lines of progress: beside the answer, so that a program reads the answer alone."""
        for line in lines:
            print(printable(line), file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def give(self, found: Any) -> None:
        """The answer for programs."""
        print(json.dumps(found, indent=2, default=str))

    def word(self, said: str) -> str:
        """A state in its colour."""
        if not self.colour or not said:
            return said
        colour = _GREEN if said in _GOOD else _RED if said in _BAD else _YELLOW
        return f"{colour}{said}{_PLAIN}"

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], coloured: Sequence[int] = ()) -> None:
        """Columns as kubectl writes them."""
        wide = [max(len(str(row[n])) for row in (head, *rows)) for n in range(len(head))]
        for number, row in enumerate((head, *rows)):
            cells = [str(cell).ljust(wide[n] if n < len(head) - 1 else 0) for n, cell in enumerate(row)]
            for n in coloured if number else ():
                cells[n] = self.word(str(row[n])) + cells[n][len(str(row[n])) :]
            print(printable("   ".join(cells).rstrip()))


def wants_colour(choice: str) -> bool:
    """``choice``: auto, always or never; auto obeys NO_COLOR (no-color.org) and the terminal."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
