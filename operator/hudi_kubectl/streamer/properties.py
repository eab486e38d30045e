"""A properties file, as HoodieStreamer reads it.

Its reader is simpler than Java's: `KEY=VALUE`, or `KEY VALUE`, on one line; no escapes, no
continued lines; `include=FILE` is read in its place, from the folder of the file that names it.
Below it are only the records of `given`; it uses nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hudi_kubectl.streamer.given import BadInput, Option, Places

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def options(place: Path, places: Places, above: tuple[Path, ...] = ()) -> Iterator[Option]:
    """The options of a file and of those that it includes, in their order. Raises BadInput."""
    where = place.resolve()
    if where in above:
        raise BadInput(f"{place}: includes itself: {' -> '.join(each.name for each in (*above, where))}")
    for number, line in _lines(place):
        at = f"{place}:{number}"
        option = option_of(line, at)
        if option is None:
            continue
        if option.name == "include":
            found = _included(option.value, place, places)
            if found is None:
                raise BadInput(
                    f"{at}: include: {option.value!r} is neither in the folder of this file nor in that of --files"
                )
            yield from options(found, places, (*above, where))
            continue
        yield option


def option_of(line: str, at: str) -> Option | None:
    """One line; None: it has no option. ``at`` is its place. Raises BadInput, without a value."""
    if _CONTROL.search(line):
        raise BadInput(f"{at}: a control character: a property is plain text")
    plain = " ".join(line.split())
    if not plain or plain[0] in "#!":
        return None
    if plain.endswith("\\"):
        raise BadInput(f"{at}: ends with a backslash: HoodieStreamer does not continue a line on the next one")
    name, found, value = plain.partition("=" if "=" in plain else " ")
    if not found:
        raise BadInput(f"{at}: neither KEY=VALUE nor KEY VALUE nor a comment: HoodieStreamer would skip it")
    name, value = name.strip(), value.strip()
    if not name:
        raise BadInput(f"{at}: no name before the '='")
    return Option(name, value, at)


def _lines(place: Path) -> Iterator[tuple[int, str]]:
    try:
        content = place.read_bytes()
    except OSError as error:
        raise BadInput(f"{place}: cannot be read: {error.strerror}") from None
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            yield number, line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError:
            raise BadInput(f"{place}:{number}: is not UTF-8") from None


def _included(named: str, place: Path, places: Places) -> Path | None:
    beside = place.parent / named
    return beside if beside.is_file() else places.find(named)
