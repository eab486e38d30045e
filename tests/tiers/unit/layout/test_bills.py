"""Bills of materials: a part of an image that no lock knows is found."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hack.sbom import compare, sbom

SITE = "usr/local/lib/python3.11/dist-packages"
RECORDED = f"{SITE}/pyspark/jars/guava-14.0.1.jar"
PINNED = f"{SITE}/pyspark/jars/spark-avro_2.12-3.5.9.jar"
CODE = base64.urlsafe_b64encode(hashlib.sha256(b"guava").digest()).decode().rstrip("=")
RECORD = (
    f"pyspark/jars/guava-14.0.1.jar,sha256={CODE},5\npyspark/x.py,,\n../../../bin/pyspark,,\n"
    "pyspark-3.5.9.dist-info/METADATA,,\npyspark-3.5.9.dist-info/RECORD,,\n"
)
FILES = {
    f"{SITE}/pyspark-3.5.9.dist-info/METADATA": b"",
    f"{SITE}/pyspark-3.5.9.dist-info/RECORD": RECORD.encode(),
    f"{SITE}/pyspark/x.py": b"",
    RECORDED: b"guava",
    PINNED: b"avro",
    "opt/hudi/hudi_runtime/a.py": b"",
    "usr/local/bin/pyspark": b"",
}
LOCK = {"pyspark": {"name": "pyspark", "version": "3.5.9", "bom-ref": "pyspark"}}
SHA = hashlib.sha256(b"avro").hexdigest()
PINS = {"spark-avro_2.12-3.5.9.jar": SHA}
KNOWN = {SHA: {"name": "spark-avro_2.12", "version": "3.5.9", "bom-ref": "avro"}}


def layout(folder: Path, *layers: dict[str, bytes]) -> Path:
    """An OCI layout with one image."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}"}

    made = []
    for files in layers:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        made.append(put(buffer.getvalue()))
    manifest = put(json.dumps({"config": put(b"{}"), "layers": made}).encode())
    named = {**manifest, "annotations": {sbom.NAME: "localhost/hudi-operator/spark:dev"}}
    (folder / "index.json").write_text(json.dumps({"manifests": [named]}))
    return folder


def wrong(folder: Path, *layers: dict[str, bytes]) -> list[str]:
    """What is said of an image with these layers."""
    with ExitStack() as stack:
        image = sbom.Image(layout(folder, *layers), "localhost/hudi-operator/spark:dev", stack)
        record = sbom.recorded(image)
        _, packages = sbom.python_parts(image, LOCK)
        parts, jars = sbom.jar_parts(image, KNOWN, PINS, record)
        assert not sbom.unpinned(parts, "")
        return [*packages, *jars, *sbom.unknown(image, "spark", record)]


def test_an_image_of_known_parts(tmp_path: Path) -> None:
    assert wrong(tmp_path, FILES) == []


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({PINNED: b"other"}, "is not the one of checksums.sha256"),
        ({RECORDED: b"other"}, "nobody has listed it"),
        ({f"{SITE}/pyspark/jars/log4j-2.0.jar": b"x"}, "nobody has listed it"),
        ({f"{SITE}/pyspark/jars/.wh.spark-avro_2.12-3.5.9.jar": b""}, "in checksums.sha256, not in the image"),
        ({f"{SITE}/left_pad-1.0.dist-info/METADATA": b""}, "left-pad 1.0: not in the lock"),
        ({f"{SITE}/pyspark-3.5.8.dist-info/METADATA": b""}, "pyspark 3.5.8: the lock has 3.5.9"),
        ({f"{SITE}/.wh.pyspark-3.5.9.dist-info": b""}, "pyspark: in the lock, not in the image"),
        ({"usr/local/bin/miner": b""}, "file usr/local/bin/miner: of no known part"),
        ({"opt/other/x.py": b""}, "file opt/other/x.py: of no known part"),
    ],
)
def test_what_nobody_knows_is_found(tmp_path: Path, more: dict[str, bytes], word: str) -> None:
    found = wrong(tmp_path, FILES, more)
    assert any(word in line for line in found), found


@pytest.mark.parametrize(
    ("jar", "name", "version"),
    [
        ("spark-core_2.12-3.5.9.jar", "spark-core_2.12", "3.5.9"),
        ("zstd-jni-1.5.5-4.jar", "zstd-jni", "1.5.5-4"),
        ("log4j-1.2-api-2.20.0.jar", "log4j-1.2-api", "2.20.0"),
        ("netty-epoll-4.1.96.Final-linux-x86_64.jar", "netty-epoll", "4.1.96.Final-linux-x86_64"),
        ("py4j0.10.9.9.jar", "py4j", "0.10.9.9"),
    ],
)
def test_name_and_version_of_a_jar(jar: str, name: str, version: str) -> None:
    found = sbom.JAR.fullmatch(jar)
    assert found is not None
    assert found.groups() == (name, version)


def test_debian_packages_and_what_is_shaded() -> None:
    status = (
        "Package: a\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n\nPackage: b\nStatus: deinstall ok"
    )
    parts, none = sbom.debian_parts(status)
    assert [part["purl"] for part in parts] == ["pkg:deb/debian/a@1?arch=amd64"]
    assert not none
    assert sbom.debian_parts("Package: b")[1]
    jar = {"purl": "pkg:maven/g/a@1", "name": "a", "hashes": [{"alg": "SHA-256", "content": SHA}]}
    assert sbom.shaded([jar], {"g/a": SHA}) == []
    assert sbom.shaded([jar], {"g/a": "0"}) == ["jar pkg:maven/g/a@1: not in etcd-lock/checksums.sha256"]
    assert sbom.unpinned([jar], "") == ["a: without a version"]


@pytest.mark.parametrize(("image", "file"), [("operator", "Dockerfile"), ("spark", "spark-images/Dockerfile")])
def test_what_is_ours_is_what_the_dockerfile_copies(image: str, file: str) -> None:
    copied = re.findall(r"^COPY \S+ /((?:app|opt/hudi)/\S+)$", (sbom.ROOT / file).read_text(), re.MULTILINE)
    assert len(copied) >= 3
    assert sorted(path.rstrip("/") for path in copied) == sorted(path.rstrip("/") for path in sbom.OURS[image])


def bill(path: Path, *components: dict[str, object]) -> Path:
    path.write_text(json.dumps({"metadata": {"component": {"version": path.name}}, "components": components}))
    return path


def part(name: str, version: str, content: str = "", kind: str = "pypi") -> dict[str, object]:
    hashes = [{"alg": "SHA-256", "content": content}] if content else []
    return {"name": name, "version": version, "purl": f"pkg:{kind}/{name}@{version}", "hashes": hashes}


def test_bills_of_two_builds_are_compared(tmp_path: Path) -> None:
    same = part("grpcio", "1.76.0", "aa")
    jars = [part("jar", "1", content, "maven") for content in ("aa", "bb")]
    old = bill(tmp_path / "old", same, part("kopf", "1.38"), jars[0], part("two", "1"), part("two", "2"))
    new = bill(tmp_path / "new", part("kopf", "1.39"), same, jars[1], part("two", "2"), part("new", "3"))
    assert compare.differences(old, new) == [
        "~ maven jar 1: other content",
        "~ pypi kopf 1.38 -> 1.39",
        "+ pypi new 3",
        "- pypi two 1",
    ]
    assert compare.differences(old, old) == []


def test_a_second_build_with_other_parts_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = bill(tmp_path / "old", part("kopf", "1.38")), bill(tmp_path / "new", part("kopf", "1.39"))
    with pytest.raises(SystemExit, match=r"kopf 1\.38 -> 1\.39"):
        compare.main(str(old), str(new), "--same")
    compare.main(str(old), str(new))
    compare.main(str(old), str(bill(tmp_path / "copy", part("kopf", "1.38"))), "--same")
    assert capsys.readouterr().out.splitlines() == ["~ pypi kopf 1.38 -> 1.39", "the same parts"]
