"""kubectl hudi: arguments, and the exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hudi_kubectl import commands, importing
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.streamer.given import Places
from hudi_kubectl.streamer.work import Wishes

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
    "suspend": ("suspend a writer, or all writers of a table", True, True),
    "resume": ("the opposite", True, True),
    "restart": ("another run of a writer", False, True),
    "report": ("a bundle for support, without secrets", True, True),
    "import": ("a HoodieStreamer job as a HudiTable and a HudiWriter, without a cluster", False, False),
}
"""Per command: its help; whether it takes tables, and writers (for completion)."""


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
    for name, (text, _, _) in _NAMED.items():
        one = subs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", parents=[shared])
        if name == "status":
            one.add_argument("name", nargs="?", default="", metavar="TABLE")
            one.add_argument("-A", "--all-namespaces", action="store_true")
        elif name == "import":
            _import_options(one)
        else:
            one.add_argument("name", metavar="NAME")
        if name == "timeline":
            one.add_argument("--minutes", type=float, default=0, help="only the last so many (default: all there is)")
            one.add_argument("--svg", default="", metavar="FILE", help="write a picture instead")
        if name == "logs":
            one.add_argument("--attempt", type=int, default=0, help="number of the attempt (default: the last one)")
            one.add_argument("-f", "--follow", action="store_true")
            one.add_argument("--tail", type=int, default=-1, help="lines from the end (default: all)")
        if name in ("suspend", "resume", "restart"):
            one.add_argument("--force", action="store_true", help="also when somebody else keeps the field")
        if name == "report":
            one.add_argument("--file", default="", help="default: hudi-report-TABLE-TIME.tar.gz")
            one.add_argument("--lines", type=int, default=500, help="lines of each log (default: 500)")
    return top


def _import_options(one: argparse.ArgumentParser) -> None:
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


def _split(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own words, and those after `--` of `import`."""
    if "import" not in given or "--" not in given:
        return list(given), []
    at = list(given).index("--")
    return list(given[:at]), list(given[at + 1 :])


def complete(words: Sequence[str]) -> list[str]:
    """What may follow: names of commands, then of objects; for `kubectl_complete-hudi`."""
    done, last = list(words[:-1]), words[-1] if words else ""
    namespace = ""
    for flag in ("-n", "--namespace"):
        if flag in done[:-1]:
            at = done.index(flag)
            namespace = done[at + 1]
            del done[at : at + 2]
    done = [word for word in done if not word.startswith("-")]
    if not done:
        return [name for name in _NAMED if name.startswith(last)]
    if done[0] not in _NAMED or last.startswith("-") or len(done) > 1:
        return []
    _, tables, writers = _NAMED[done[0]]
    if not tables and not writers:
        return []
    return sorted(
        name for name in commands.names(Kubectl(namespace=namespace), tables, writers) if name.startswith(last)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["__complete"]:
        print("\n".join([*complete(given[1:]), ":4"]))  # 4: no names of files
        return 0
    given, job = _split(given)
    said = parser().parse_args(given)
    chosen = {flag: getattr(said, f"kubectl_{flag}") for flag in _CONNECTION}
    kubectl = Kubectl([f"--{flag}={value}" for flag, value in chosen.items() if value], said.namespace)
    screen = commands.Screen(colour=commands.wants_colour(said.color), as_json=said.output == "json")
    try:
        if said.command == "import":
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
        if said.command == "status":
            return commands.status(kubectl, screen, said.name, said.all_namespaces)
        if said.command == "why":
            return commands.explain(kubectl, screen, said.name)
        if said.command == "timeline":
            return commands.timeline(kubectl, screen, said.name, said.minutes, said.svg)
        if said.command in ("queue", "conflicts", "history"):
            run = {"queue": commands.queue, "conflicts": commands.conflicts, "history": commands.history}
            return run[said.command](kubectl, screen, said.name)
        if said.command == "logs":
            return commands.logs(kubectl, said.name, said.attempt, said.follow, said.tail)
        if said.command == "restart":
            return commands.restart(kubectl, screen, said.name, said.force)
        if said.command == "report":
            return commands.make_report(kubectl, screen, said.name, said.file, said.lines)
        return commands.suspend(kubectl, screen, said.name, said.command == "suspend", said.force)
    except Failed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0


if __name__ == "__main__":
    sys.exit(main())
