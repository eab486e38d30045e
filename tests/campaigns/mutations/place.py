"""The copy of the checkout that is mutated; the checkout itself is never touched."""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.campaigns.mutations.mutation import Mutation, sources
from tests.support import ROOT

OUT = ROOT / "build" / "mutations"


def tracked() -> list[str]:
    """Files of the checkout, without those that git ignores."""
    said = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    return sorted(name for name in said.decode().split("\0") if name and (ROOT / name).is_file())


class Place:
    """A directory that equals the checkout, except for one mutation at a time."""

    def __init__(self, folder: Path = OUT / "copy") -> None:
        self.folder = folder
        self._changed: dict[str, str] = {}

    def refresh(self) -> None:
        """Bring the copy to what the checkout says now.

        Files that are equal keep their time, so that only what differs is compiled.
        """
        wanted = set(tracked())
        for name in wanted:
            data, target = (ROOT / name).read_bytes(), self.folder / name
            if not target.exists() or target.read_bytes() != data:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            os.chmod(target, (ROOT / name).stat().st_mode & 0o777)
        for folder in ("operator", "gateway", "spark-images/hudi_runtime", "spark-images/etcd-lock/src", "tests"):
            for path in (self.folder / folder).rglob("*"):
                if path.is_file() and str(path.relative_to(self.folder)) not in wanted:
                    path.unlink()

    def apply(self, one: Mutation) -> None:
        """Put a mutation into the copy. Raises Drifted."""
        assert not self._changed, "one at a time"
        for name, text in sources(one, self.folder).items():
            self._changed[name] = (self.folder / name).read_text()
            self._write(name, text)

    def restore(self) -> None:
        """Take it out again."""
        for name, text in self._changed.items():
            self._write(name, text)
        self._changed = {}

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        now = time.time()
        os.utime(path, (now, now))


def digest(names: list[str], root: Path = ROOT) -> str:
    """Hash of files."""
    found = hashlib.sha256()
    for name in names:
        found.update(name.encode() + b"\0" + (root / name).read_bytes() + b"\0")
    return found.hexdigest()


def beside(tests: Iterable[str], names: Iterable[str], root: Path = ROOT) -> set[str]:
    """Files that tests share with others: modules of tests/ that they import, those that these
    import, and fixtures of their folders.

    For Java tests: the other files of their folders that hold no tests.
    """
    known, found, todo = set(names), set[str](), list(tests)
    while todo:
        name = todo.pop()
        folder = Path(name).parent
        if name.endswith(".java"):
            more = {one for one in known if Path(one).parent == folder and not one.endswith("Test.java")}
        else:
            more = {f"{place}/conftest.py" for place in (folder, *folder.parents)} | _imported(
                (root / name).read_text()
            )
        more = (more & known) - found - set(tests)
        found |= more
        todo += [one for one in more if one.endswith(".py")]
    return found


@cache
def _imported(source: str) -> set[str]:
    """Files that the imports of a module may mean: `from tests.a import b` is tests/a/b.py, or
    b of tests/a.py.
    """
    modules = set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {one.name for one in node.names}
    files = {module.replace(".", "/") for module in modules if module.startswith("tests.")}
    return {f"{file}{suffix}" for file in files for suffix in (".py", "/__init__.py")}
