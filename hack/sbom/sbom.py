"""The bill of materials of an image, and what is wrong with the image's parts.

    python -m hack.sbom.sbom IMAGE LAYOUT JARS BIN OUT    (hack/sbom/sbom says where these are)

The image is read as it was exported, an OCI layout with uncompressed layers. Each part that is
found in it must be one that a lock in the repository has: a Python package of requirements.txt, a
jar of checksums.sha256 or of pyspark's own record, ours; a program whose modules have sums. A file
in a folder of ours that belongs to none of them is an unknown part. Debian's packages have no lock:
apt checks their signatures, and the bill says which versions there are.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hack.images.image_archive import NAME, blob, index, load
from hack.release import version

ROOT = Path(__file__).resolve().parents[2]
Component = dict[str, Any]
SITE = "usr/local/lib/python3.11/dist-packages"
OFFICIAL_SITE = "usr/local/lib/python3.11/site-packages"
LOCKS = {
    "operator": "operator/requirements.txt",
    "spark": "spark-images/requirements.txt",
    "console": "hack/images/console/requirements.txt",
}
OURS = {
    "operator": ("app/requirements.txt", "app/hudi_contract/", "app/hudi_operator/"),
    "console": ("app/requirements.txt", "app/hudi_contract/", "app/hudi_kubectl/", "app/hudi_console/"),
    "spark": (
        "opt/hudi/requirements.txt",
        "opt/hudi/checksums.sha256",
        "opt/hudi/classes/",
        "opt/hudi/entrypoint.py",
        "opt/hudi/hudi_contract/",
        "opt/hudi/hudi_runtime/",
    ),
}
PROGRAMS = {"etcd": "etcd", "gateway": "hudi-gateway", "s3": "versitygw"}
BIN = "usr/local/bin"
CONTRACT = ROOT / "operator/hudi_contract/protocol.json"
OWN_JAR = "hudi-etcd-lock.jar"
VERSION = version.read()
JAR = re.compile(r"(.+?)(?:-(?=\d)|(?=\d+\.\d+\.))((?!.*-\d+\.\d).*)\.jar")
"""Name and version: `log4j-1.2-api-2.20.0.jar` is version 2.20.0, `py4j0.10.9.9.jar` 0.10.9.9."""
HERE = ("usr/local/", "app/", "opt/", "srv/", "home/")
"""Folders in which Debian's packages put nothing: every file in them is looked at."""


class Image:
    """The files of an image: the last layer that has a path counts."""

    def __init__(self, layout: Path, name: str, stack: ExitStack) -> None:
        found = [image for image in index(layout) if image["annotations"][NAME] == name]
        if not found:
            sys.exit(f"no image {name} in {layout}: run hack/images/build-images")
        self.digest: str = found[0]["digest"]
        self._files = dict[str, tuple[tarfile.TarFile, tarfile.TarInfo]]()
        for layer in load(layout, self.digest)["layers"]:
            tar = tarfile.open(blob(layout, layer["digest"]), "r:*")  # noqa: SIM115 - closed with the stack
            self._add(stack.enter_context(tar))

    def _add(self, tar: tarfile.TarFile) -> None:
        for member in tar:
            path = member.name.removeprefix("./")
            folder, _, base = path.rpartition("/")
            if base.startswith(".wh."):
                gone = f"{folder}/{base.removeprefix('.wh.')}"
                inside = f"{folder}/" if base == ".wh..wh..opq" else f"{gone}/"
                self._files = {p: f for p, f in self._files.items() if p != gone and not p.startswith(inside)}
            elif member.isfile() or member.islnk():
                self._files[path] = (tar, member)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def read(self, path: str) -> bytes:
        tar, member = self._files[path]
        file = tar.extractfile(member)
        assert file is not None, path
        with file:
            return file.read()

    def sha256(self, path: str) -> str:
        return hashlib.sha256(self.read(path)).hexdigest()


def locked(lock: Path) -> dict[str, Component]:
    """Components that cyclonedx-py reads from a lock, by normal name."""
    command = (sys.executable, "-m", "cyclonedx_py", "requirements", str(lock), "--output-reproducible", "-o", "-")
    made = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    components: list[Component] = json.loads(made).get("components", [])
    return {normal(component["name"]): component for component in components}


def normal(name: str) -> str:
    """The name as registries of Python packages compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def sums(path: Path) -> dict[str, str]:
    """File name to SHA-256 of a checksums.sha256."""
    return {name: digest for digest, name in (line.split() for line in path.read_text().splitlines())}


def python_parts(image: Iterable[str], lock: Mapping[str, Component]) -> tuple[list[Component], list[str]]:
    """Packages that pip has installed, each as the lock has it."""
    parts, wrong, seen = [], [], set()
    for path in image:
        match = re.fullmatch(rf"(?:{SITE}|{OFFICIAL_SITE})/([^/]+)-([^/-]+)\.dist-info/METADATA", path)
        if match is None:
            continue
        name, version = normal(match[1]), match[2]
        seen.add(name)
        if name not in lock:
            wrong.append(f"Python package {name} {version}: not in the lock")
        elif lock[name].get("version") != version:
            wrong.append(f"Python package {name} {version}: the lock has {lock[name].get('version')}")
        else:
            parts.append(lock[name])
    return parts, wrong + [f"Python package {name}: in the lock, not in the image" for name in sorted(set(lock) - seen)]


def recorded(image: Image) -> dict[str, str]:
    """Path to SHA-256 (hexadecimal, empty when it is not recorded) of what pip has installed."""
    found = dict[str, str]()
    for path in image:
        if path.startswith("usr/local/") and path.endswith(".dist-info/RECORD"):
            site = path.split("/", 5)[:5]
            for name, digest, *_ in csv.reader(image.read(path).decode().splitlines()):
                place = [*site, *name.split("/")]
                while ".." in place:
                    at = place.index("..")
                    del place[at - 1 : at + 1]
                code = digest.removeprefix("sha256=")
                found["/".join(place)] = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)).hex() if code else ""
    return found


def jar_parts(
    image: Image, known: Mapping[str, Component], pins: Mapping[str, str], record: Mapping[str, str]
) -> tuple[list[Component], list[str]]:
    """Jars: pinned ones as cyclonedx-maven-plugin describes them, pyspark's by its record, ours."""
    parts, wrong, seen = [], [], set()
    for path in image:
        if not path.endswith(".jar") or not path.startswith(HERE):  # elsewhere: Debian's
            continue
        name, digest = path.rpartition("/")[2], image.sha256(path)
        seen.add(name)
        if name in pins:
            if digest != pins[name]:
                wrong.append(f"jar {name}: is not the one of checksums.sha256")
            elif digest not in known:
                wrong.append(f"jar {name}: cyclonedx-maven-plugin does not know it")
            else:
                parts.append(known[digest])
        elif name == OWN_JAR:
            parts.append(component("hudi-etcd-lock", VERSION, f"pkg:generic/{name}@{VERSION}", digest))
        elif record.get(path) == digest:
            found = JAR.fullmatch(name)
            if found is None:
                wrong.append(f"jar {name}: without a version")
            else:
                parts.append(
                    component(found[1], found[2], f"pkg:generic/{found[1]}@{found[2]}?file_name={name}", digest)
                )
        else:
            wrong.append(f"jar {path}: nobody has listed it")
    return parts, wrong + [f"jar {name}: in checksums.sha256, not in the image" for name in sorted(set(pins) - seen)]


def debian_parts(status: str) -> tuple[list[Component], list[str]]:
    """Packages of dpkg's status file."""
    parts = []
    for entry in status.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in entry.splitlines() if re.match(r"[A-Z][\w-]*: ", line))
        if fields.get("Status") == "install ok installed":
            name, version = fields["Package"], fields["Version"]
            parts.append(component(name, version, f"pkg:deb/debian/{name}@{version}?arch={fields['Architecture']}"))
    return parts, [] if parts else ["no Debian package: the base is not the one that is meant"]


def program_parts(image: Image, program: Path, gomod: Path) -> tuple[list[Component], list[str]]:
    """The modules of a Go program, as cyclonedx-gomod finds them in it."""
    path = f"{BIN}/{program.name}"
    made = subprocess.run(
        (gomod, "bin", "-std", "-json", "-noserial", "-notimestamp", program),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    parts: list[Component] = json.loads(made)["components"]
    wrong = (
        [] if image.sha256(path) == hashlib.sha256(program.read_bytes()).hexdigest() else [f"{path}: is not {program}"]
    )
    wrong += [f"file {other}: of no known part" for other in image if other != path and not _contract(image, other)]
    wrong += [
        f"module {part['name']}: without a sum" for part in parts if not part.get("hashes") and part["name"] != "std"
    ]
    return [component(program.name, "", f"pkg:generic/{program.name}", image.sha256(path)), *parts], wrong


def _contract(image: Image, path: str) -> bool:
    """Whether a file is the contract that the gateway serves by."""
    return path == CONTRACT.name and image.sha256(path) == hashlib.sha256(CONTRACT.read_bytes()).hexdigest()


def component(name: str, version: str, purl: str, sha256: str = "") -> Component:
    """A component that no tool describes."""
    made: Component = {"type": "library", "bom-ref": purl, "name": name, "purl": purl}
    if version:
        made["version"] = version
    if sha256:
        made["hashes"] = [{"alg": "SHA-256", "content": sha256}]
    return made


def unknown(image: Image, name: str, record: Mapping[str, str]) -> list[str]:
    """Files in folders of ours that neither pip has installed nor the Dockerfile has copied."""
    wrong = []
    for path in image:
        if not path.startswith(HERE) or path.endswith((".pyc", ".jar")):
            continue
        if path in record or path.replace(SITE, OFFICIAL_SITE) in record or path.startswith(OURS[name]):
            continue
        wrong.append(f"file {path}: of no known part")
    return wrong


def examine(name: str, image: Image, jars: Path, binaries: Path) -> tuple[list[Component], list[str]]:
    """The components of an image, and what is wrong."""
    if name in PROGRAMS:
        return program_parts(image, binaries / PROGRAMS[name], binaries / "cyclonedx-gomod")
    record = recorded(image)
    found = [python_parts(image, locked(ROOT / LOCKS[name])), debian_parts(image.read("var/lib/dpkg/status").decode())]
    if name == "spark":
        boms = [jars / "bom.json", ROOT / "spark-images/etcd-lock/target/bom.json"]
        described = [json.loads(bom.read_text())["components"] for bom in boms]
        known = {code["content"]: part for part in described[0] for code in part["hashes"] if code["alg"] == "SHA-256"}
        found += [
            jar_parts(image, known, sums(ROOT / "spark-images/jars/checksums.sha256"), record),
            (described[1], shaded(described[1], sums(ROOT / "spark-images/etcd-lock/checksums.sha256"))),
        ]
    parts = [part for some, _ in found for part in some]
    return parts, [word for _, some in found for word in some] + unknown(image, name, record)


def shaded(parts: Iterable[Component], pins: Mapping[str, str]) -> list[str]:
    """Parts of our jar that the build has not checked."""
    pinned = set(pins.values())
    return [
        f"jar {part['purl']}: not in etcd-lock/checksums.sha256"
        for part in parts
        if not pinned & {code["content"] for code in part.get("hashes", [])}
    ]


def unpinned(parts: Iterable[Component], name: str) -> list[str]:
    """Components without a version; the program itself has the image's."""
    return [f"{part['name']}: without a version" for part in parts if not part.get("version") and part["name"] != name]


def main(name: str, layout: str, jars: str, binaries: str, out: str) -> None:
    """Write the bill; exit with a message for each part that is wrong."""
    with ExitStack() as stack:
        image = Image(Path(layout), f"localhost/hudi-operator/{name}:dev", stack)
        parts, wrong = examine(name, image, Path(jars), Path(binaries))
    wrong += unpinned(parts, PROGRAMS.get(name, ""))
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "name": f"hudi-operator/{name}",
                "version": image.digest,
                "hashes": [{"alg": "SHA-256", "content": image.digest.removeprefix("sha256:")}],
            }
        },
        "components": sorted({part["bom-ref"]: part for part in parts}.values(), key=lambda part: part["bom-ref"]),
    }
    Path(out).write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n")
    if wrong:
        sys.exit("\n".join(f"{name}: {word}" for word in wrong))
    print(f"{name}: {len(bill['components'])} parts, all known: {out}")


if __name__ == "__main__":
    main(*sys.argv[1:])
