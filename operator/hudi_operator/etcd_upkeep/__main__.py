"""Entry point: ``python -m hudi_operator.etcd_upkeep COMMAND``.

The report goes to the standard output as one line of JSON, or, where a backup goes there, to the
error output as its last line. Exit code 1: it was not done; the last line of the error output says
why.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hudi_operator.etcd_upkeep import defragment, members, membership, snapshot, tables
from hudi_operator.etcd_upkeep.defragment import Wishes
from hudi_operator.etcd_upkeep.identity import root
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Fatal, Retryable


def share(text: str) -> float:
    """A part of a whole: 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 0 to 1")
    return value


def whole(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or not text.isascii() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from 1")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="hudi_operator.etcd_upkeep", description=(__doc__ or "").splitlines()[0])
    subs = top.add_subparsers(dest="command", required=True)
    one = subs.add_parser("backup", help="a snapshot of etcd")
    one.add_argument("--folder", default="", help="where it is stored (default: the standard output)")
    one = subs.add_parser("prune", help="delete old backups, when the newest one was verified")
    one.add_argument("--folder", required=True)
    one.add_argument("--keep", type=whole, required=True, help="number of backups that stay")
    one = subs.add_parser("set-aside", help="rename the data of a member that does not run")
    one.add_argument("--folder", required=True)
    one = subs.add_parser("defragment", help="give unused space back to the disk, one member after the other")
    text = "leave a member alone of whose database a smaller part is unused (default: 0.2)"
    one.add_argument("--least", type=share, default=Wishes.least, help=text)
    text = "also a member that is alone, while which nothing commits"
    one.add_argument("--interrupt", action="store_true", help=text)
    one = subs.add_parser("add-member", help="add a learner, which is to be started then")
    one.add_argument("--name", required=True)
    one.add_argument("--peer", required=True, help="its address for the other members: https://HOST:2380")
    one = subs.add_parser("promote-member", help="give a learner its vote, when it has all data")
    one.add_argument("--name", required=True)
    subs.add_parser("members", help="members, sizes and revisions")
    subs.add_parser("tables", help="ids that have keys, and what their gates say")
    one = subs.add_parser("forget", help="delete the keys of a table that no HudiTable has any more")
    one.add_argument("--id", required=True, help="id of the table")
    return top


def main(arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Returns the exit code."""
    given = parser().parse_args(arguments)
    try:
        if given.command == "prune":
            _report({"deleted": snapshot.prune(Path(given.folder), given.keep)})
            return 0
        if given.command == "set-aside":
            _report({"kept": snapshot.set_aside(Path(given.folder))})
            return 0
        with root(environment) as config:
            _run(given, config)
    except (Retryable, Fatal, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(given: argparse.Namespace, config: EtcdConfig) -> None:
    if given.command == "members":
        _report({"members": [member.to_json() for member in members.look(config)]})
    elif given.command == "tables":
        _report({"tables": [one.to_json() for one in tables.look(config)]})
    elif given.command == "forget":
        _report(tables.forget(config, given.id))
    elif given.command == "defragment":
        _report({"members": defragment.run(config, Wishes(given.least, given.interrupt), _say)})
    elif given.command == "add-member":
        _report(membership.add(config, given.name, given.peer))
    elif given.command == "promote-member":
        _report(membership.promote(config, given.name))
    elif given.folder:
        _report(snapshot.save(config, Path(given.folder)))
    else:
        taken = snapshot.take(config, sys.stdout.buffer.write)
        sys.stdout.buffer.flush()
        print(json.dumps(taken.to_json()), file=sys.stderr)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _report(found: object) -> None:
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())
