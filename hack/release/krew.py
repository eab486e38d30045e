"""The kubectl plugin as krew installs it: an archive, and a manifest with its sum.

    python -m hack.release.krew DIR URL

Writes `kubectl-hudi-VERSION.tar.gz` and `hudi.yaml` to DIR. URL is the folder where the archive
will be found; nothing is published. The same sources, version and URL give the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hack.release import version

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "hack" / "build" / "kubectl-hudi" / "build"
PLUGIN = "kubectl-hudi"
NAME = "hudi"
PACKED = ("LICENSE", "NOTICE")
"""Files of the repository that go beside the plugin."""
MANIFEST = """\
# krew's manifest of the plugin, made by hack/release/krew.py.
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: {name}
spec:
  version: v{version}
  shortDescription: Hudi tables and their writers, by your own rights
  description: |
    For tables and writers of hudi-operator: why a writer waits, what happened
    when, what would happen if a file was applied; savepoints, restores and
    table services on demand; an audit of a table. It calls kubectl for each
    request, and needs nothing else in the cluster.
  caveats: |
    Needs python3, 3.9 or newer, on the PATH; for plan 3.11 or newer.
  platforms:
  - selector:
      matchExpressions:
      - {{key: os, operator: In, values: [linux, darwin]}}
    uri: {uri}
    sha256: {sum}
    bin: {plugin}
"""


def archive(plugin: bytes, root: Path = ROOT) -> bytes:
    """The plugin with its licence, as tar.gz."""
    files = {PLUGIN: (plugin, 0o755), **{name: ((root / name).read_bytes(), 0o644) for name in PACKED}}
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def manifest(packed: bytes, uri: str, of: str) -> str:
    """krew's manifest of an archive that will be at ``uri``; ``of`` is the version."""
    return MANIFEST.format(name=NAME, version=of, uri=uri, sum=hashlib.sha256(packed).hexdigest(), plugin=PLUGIN)


def write(out: Path, url: str, of: str) -> None:
    """Archive and manifest of a version; ``url``: the folder where the archive will be found."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(BUILD), folder], check=True, stdout=subprocess.DEVNULL)
        packed = archive((Path(folder) / PLUGIN).read_bytes())
    name = f"{PLUGIN}-{of}.tar.gz"
    out.mkdir(parents=True, exist_ok=True)
    (out / name).write_bytes(packed)
    (out / f"{NAME}.yaml").write_text(manifest(packed, f"{url}/{name}", of), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Write archive and manifest; the exit code."""
    if len(arguments) != 2 or not arguments[1].startswith("https://"):
        print("usage: python -m hack.release.krew DIR https://FOLDER-OF-THE-ARCHIVE", file=sys.stderr)
        return 2
    out = Path(arguments[0])
    write(out, arguments[1].rstrip("/"), version.read())
    print(out / f"{NAME}.yaml")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
