"""The image's class archive (class-data sharing).

The JVM maps the classes of Spark, Hudi and S3A from it instead of reading, parsing and verifying
them at each start. It is of one JDK and one class path, which must stand first, in its order, in
that of the JVM. A JVM that cannot use it starts without it and prints nothing; `unused` detects
this.

The image's entry point uses this module for executors: it imports the standard library alone.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

FOLDER = Path("/opt/hudi/classes")
"""Folder in the image (its Dockerfile makes both files); it is used nowhere else."""
ARCHIVE, CLASS_PATH = "classes.jsa", "class-path"
_PROCESSES = Path("/proc")


def java_options(archive: Path) -> list[str]:
    """Options of a JVM that maps this archive; none when there is no such file.

    It is mapped where it says (`ArchiveRelocationMode=0`). Anywhere else, which is the default,
    each start would patch all of it: 0.6 s and 200 MB.
    """
    if not archive.exists():
        return []
    return ["-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0", f"-XX:SharedArchiveFile={archive}"]


def of_image(folder: Path) -> tuple[list[str], str]:
    """Options of a JVM, and the jars that must stand first in its class path, separated by `:`.

    Both are empty without an archive.
    """
    options = java_options(folder / ARCHIVE)
    return options, (folder / CLASS_PATH).read_text(encoding="utf-8").strip() if options else ""


def settings(environ: MutableMapping[str, str] = os.environ, folder: Path = FOLDER) -> dict[str, str]:
    """Spark settings of a driver's JVM that is to use the archive; empty without one.

    Its options are in the variable that Spark adds to those of the driver's settings, which one
    setting more would replace.
    """
    options, class_path = of_image(folder)
    if not options:
        return {}
    environ["SPARK_SUBMIT_OPTS"] = " ".join(options)
    return {"spark.driver.extraClassPath": class_path}


def is_mapped(pid: int, archive: Path) -> bool:
    """Whether this JVM has mapped the archive, by the kernel's list of its mappings.

    Raises OSError when that cannot be read.
    """
    maps = (_PROCESSES / str(pid) / "maps").read_text(encoding="utf-8", errors="replace")
    return any(line.endswith(f" {archive}") for line in maps.splitlines())


def unused(pid: int, folder: Path = FOLDER) -> str:
    """A message when this JVM does not use the image's archive; empty when it does.

    Also empty without an archive, and when the mappings of the process cannot be read.
    """
    archive = folder / ARCHIVE
    try:
        wanted = archive.exists() and not is_mapped(pid, archive)
    except OSError:
        return ""
    return f"the class archive {archive} does not fit this JVM or its class path: it is not used" if wanted else ""
