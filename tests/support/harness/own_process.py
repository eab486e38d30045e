"""A server that a test starts, and that is ended at once: nobody needs its data."""

from __future__ import annotations

import subprocess


class OwnProcess:
    """The process of one server; none before its start."""

    _process: subprocess.Popen[bytes] | None = None

    def stop(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
