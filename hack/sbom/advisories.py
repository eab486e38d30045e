"""Known vulnerabilities of what the images contain: advisories against the bills of materials.

    python -m hack.sbom.advisories compare BILLS JARS ADVISORIES...
    python -m hack.sbom.advisories page

`compare` prints what an advisory says of a part, and vulnerabilities.yaml does not; its exit status
is then 1. BILLS is the folder of the bills (`sbom` in the cache directory), JARS names folders of
the image's jars, separated by colons: a bill tells no group of pyspark's jars, and not what is
packed into one, but the jars do (pom.properties). ADVISORIES are folders or git directories,
`PATH@COMMIT` for one commit, with advisories in OSV's format (JSON or YAML), or the list of Maven
advisories of OpenRewrite (advisories-maven.csv), which is GitHub's in short.

`page` writes docs/operate/vulnerabilities.md from vulnerabilities.yaml.

Debian's packages are not compared: the build takes Debian's security updates, and Debian's own
tracker tells what they leave.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hack.sbom.sbom import JAR, normal
from univers.versions import GolangVersion, MavenVersion, PypiVersion

ROOT = Path(__file__).resolve().parents[2]
TOLD = Path(__file__).with_name("vulnerabilities.yaml")
PAGE = ROOT / "docs/operate/vulnerabilities.md"
READ = re.compile(r".+\.(json|ya?ml)|(.*/)?advisories-maven\.csv")
LEFT_OUT = re.compile(r"(^|/)(unreviewed|\.github|excluded)/")
"""Entries of a database that nobody has assigned to a package and its versions."""
CLASSIFIER = re.compile(r"-(?:(?:linux|osx)-\w+|core|shaded-protobuf|shaded)$")
"""Suffix after the version in the name of one of pyspark's jars."""
POM = re.compile(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties")

Order = Callable[[str], Any]
ORDERS: Mapping[str, Order] = {"Maven": MavenVersion, "PyPI": PypiVersion, "Go": GolangVersion}
"""Version comparison for each ecosystem: by the rules of Maven, of PEP 440, of Go's modules."""
DECISIONS = {
    "upgraded": "the image has a version in which it is fixed",
    "removed": "the jar is not in the image",
    "unreachable": "the part is in the image; as far as names tell, nothing calls the code in question with input of "
    "others",
    "open": "it can be reached, or nobody could show that it cannot",
}


@dataclass(frozen=True)
class Part:
    """A part of an image. ``package`` of a jar whose group is not known begins with a colon."""

    ecosystem: str
    package: str
    version: str
    inside: str = ""
    """The jar that it is packed into."""

    @property
    def name(self) -> str:
        return self.package.rpartition(":")[2]


@dataclass(frozen=True)
class Match:
    part: Part
    ids: tuple[str, ...]
    """The advisory's own, and its aliases."""
    fixed: str


@dataclass(frozen=True)
class Vulnerability:
    id: str
    what: str
    ranges: tuple[Mapping[str, str], ...]
    """Events in OSV's form."""

    @property
    def fixed(self) -> str:
        return ", ".join(event["fixed"] for event in self.ranges if "fixed" in event)


@dataclass(frozen=True)
class Entry:
    """Entry of a part in vulnerabilities.yaml."""

    part: Part
    image: str
    decision: str
    now: str
    """The version that the image has, when that is another one."""
    why: str
    vulnerabilities: tuple[Vulnerability, ...]


def of_bill(bill: Mapping[str, Any]) -> Iterator[Part]:
    """Python packages, Go modules and jars of a bill of materials."""
    for component in bill["components"]:
        name, version = component["name"], component.get("version", "")
        kind = component["purl"].partition("/")[0].removeprefix("pkg:")
        if kind == "pypi":
            yield Part("PyPI", normal(name), version)
        elif kind == "golang":
            yield Part("Go", "stdlib" if name == "std" else name, version.removeprefix("go").removeprefix("v"))
        elif kind == "maven":
            yield Part("Maven", f"{component['group']}:{name}", version)
        elif "file_name=" in component["purl"]:
            yield Part("Maven", f":{name}", CLASSIFIER.sub("", version))


def of_jar(name: str, jar: Path) -> Iterator[Part]:
    """Parts that a jar names: itself, and those that are packed into it."""
    with zipfile.ZipFile(jar) as opened:
        for entry in opened.namelist():
            if match := POM.fullmatch(entry):
                told = re.search(rb"^version=(\S+)", opened.read(entry), re.MULTILINE)
                itself = match[2] == name
                if told:
                    yield Part("Maven", f"{match[1]}:{match[2]}", told[1].decode(), "" if itself else jar.name)


def of_images(bills: Path, jars: Iterable[Path], groups: Mapping[str, str]) -> set[Part]:
    """All parts; a jar is looked into when a bill has it.

    ``groups``: of jars that do not tell theirs.
    """
    parts = {part for bill in bills.glob("*.cdx.json") for part in of_bill(json.loads(bill.read_text()))}
    known = {(part.name, part.version) for part in parts if part.ecosystem == "Maven"}
    for jar in (jar for folder in jars for jar in folder.glob("*.jar")):
        match = JAR.fullmatch(jar.name)
        if match and (match[1], CLASSIFIER.sub("", match[2])) in known:
            told = set(of_jar(match[1], jar))
            if any(not part.inside for part in told):
                parts -= {Part("Maven", f":{match[1]}", CLASSIFIER.sub("", match[2]))}
            parts |= told
    return {_grouped(part, groups) for part in parts}


def _grouped(part: Part, groups: Mapping[str, str]) -> Part:
    if part.package.startswith(":") and part.name in groups:
        return Part(part.ecosystem, groups[part.name] + part.package, part.version, part.inside)
    return part


def _of_git(path: Path, commit: str) -> Iterator[tuple[str, str]]:
    git = ("git", "-C", str(path))
    names = subprocess.run(
        (*git, "ls-tree", "-r", "-z", "--name-only", commit), check=True, capture_output=True, text=True
    ).stdout.split("\0")
    wanted = [name for name in names if READ.fullmatch(name) and not LEFT_OUT.search(name)]
    asked = "".join(f"{commit}:{name}\n" for name in wanted).encode()
    told = subprocess.run((*git, "cat-file", "--batch"), input=asked, check=True, capture_output=True).stdout
    at = 0
    for name in wanted:
        end = told.index(b"\n", at)
        fields = told[at:end].split()
        if fields[-1] == b"missing":  # a shallow or partial copy
            sys.exit(f"{path}: {name} is not in this copy of the database")
        size = int(fields[2])
        yield name, told[end + 1 : end + 1 + size].decode()
        at = end + size + 2


def texts(source: str) -> Iterator[tuple[str, str]]:
    """Name and content of each file with advisories."""
    path, _, commit = source.partition("@")
    place = Path(path)
    if not place.is_dir():
        sys.exit(f"{source}: is no folder")
    if (place / ".git").exists() or (place / "HEAD").exists():
        yield from _of_git(place, commit or "HEAD")
        return
    for file in sorted(place.rglob("*")):
        name = str(file.relative_to(place))
        if file.is_file() and READ.fullmatch(name) and not LEFT_OUT.search(name):
            yield name, file.read_text(encoding="utf-8")


def _of_csv(content: str) -> Iterator[dict[str, Any]]:
    """Columns: id, published, summary, package, introduced, fixed, severity, weaknesses."""
    for identity, _, _, package, introduced, fixed, *_ in csv.reader(content.splitlines()):
        events = [{"introduced": introduced}, *([{"fixed": fixed}] if fixed else [])]
        affected = {
            "package": {"ecosystem": "Maven", "name": package},
            "ranges": [{"type": "ECOSYSTEM", "events": events}],
        }
        yield {"id": identity, "affected": [affected]}


def advisories(name: str, content: str) -> Iterator[Mapping[str, Any]]:
    """The advisories of a file; nothing of another file, or of an advisory that was withdrawn."""
    if name.endswith(".csv"):
        yield from _of_csv(content)
        return
    told = json.loads(content) if name.endswith(".json") else yaml.load(content, yaml.CSafeLoader)
    if isinstance(told, dict) and "affected" in told and "id" in told and not told.get("withdrawn"):
        yield told


def _position(order: Order, version: str) -> Any:
    """A version as its ecosystem compares it; None for what is none."""
    try:
        return order(version)
    except ValueError:
        return None


def within(events: Iterable[Mapping[str, str]], version: str, order: Order) -> bool:
    """Whether the range that these events of OSV describe contains a version.

    A version that cannot be compared counts as affected: a reader then decides.
    """
    place = _position(order, version)
    if place is None:
        return True
    points = [(kind, at) for event in events for kind, at in event.items()]
    for kind, start in points:
        begun = None if start == "0" else _position(order, start)
        if kind != "introduced" or (begun is not None and begun > place):
            continue
        if not any(_ends(order, end, at, begun, place) for end, at in points):
            return True
    return False


def _ends(order: Order, kind: str, at: str, begun: Any, place: Any) -> bool:
    """Whether an event ends the range that begins at ``begun`` before, or at, this place."""
    end = _position(order, at) if kind in ("fixed", "last_affected") else None
    if end is None or (begun is not None and end < begun):
        return False
    return bool(end <= place if kind == "fixed" else end < place)


def _same(name: str, part: Part) -> bool:
    return name == part.package or (part.package.startswith(":") and name.endswith(part.package))


def _fixed(ranges: Iterable[Mapping[str, Any]], version: str, order: Order) -> str:
    """The first version after this one in which it is fixed."""
    place = _position(order, version)
    found = [event["fixed"] for told in ranges for event in told["events"] if "fixed" in event]
    ends = {at: end for at in found if (end := _position(order, at)) is not None}
    later = [at for at, end in ends.items() if place is not None and end > place]
    return min(later, key=lambda at: ends[at], default="")


def matches(advisory: Mapping[str, Any], parts: Iterable[Part]) -> Iterator[Match]:
    """The parts that an advisory is about, in a version that it calls affected."""
    for affected in advisory["affected"]:
        package = affected.get("package") or {}
        ecosystem, name = package.get("ecosystem", ""), package.get("name", "")
        if ecosystem not in ORDERS:
            continue
        order = ORDERS[ecosystem]
        name = normal(name) if ecosystem == "PyPI" else name
        ranges = [told for told in affected.get("ranges", []) if told["type"] != "GIT"]
        for part in parts:
            if part.ecosystem != ecosystem or not _same(name, part):
                continue
            listed = part.version in affected.get("versions", [])
            if listed or any(within(told["events"], part.version, order) for told in ranges):
                ids = (advisory["id"], *advisory.get("aliases", []))
                yield Match(part, ids, _fixed(ranges, part.version, order))


def search(sources: Iterable[str], parts: Iterable[Part]) -> list[Match]:
    """All matches. Files that name no part are not parsed."""
    parts = list(parts)
    names = {part.package.lstrip(":").lower() for part in parts}
    names |= {name.replace("-", "_") for name in names} | {name.replace("-", ".") for name in names}
    found = []
    for source in sources:
        for name, content in texts(source):
            words = content.lower()
            if name.endswith(".csv") or any(each in words for each in names):
                for advisory in advisories(name, content):
                    found += matches(advisory, parts)
    return found


def _vulnerability(told: Mapping[str, str]) -> Vulnerability:
    start = {"introduced": str(told.get("introduced", "0"))}
    end = {kind: str(told[key]) for kind, key in (("fixed", "fixed"), ("last_affected", "last")) if key in told}
    return Vulnerability(told["id"], told["what"], (start, *([end] if end else [])))


def read(path: Path = TOLD) -> tuple[list[Mapping[str, str]], list[Entry]]:
    """The databases that were read, and the entries."""
    told = yaml.safe_load(path.read_text())
    entries = [
        Entry(
            part=Part(one["ecosystem"], one["package"], str(one["version"]), one.get("inside", "")),
            image=one["image"],
            decision=one["decision"],
            now=str(one.get("now", "")),
            why=" ".join(one["why"].split()),
            vulnerabilities=tuple(map(_vulnerability, one["vulnerabilities"])),
        )
        for one in told["parts"]
    ]
    return told["databases"], entries


def untold(found: Iterable[Match], entries: Iterable[Entry]) -> list[str]:
    """Matches that no entry has, one line each."""
    known = {
        (entry.part.name, entry.part.version, entry.part.inside, one.id)
        for entry in entries
        for one in entry.vulnerabilities
    }
    lines = set()
    for match in found:
        part = match.part
        if not any((part.name, part.version, part.inside, each) in known for each in match.ids):
            inside = f" in {part.inside}" if part.inside else ""
            fixed = f"fixed in {match.fixed}" if match.fixed else "not fixed"
            lines.add(f"{part.package} {part.version}{inside}: {' '.join(match.ids)}, {fixed}")
    return sorted(lines)


def _wrapped(paragraph: str) -> str:
    return textwrap.fill(paragraph, 100, break_long_words=False, break_on_hyphens=False)


def _row(entry: Entry) -> str:
    part = entry.part
    place = f"{part.inside} ({entry.image})" if part.inside else entry.image
    ids = "; ".join(
        f"{one.id}: {one.what}" + (f" (fixed in {one.fixed})" if one.fixed else " (not fixed)")
        for one in entry.vulnerabilities
    )
    why = f"now {entry.now}. {entry.why}" if entry.now else entry.why
    return f"| {part.name} {part.version} | {place} | {ids} | {why} |"


def page(databases: Iterable[Mapping[str, str]], entries: Iterable[Entry]) -> str:
    """The page."""
    entries = list(entries)
    count = {decision: sum(entry.decision == decision for entry in entries) for decision in DECISIONS}
    number = sum(len(entry.vulnerabilities) for entry in entries)
    lines = [
        "# Known vulnerabilities",
        "",
        _wrapped(
            "Made from `hack/sbom/vulnerabilities.yaml` by `python -m hack.sbom.advisories page`; do not edit. "
            f"{len(entries)} parts with {number} vulnerabilities whose range of versions includes a version that the "
            "images have, or had. A writer's own program may call anything that is in the image, with the rights of "
            "its pod; that is not counted as a way to reach it. How parts are pinned: [supply chain](supply-chain.md)."
        ),
        "",
        _wrapped(
            "How sure this is: *unreachable* rests on names. No class outside of the part names the code in question, "
            "or a setting that users cannot make would have to. Paths of calls were not followed. Ranges of versions "
            "that are newer than the copy of 2024-12-16 were entered by hand from release notes and advisories, and "
            "were not checked against a second source."
        ),
        "",
        "| database | state | what was read |",
        "|---|---|---|",
        *(f"| {one['name']} | {one['state']} | {' '.join(one['read'].split())} |" for one in databases),
    ]
    for decision, meaning in DECISIONS.items():
        lines += ["", f"## {decision.capitalize()}", "", _wrapped(f"{count[decision]} parts: {meaning}.")]
        if count[decision]:
            lines += ["", "| part | where | vulnerabilities | reason |", "|---|---|---|---|"]
            lines += [_row(entry) for entry in entries if entry.decision == decision]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    """Compare, or write the page."""
    databases, entries = read()
    if arguments == ["page"]:
        PAGE.write_text(page(databases, entries), encoding="utf-8")
        return
    if len(arguments) < 4 or arguments[0] != "compare":
        sys.exit(__doc__)
    groups = yaml.safe_load(TOLD.read_text())["groups"]
    parts = of_images(Path(arguments[1]), map(Path, arguments[2].split(":")), groups)
    found = search(arguments[3:], parts)
    missing = untold(found, entries)
    print(f"{len(parts)} parts, {len(found)} matches, {len(missing)} of them not in {TOLD.name}", file=sys.stderr)
    if missing:
        print("\n".join(missing))
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
