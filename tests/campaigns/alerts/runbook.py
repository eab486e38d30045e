"""The commands of a runbook, and what comes of them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import CACHE, ROOT

JsonDict = dict[str, Any]
FOLDER = ROOT / "docs" / "operate" / "runbooks"
WORDS = ("NAMESPACE", "TABLE", "WRITER", "AGENT", "POD")
"""Words that stand for something in a command."""
NOT_RUN = {
    "kubectl top": "there is no metrics-server",
    "port-forward": "there is no kubelet: the next command asks that port of etcd itself",
}
"""Commands that this cluster cannot run, by a part of them."""
FORWARDED = "127.0.0.1:2381"
"""Where a command expects the metrics of etcd."""
_WORD = re.compile(rf"\b({'|'.join(WORDS)})\b")


@dataclass(frozen=True)
class Command:
    """A line of a page that is meant for a shell."""

    section: str
    line: str

    @property
    def words(self) -> set[str]:
        """Words in capitals that it needs."""
        return set(_WORD.findall(self.line))

    @property
    def why_not(self) -> str:
        """Why it is not run; empty when it is."""
        shown = re.sub(r"kubectl(?: -n \S+)? top\b", "kubectl top", self.line)
        return next((why for part, why in NOT_RUN.items() if part in shown), "")


def commands(alert: str) -> list[Command]:
    """Commands of an alert's page: blocks, and `kubectl -n …` within the text."""
    found: list[Command] = []
    section = ""
    for line in (FOLDER / f"{alert}.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.startswith("    "):
            found.append(Command(section, line.strip()))
        else:
            found += [Command(section, one) for one in re.findall(r"`(kubectl -n [^`]+)`", line)]
    return found


def run(
    command: Command, words: Mapping[str, str], *, kubeconfig: Path, etcd_metrics: int
) -> subprocess.CompletedProcess[str]:
    """Run it as a person would; ``etcd_metrics``: port at which etcd serves them."""
    line = _WORD.sub(lambda found: words[found[1]], command.line)
    line = line.replace(FORWARDED, f"127.0.0.1:{etcd_metrics}")
    environment = {**os.environ, "PATH": f"{CACHE / 'bin'}:{os.environ['PATH']}", "KUBECONFIG": str(kubeconfig)}
    environment |= {"no_proxy": "127.0.0.1"}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], env=environment, capture_output=True, text=True, timeout=60
    )


def followed(
    alert: str, words: Mapping[str, str], shows: tuple[str, ...], *, kubeconfig: Path, etcd_metrics: int
) -> tuple[list[JsonDict], list[str]]:
    """Run all commands of a page in their order.

    Returns what came of each, and what is wrong: commands that fail, and what nothing has shown.
    """
    done: list[JsonDict] = []
    wrong: list[str] = []
    told = ""
    for command in commands(alert):
        if why := command.why_not:
            done.append({"command": command.line, "notRun": why})
            continue
        if missing := command.words - words.keys():
            wrong.append(f"{command.line}: what is {', '.join(sorted(missing))}?")
            continue
        ended = run(command, words, kubeconfig=kubeconfig, etcd_metrics=etcd_metrics)
        lines = ended.stdout.splitlines()
        told += ended.stdout
        shown = [text for text in shows if text in ended.stdout]
        done.append({"command": command.line, "exit": ended.returncode, "lines": len(lines), "shows": shown})
        if ended.returncode != 0:
            wrong.append(f"{command.line}: exit status {ended.returncode}: {ended.stderr.strip()[:300]}")
    wrong += [f"no command shows {text!r}" for text in shows if text not in told]
    return done, wrong
