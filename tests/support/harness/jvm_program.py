"""Jars with programs of the JVM, compiled here against the class path of an image, and a Maven
repository that serves some.
"""

from __future__ import annotations

import hashlib
import http.server
import subprocess
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.support.harness.local import CLASS_PATH

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version><dependencies>{needs}
</dependencies></project>"""
NEEDED = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def jar(target: Path, sources: Mapping[str, str], *, class_path: Sequence[Path] = ()) -> Path:
    """A jar with the classes of these Java sources, by the names of the public classes."""
    folder = target.parent / f"{target.name}.build"
    files = []
    for name, source in sources.items():
        file = folder / "src" / Path(*name.split(".")).with_suffix(".java")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
        files.append(str(file))
    path = ":".join([CLASS_PATH, *map(str, class_path)])
    command = ["javac", "--release", "17", "-nowarn", "-proc:none", "-cp", path, "-d", str(folder / "classes"), *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(target, "w") as archive:
        for file in sorted((folder / "classes").rglob("*.class")):
            archive.write(file, file.relative_to(folder / "classes"))
    return target


def wheel(target: Path, modules: Mapping[str, str], *, pure: bool = True) -> Path:
    """A wheel with these modules, by their paths; `target` is its name, as wheels are named."""
    name, version = target.name.split("-")[:2]
    with zipfile.ZipFile(target, "w") as archive:
        for path, source in modules.items():
            archive.writestr(path, source)
        root = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: {str(pure).lower()}\nTag: py3-none-any\n"
        archive.writestr(f"{name}-{version}.dist-info/WHEEL", root)
        archive.writestr(
            f"{name}-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(f"{name}-{version}.dist-info/RECORD", "")
    return target


def publish(repository: Path, coordinate: str, file: Path, *, needs: Sequence[str] = ()) -> None:
    """Lay a jar into a Maven repository, with what it depends on, and with its checksums."""
    group, artifact, version = coordinate.split(":")
    folder = repository / group.replace(".", "/") / artifact / version
    folder.mkdir(parents=True)
    needed = "".join(NEEDED.format(*each.split(":")) for each in needs)
    pom = POM.format(group=group, artifact=artifact, version=version, needs=needed)
    for ending, content in (("pom", pom.encode()), ("jar", file.read_bytes())):
        path = folder / f"{artifact}-{version}.{ending}"
        path.write_bytes(content)
        Path(f"{path}.sha1").write_text(hashlib.sha1(content).hexdigest())


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def mirror(repository: Path) -> Iterator[str]:
    """The repository's URL while it is served."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(repository)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
