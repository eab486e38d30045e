"""kubectl, as a program: one process for each request."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import IO

from hudi_kubectl.objects import JsonDict

MANAGER = "kubectl-hudi"
"""Field manager of what this plugin changes."""
DRY_RUN = ("none", "client", "server")
"""Values of `--dry-run`, as kubectl has them."""


class Failed(Exception):
    """Something that the user has to hear of; its text is all that is printed."""


class Kubectl:
    """kubectl with the connection flags that the user gave (`--context`, `--as` and so on).

    ``namespace``: empty: that of the context.
    """

    def __init__(self, flags: Sequence[str] = (), namespace: str = "") -> None:
        self._command = ["kubectl", *flags]
        self._namespace = ["--namespace", namespace] if namespace else []

    def within(self, namespace: str) -> Kubectl:
        """The same for another namespace; empty: that of the context."""
        return Kubectl(self._command[1:], namespace)

    def _run(self, *arguments: str, stdin: str = "") -> str:
        try:
            done = subprocess.run(
                [*self._command, *arguments],
                input=stdin or None,  # else a login of kubectl may ask the user
                capture_output=True,
                text=True,
                encoding="utf-8",
                check=False,
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

    def patch(self, kind: str, name: str, change: JsonDict, *, dry_run: str = "none") -> JsonDict:
        """Merge a change into one object of the namespace; returns the resulting object.

        ``dry_run``: one of `DRY_RUN`.
        """
        found: JsonDict = json.loads(
            self._run(
                "patch",
                kind,
                name,
                *self._namespace,
                "--type=merge",
                f"--field-manager={MANAGER}",
                f"--dry-run={dry_run}",
                "-o",
                "json",
                "--patch",
                json.dumps(change),
            )
        )
        return found

    def written_in(self, file: str, stdin: str = "") -> list[JsonDict]:
        """The objects of a file, folder or URL; `-`: of ``stdin``. No field of them is judged."""
        text = self._run(
            "create", "--dry-run=client", "--validate=false", "-o", "json", *self._namespace, "-f", file, stdin=stdin
        )
        reader, at = json.JSONDecoder(), 0
        found: list[JsonDict] = []
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            one, at = reader.raw_decode(text, at)
            found.extend(one["items"] if one.get("kind") == "List" else [one])
        return found

    def applied(self, what: JsonDict) -> JsonDict:
        """An object as `kubectl apply` would leave it: a dry run of the API server."""
        found: JsonDict = json.loads(
            self._run("apply", "--dry-run=server", *self._namespace, "-o", "json", "-f", "-", stdin=json.dumps(what))
        )
        return found

    def create(self, what: JsonDict, *, dry_run: str = "none") -> JsonDict:
        """Create an object; returns the created object."""
        flags = (f"--field-manager={MANAGER}", f"--dry-run={dry_run}", "-o", "json", "-f", "-")
        found: JsonDict = json.loads(self._run("create", *self._namespace, *flags, stdin=json.dumps(what)))
        return found

    def delete(self, kind: str, name: str) -> None:
        """Delete an object of the namespace, if it exists, with its dependents."""
        flags = ("--ignore-not-found", "--wait=false", "--cascade=background")
        self._run("delete", kind, name, *self._namespace, *flags)

    def user(self) -> str:
        """The user's name as the API server sees it."""
        info = json.loads(self._run("auth", "whoami", "-o", "json"))
        return str(info["status"]["userInfo"]["username"])

    def logs(self, pod: str, *flags: str) -> str:
        """The log of a pod of the namespace."""
        return self._run("logs", pod, *self._namespace, *flags)

    def show_logs(self, pod: str, *flags: str) -> int:
        """The same, printed as it comes; returns kubectl's exit code."""
        sys.stdout.flush()
        return subprocess.run([*self._command, "logs", pod, *self._namespace, *flags], check=False).returncode

    def execute(
        self, target: str, container: str, command: Sequence[str], output: IO[bytes] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a pod of the namespace, or of a Deployment.

        ``output``: a file that its output is written to as it comes. The exit code is that of the
        command.
        """
        flags = ("exec", *self._namespace, target, "--container", container, "--quiet", "--", *command)
        return subprocess.run(
            [*self._command, *flags],
            stdout=output or subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            check=False,
        )

    def version(self) -> str:
        """Versions of kubectl and of the API server."""
        return self._run("version", "-o", "json")
