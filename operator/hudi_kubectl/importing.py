"""`kubectl hudi import`: a HoodieStreamer job as YAML for `kubectl apply`, without a cluster."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from hudi_kubectl.cluster import Failed
from hudi_kubectl.streamer import job, words
from hudi_kubectl.streamer.given import BadInput, Places
from hudi_kubectl.streamer.work import Wishes

INCOMPLETE = 3
"""Exit code when something of the job has no counterpart."""


def run(
    wanted: Sequence[str],
    command_file: str,
    files: Sequence[str],
    places: Places,
    wishes: Wishes,
    *,
    namespace: str,
    as_json: bool,
    allow_missing: bool,
) -> int:
    """Translate a job: objects on the output, the report on the error output; the exit code.

    ``wanted``: words of the command line, which count before those of ``command_file``.
    """
    commands: list[tuple[str, Sequence[str]]] = []
    try:
        if command_file:
            commands.append((command_file, words.of_text(_text(command_file), command_file)))
        if wanted:
            commands.append(("command line", list(wanted)))
        if not commands and not files:
            raise Failed("no job: give its options after --, or a file with its command line with --file")
        outcome = job.translate(commands, files, places, wishes, namespace=namespace, allow_missing=allow_missing)
    except BadInput as error:
        raise Failed(str(error)) from None
    if as_json:
        print(json.dumps(job.as_json(outcome), indent=2, ensure_ascii=False))
    else:
        print(job.as_yaml(outcome), end="")
        sys.stdout.flush()
        for line in job.as_text(outcome):
            print(line, file=sys.stderr)
    incomplete = not outcome.is_whole or (bool(outcome.missing) and not allow_missing)
    return INCOMPLETE if incomplete else 0


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"--file {name}: cannot be read: {type(error).__name__}") from None
