"""Write an image from an OCI layout as an archive that leaves out the layers its receiver has already.

    image_archive.py LAYOUT                       print the names of the images in LAYOUT
    image_archive.py LAYOUT NAME [DIGEST] <HAVE   write NAME as a tar to standard output

HAVE is a list of digests, one a line: blobs that containerd's content store holds. containerd accepts an archive
whose manifest refers to such blobs, so that after a change of a few files a few files are sent, and not a gigabyte.
Nothing is written when containerd's image of this name is DIGEST and that is the one in LAYOUT.
"""

import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

NAME = "org.opencontainers.image.ref.name"


def load(layout: Path, digest: str) -> dict[str, Any]:
    """The JSON document that has this digest."""
    document: dict[str, Any] = json.loads(blob(layout, digest).read_bytes())
    return document


def blob(layout: Path, digest: str) -> Path:
    """Where the layout keeps the blob."""
    return layout / "blobs" / digest.replace(":", "/")


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file to the archive."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def main(layout: Path, name: str = "", present: str = "") -> int:
    """See the module's documentation; the exit status is 1 when the layout has no such image."""
    index = layout / "index.json"
    images = json.loads(index.read_text())["manifests"] if index.exists() else []
    if not name:
        print(*(image["annotations"][NAME] for image in images), sep="\n")
        return 0
    found = [image for image in images if image["annotations"][NAME] == name]
    if not found:
        print(f"no image {name} in {layout}: run hack/build-images", file=sys.stderr)
        return 1
    descriptor = found[0]
    have = {line.strip() for line in sys.stdin} if not sys.stdin.isatty() else set()
    if descriptor["digest"] == present:
        return 0
    manifest = load(layout, descriptor["digest"])
    # The name under which containerd keeps the image (and the kubelet looks for it).
    descriptor = {**descriptor, "annotations": {"io.containerd.image.name": f"docker.io/{name}"}}
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", bufsize=1 << 20) as archive:
        add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        add(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [descriptor]}).encode())
        for part in (descriptor, manifest["config"], *manifest["layers"]):
            if part["digest"] not in have or part is descriptor:
                archive.add(blob(layout, part["digest"]), "blobs/" + part["digest"].replace(":", "/"))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
