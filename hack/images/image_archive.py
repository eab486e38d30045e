"""Write an image from an OCI layout as an archive without the layers that its receiver already has.

    image_archive.py names LAYOUT                       print the names of the images in LAYOUT
    image_archive.py prune LAYOUT                       remove the blobs that none of them refers to
    image_archive.py write LAYOUT NAME [DIGEST] <HAVE   write NAME as a tar to standard output

HAVE is a list of digests, one per line: blobs in containerd's content store. containerd accepts an
archive whose manifest refers to such blobs, so that after a change of a few files only these are
sent, and not a gigabyte. Nothing is written when containerd's image of this name is DIGEST and
LAYOUT has the same one.
"""

import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

NAME = "org.opencontainers.image.ref.name"
LOCAL = "localhost/"
"""Images made here are named so: no registry is asked for such a name."""


def load(layout: Path, digest: str) -> dict[str, Any]:
    """The JSON document that has this digest."""
    document: dict[str, Any] = json.loads(blob(layout, digest).read_bytes())
    return document


def blob(layout: Path, digest: str) -> Path:
    """Path of the blob in the layout."""
    return layout / "blobs" / digest.replace(":", "/")


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file to the archive."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def index(layout: Path) -> list[dict[str, Any]]:
    """The layout's images; an entry without a local name was replaced."""
    file = layout / "index.json"
    images: list[dict[str, Any]] = json.loads(file.read_text())["manifests"] if file.exists() else []
    return [image for image in images if image.get("annotations", {}).get(NAME, "").startswith(LOCAL)]


def parts(layout: Path, descriptor: dict[str, Any]) -> list[str]:
    """Digests of all parts of the image, the manifest first."""
    manifest = load(layout, descriptor["digest"])
    return [part["digest"] for part in (descriptor, manifest["config"], *manifest["layers"])]


def prune(layout: Path) -> None:
    """Remove the entries and blobs of images that were replaced."""
    images = index(layout)
    used = {digest for image in images for digest in parts(layout, image)}
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": images}))
    for file in (layout / "blobs" / "sha256").glob("*"):
        if f"sha256:{file.name}" not in used:
            file.unlink()


def write(layout: Path, name: str, present: str = "") -> None:
    """See the module's documentation."""
    found = [image for image in index(layout) if image["annotations"][NAME] == name]
    if not found:
        sys.exit(f"no image {name} in {layout}: run hack/images/build-images")
    have = {line.strip() for line in sys.stdin} if not sys.stdin.isatty() else set()
    if found[0]["digest"] == present:
        return
    # The name under which containerd keeps the image (and the kubelet looks for it).
    descriptor = {**found[0], "annotations": {"io.containerd.image.name": name}}
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", bufsize=1 << 20) as archive:
        add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        add(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [descriptor]}).encode())
        for digest in parts(layout, descriptor):
            if digest not in have or digest == descriptor["digest"]:
                archive.add(blob(layout, digest), "blobs/" + digest.replace(":", "/"))


def main(command: str, layout: Path, *arguments: str) -> None:
    """Execute the command."""
    if command == "names":
        print(*(image["annotations"][NAME] for image in index(layout)), sep="\n")
    elif command == "prune":
        prune(layout)
    elif command == "write":
        write(layout, *arguments)
    else:
        sys.exit(f"unknown command {command}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
