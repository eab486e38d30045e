"""Write a one-file image as a docker archive to standard output: `pause_image.py FILE NAME`, the
file as /pause.

The image that containerd needs for every pod's first process; it is made without any image tool.
"""

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path


def archive(**files: bytes) -> bytes:
    """A tar of the files, the same bytes for the same input."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def main(program: Path, name: str) -> None:
    """Layer, configuration and manifest, as `docker save` writes them."""
    layer = archive(pause=program.read_bytes())
    root = {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}
    config = json.dumps(
        {"architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/pause"]}, "rootfs": root}
    ).encode()
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    sys.stdout.buffer.write(archive(**{"config.json": config, "layer.tar": layer, "manifest.json": manifest}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
