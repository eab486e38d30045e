"""`--wait`: follow the status of a request until it is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from hudi_kubectl.changing import How
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import TABLE, WRITER, Table, Thing, Writer, span
from hudi_kubectl.screen import Screen

_EVERY_SECONDS = 1.0
_MOST_ERRORS = 10
"""Number of reads in a row that may fail: an API server that restarts ends no wait."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


@dataclass(frozen=True)
class Seen:
    """Result of one look. ``text``: for people; ``is_well``: False: it ended badly."""

    text: str
    is_over: bool = False
    is_well: bool = True


def follow(kubectl: Kubectl, screen: Screen, thing: Thing, look: Callable[[Thing], Seen], how: How) -> int:
    """Print what happens until it is over; the exit code: 0 when it went well.

    Ctrl-C ends the wait, and nothing else.
    """
    if not how.wait:
        return 0
    begun, said, errors = time.monotonic(), "", 0
    kind = WRITER if isinstance(thing, Writer) else TABLE
    try:
        while True:
            try:
                found = type(thing)(kubectl.get(kind, thing.name))
                errors = 0
            except Failed as error:
                errors += 1
                if errors > _MOST_ERRORS or "NotFound" in str(error) or "Forbidden" in str(error):
                    raise
                time.sleep(_EVERY_SECONDS)
                continue
            seen, passed = look(found), time.monotonic() - begun
            if seen.text != said:
                screen.tell(f"{span(passed):>6}  {seen.text}")
                said = seen.text
            if seen.is_over:
                if screen.as_json:
                    screen.give(found.shown)
                return 0 if seen.is_well else 1
            if how.timeout and passed >= how.timeout:
                raise Failed(f"not over within {span(how.timeout)}, and still asked for: {said}")
            time.sleep(_EVERY_SECONDS)
    except KeyboardInterrupt:
        screen.tell(f"the request stays; kubectl hudi why {thing.kind.lower()}/{thing.name} says what it waits for")
        return INTERRUPTED


def waits(table: Table) -> str:
    """Why a table does not do yet what is asked of it, as far as its status says so."""
    if table.spec.get("suspend"):
        return f"spec.suspend is true: nothing is done before kubectl hudi resume huditable/{table.name}"
    for kind, bad in (("Stalled", "True"), ("Ready", "False")):
        one = table.condition(kind)
        if one.get("status") == bad:
            return f"{one.get('reason')}: {one.get('message') or 'no message'}"
    return "the operator has not begun with it yet" if not table.looked_at else "waits for the agent"
