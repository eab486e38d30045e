"""A second S3 server on the files of a World, with users that come and go."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import CACHE
from tests.support.harness.local import ACCESS_KEY, LAID, SECRET_KEY, mount_keys
from tests.support.harness.processes import until
from tests.support.ports import free_port

_SERVER = CACHE / "bin" / "versitygw"


class Users:
    """The server and its users. A user that is removed is refused at once."""

    def __init__(self, folder: Path, files: Path, *, host: str = "127.0.0.1") -> None:
        """`files`: folder that the server serves; a folder in it is a bucket. `host`: where it
        listens.
        """
        self._users = folder / "users"
        self._users.mkdir(parents=True)
        port = free_port()
        self.url = f"http://{host}:{port}"
        identity = ["--iam-dir", str(self._users), "--iam-cache-disable"]
        command = [str(_SERVER), "--access", ACCESS_KEY, "--secret", SECRET_KEY, "--quiet", *identity]
        with (folder / "s3-users.log").open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--port", f"{host}:{port}", "posix", "--default-etag", LAID, str(files)],
                stdout=log,
                stderr=log,
            )
        until("the server answers", lambda: self._admin("list-users").returncode == 0, timeout=30)

    def _admin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        who = ["--access", ACCESS_KEY, "--secret", SECRET_KEY, "--endpoint-url", self.url]
        return subprocess.run(
            [str(_SERVER), "admin", *who, *arguments], capture_output=True, text=True, timeout=30, check=False
        )

    def add(self, name: str) -> None:
        """A user who may do everything."""
        done = self._admin("create-user", "--access", name, "--secret", f"secret-of-{name}", "--role", "admin")
        assert done.returncode == 0, done.stderr

    def remove(self, name: str) -> None:
        """Requests with this user's keys are refused from now on."""
        done = self._admin("delete-user", "--access", name)
        assert done.returncode == 0, done.stderr

    def mount(self, name: str, *pods: Path) -> None:
        """Replace the keys in the folders of these processes by those of a user."""
        for pod in pods:
            mount_keys(pod / "s3", name, f"secret-of-{name}")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
