"""kubectl hudi: arguments, and the exit code."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from hudi_kubectl import auditing, commands, etcd, importing, purging, restoring, verbs
from hudi_kubectl.changing import How
from hudi_kubectl.cluster import DRY_RUN, Failed, Kubectl
from hudi_kubectl.screen import Screen, printable, wants_colour
from hudi_kubectl.streamer.given import Places
from hudi_kubectl.streamer.work import Wishes

UNREAD = 141
"""Exit code when nobody reads the output to its end."""
PLAN_NEEDS = (3, 11)
"""The Python of the operator, whose planner is asked by `plan`."""
_CONNECTION = ("kubeconfig", "context", "cluster", "user", "as", "as-group", "server", "token", "request-timeout")
"""Flags of kubectl that are handed on to it."""
_NAMED: dict[str, tuple[str, bool, bool]] = {
    "status": ("tables and their writers, and why something is not well", True, False),
    "why": ("why a writer does not write, or a table takes no writes", True, True),
    "timeline": ("attempts and commits of a table on one axis, as text or SVG", True, True),
    "queue": ("which writers of a table wait for admission, in order", True, True),
    "conflicts": ("commits that were refused because of another writer", True, True),
    "history": ("what has happened: attempts, commits, savepoints, Events", True, True),
    "logs": ("the log of a writer's driver, or of a table's agent", True, True),
    "plan": ("what would happen if a file was applied; nothing is changed", False, False),
    "suspend": ("suspend a writer, or all writers of a table", True, True),
    "resume": ("the opposite", True, True),
    "restart": ("another run of a writer", False, True),
    "savepoint": ("take a savepoint of a table", True, False),
    "delete-savepoint": ("delete a savepoint of a table", True, False),
    "hold": ("keep the files of a commit for a reader, until a time", True, False),
    "unhold": ("end a hold of a table", True, False),
    "restore": ("take a table back to a savepoint; later commits are undone", True, False),
    "service": ("run a table service once, now", True, False),
    "metadata-table": ("turn a metadata table on or off, set its indexes, rebuild it", True, False),
    "adopt": ("decide about a table that exists already: adopt it, name instants to roll back", True, False),
    "unfreeze": ("accept the state of etcd for a frozen table", True, False),
    "take-over": ("take the path of a HudiTable that is gone", True, False),
    "attest": ("say that a pod on a lost node has ended", True, False),
    "audit": ("check a table: rows, files and timeline; a Job that only reads", True, True),
    "report": ("a bundle for support, without secrets", True, True),
    "etcd": ("backup, restore, defragmentation, members and leftovers of the release's etcd", False, False),
    "purge": ("delete what deleted tables have left in namespaces without tables", False, False),
    "import": ("a HoodieStreamer job as a HudiTable and a HudiWriter, without a cluster", False, False),
}
"""Per command: its help; whether it takes tables, and writers (for completion)."""
_CHANGES = (
    "suspend", "resume", "restart", "savepoint", "delete-savepoint", "hold", "unhold", "restore", "service",
    "metadata-table", "adopt", "unfreeze", "take-over", "attest",
)  # fmt: skip
"""Commands that change an object."""
_ASKED = ("delete-savepoint", "restore", "adopt", "unfreeze", "take-over", "attest")
"""Commands that ask before they do something that cannot be undone."""
_TAKES_MORE = ("import", "audit")
"""Commands that hand on what follows `--`."""
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def duration(text: str) -> float:
    """Seconds of a duration as kubectl writes it: 90s, 10m, 1h30m; 0: no limit."""
    found = _DURATION.fullmatch(text)
    if text == "0":
        return 0
    if not text or found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: 90s, 10m or 1h30m")
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds


def parser() -> argparse.ArgumentParser:
    """The command line."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("-n", "--namespace", default="", help="namespace (default: that of the context)")
    shared.add_argument("-o", "--output", choices=("text", "json"), default="text", help="for people or for programs")
    shared.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto: on a terminal, unless NO_COLOR is set",
    )
    for flag in _CONNECTION:
        shared.add_argument(f"--{flag}", dest=f"kubectl_{flag}", help=argparse.SUPPRESS)
    top = argparse.ArgumentParser(
        prog="kubectl hudi",
        description="HudiTables and HudiWriters for people, by your own rights. NAME is that of a HudiWriter or a "
        "HudiTable, or huditable/NAME, hudiwriter/NAME.",
        epilog="kubectl's flags for cluster and user (--context, --kubeconfig, --as and others) are handed on.",
    )
    subs = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (text, tables, writers) in _NAMED.items():
        one = subs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", parents=[shared])
        if name == "status":
            one.add_argument("name", nargs="?", default="", metavar="TABLE")
        elif tables or writers:
            one.add_argument("name", metavar="NAME" if writers else "TABLE")
        if name in _OPTIONS:
            _OPTIONS[name](one)
        if name in _CHANGES:
            _change_options(one, waits=name not in ("restart", "unhold"), asks=name in _ASKED)
    return top


def _change_options(one: argparse.ArgumentParser, *, waits: bool, asks: bool) -> None:
    one.add_argument("--force", action="store_true", help="also when somebody else keeps the field")
    _dry_run_option(one, "server: the API server judges the change, and does not make it; client: not even that")
    if asks:
        one.add_argument("-y", "--yes", action="store_true", help="do not ask")
    if waits:
        one.add_argument("--wait", action="store_true", help="until it is carried out; prints what happens")
        one.add_argument(
            "--timeout", type=duration, default=0, metavar="DURATION", help="of --wait, for example 10m; default: none"
        )


def _dry_run_option(one: argparse.ArgumentParser, text: str) -> None:
    one.add_argument("--dry-run", choices=DRY_RUN, default="none", help=text)


def _of_status(one: argparse.ArgumentParser) -> None:
    one.add_argument("-A", "--all-namespaces", action="store_true")


def _of_purge(one: argparse.ArgumentParser) -> None:
    one.add_argument("-A", "--all-namespaces", action="store_true")
    one.add_argument("-y", "--yes", action="store_true", help="do not ask")
    _dry_run_option(one, "client or server: only show what is left")


def _of_timeline(one: argparse.ArgumentParser) -> None:
    one.add_argument("--minutes", type=float, default=0, help="only the last so many (default: all there is)")
    one.add_argument("--svg", default="", metavar="FILE", help="write a picture instead")


def _of_logs(one: argparse.ArgumentParser) -> None:
    one.add_argument("--attempt", type=int, default=0, help="number of the attempt (default: the last one)")
    one.add_argument("-f", "--follow", action="store_true")
    one.add_argument("--tail", type=int, default=-1, help="lines from the end (default: all)")


def _of_plan(one: argparse.ArgumentParser) -> None:
    text = "a file, folder or URL with objects; -: the standard input. May be repeated"
    one.add_argument("-f", "--filename", action="append", required=True, metavar="FILE", help=text)


def _of_report(one: argparse.ArgumentParser) -> None:
    one.add_argument("--file", default="", help="default: hudi-report-TABLE-TIME.tar.gz")
    one.add_argument("--lines", type=int, default=500, help="lines of each log (default: 500)")


def _of_savepoint(one: argparse.ArgumentParser) -> None:
    one.add_argument("--name", dest="called", default="", metavar="NAME", help="default: the time")


def _of_delete_savepoint(one: argparse.ArgumentParser) -> None:
    one.add_argument("--name", dest="called", required=True, metavar="NAME", help="one of spec.savepoints")


def _of_hold(one: argparse.ArgumentParser) -> None:
    one.add_argument("--name", dest="called", default="", metavar="NAME", help="default: the time")
    text = "for example 4h or 90m, at most 168h (default: 24h)"
    one.add_argument("--for", dest="seconds", type=duration, default=None, metavar="DURATION", help=text)
    text = "requested time of the commit (default: the last one)"
    one.add_argument("--instant", default="", metavar="INSTANT", help=text)
    one.add_argument("--reader", default="", metavar="TEXT", help="who reads, for people")


def _of_unhold(one: argparse.ArgumentParser) -> None:
    one.add_argument("--name", dest="called", required=True, metavar="NAME", help="one of spec.holds")


def _of_restore(one: argparse.ArgumentParser) -> None:
    one.add_argument("--savepoint", dest="to", required=True, metavar="NAME", help="one of spec.savepoints")
    one.add_argument("--remove-later", action="store_true", help="remove the names of later savepoints, too")


def _of_service(one: argparse.ArgumentParser) -> None:
    one.add_argument("kind", choices=tuple(verbs.SERVICES), metavar="SERVICE", help=", ".join(verbs.SERVICES))


def _of_metadata_table(one: argparse.ArgumentParser) -> None:
    switch = one.add_mutually_exclusive_group()
    switch.add_argument("--on", dest="on", action="store_true", default=None, help="the table has one")
    switch.add_argument("--off", dest="on", action="store_false", default=None, help="the table has none")
    text = f"its indexes besides the list of files ({', '.join(verbs.INDEXES)}), with commas, or none"
    one.add_argument("--indexes", metavar="INDEXES", help=text)
    one.add_argument("--rebuild", action="store_true", help="delete it and build it again")


def _of_adopt(one: argparse.ArgumentParser) -> None:
    text = "an instant whose writer has ended for good. May be repeated"
    one.add_argument("--roll-back", dest="instants", action="append", default=[], metavar="INSTANT", help=text)


def _of_attest(one: argparse.ArgumentParser) -> None:
    one.add_argument("pod", metavar="POD")
    one.add_argument("--statement", required=True, help='what was seen or done, for example "powered off at the rack"')
    one.add_argument("--node", default="", help="default: that of the pod")
    one.add_argument("--uid", default="", help="default: that of the pod")


def _of_audit(one: argparse.ArgumentParser) -> None:
    one.usage = "kubectl hudi audit [options] NAME [-- OPTIONS OF THE AUDIT]"
    one.epilog = (
        "After --: options of the audit, for example --only rows --only files (docs/operate/operations.md). Exit code "
        "0: ok, 1: violated, 2: something could not be checked, or the audit not be made, 130: interrupted."
    )
    one.add_argument("--image", default="", help="default: that of the table, or of its agent")
    one.add_argument("--memory", default="2Gi", help="of the pod; half of it is the heap of the JVM (default: 2Gi)")
    one.add_argument("--timeout", type=duration, default=3600, metavar="DURATION", help="default: 1h")
    _dry_run_option(one, "client: print the Job; server: ask the API server whether it may be made")


def _of_import(one: argparse.ArgumentParser) -> None:
    one.usage = "kubectl hudi import [options] [-- OPTIONS OF THE JOB]"
    one.epilog = (
        "After --: the job's options, or its whole spark-submit; they count before those of --file. The objects go to "
        "the output, a line for each option to the error output. Exit code 3: something of the job has no counterpart."
    )
    one.add_argument("-f", "--file", default="", help="a file with the job's command line; -: the standard input")
    one.add_argument("--props", action="append", default=[], metavar="FILE", help="a properties file of the job")
    one.add_argument("--files", default="", metavar="DIR", help="where files that the job names are found by name")
    one.add_argument("--table", default="", metavar="NAME", help="of the HudiTable (default: from --target-table)")
    one.add_argument("--writer", default="", metavar="NAME", help="of the HudiWriter (default: that of the table)")
    one.add_argument("--image", default="", help="image of the table, with classes of your own")
    one.add_argument("--default-fs", default="", metavar="URI", help="file system of paths without a scheme")
    one.add_argument("--allow-missing", action="store_true", help="neither suspend the writer nor exit with 3")


def _of_etcd(one: argparse.ArgumentParser) -> None:
    one.add_argument("action", choices=etcd.ACTIONS, metavar="ACTION", help=", ".join(etcd.ACTIONS))
    one.add_argument("-f", "--file", default="", help="of backup: where it is written; nothing is overwritten")
    text = "of defragment: leave a member alone of whose database a smaller part is unused (0 to 1; default: 0.2)"
    one.add_argument("--least", type=_share, default=0.2, metavar="PART", help=text)
    text = "of defragment: also a member that is alone; nothing commits meanwhile"
    one.add_argument("--interrupt", action="store_true", help=text)
    text = "of restore: the PersistentVolumeClaim with the backup"
    one.add_argument("--claim", default="", metavar="CLAIM", help=text)
    one.add_argument("--from", dest="source", default="", metavar="FILE", help="of restore: name of the backup there")
    text = "of restore: also as a cluster that no table's marker names"
    one.add_argument("--another-cluster", action="store_true", help=text)
    one.add_argument("--id", default="", metavar="ID", help="of forget: the table's id, as tables prints it")
    text = "of restore, for each member (default: 10m)"
    one.add_argument("--timeout", type=duration, default=600, metavar="DURATION", help=text)
    one.add_argument("-y", "--yes", action="store_true", help="do not ask")
    _dry_run_option(one, "client: of restore, print the pods")
    one.epilog = "-n names the namespace of the release. It needs the right to create pods/exec there."


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no part of a whole: a number from 0 to 1")
    return value


_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "status": _of_status,
    "timeline": _of_timeline,
    "logs": _of_logs,
    "plan": _of_plan,
    "report": _of_report,
    "savepoint": _of_savepoint,
    "delete-savepoint": _of_delete_savepoint,
    "hold": _of_hold,
    "unhold": _of_unhold,
    "restore": _of_restore,
    "service": _of_service,
    "metadata-table": _of_metadata_table,
    "adopt": _of_adopt,
    "attest": _of_attest,
    "audit": _of_audit,
    "etcd": _of_etcd,
    "purge": _of_purge,
    "import": _of_import,
}
"""Completions of a command's arguments besides names and the common options."""


def _split(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own words, and those after `--` that are handed on."""
    if "--" not in given or not any(name in given for name in _TAKES_MORE):
        return list(given), []
    at = list(given).index("--")
    return list(given[:at]), list(given[at + 1 :])


# ---------------------------------------------------------------- completion
def complete(words: Sequence[str]) -> list[str]:
    """Completions of a command line, for `kubectl_complete-hudi`: commands, objects, arguments."""
    done, last = list(words[:-1]), words[-1] if words else ""
    namespace = ""
    for flag in ("-n", "--namespace"):
        if flag in done[:-1]:
            at = done.index(flag)
            namespace = done[at + 1]
            del done[at : at + 2]
    before = done[-1] if done else ""
    given = _positional(done)
    if not given:
        return [name for name in _NAMED if name.startswith(last)]
    if given[0] not in _NAMED:
        return []
    return sorted(word for word in _next(given, before, last, Kubectl(namespace=namespace)) if word.startswith(last))


def _positional(done: Sequence[str]) -> list[str]:
    """Words that are no flags, nor values of flags."""
    actions = {flag: one for name in _NAMED if name in done for one in _actions(name) for flag in one.option_strings}
    left, found = iter(done), []
    for word in left:
        if not word.startswith("-"):
            found.append(word)
        elif word in actions and actions[word].nargs is None:
            next(left, "")
    return found


def _actions(name: str) -> list[argparse.Action]:
    subs = next(one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    return list(subs.choices[name]._actions)


def _next(given: Sequence[str], before: str, last: str, kubectl: Kubectl) -> list[str]:
    name, objects = given[0], list(given[1:])
    shown = [one for one in _actions(name) if one.help != argparse.SUPPRESS]
    if last.startswith("-"):
        flags = [flag for one in shown for flag in one.option_strings if flag.startswith("--")]
        return [f"--dry-run={one}" for one in DRY_RUN] if last.startswith("--dry-run=") else flags
    owner = next((one for one in shown if before in one.option_strings), None)
    if owner is not None and owner.nargs is None:
        if (before == "--savepoint" or (name == "delete-savepoint" and before == "--name")) and objects:
            return list(commands.savepoints(kubectl, objects[0]))
        if name == "unhold" and before == "--name" and objects:
            return list(commands.holds(kubectl, objects[0]))
        return list(verbs.INDEXES) if before == "--indexes" else [str(one) for one in owner.choices or ()]
    _, tables, writers = _NAMED[name]
    if name == "etcd":
        return [] if objects else list(etcd.ACTIONS)
    if not objects:
        return list(commands.names(kubectl, tables, writers)) if tables or writers else []
    if len(objects) > 1:
        return []
    if name == "attest":
        return list(commands.awaited_pods(kubectl, objects[0]))
    return list(verbs.SERVICES) if name == "service" else []


# ---------------------------------------------------------------- running a command
def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["__complete"]:
        print("\n".join([*complete(given[1:]), ":4"]))  # 4: no names of files
        return 0
    given, more = _split(given)
    said = parser().parse_args(given)
    chosen = {flag: getattr(said, f"kubectl_{flag}") for flag in _CONNECTION}
    kubectl = Kubectl([f"--{flag}={value}" for flag, value in chosen.items() if value], said.namespace)
    screen = Screen(colour=wants_colour(said.color), as_json=said.output == "json")
    try:
        if said.command == "import":
            return _import(said, more)
        if said.command in _CHANGES:
            return _change(kubectl, screen, said)
        return _look(kubectl, screen, said, more)
    except Failed as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        # 1 of an audit says that the table is not as it should be, and nobody has looked.
        return auditing.UNKNOWN if said.command == "audit" else 1
    except BrokenPipeError:
        # As of a program that SIGPIPE has ended. Text that is not written yet would raise it once
        # more.
        if (out := sys.__stdout__) is not None and out is sys.stdout:
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        return UNREAD


def _import(said: argparse.Namespace, job: Sequence[str]) -> int:
    return importing.run(
        job,
        said.file,
        said.props,
        Places(said.files),
        Wishes(said.table, said.writer, said.image, said.default_fs),
        namespace=said.namespace,
        as_json=said.output == "json",
        allow_missing=said.allow_missing,
    )


def _look(kubectl: Kubectl, screen: Screen, said: argparse.Namespace, more: Sequence[str]) -> int:
    asked: dict[str, Callable[[], int]] = {
        "status": lambda: commands.status(kubectl, screen, said.name, said.all_namespaces),
        "why": lambda: commands.explain(kubectl, screen, said.name),
        "timeline": lambda: commands.timeline(kubectl, screen, said.name, said.minutes, said.svg),
        "queue": lambda: commands.queue(kubectl, screen, said.name),
        "conflicts": lambda: commands.conflicts(kubectl, screen, said.name),
        "history": lambda: commands.history(kubectl, screen, said.name),
        "logs": lambda: commands.logs(kubectl, said.name, said.attempt, said.follow, said.tail),
        "report": lambda: commands.make_report(kubectl, screen, said.name, said.file, said.lines),
        "plan": lambda: _plan(kubectl, screen, said.filename),
        "etcd": lambda: _etcd(kubectl, screen, said),
        "purge": lambda: purging.purge(
            kubectl, screen, How(said.dry_run, yes=said.yes), everywhere=said.all_namespaces
        ),
        "audit": lambda: auditing.audit(
            kubectl,
            screen,
            said.name,
            auditing.Wanted(tuple(more), said.image, said.memory, said.timeout or 3600, said.dry_run),
        ),
    }
    return asked[said.command]()


def _plan(kubectl: Kubectl, screen: Screen, files: Sequence[str]) -> int:
    """With the operator's code, which needs a newer Python than everything else here."""
    if sys.version_info < PLAN_NEEDS:
        return subprocess.run([_newer_python(), *sys.argv], check=False).returncode
    from hudi_kubectl import planning

    return planning.plan(kubectl, screen, files)


def _etcd(kubectl: Kubectl, screen: Screen, said: argparse.Namespace) -> int:
    if said.file and said.action != "backup":
        raise Failed(f"-f {said.file}: {said.action} writes no file")
    if said.action == "backup":
        return etcd.backup(kubectl, screen, said.file)
    how = How(said.dry_run, yes=said.yes)
    if how.is_dry and said.action != "restore":
        raise Failed(f"--dry-run={said.dry_run}: {said.action} has none")
    if said.action == "restore":
        wanted = restoring.Wanted(said.claim, said.source, said.another_cluster, said.timeout or 600)
        return restoring.restore(kubectl, screen, wanted, how)
    if said.action in ("add-member", "promote-member"):
        return (etcd.add_member if said.action == "add-member" else etcd.promote_member)(kubectl, screen, how)
    if said.action == "forget":
        return etcd.forget(kubectl, screen, said.id, how)
    if said.action == "tables":
        return etcd.tables(kubectl, screen)
    if said.action == "defragment":
        return etcd.defragment(kubectl, screen, said.least, interrupt=said.interrupt, how=how)
    return etcd.members(kubectl, screen)


def _newer_python() -> str:
    """A Python that can run the plan, from the PATH. Raises Failed if there is none."""
    for minor in range(PLAN_NEEDS[1] + 9, PLAN_NEEDS[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found and not subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
            return found
    wanted, this = (".".join(map(str, one[:2])) for one in (PLAN_NEEDS, sys.version_info))
    raise Failed(
        f"plan asks the operator's own planner, which needs Python {wanted}: this is {this}, and there is no newer "
        "python3.N on the PATH"
    )


def _change(kubectl: Kubectl, screen: Screen, said: argparse.Namespace) -> int:
    wait = bool(getattr(said, "wait", False))
    if wait and said.dry_run != "none":
        raise Failed(f"--wait: with --dry-run={said.dry_run} nothing is changed, so nothing can be waited for")
    how = How(said.dry_run, said.force, bool(getattr(said, "yes", False)), wait, float(getattr(said, "timeout", 0)))
    name: Any = said.name
    asked: dict[str, Callable[[], int]] = {
        "suspend": lambda: verbs.suspend(kubectl, screen, name, True, how),
        "resume": lambda: verbs.suspend(kubectl, screen, name, False, how),
        "restart": lambda: verbs.restart(kubectl, screen, name, how),
        "savepoint": lambda: verbs.savepoint(kubectl, screen, name, said.called, how),
        "delete-savepoint": lambda: verbs.delete_savepoint(kubectl, screen, name, said.called, how),
        "hold": lambda: verbs.hold(
            kubectl,
            screen,
            name,
            said.called,
            seconds=said.seconds,
            instant=said.instant,
            reader=said.reader,
            how=how,
        ),
        "unhold": lambda: verbs.unhold(kubectl, screen, name, said.called, how),
        "restore": lambda: verbs.restore(kubectl, screen, name, said.to, said.remove_later, how),
        "service": lambda: verbs.service(kubectl, screen, name, said.kind, how),
        "metadata-table": lambda: verbs.metadata_table(
            kubectl, screen, name, on=said.on, indexes=_indexes(said.indexes), rebuild=said.rebuild, how=how
        ),
        "adopt": lambda: verbs.adopt(kubectl, screen, name, said.instants, how),
        "unfreeze": lambda: verbs.unfreeze(kubectl, screen, name, how),
        "take-over": lambda: verbs.take_over(kubectl, screen, name, how),
        "attest": lambda: verbs.attest(
            kubectl, screen, name, said.pod, said.statement, uid=said.uid, node=said.node, how=how
        ),
    }
    return asked[said.command]()


def _indexes(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [] if text == "none" else [one for one in text.split(",") if one]


if __name__ == "__main__":
    sys.exit(main())
