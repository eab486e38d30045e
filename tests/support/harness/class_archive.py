"""Class-data sharing for the JVMs of tests: the classes of Spark, Hudi and S3A, parsed and verified
once instead of at each start.

`python -m tests.support.harness.class_archive` makes the archive in the cache when it is not there:
a real agent and a real writer of a table on S3 list the classes that they load, and the JVM dumps
these. Without an archive, or with other jars, a JVM starts as ever, only later.

`--list` writes the list of the image's archive, spark-images/classes.list.gz: to be made again for
another version of Spark or Hudi.

An archive is of one JDK and one class path: `CLASS_PATH` must stand first, in this order, in the
class path of a JVM that is to use it. Our own jar is not part of it, so it outlives a change
of our code.
"""

from __future__ import annotations

import fcntl
import functools
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import pyspark

from hudi_runtime.process import class_archive as of_a_jvm
from tests.support import CACHE, ROOT

FOLDER = CACHE / "classes"
"""One archive, about 200 MB: an earlier one goes when the jars have changed."""
IMAGE_LIST = ROOT / "spark-images" / "classes.list.gz"
"""List of the classes in the image's archive."""
BUNDLE = "hudi-spark3.5-bundle_2.12-1.2.0.jar"
S3_JARS = ("hadoop-aws-3.3.4.jar", "aws-java-sdk-bundle-1.12.262.jar", "wildfly-openssl-1.0.7.Final.jar")
KAFKA_JARS = (
    "spark-sql-kafka-0-10_2.12-3.5.7.jar",
    "spark-token-provider-kafka-0-10_2.12-3.5.7.jar",
    "kafka-clients-3.9.2.jar",
    "commons-pool2-2.11.1.jar",
    "lz4-java-1.10.4.jar",
)
SQL_JARS = ("postgresql-42.7.14.jar", "mariadb-java-client-3.5.11.jar")
IMAGE_JARS = (
    BUNDLE,
    *S3_JARS,
    *KAFKA_JARS,
    *SQL_JARS,
    "spark-avro_2.12-3.5.9.jar",
    "gcs-connector-hadoop3-2.2.26-shaded.jar",
)
CLASS_PATH = (
    *(str(CACHE / "jars" / jar) for jar in IMAGE_JARS),
    *(str(path) for path in sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))),
)
"""Jars of the image besides our own: those that it adds, and Spark's."""
_BROKEN = "source:"
"""Classes of other loaders than the application's are not dumped."""


@functools.cache
def archive() -> Path:
    """Path of the archive of this JDK and these jars, whether or not it exists."""
    java = _program().resolve()
    release = java.parent.parent / "release"
    told = [str(java), release.read_text() if release.exists() else "", str(java.stat().st_mtime_ns)]
    # The JVM compares size and time of each jar itself, too.
    told += [
        f"{path} {found.st_size} {found.st_mtime_ns}"
        for path in CLASS_PATH
        if os.path.exists(path) and (found := os.stat(path))
    ]
    return FOLDER / f"{hashlib.sha256(chr(10).join(told).encode()).hexdigest()[:16]}.jsa"


def java_options() -> str:
    """Options of a JVM that begins its class path with `CLASS_PATH`; empty without an archive."""
    return " ".join(of_a_jvm.java_options(archive()))


def make() -> Path:
    """Make the archive unless it is there; returns its path."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive().exists():
            with tempfile.TemporaryDirectory(prefix="hudi-classes-") as folder:
                listed = _listed(Path(folder))
                _dump(listed, Path(folder))
            for old in FOLDER.glob("*.jsa"):
                if old != archive():
                    old.unlink()
    return archive()


def _listed(folder: Path) -> Path:
    """Classes that an agent, a writer and a reader have loaded."""
    from tests.support.harness import local

    names = folder / "listed"
    names.mkdir()
    local.JAVA_OPTIONS += f" -XX:DumpLoadedClassList={names}/%p"
    world = local.World(folder / "world")
    world.start()
    try:
        table = world.table("classes", type="MergeOnRead")
        agent = world.agent(local.AGENT, storage=table)
        world.create(table, agent=local.AGENT, process=agent)
        batches = [{"rows": local.rows(range(10), p, "v", ts)} for ts, p in ((1, "a"), (2, "a"), (3, "b"))]
        writer = table.writer("writer", python={"batches": batches})
        assert writer.wait() == 0, writer.log()[-4000:]
        table.audit()
        agent.terminate()
        agent.wait()
    finally:
        world.stop()
    time.sleep(2)  # a JVM ends a moment after the process that has started it
    lines = {line for path in names.iterdir() for line in path.read_text(errors="replace").splitlines(keepends=True)}
    whole = {
        line.rstrip("\n") for line in lines if line.endswith("\n") and _BROKEN not in line and not line.startswith("#")
    }
    found = {line if line.startswith("@") else line.split(" ")[0] for line in whole}
    assert len(found) > 5000, f"{len(found)} classes of {len(list(names.iterdir()))} JVMs: too few"
    listed = folder / "classes.list"
    listed.write_text("\n".join(sorted(found, key=lambda line: (line.startswith("@"), line))) + "\n")
    return listed


def _dump(listed: Path, folder: Path) -> None:
    made = archive().with_suffix(".new")
    path = ":".join(CLASS_PATH)
    _java(
        "-Xshare:dump",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        f"-XX:SharedClassListFile={listed}",
        f"-XX:SharedArchiveFile={made}",
        "-cp",
        path,
    )
    # As Spark starts it: a folder of settings and more jars behind. With `on` a JVM that cannot use
    # the archive does not start.
    _java(
        "-Xshare:on",
        f"-XX:SharedArchiveFile={made}",
        "-XX:+UseSerialGC",
        "-cp",
        f"{path}:{folder}:{CLASS_PATH[0]}",
        "-version",
    )
    made.rename(archive())


def _java(*arguments: str) -> None:
    done = subprocess.run([str(_program()), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-4000:]


def _program() -> Path:
    """The JVM that Spark starts, too."""
    home = os.environ.get("JAVA_HOME")
    return Path(home, "bin", "java") if home else Path(shutil.which("java") or "/usr/bin/java")


def write_list(path: Path) -> int:
    """Write what an image's archive is to hold; returns the number of classes.

    Our own classes are not in it: that layer of the image is below that of our jar.
    """
    with tempfile.TemporaryDirectory(prefix="hudi-classes-") as folder:
        lines = _listed(Path(folder)).read_text().splitlines()
    kept = [line for line in lines if "io/hudioperator/" not in line]
    path.write_bytes(gzip.compress(("\n".join(kept) + "\n").encode(), mtime=0))
    return sum(not line.startswith("@") for line in kept)


if __name__ == "__main__":
    begin = time.monotonic()
    if sys.argv[1:] == ["--list"]:
        print(f"{IMAGE_LIST}: {write_list(IMAGE_LIST)} classes")
        sys.exit()
    try:
        print(f"{make()}: {archive().stat().st_size >> 20} MB, {time.monotonic() - begin:.0f} s")
    except Exception:  # it only saves time
        traceback.print_exc()
        print("no class archive could be made: the tests run without it")
