"""The image of drivers with one more layer: a wall clock that is off by TEST_CLOCK_SKEW_SECONDS,
another boot id with TEST_BOOT_ID (tests/support/harness/other_clock.py).
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

from hack.images.image_archive import NAME, add, index, load
from hack.images.pause_image import archive as layer

from tests.support.cluster.node import node
from tests.support.harness.other_clock import BOOT_ID, library

BASE = "localhost/hudi-operator/spark:dev"
IMAGE = "localhost/hudi-operator/spark-other-clock:test"


def make(layout: Path, work: Path) -> None:
    """Add the layer to the image in the OCI layout and hand the result to the node."""
    files = {"opt/test-clock.so": library(work).read_bytes(), "etc/ld.so.preload": b"/opt/test-clock.so\n"}
    files["opt/test-boot-id"] = f"{BOOT_ID}\n".encode()
    archive = work / "image.tar"
    with tarfile.open(archive, "w") as out:
        _write(out, layout, layer(**files))
    node("load-image", str(archive), seconds=300)


def _write(out: tarfile.TarFile, layout: Path, layer: bytes) -> None:
    """All but the blobs of the base image: the node has them."""
    base = next(image for image in index(layout) if image["annotations"][NAME] == BASE)
    manifest = load(layout, base["digest"])
    config = load(layout, manifest["config"]["digest"])
    config["rootfs"]["diff_ids"].append(_digest(layer))
    config.setdefault("history", []).append({"created_by": "tests/support/cluster/clock_image.py"})
    kind = manifest["layers"][-1]["mediaType"].split("+")[0].removesuffix(".gzip")
    manifest["layers"].append({"mediaType": kind, "digest": _digest(layer), "size": len(layer)})
    text = json.dumps(config).encode()
    manifest["config"] |= {"digest": _digest(text), "size": len(text)}
    document = json.dumps(manifest).encode()
    descriptor: dict[str, Any] = {"mediaType": base["mediaType"], "digest": _digest(document), "size": len(document)}
    descriptor["annotations"] = {"io.containerd.image.name": IMAGE}
    add(out, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    add(out, "index.json", json.dumps({"schemaVersion": 2, "manifests": [descriptor]}).encode())
    for blob in (layer, text, document):
        add(out, "blobs/" + _digest(blob).replace(":", "/"), blob)


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()
