"""Everything of a release that is a file, with its sums.

    python -m hack.release.files DIR --registry REGISTRY --url URL     needs the images' bills
    python -m hack.release.files DIR ... --without-images              a dry run: no image was built
    python -m hack.release.files DIR ... --only krew,wheel             some parts of it
    python -m hack.release.files DIR --check                           is it of one version

REGISTRY is host and path of the images (registry.example.com/hudi-operator), URL the folder where
the files will be found. Nothing is published: hack/release/publish does that.

| part | files |
|---|---|
| chart | the chart as `helm push` takes it |
| manifests | one YAML file, for those who do not use Helm |
| bundle | the bundle for OLM, and the file that is applied beside it |
| krew | the kubectl plugin, and its manifest for krew |
| wheel | the same plugin for pip |
| bills | CycloneDX documents of the images; without images those of the locks of Python packages |
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from hack.bundle import make as bundles
from hack.manifests import make
from hack.release import krew, version, wheel
from hack.sbom.sbom import LOCKS

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ("operator", "spark", "gateway", "etcd", "console")
"""Images that a release publishes; `s3` belongs to the tests."""
SUMS = "SHA256SUMS"
REGISTRY = re.compile(r"[a-z0-9.-]+(:\d+)?(/[a-z0-9._-]+)+")
IMAGE = re.compile(r"^\s*(?:- )?(?:image|sparkImage): \"?(\S+?)\"?$", re.MULTILINE)
OF_A_BILL = re.compile(rf"^({'|'.join(IMAGES)})(-(python|amd64|arm64))?-")
BILLS = make.CACHE / "sbom"


class MissingError(Exception):
    """Something that a release needs is not there; the text says what makes it."""


@dataclass(frozen=True)
class Release:
    """``registry``: of the images. ``url``: where the files will be found."""

    version: str
    registry: str
    url: str
    bills: Path | None = None
    """Folder with the bills of the images; None: no image was built."""


def chart(out: Path, of: Release) -> None:
    """Needs Helm."""
    subprocess.run([make.helm(), "package", str(make.CHART), "-d", str(out)], check=True, stdout=subprocess.DEVNULL)


def manifests(out: Path, of: Release) -> None:
    """Needs Helm."""
    text = make.install(f"--set=images.registry={of.registry}", f"--set=images.tag={of.version}")
    (out / f"hudi-operator-{of.version}.yaml").write_text(text, encoding="utf-8")


def bundle(out: Path, of: Release) -> None:
    """Needs Helm."""
    text = make.install(f"--set=images.registry={of.registry}", f"--set=images.tag={of.version}")
    (out / f"hudi-operator-beside-olm-{of.version}.yaml").write_text(bundles.file_beside(text), encoding="utf-8")
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as packed:
        for name, content in sorted(bundles.files(text).items()):
            entry = tarfile.TarInfo(f"bundle/{name}")
            entry.size = len(content.encode())
            packed.addfile(entry, io.BytesIO(content.encode()))
    (out / f"olm-bundle-{of.version}.tar.gz").write_bytes(gzip.compress(plain.getvalue(), mtime=0))


def plugin(out: Path, of: Release) -> None:
    krew.write(out, of.url, of.version)


def package(out: Path, of: Release) -> None:
    wheel.build(out, of.version)


def bills(out: Path, of: Release) -> None:
    """Write the bills of the images, as hack/images/build-images has made them; or of the locks.

    A folder with bills of several architectures has `NAME.ARCHITECTURE.cdx.json`.
    """
    if of.bills is None:
        for name, lock in LOCKS.items():
            target = out / f"{name}-python-{of.version}.cdx.json"
            command = [sys.executable, "-m", "cyclonedx_py", "requirements", str(ROOT / lock), "--output-reproducible"]
            subprocess.run([*command, "-o", str(target)], check=True, stderr=subprocess.DEVNULL)
        return
    found = {name: sorted(of.bills.glob(f"{name}.*cdx.json")) for name in IMAGES}
    if left := [name for name, files in found.items() if not files]:
        raise MissingError(f"no bill of materials of {', '.join(left)} in {of.bills}: run hack/images/build-images")
    for path in (path for files in found.values() for path in files):
        name = path.name.removesuffix(".cdx.json").replace(".", "-")
        shutil.copyfile(path, out / f"{name}-{of.version}.cdx.json")


PARTS: dict[str, Callable[[Path, Release], None]] = {
    "chart": chart,
    "manifests": manifests,
    "bundle": bundle,
    "krew": plugin,
    "wheel": package,
    "bills": bills,
}


def sums(out: Path) -> str:
    """The lines of SHA256SUMS, as sha256sum reads them."""
    files = sorted(path for path in out.iterdir() if path.is_file() and path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def write(out: Path, of: Release, parts: tuple[str, ...] = tuple(PARTS)) -> None:
    """Make the parts in an empty folder. MissingError, CalledProcessError."""
    out.mkdir(parents=True, exist_ok=True)
    if left := sorted(path.name for path in out.iterdir()):
        raise MissingError(f"{out} is not empty ({', '.join(left[:3])}): files of two releases would be mixed")
    for part in parts:
        PARTS[part](out, of)
    (out / SUMS).write_text(sums(out), encoding="utf-8")


def versions(out: Path) -> Iterator[tuple[str, str]]:
    """Each version that a file says, with where it says it."""
    for path in sorted(out.glob("hudi-operator-*.tgz")):
        with tarfile.open(path) as packed:
            said = yaml.safe_load(_member(packed, "hudi-operator/Chart.yaml"))
        yield f"{path.name}: version", said["version"]
        yield f"{path.name}: appVersion", said["appVersion"]
    for path in sorted(out.glob("hudi-operator-*.yaml")):
        for image in sorted(set(IMAGE.findall(path.read_text(encoding="utf-8")))):
            yield f"{path.name}: {image}", image.rpartition(":")[2]
    for path in sorted(out.glob("olm-bundle-*.tar.gz")):
        with tarfile.open(path) as packed:
            spec = yaml.safe_load(_member(packed, "bundle/manifests/hudi-operator.clusterserviceversion.yaml"))["spec"]
        yield f"{path.name}: version", spec["version"]
        for image in spec["relatedImages"]:
            yield f"{path.name}: {image['image']}", image["image"].rpartition(":")[2]
    for path in sorted(out.glob("hudi.yaml")):
        spec = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]
        yield f"{path.name}: version", spec["version"].removeprefix("v")
        yield f"{path.name}: uri", spec["platforms"][0]["uri"].removesuffix(".tar.gz").rpartition("kubectl-hudi-")[2]
    for path in sorted(out.glob("*.whl")):
        with zipfile.ZipFile(path) as packed_wheel:
            (metadata,) = (one for one in packed_wheel.namelist() if one.endswith(".dist-info/METADATA"))
            (said,) = re.findall(r"^Version: (\S+)$", packed_wheel.read(metadata).decode(), re.MULTILINE)
            code = packed_wheel.read("hudi_operator/__init__.py").decode()
        (inside,) = re.findall(r'^__version__ = "([^"]+)"$', code, re.MULTILINE)
        yield f"{path.name}: hudi_operator", inside
        if path.name != wheel.name(inside) or path.name.split("-")[1] != said:
            yield f"{path.name}: name or metadata", said
    for path in sorted(out.glob("*.cdx.json")):
        json.loads(path.read_text(encoding="utf-8"))
        yield path.name, OF_A_BILL.sub("", path.name.removesuffix(".cdx.json"))


def _member(packed: tarfile.TarFile, name: str) -> bytes:
    file = packed.extractfile(name)
    return (file or io.BytesIO()).read()


def faults(out: Path, of: str) -> list[str]:
    """Files of a folder that are not of this version, or whose sum differs from the stated one."""
    found = [f"{where} is {said}, not {of}" for where, said in versions(out) if said != of]
    if not (out / SUMS).exists() or (out / SUMS).read_text(encoding="utf-8") != sums(out):
        found.append(f"{SUMS} is not of these files")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m hack.release.files", description="the files of a release")
    parser.add_argument("out", type=Path, metavar="DIR")
    parser.add_argument("--registry", default="", help="host and path of the images")
    parser.add_argument("--url", default="", help="folder where the files will be found, https://…")
    parser.add_argument("--only", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--bills", type=Path, default=BILLS, metavar="DIR", help=f"of the images (default {BILLS})")
    parser.add_argument("--without-images", action="store_true", help="a dry run: bills of the locks only")
    parser.add_argument("--check", action="store_true", help="only look at what is there")
    given = parser.parse_args(arguments)
    number, parts = version.read(), tuple(given.only.split(","))
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--only {', '.join(sorted(unknown))}: must be of {', '.join(PARTS)}")
    if not given.check:
        if not REGISTRY.fullmatch(given.registry):
            parser.error(f"--registry {given.registry!r}: must be HOST/PATH in lower case, as images are named")
        if not given.url.startswith("https://"):
            parser.error(f"--url {given.url!r}: must begin with https://")
        found = None if given.without_images else given.bills
        try:
            write(given.out, Release(number, given.registry, given.url.rstrip("/"), found), parts)
        except MissingError as error:
            print(error, file=sys.stderr)
            return 1
    wrong = faults(given.out, number)
    print("\n".join(wrong) if wrong else (given.out / SUMS).read_text(encoding="utf-8").rstrip("\n"))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
