"""A checkout in which Hudi or Spark has another version, with its jars and its Python packages.

It is a clone of the commit that is checked out, in the cache directory; there the version is
changed where the tools of the build and of the tests read it. Jars come from Maven as
hack/jars/fetch-jars fetches them. Their sums are pinned when they are fetched first, and then no
jar but those of Hudi and Spark may be another one than the repository's.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support import CACHE, ROOT

_DEFAULT = r'^ +hudiVersion:\n(?:.*\n){1,6}? +default: "([^"]+)"$'
PLACES = (
    (
        "hudi",
        "spark-images/jars/pom.xml",
        r"<artifactId>hudi-spark[0-9.]+-bundle_[0-9.]+</artifactId>\s+<version>([^<]+)<",
    ),
    ("hudi", "spark-images/etcd-lock/pom.xml", r"<hudi\.version>([^<]+)<"),
    ("hudi", "tests/support/harness/class_archive.py", r'^BUNDLE = "hudi-spark[0-9.]+-bundle_[0-9.]+-(\S+)\.jar"$'),
    ("hudi", "operator/hudi_contract/protocol.json", r'^  "hudiVersion": "([^"]+)",$'),
    ("hudi", "crds/hudioperator.io_huditables.yaml", _DEFAULT),
    ("hudi", "charts/hudi-operator/files/crds/hudioperator.io_huditables.yaml", _DEFAULT),
    ("spark", "spark-images/jars/pom.xml", r"<spark\.version>([^<]+)<"),
    ("spark", "spark-images/etcd-lock/pom.xml", r"<spark\.version>([^<]+)<"),
    ("spark", "requirements-dev.txt", r"^pyspark==(\S+)$"),
    ("spark", "tests/support/harness/class_archive.py", r'"spark-avro_[0-9.]+-([^"]+)\.jar"'),
)
"""Places of each version, in the first group. The images have more places: test_pins.py."""
LINE = re.compile(r"hudi-spark(\d+\.\d+)-bundle_")
VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?")
POM = "spark-images/jars/pom.xml"
SUMS = "spark-images/jars/checksums.sha256"
OF_THE_VERSIONS = re.compile(r"(hudi-spark|spark-avro_)")
"""Jars that may be others than the repository's."""
_NO_ARTIFACT = re.compile(r"Could not find artifact (\S+)")
_NO_PACKAGE = re.compile(r"No matching distribution found for (\S+)")


class CannotBeHadError(Exception):
    """This version cannot be run here; the text says why."""


@dataclass(frozen=True)
class Versions:
    """Versions of Hudi and of Spark."""

    hudi: str
    spark: str

    def __str__(self) -> str:
        return f"hudi-{self.hudi}-spark-{self.spark}"


def pinned(root: Path = ROOT) -> Versions:
    """The versions of a checkout. ValueError: two places have different ones."""
    found: dict[str, set[str]] = {"hudi": set(), "spark": set()}
    for part, path, line in PLACES:
        found[part].add(_match(root, path, line)[1])
    if wrong := {part: sorted(said) for part, said in found.items() if len(said) != 1}:
        raise ValueError(f"places differ: {wrong}")
    return Versions(found["hudi"].pop(), found["spark"].pop())


def _match(root: Path, path: str, line: str) -> re.Match[str]:
    found = list(re.finditer(line, (root / path).read_text(encoding="utf-8"), re.MULTILINE))
    if len(found) != 1:
        raise ValueError(f"{path}: {len(found)} places match {line}, not one")
    return found[0]


def wanted(hudi: str, spark: str, root: Path = ROOT) -> Versions:
    """Requested versions; an empty one is that of the checkout.

    Raises CannotBeHadError for what is no version, and for another line of Spark than the code is
    compiled for.
    """
    here = pinned(root)
    asked = Versions(hudi or here.hudi, spark or here.spark)
    for name, said in (("HUDI", asked.hudi), ("SPARK", asked.spark)):
        if not VERSION.fullmatch(said):
            raise CannotBeHadError(f"{name}={said!r}: must be a release, MAJOR.MINOR.PATCH")
    (line,) = set(LINE.findall((root / POM).read_text(encoding="utf-8")))
    if not asked.spark.startswith(f"{line}."):
        raise CannotBeHadError(
            f"SPARK={asked.spark}: must be a release {line}.x, because {POM} and the Java module name artifacts of "
            f"Spark {line}. Another line is a change of the code: make it, then run make certify without versions"
        )
    return asked


def change(root: Path, versions: Versions) -> None:
    """Write the versions to each place of a checkout."""
    for part, path, line in PLACES:
        found = _match(root, path, line)
        text = found.string
        said = getattr(versions, part)
        (root / path).write_text(text[: found.start(1)] + said + text[found.end(1) :], encoding="utf-8")


def make(versions: Versions) -> tuple[Path, dict[str, str]]:
    """The checkout, and the environment in which its tests run.

    Raises CannotBeHadError when Maven or pip does not have the version, or could not be asked; then
    nothing is left of a version that was not there before.
    """
    place = CACHE / "certify" / str(versions)
    known = place.exists()
    try:
        return _made(versions, place)
    except CannotBeHadError:
        if not known:
            shutil.rmtree(place)
        raise


def _made(versions: Versions, place: Path) -> tuple[Path, dict[str, str]]:
    checkout, cache = place / "checkout", place / "cache"
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    if not checkout.exists():
        subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", ROOT, checkout], check=True)
    subprocess.run(["git", "checkout", "--quiet", "--force", "--detach", head.strip()], cwd=checkout, check=True)
    earlier = cache / "checksums.sha256"
    pins = (checkout / SUMS).read_text(encoding="utf-8")
    change(checkout, versions)
    share(cache, same_spark=versions.spark == pinned().spark)
    env = {**os.environ, "HUDI_OPERATOR_CACHE": str(cache), "HUDI_OPERATOR_CLUSTER": "certify"}
    if earlier.exists():  # fetched before: it must be the same again
        (checkout / SUMS).write_text(earlier.read_text(encoding="utf-8"), encoding="utf-8")
    _fetched(["hack/jars/fetch-jars"], checkout, env | ({} if earlier.exists() else {"JARS_PIN": "1"}), versions)
    sums = (checkout / SUMS).read_text(encoding="utf-8")
    if changed := others(pins, sums):
        raise CannotBeHadError(
            f"{versions}: other jars than those of Hudi and Spark have changed: {', '.join(changed)}"
        )
    earlier.write_text(sums, encoding="utf-8")
    _fetched(["hack/setup/venv"], checkout, env, versions)
    return checkout, env


def share(cache: Path, *, same_spark: bool) -> None:
    """Take over what does not depend on the version: programs, servers, Python packages."""
    cache.mkdir(parents=True, exist_ok=True)
    for name in ("bin", "log", "kafka", "hive", "hdfs", *(("venv", ".venv.lock") if same_spark else ())):
        if (CACHE / name).exists() and not (cache / name).exists():
            (cache / name).symlink_to(CACHE / name)


def _fetched(command: list[str], checkout: Path, env: Mapping[str, str], versions: Versions) -> None:
    done = subprocess.run(command, cwd=checkout, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotBeHadError(refusal(versions, command[0], done.stdout + done.stderr))


def refusal(versions: Versions, program: str, said: str) -> str:
    """Why a version cannot be had, from the output of Maven or pip."""
    if found := _NO_ARTIFACT.search(said):
        return f"HUDI={versions.hudi} SPARK={versions.spark}: Maven has no {found[1]}"
    if found := _NO_PACKAGE.search(said):
        return f"HUDI={versions.hudi} SPARK={versions.spark}: pip has no {found[1]}"
    last = "\n".join(said.strip().splitlines()[-5:])
    asked = f"HUDI={versions.hudi} SPARK={versions.spark}"
    return f"{asked}: whether there is such a release is not known, {program} failed:\n{last}"


def others(before: str, after: str) -> list[str]:
    """Jars that are not of Hudi or Spark, and that differ between two lists of sums."""
    one, two = ({line.split()[1]: line.split()[0] for line in text.splitlines()} for text in (before, after))
    return sorted(
        name for name in one.keys() | two.keys() if one.get(name) != two.get(name) and not OF_THE_VERSIONS.match(name)
    )
