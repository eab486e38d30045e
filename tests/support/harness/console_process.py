"""The console as a process, in front of a real API server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JsonDict = dict[str, Any]
_SERVING = re.compile(r"serving (http://\S+) for ")


@dataclass(frozen=True)
class Console:
    """``url``: of the page. ``log``: the file with what the process says."""

    url: str
    log: Path

    def get(self, path: str, token: str) -> tuple[int, JsonDict]:
        """Status and JSON of an answer."""
        try:
            with self.open(path, token) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def open(self, path: str, token: str) -> Any:
        """An answer, to be read line by line."""
        request = urllib.request.Request(f"{self.url}{path}", headers={"Authorization": f"Bearer {token}"})
        return urllib.request.urlopen(request, timeout=60)


@contextmanager
def console(server: str, ca: str, log: Path, *more: str) -> Iterator[Console]:
    """A console that serves on loopback."""
    command = [sys.executable, "-m", "hudi_console", f"--api-server={server}", f"--ca-file={ca}"]
    command += ["--address=127.0.0.1", "--port=0", *more]
    with log.open("w") as out:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        try:
            found = None
            while found is None:
                line = process.stderr.readline()
                assert line, "the console has ended"
                out.write(line)
                found = _SERVING.search(line)
            # The rest is read by nobody until it ends; a pipe has room for thousands of its lines.
            yield Console(found[1], log)
        finally:
            process.terminate()
            out.write(process.communicate(timeout=20)[1])
