"""kubectl, as a program: one process for each request."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from hudi_kubectl.objects import JsonDict

MANAGER = "kubectl-hudi"
"""Field manager of what this plugin changes."""


class Failed(Exception):
    """Something that the user has to hear of; its text is all that is printed."""


class Kubectl:
    """kubectl with the connection flags that the user gave (`--context`, `--as` and so on).

    ``namespace``: empty: that of the context.
    """

    def __init__(self, flags: Sequence[str] = (), namespace: str = "") -> None:
        self._command = ["kubectl", *flags]
        self._namespace = ["--namespace", namespace] if namespace else []

    def _run(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                [*self._command, *arguments], capture_output=True, text=True, encoding="utf-8", check=False
            )
        except FileNotFoundError:
            raise Failed("kubectl is not on the PATH: kubectl hudi runs it for each request") from None
        if done.returncode:
            raise Failed(done.stderr.strip() or f"kubectl {arguments[0]} ended with exit code {done.returncode}")
        return done.stdout

    def get(self, kind: str, name: str) -> JsonDict:
        """One object of the namespace."""
        found: JsonDict = json.loads(
            self._run("get", kind, name, *self._namespace, "-o", "json", "--show-managed-fields")
        )
        return found

    def objects(self, kind: str, *, everywhere: bool = False, selector: str = "") -> list[JsonDict]:
        """Objects of the namespace, or of all."""
        where = ["--all-namespaces"] if everywhere else self._namespace
        chosen = ["--selector", selector] if selector else []
        items: list[JsonDict] = json.loads(self._run("get", kind, *where, *chosen, "-o", "json"))["items"]
        return items

    def optional(self, kind: str, *, everywhere: bool = False, selector: str = "") -> list[JsonDict] | None:
        """The same, for what one may not be allowed to see; None: it cannot be listed."""
        try:
            return self.objects(kind, everywhere=everywhere, selector=selector)
        except Failed:
            return None

    def patch(self, kind: str, name: str, change: JsonDict) -> None:
        """Merge a change into one object of the namespace."""
        self._run(
            "patch",
            kind,
            name,
            *self._namespace,
            "--type=merge",
            f"--field-manager={MANAGER}",
            "--patch",
            json.dumps(change),
        )

    def logs(self, pod: str, *flags: str) -> str:
        """The log of a pod of the namespace."""
        return self._run("logs", pod, *self._namespace, *flags)

    def show_logs(self, pod: str, *flags: str) -> int:
        """The same, printed as it comes; returns kubectl's exit code."""
        sys.stdout.flush()
        return subprocess.run([*self._command, "logs", pod, *self._namespace, *flags], check=False).returncode

    def version(self) -> str:
        """Versions of kubectl and of the API server."""
        return self._run("version", "-o", "json")
