"""Known vulnerabilities: how versions are matched, and that each entry is of a part of an image."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hack.sbom import advisories, references
from hack.sbom.advisories import Part

from tests.support import ROOT

DATABASES, ENTRIES = advisories.read()
SHIPPED = {
    (name.rpartition(":")[2], version)
    for name, version in re.findall(
        r"^\| (\S+) \| (\S+) \|", (ROOT / "docs/operate/licences.md").read_text(), re.MULTILINE
    )
}
NAMED = [f"{entry.part.name} {entry.part.version} {entry.part.inside} {entry.decision}" for entry in ENTRIES]


def events(*pairs: str) -> list[dict[str, str]]:
    """`introduced=1.0` and so on."""
    return [dict([pair.split("=")]) for pair in pairs]


def advisory(ecosystem: str, package: str, *pairs: str, **more: Any) -> dict[str, Any]:
    told = {"type": "ECOSYSTEM", "events": events(*pairs)}
    return {
        "id": "X-1",
        "aliases": ["CVE-1"],
        "affected": [{"package": {"ecosystem": ecosystem, "name": package}, "ranges": [told], **more}],
    }


@pytest.mark.parametrize(
    "ordered",
    [
        # Maven's own list of examples, and versions of what the image has.
        "1-alpha-1 1-beta 1-milestone 1-rc 1-snapshot 1 1-sp 1-abc 1-1 1.1",
        "4.1.77.Final 4.1.96.Final 4.1.100.Final 4.1.118.Final",
        "2.15.2 2.18.6 2.18.10",
        "9.4.43.v20210629 9.4.57.v20241219",
        "10.14.2.0 10.14.3 10.15.0.0",
        "3.5.4-beta 3.5.4 3.6.3",
        "2.0-beta9 2.0-rc1 2.0 2.3.1",
        "1.0-alpha-2 1.0-alpha-10 1.0",
    ],
)
def test_mavens_order(ordered: str) -> None:
    versions = [advisories.ORDERS["Maven"](version) for version in ordered.split()]
    assert all(first < second for first, second in itertools.pairwise(versions))


@pytest.mark.parametrize(
    ("one", "other"),
    [("1.0", "1"), ("1-ga", "1"), ("1.0.0.Final", "1.0"), ("1-cr2", "1-rc2"), ("4.1.115.Final", "4.1.115")],
)
def test_what_is_equal_for_maven(one: str, other: str) -> None:
    order = advisories.ORDERS["Maven"]
    assert order(one) == order(other)


@pytest.mark.parametrize(
    ("ecosystem", "version", "pairs", "told"),
    [
        # netty, CVE-2024-29025 and CVE-2022-41915: a range without and with a beginning.
        ("Maven", "4.1.96.Final", "introduced=0 fixed=4.1.108.Final", True),
        ("Maven", "4.1.133.Final", "introduced=0 fixed=4.1.108.Final", False),
        ("Maven", "4.1.96.Final", "introduced=4.1.83.Final fixed=4.1.86.Final", False),
        # netty, CVE-2024-47535: the advisory leaves the qualifier out.
        ("Maven", "4.1.114.Final", "introduced=0 fixed=4.1.115", True),
        ("Maven", "4.1.115.Final", "introduced=0 fixed=4.1.115", False),
        # Derby, CVE-2022-46337: four ranges in one list.
        ("Maven", "10.14.2.0", "introduced=10.1.1.0 fixed=10.14.3 introduced=10.15.0.0 fixed=10.15.2.1", True),
        ("Maven", "10.14.3", "introduced=10.1.1.0 fixed=10.14.3 introduced=10.15.0.0 fixed=10.15.2.1", False),
        ("Maven", "10.15.1.3", "introduced=10.1.1.0 fixed=10.14.3 introduced=10.15.0.0 fixed=10.15.2.1", True),
        # In another order, as OSV allows.
        ("Maven", "10.15.1.3", "fixed=10.15.2.1 introduced=10.15.0.0 fixed=10.14.3 introduced=10.1.1.0", True),
        ("Maven", "10.15.2.1", "fixed=10.15.2.1 introduced=10.15.0.0 fixed=10.14.3 introduced=10.1.1.0", False),
        # Guava, CVE-2023-2976: a qualifier that says for what it was built.
        ("Maven", "31.1-jre", "introduced=1.0 fixed=32.0.0-android", True),
        ("Maven", "33.5.0-android", "introduced=1.0 fixed=32.0.0-android", False),
        # jackson-mapper-asl, CVE-2019-10172: not fixed. ZooKeeper, CVE-2024-23944: a last version.
        ("Maven", "1.9.13", "introduced=0", True),
        ("Maven", "3.6.3", "introduced=3.6.0 last_affected=3.7.2", True),
        ("Maven", "3.7.2", "introduced=3.6.0 last_affected=3.7.2", True),
        ("Maven", "3.8.0", "introduced=3.6.0 last_affected=3.7.2", False),
        # etcd, GO-2026-6114, and a module without a release.
        ("Go", "3.6.16", "introduced=0 fixed=3.5.33 introduced=3.6.0 fixed=3.6.14", False),
        ("Go", "3.6.13", "introduced=0 fixed=3.5.33 introduced=3.6.0 fixed=3.6.14", True),
        ("Go", "0.0.0-20210331224755-41bb18bfe9da", "introduced=0 fixed=0.0.0-20220101000000-000000000000", True),
        ("Go", "1.26.8", "introduced=1.26.0-0 fixed=1.26.6 introduced=1.27.0-0 fixed=1.27.0-rc.3", False),
        ("Go", "1.26.5", "introduced=1.26.0-0 fixed=1.26.6 introduced=1.27.0-0 fixed=1.27.0-rc.3", True),
        # urllib3, PYSEC-2026-141, and what PEP 440 says of releases that come before or after.
        ("PyPI", "2.6.3", "introduced=1.23 fixed=2.7.0", True),
        ("PyPI", "2.7.0rc1", "introduced=1.23 fixed=2.7.0", True),
        ("PyPI", "2.8.0", "introduced=1.23 fixed=2.7.0", False),
        ("PyPI", "2.9.0.post0", "introduced=0 fixed=2.9.0", False),
        # What cannot be compared is told.
        ("PyPI", "no version", "introduced=0 fixed=2.9.0", True),
    ],
)
def test_a_version_is_in_a_range(ecosystem: str, version: str, pairs: str, told: bool) -> None:
    assert advisories.within(events(*pairs.split()), version, advisories.ORDERS[ecosystem]) is told


def test_a_part_is_found_by_its_name_and_version() -> None:
    handler = Part("Maven", "io.netty:netty-handler", "4.1.96.Final")
    unknown = Part("Maven", ":netty-handler", "4.1.96.Final")
    others = [Part("Maven", "org.example:netty-handler", "4.1.96.Final"), Part("PyPI", "netty-handler", "1.0")]
    told = advisory("Maven", "io.netty:netty-handler", "introduced=0", "fixed=4.1.118.Final")
    found = list(advisories.matches(told, [handler, unknown, *others]))
    assert [match.part for match in found] == [handler, unknown]
    assert {(match.ids, match.fixed) for match in found} == {(("X-1", "CVE-1"), "4.1.118.Final")}
    listed = advisory("PyPI", "Some_Package", "introduced=9", versions=["1.0"])
    assert [match.part.version for match in advisories.matches(listed, [Part("PyPI", "some-package", "1.0")])] == [
        "1.0"
    ]
    assert not list(advisories.matches(advisory("npm", "left-pad", "introduced=0"), [handler]))


def test_what_is_not_told_is_printed() -> None:
    part = Part("Maven", "org.apache.derby:derby", "10.14.2.0")
    (found,) = advisories.matches(advisory("Maven", part.package, "introduced=0", "fixed=10.14.3"), [part])
    assert advisories.untold([found], []) == ["org.apache.derby:derby 10.14.2.0: X-1 CVE-1, fixed in 10.14.3"]
    known = advisories.Entry(part, "spark", "open", "", "", (advisories.Vulnerability("CVE-1", "", ()),))
    assert advisories.untold([found], [known]) == []
    inside = advisories.Match(Part("Maven", part.package, part.version, "bundle.jar"), ("CVE-1",), "")
    assert advisories.untold([inside], [known]) == ["org.apache.derby:derby 10.14.2.0 in bundle.jar: CVE-1, not fixed"]


def test_bills_and_jars_are_read(tmp_path: Path) -> None:
    components = [
        {"name": "PyYAML", "version": "6.0.3", "purl": "pkg:pypi/pyyaml@6.0.3"},
        {"name": "std", "version": "go1.26.8", "purl": "pkg:golang/std@1.26.8"},
        {"name": "golang.org/x/net", "version": "v0.61.0", "purl": "pkg:golang/golang.org/x/net@v0.61.0"},
        {"group": "io.grpc", "name": "grpc-api", "version": "1.82.2", "purl": "pkg:maven/io.grpc/grpc-api@1.82.2"},
        {"name": "hive-exec", "version": "2.3.9-core", "purl": "pkg:generic/hive-exec@2.3.9-core?file_name=x.jar"},
        {"name": "derby", "version": "10.14.2.0", "purl": "pkg:generic/derby@10.14.2.0?file_name=y.jar"},
        {"name": "bash", "version": "5", "purl": "pkg:deb/debian/bash@5?arch=amd64"},
        {"name": "hudi-etcd-lock", "version": "0.1.0", "purl": "pkg:generic/hudi-etcd-lock.jar@0.1.0"},
    ]
    (tmp_path / "spark.cdx.json").write_text(json.dumps({"components": components}))
    for jar, poms in {
        "hive-exec-2.3.9-core.jar": ("org.apache.hive/hive-exec 2.3.9", "com.google.guava/guava 14.0.1"),
        "nobody-1.0.jar": ("org.nobody/nobody 1.0",),
    }.items():
        with zipfile.ZipFile(tmp_path / jar, "w") as made:
            for pom in poms:
                name, version = pom.split()
                made.writestr(f"META-INF/maven/{name}/pom.properties", f"#made\nversion={version}\n")
    assert advisories.of_images(tmp_path, [tmp_path], {"derby": "org.apache.derby"}) == {
        Part("PyPI", "pyyaml", "6.0.3"),
        Part("Go", "stdlib", "1.26.8"),
        Part("Go", "golang.org/x/net", "0.61.0"),
        Part("Maven", "io.grpc:grpc-api", "1.82.2"),
        Part("Maven", "org.apache.hive:hive-exec", "2.3.9"),
        Part("Maven", "com.google.guava:guava", "14.0.1", "hive-exec-2.3.9-core.jar"),
        Part("Maven", "org.apache.derby:derby", "10.14.2.0"),
    }


def test_a_database_is_read_as_folder_and_as_git_directory(tmp_path: Path) -> None:
    derby = Part("Maven", ":derby", "10.14.2.0")
    told = advisory("Maven", "org.apache.derby:derby", "introduced=0", "fixed=10.14.3")
    for name, content in {
        "advisories/github-reviewed/2023/11/A.json": json.dumps(told),
        "advisories/unreviewed/2023/11/B.json": json.dumps(told | {"id": "B"}),
        "data/withdrawn.json": json.dumps(told | {"id": "C", "withdrawn": "2024-01-01T00:00:00Z"}),
        "vulns/derby/D.yaml": "id: D\naffected:\n- package: {name: 'x:derby', ecosystem: Maven}\n"
        "  versions: ['10.14.2.0']\n",
        "package.json": json.dumps({"name": "derby"}),
        "src/advisories-maven.csv": 'E,2023-11-20T10:00:00Z,"a, b",org.apache.derby:derby,0,10.14.3,HIGH,CWE-74\n'
        "F,2023-11-20T10:00:00Z,c,org.apache.derby:derby,0,10.14.2.0,HIGH,\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    found = sorted(match.ids[0] for match in advisories.search([str(tmp_path)], [derby]))
    assert found == ["D", "E", "X-1"]
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a"], ["rm", "-q", "-r", "advisories", "src"]):
        subprocess.run((*git, *words), check=True)
    subprocess.run((*git, "commit", "-q", "-m", "b"), check=True)
    assert sorted(match.ids[0] for match in advisories.search([f"{tmp_path}@HEAD~1"], [derby])) == found
    assert [match.ids[0] for match in advisories.search([str(tmp_path)], [derby])] == ["D"]


def class_file(*words: str) -> bytes:
    """The beginning of a class file: a long constant, then these texts."""
    pool = b"\x05" + bytes(8) + b"".join(b"\x01" + len(word).to_bytes(2, "big") + word.encode() for word in words)
    return b"\xca\xfe\xba\xbe" + bytes(4) + (len(words) + 3).to_bytes(2, "big") + pool


def test_what_names_a_package(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.jar", "w") as made:
        made.writestr("io/netty/handler/ssl/SslHandler.class", class_file("io/netty/handler/ssl/SslContext"))
    with zipfile.ZipFile(tmp_path / "b.jar", "w") as made:
        made.writestr("A.class", class_file("io/netty/handler/ssl/SslHandler"))
        made.writestr("B.class", class_file("x", "(ILio/netty/handler/ssl/SslHandler;)V"))
        made.writestr("C.class", class_file("io.netty.handler.ssl.SslHandler"))
        made.writestr("META-INF/services/x.Y", b"io.netty.handler.ssl.Z\n")
    with zipfile.ZipFile(tmp_path / "c.jar", "w") as made:
        made.writestr("D.class", class_file("io/netty/handler/sslx", "shaded/io/netty/handler/ssl/SslHandler"))
        made.writestr("E.class", class_file("(Lshaded/io/netty/handler/ssl/X;)V", "shaded.io.netty.handler.ssl.X"))
        made.writestr("text.txt", b"io.netty.handler.ssl.Z")
    told = references.report([tmp_path], ["io.netty.handler.ssl", "org.none"])
    assert told["io.netty.handler.ssl"] == ["a.jar: contains it", "b.jar: 3 classes, service x.Y"]
    assert told["org.none"] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=NAMED)
def test_an_entry_is_of_a_part_of_the_images(entry: advisories.Entry) -> None:
    part = entry.part
    jar = advisories.JAR.fullmatch(part.inside) if part.inside else None
    name, version = (jar[1], jar[2]) if jar else (part.name, part.version)
    assert entry.image in {"etcd", "gateway", "operator", "spark", "s3"}
    if entry.image == "s3":  # of tests only: the list of licences does not have it
        return
    has = {at for called, at in SHIPPED if called == name}
    as_shipped = {advisories.CLASSIFIER.sub("", at) for at in has} | has | {at.removeprefix("v") for at in has}
    assert entry.decision in advisories.DECISIONS
    assert (entry.decision == "upgraded") == bool(entry.now)
    if entry.decision == "removed":
        assert not {at for at in as_shipped if at.startswith(advisories.CLASSIFIER.sub("", version))}
    elif entry.decision == "upgraded":
        assert entry.now in as_shipped
        assert version not in as_shipped
    else:
        assert version in as_shipped


@pytest.mark.parametrize("entry", ENTRIES, ids=NAMED)
def test_an_entry_tells_what_affects_its_version(entry: advisories.Entry) -> None:
    order = advisories.ORDERS[entry.part.ecosystem]
    assert entry.vulnerabilities
    assert len(entry.why) > 40
    for one in entry.vulnerabilities:
        assert re.fullmatch(r"CVE-\d{4}-\d{4,}|GHSA(-[0-9a-z]{4}){3}|GO-\d{4}-\d{4}|PYSEC-\d{4}-\d+", one.id), one.id
        assert one.what
        assert advisories.within(one.ranges, entry.part.version, order), one.id
        if entry.now:
            assert not advisories.within(one.ranges, entry.now, order), one.id
    ids = [one.id for one in entry.vulnerabilities]
    assert len(set(ids)) == len(ids)


def test_a_part_has_one_entry() -> None:
    assert len(ENTRIES) > 20
    keys = [(entry.part, entry.image, entry.decision) for entry in ENTRIES]
    assert len(set(keys)) == len(keys)
    assert len(DATABASES) >= 3
    assert all(re.search(r"20\d\d-\d\d-\d\d", one["state"]) for one in DATABASES)


def test_removed_jars_are_those_of_the_dockerfile() -> None:
    """What the image does without is told, except for jars that are removed with another one."""
    dockerfile = (ROOT / "spark-images/Dockerfile").read_text()
    (removed,) = re.findall(r"cd \S+/pyspark/jars \\\n && rm ([^\\\n]+)", dockerfile)
    jars = set(removed.split())
    gone = [entry.part for entry in ENTRIES if entry.decision == "removed"]
    entries = {part.inside or f"{part.name}-{part.version}" for part in gone}
    assert entries
    assert {name for name in entries if not any(jar.startswith(name) for jar in jars)} == set()


def test_the_page_is_of_the_file() -> None:
    assert advisories.PAGE.read_text() == advisories.page(DATABASES, ENTRIES), "python -m hack.sbom.advisories page"
