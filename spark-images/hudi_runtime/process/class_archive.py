"""The image's class archive (class-data sharing).

The JVM maps the classes of Spark, Hudi and S3A from it instead of reading, parsing and verifying
them at each start. It is of one JDK and one class path, which must stand first, in its order, in
that of the JVM. A JVM that cannot use it starts without it.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

FOLDER = Path("/opt/hudi/classes")
"""Of the image (its Dockerfile makes both files); nowhere else is it used."""
ARCHIVE, CLASS_PATH = "classes.jsa", "class-path"


def java_options(folder: Path = FOLDER) -> str:
    """Options of a JVM whose class path begins with :func:`class_path`; empty without an archive.

    It is mapped where it says (`ArchiveRelocationMode=0`). Anywhere else, which is the default,
    each start would patch all of it: 0.6 s and 200 MB.
    """
    archive = folder / ARCHIVE
    if not archive.exists():
        return ""
    return f"-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0 -XX:SharedArchiveFile={archive}"


def class_path(folder: Path = FOLDER) -> str:
    """Jars of the archive, in its order, separated by `:`; empty without an archive."""
    return (folder / CLASS_PATH).read_text(encoding="utf-8").strip() if java_options(folder) else ""


def settings(environ: MutableMapping[str, str] = os.environ, folder: Path = FOLDER) -> dict[str, str]:
    """Spark settings of a driver's JVM that is to use the archive; empty without one.

    Its options are in the variable that Spark adds to those of the driver's settings, which one
    setting more would replace.
    """
    if not java_options(folder):
        return {}
    environ["SPARK_SUBMIT_OPTS"] = java_options(folder)
    return {"spark.driver.extraClassPath": class_path(folder)}
