"""What the images are made of is pinned: by digest, by hash, by checksum, in one version each."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.harness import class_archive

POM = "{http://maven.apache.org/POM/4.0.0}"
DOCKERFILES = (
    sorted(ROOT.glob("Dockerfile")) + sorted(ROOT.glob("*/Dockerfile")) + sorted(ROOT.glob("hack/*/*/Dockerfile"))
)
LOCKS = {
    "Dockerfile": "operator/requirements",
    "spark-images/Dockerfile": "spark-images/requirements",
    "hack/images/console/Dockerfile": "hack/images/console/requirements",
}
LEFT_BEHIND = {"spark-sql-kafka-0-10_2.12", "spark-token-provider-kafka-0-10_2.12"}
"""Modules of Spark that Maven Central does not have in the version of pyspark."""


def instructions(dockerfile: Path) -> list[str]:
    """Of a Dockerfile, one line each."""
    return [line for line in dockerfile.read_text().replace("\\\n", " ").splitlines() if line and line[0] != "#"]


def dependencies(pom: Path) -> dict[str, str]:
    """Artifact to version."""
    root = ElementTree.parse(pom).getroot()
    properties = {item.tag.removeprefix(POM): item.text or "" for item in root.iterfind(f"{POM}properties/*")}
    found = {}
    for item in root.iterfind(f"{POM}dependencies/{POM}dependency"):
        version = item.findtext(f"{POM}version", "")
        name = item.findtext(f"{POM}artifactId", "")
        found[name] = re.sub(r"\$\{(.+?)\}", lambda match: properties[match[1]], version)
    return found


def pinned(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / f"{lock}.txt").read_text(), re.MULTILINE))


def sums(path: Path) -> dict[str, str]:
    lines = [re.fullmatch(r"([0-9a-f]{64})  (\S+)", line) for line in path.read_text().splitlines()]
    assert all(lines), path
    return {line[2]: line[1] for line in lines if line}


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_base_image_is_named_by_digest_only(dockerfile: Path) -> None:
    """It is given to the build, which refuses a tag: nobody has looked up a digest here."""
    lines = instructions(dockerfile)
    stages = {line.split()[3] for line in lines if line.startswith("FROM") and len(line.split()) == 4}
    for index, line in enumerate(lines):
        if line.startswith("FROM ") and line.split()[1] not in stages | {"scratch"}:
            assert line.split()[1] == "${BASE}"
            assert lines[index - 1 : index + 2 : 2] == ["ARG BASE", "ARG BASE"], "without a default"
            asked = r"RUN echo \"\$BASE\" \| grep -qE '@sha256:\[0-9a-f\]\{64\}\$' \|\| \{.*exit 1; \}"
            assert re.match(asked, lines[index + 2])


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pip_installs_what_has_a_hash(dockerfile: Path) -> None:
    name = str(dockerfile.relative_to(ROOT))
    installs = [line for line in instructions(dockerfile) if re.search(r"\bpip\S* install", line)]
    assert len(installs) == (name in LOCKS)
    for line in installs:
        assert {"--require-hashes", "--no-build-isolation"} <= set(line.split())
        assert re.findall(r" -r (\S+)", line) == [
            line.split()[2] for line in instructions(dockerfile) if line.startswith(f"COPY {LOCKS[name]}.txt ")
        ]


@pytest.mark.parametrize("lock", LOCKS.values())
def test_a_lock_has_hashes_and_what_is_wanted(lock: str) -> None:
    entries = re.split(r"\n(?=[a-z])", (ROOT / f"{lock}.txt").read_text())[1:]
    assert len(entries) >= 6
    for entry in entries:
        assert re.match(r"[a-z0-9.-]+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", entry), entry
    wanted = re.findall(r"^([a-z0-9-]+)", (ROOT / f"{lock}.in").read_text(), re.MULTILINE)
    assert set(wanted) <= set(pinned(lock))


def test_the_lock_of_the_console_is_a_part_of_the_operators() -> None:
    """One version of a library, looked after once."""

    def entries(lock: str) -> dict[str, list[str]]:
        found = re.split(r"\n(?=[a-z])", (ROOT / f"{lock}.txt").read_text())[1:]
        return {entry.split()[0]: re.findall(r"--hash=(\S+)", entry) for entry in found}

    console, operator = (entries(LOCKS[name]) for name in ("hack/images/console/Dockerfile", "Dockerfile"))
    assert console == {name: operator.get(name) for name in console}


def test_spark_is_one_version() -> None:
    """pyspark of image and tests, the modules that are added, and what our jar is compiled with."""
    (tests,) = re.findall(r"^pyspark==(\S+)", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
    (shown,) = re.findall(r"Spark ([0-9.]+[0-9]),", (ROOT / "README.md").read_text())
    found = {"pyspark": pinned("spark-images/requirements")["pyspark"], "tests": tests, "README.md": shown}
    for pom in ("spark-images/jars/pom.xml", "spark-images/etcd-lock/pom.xml"):
        modules = {name: version for name, version in dependencies(ROOT / pom).items() if name.startswith("spark-")}
        found |= {f"{pom}: {name}": version for name, version in modules.items()}
    assert len(found) >= 9
    behind = {name.partition(": ")[2] for name, version in found.items() if version != tests}
    assert behind == LEFT_BEHIND, found


def test_other_parts_are_one_version() -> None:
    """What the image adds, and what our jar is compiled with and tested against."""
    image, jar = (dependencies(ROOT / f"spark-images/{name}/pom.xml") for name in ("jars", "etcd-lock"))
    shared = set(image) & set(jar) - LEFT_BEHIND
    assert {"hudi-spark3.5-bundle_2.12", "gcs-connector"} <= shared
    assert {name: image[name] for name in shared} == {name: jar[name] for name in shared}
    dev = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE))
    for lock in LOCKS.values():
        both = set(pinned(lock)) & set(dev)
        assert {name: pinned(lock)[name] for name in both} == {name: dev[name] for name in both}


@pytest.mark.parametrize("folder", ["spark-images/jars", "hack/jars/kafka", "hack/jars/hdfs"])
def test_every_jar_that_is_fetched_has_its_checksum(folder: str) -> None:
    listed = set(sums(ROOT / folder / "checksums.sha256"))
    wanted = dependencies(ROOT / folder / "pom.xml")
    assert len(listed) >= len(wanted) >= 2
    found = {name for name, version in wanted.items() if any(jar.startswith(f"{name}-{version}") for jar in listed)}
    assert found == set(wanted)
    if folder == "spark-images/jars":
        assert listed == set(class_archive.IMAGE_JARS)


def test_what_the_build_of_our_jar_fetches_has_its_checksum() -> None:
    listed = sums(ROOT / "spark-images/etcd-lock/checksums.sha256")
    for name, version in dependencies(ROOT / "spark-images/etcd-lock/pom.xml").items():
        assert any(f"/{name}/{version}/{name}-{version}" in path for path in listed), name
    for item in ElementTree.parse(ROOT / "spark-images/etcd-lock/pom.xml").getroot().iterfind(f".//{POM}plugin"):
        name, version = item.findtext(f"{POM}artifactId"), item.findtext(f"{POM}version")
        assert version, f"{name}: without a version"
        assert any(f"/{name}/{version}/{name}-{version}.jar" in path for path in listed), name


def test_every_package_of_npm_has_its_checksum_and_runs_no_script() -> None:
    """Names of hosts stay out of the lock: npm asks the registry of whoever installs them."""
    wanted = json.loads((ROOT / "hack/quint/package.json").read_text())
    (lock, *others) = json.loads((ROOT / "hack/quint/package-lock.json").read_text())["packages"].items()
    assert lock == ("", {"dependencies": wanted["dependencies"], "engines": wanted["engines"]})
    assert len(others) >= 50
    for path, package in others:
        assert re.match(r"sha512-[A-Za-z0-9+/]{86}==$", package["integrity"]), path
        assert package["license"], path
        assert "resolved" not in package, path
    versions = {path.removeprefix("node_modules/"): package["version"] for path, package in others}
    pinned_here = wanted["dependencies"] | wanted["overrides"]
    assert {name: versions[name] for name in pinned_here} == pinned_here
    script = (ROOT / "hack/quint/fetch-quint").read_text()
    assert re.findall(r"^ *npm (?:ci|i|install)\b.* --ignore-scripts ", script, re.MULTILINE)
    assert len(re.findall(r"^ *npm ", script, re.MULTILINE)) == 1


@pytest.mark.parametrize("what", ["whole", "changed", "missing", "one more"])
def test_another_jar_than_the_pinned_one_is_refused(tmp_path: Path, what: str) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    listed = {"a-1.jar": b"a", "b-1.jar": b"b"}
    (tmp_path / "sums").write_text(
        "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in listed.items())
    )
    there = dict(listed)
    if what == "changed":
        there["b-1.jar"] = b"c"
    elif what == "missing":
        del there["b-1.jar"]
    elif what == "one more":
        there["c-1.jar"] = b"c"
    for name, content in there.items():
        (jars / name).write_bytes(content)
    script = 'set -euo pipefail; . hack/env.sh; . hack/jars/jars.sh; check_jars "$1" "$2"'
    done = subprocess.run(
        ["bash", "-c", script, "-", str(jars), str(tmp_path / "sums")], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode == 0) == (what == "whole"), done.stderr
    assert {"changed": "b-1.jar", "missing": "b-1.jar", "one more": "not in"}.get(what, "") in done.stderr


@pytest.mark.parametrize(
    "module",
    sorted({path.parent for path in (*ROOT.glob("gateway/go.mod"), *ROOT.glob("hack/build/*/go.mod"))}),
    ids=lambda path: path.name,
)
def test_what_a_go_build_fetches_has_its_sum(module: Path) -> None:
    """With `-mod=readonly` a module without its sum, or a changed one, ends the build."""
    text = (module / "go.mod").read_text()
    required = re.findall(r"^(?:require )?\t?([a-z0-9.-]+\.[a-z]+/\S+|go\.\S+) (v\S+)", text, re.MULTILINE)
    replaced = dict(re.findall(r"^(?:replace )?\t?(\S+)(?: v\S+)? => (\S+ v\S+)", text, re.MULTILINE))
    sums_file = module / "go.sum"
    known = (
        set(re.findall(r"^(\S+ v[^/\s]+)(?:/go\.mod)? h1:", sums_file.read_text(), re.MULTILINE)) if required else set()
    )
    assert "=> ." not in text, "no sum of a folder"
    assert not [name for name, version in required if replaced.get(name, f"{name} {version}") not in known]
    assert len(required) > 5 or module.name == "pause"


def test_no_go_build_changes_its_sums() -> None:
    builds = (ROOT / "hack/build/build-binaries").read_text()
    assert "-mod=readonly" in builds
    assert not re.findall(r"GONOSUMDB|GONOSUMCHECK|GOFLAGS=-mod=mod|GOINSECURE|GONOSUM", builds)
