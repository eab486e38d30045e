"""The image of drivers with one more layer: a wall clock that is off by TEST_CLOCK_SKEW_SECONDS, another boot id with TEST_BOOT_ID.

Both are environment variables of a pod; without them nothing is different.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from image_archive import NAME, add, index, load
from node import node
from pause_image import archive as layer

BASE = "hudi-operator/spark:dev"
IMAGE = "hudi-operator/spark-other-clock:test"
VARIABLE = "TEST_CLOCK_SKEW_SECONDS"
BOOT_VARIABLE = "TEST_BOOT_ID"
BOOT_ID = "00000000-1111-2222-3333-444444444444"
"""What a process reads as the boot id when that variable is set, as in a sandbox with its own kernel."""
# The monotonic clock stays as it is. System calls, because these very functions are replaced.
SOURCE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, id, now);
  const char *skew = getenv("VARIABLE");
  if (!failed && skew && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += atol(skew);
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec found;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &found);
  now->tv_sec = found.tv_sec;
  now->tv_usec = found.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  if (now) *now = found.tv_sec;
  return found.tv_sec;
}

static int opened(const char *path, int flags, int mode) {
  if (!strcmp(path, "/proc/sys/kernel/random/boot_id") && getenv("BOOT")) path = "/opt/test-boot-id";
  return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int mode = va_arg(more, int);
  va_end(more);
  return opened(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int mode = va_arg(more, int);
  va_end(more);
  return opened(path, flags, mode);
}
""".replace("VARIABLE", VARIABLE).replace("BOOT", BOOT_VARIABLE)


def make(layout: Path, work: Path) -> None:
    """Add the layer to the image in the OCI layout and hand the result to the node."""
    work.mkdir(parents=True, exist_ok=True)
    (work / "clock.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", str(work / "clock.so"), str(work / "clock.c")], check=True)
    files = {"opt/test-clock.so": (work / "clock.so").read_bytes(), "etc/ld.so.preload": b"/opt/test-clock.so\n"}
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
    config.setdefault("history", []).append({"created_by": "tests/e2e/clock_image.py"})
    kind = manifest["layers"][-1]["mediaType"].split("+")[0].removesuffix(".gzip")
    manifest["layers"].append({"mediaType": kind, "digest": _digest(layer), "size": len(layer)})
    text = json.dumps(config).encode()
    manifest["config"] |= {"digest": _digest(text), "size": len(text)}
    document = json.dumps(manifest).encode()
    descriptor: dict[str, Any] = {"mediaType": base["mediaType"], "digest": _digest(document), "size": len(document)}
    descriptor["annotations"] = {"io.containerd.image.name": f"docker.io/{IMAGE}"}
    add(out, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    add(out, "index.json", json.dumps({"schemaVersion": 2, "manifests": [descriptor]}).encode())
    for blob in (layer, text, document):
        add(out, "blobs/" + _digest(blob).replace(":", "/"), blob)


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()
