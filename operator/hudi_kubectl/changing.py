"""One change of one object: a merge patch, on the user's own rights, and nothing half-way."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_kubectl.cluster import MANAGER, Failed, Kubectl
from hudi_kubectl.objects import BY_HAND, TABLE, WRITER, JsonDict, Table, Thing, now
from hudi_kubectl.screen import Screen, printable

Path = tuple[str, ...]
"""Path of a field from the root of the object."""
Fields = Mapping[Path, Any]
SPEC = "spec"
_TRIES = 5
"""Number of times a change is tried again because the object, usually its status, has changed."""
_CONFLICT = "the object has been modified"
_SET_BACK_SECONDS = 3.0


@dataclass(frozen=True)
class How:
    """Options of a change.

    ``dry_run``: one of `cluster.DRY_RUN`. ``force``: also against warnings. ``yes``: nobody is
    asked. ``wait``: until it is carried out, ``timeout`` seconds at most (0: no limit).
    """

    dry_run: str = "none"
    force: bool = False
    yes: bool = False
    wait: bool = False
    timeout: float = 0

    @property
    def is_dry(self) -> bool:
        """Nothing is changed."""
        return self.dry_run != "none"

    @property
    def suffix(self) -> str:
        """Suffix that kubectl adds to its messages."""
        return {"client": " (dry run)", "server": " (server dry run)"}.get(self.dry_run, "")


def nonce() -> str:
    """A value that was not used before."""
    return f"{now():%Y-%m-%dT%H:%M:%S.%fZ}"


def confirm(question: str, how: How) -> None:
    """Ask before what cannot be taken back.

    Raises Failed when the answer is not yes, and where nobody can be asked.
    """
    if how.yes or how.is_dry:
        return
    if not sys.stdin.isatty():
        raise Failed(f"{question} If that is wanted, add --yes")
    sys.stderr.write(f"{printable(question)} Continue? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failed("nothing was changed")


def change(kubectl: Kubectl, thing: Thing, fields: Callable[[Thing], Fields], how: How) -> Thing:
    """Change the fields that ``fields`` names, in one patch; returns the resulting object.

    ``fields`` is asked again when the object was changed by somebody else before the patch: a list
    is written whole, and nobody's entry is lost. A change that another field manager would revert
    is not made half-way: it is refused, or the user is told that it was reverted.
    """
    kind = TABLE if isinstance(thing, Table) else WRITER
    for left in reversed(range(_TRIES)):
        wanted = fields(thing)
        for path in () if how.force else wanted:
            _may_be_changed(thing, path)
        try:
            raw = kubectl.patch(kind, thing.name, _patch(thing, wanted), dry_run=how.dry_run)
        except Failed as error:
            if not left or _CONFLICT not in str(error):
                raise
            thing = type(thing)(kubectl.get(kind, thing.name))
            continue
        if not how.is_dry:
            _stays(kubectl, kind, thing, wanted)
        return type(thing)(raw)
    raise AssertionError("the last try raises")


def _patch(thing: Thing, fields: Fields) -> JsonDict:
    # The resourceVersion makes the API server refuse the patch if the object is another one by now.
    made: JsonDict = {"metadata": {"resourceVersion": thing.meta.get("resourceVersion")}}
    for path, value in fields.items():
        node = made
        for name in path[:-1]:
            node = node.setdefault(name, {})
        node[path[-1]] = value
    return made


def _may_be_changed(thing: Thing, path: Path) -> None:
    owners = [one for one in thing.managers_of(*path[1:], root=path[0]) if not one.startswith(BY_HAND)]
    if owners:
        raise Failed(
            f"{'.'.join(path)} of {thing.kind} {thing.name} is kept by {', '.join(owners)}, which would set it back: "
            "change it there, or use --force"
        )


def value_at(raw: JsonDict, path: Path) -> Any:
    """A field of an object; None when it is not there."""
    node: Any = raw
    for name in path:
        node = node.get(name) if isinstance(node, dict) else None
    return node


def _stays(kubectl: Kubectl, kind: str, thing: Thing, fields: Fields) -> None:
    end = time.monotonic() + _SET_BACK_SECONDS
    while time.monotonic() < end:
        time.sleep(0.5)
        seen = Thing(kubectl.get(kind, thing.name))
        for path, value in fields.items():
            if _is_there(value_at(seen.raw, path), value):
                continue
            by = [one for one in seen.managers_of(*path[1:], root=path[0]) if not one.startswith(MANAGER)]
            raise Failed(
                f"{'.'.join(path)} of {thing.kind} {thing.name} was set back to {value_at(seen.raw, path)!r} at once"
                f"{' by ' + ', '.join(by) if by else ''}: change it where it is kept"
            )


def _is_there(found: Any, wanted: Any) -> bool:
    """Somebody else may add entries to a list meanwhile."""
    if isinstance(wanted, list) and isinstance(found, list):
        return all(one in found for one in wanted)
    return bool(found == wanted)


def told(screen: Screen, thing: Thing, how: How, said: str) -> None:
    """Print the result of a change: a sentence, or the object for programs."""
    if not screen.as_json:
        screen.say(f"{thing.kind} {thing.name}{said}{how.suffix}")
    elif not how.wait:
        screen.give(thing.raw)
