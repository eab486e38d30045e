"""docs/operate/licences.md: the licence of each part of the images, as the part itself states it.

    python -m hack.sbom.licences LAYOUT BILLS MODULES OUT    (as hack/sbom/licences does)

Parts and versions are those of the bills of materials. The licence of a Debian package is read in
its copyright file, that of a Python package in its METADATA, both in the image; that of a jar in
its bill, or in the jar (pom.xml, manifest, LICENSE); that of a Go module in the LICENSE of the
module that the build used. A part that is found in none of them is shown as not found.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
import textwrap
import xml.etree.ElementTree as ElementTree
import zipfile
from collections import defaultdict
from contextlib import ExitStack
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from hack.sbom.sbom import OFFICIAL_SITE, SITE, Image, normal

Component = dict[str, Any]
IMAGES = ("operator", "gateway", "spark", "etcd")
"""Images that are meant to be pushed; `s3` is a server of the tests."""
NOT_FOUND = "not found"
DOCS = "usr/share/doc/"
OURS = "Apache-2.0"
TEXTS = (
    ("Apache-2.0", r"Apache License,?\s+Version 2\.0"),
    ("MPL-2.0", r"Mozilla Public License,?\s+(Version|v\.) ?2\.0"),
    ("EPL-2.0", r"Eclipse Public License\s+-\s+v ?2\.0"),
    ("EPL-1.0", r"Eclipse Public License\s+-\s+v ?1\.0"),
    ("CDDL", r"COMMON DEVELOPMENT AND DISTRIBUTION LICENSE"),
    ("LGPL", r"GNU (Lesser|Library) General Public License"),
    ("GPL", r"GNU General Public License"),
    ("ISC", r"Permission to use, copy, modify, and/?\s*(or\s+)?distribute this software for any\s+purpose"),
    ("MIT", r"Permission is hereby granted, free of charge, to any person obtaining"),
    (
        "BSD-3-Clause",
        r"Redistribution and use in source and binary forms.*(Neither the name|may not be used to endorse)",
    ),
    ("BSD-2-Clause", r"Redistribution and use in source and binary forms"),
    ("Unlicense", r"This is free and unencumbered software released into the public domain"),
)
"""A sentence of a text by which its licence is recognised."""
NAMES = (
    (r"apache.*2", "Apache-2.0"),
    (r"\bmit\b", "MIT"),
    (r"bsd.?3|new bsd|revised bsd|3-clause", "BSD-3-Clause"),
    (r"bsd.?2|simplified bsd|2-clause", "BSD-2-Clause"),
)
"""Other spellings of a licence."""


class Parts(Image):
    """An image in which folders of documentation that are links count, too."""

    def __init__(self, layout: Path, name: str, stack: ExitStack) -> None:
        self.links: dict[str, str] = {}
        super().__init__(layout, name, stack)

    def _add(self, tar: tarfile.TarFile) -> None:
        super()._add(tar)
        for member in tar:
            path = member.name.removeprefix("./")
            if member.issym() and path.startswith(DOCS):
                self.links[path.removeprefix(DOCS)] = member.linkname.rpartition("/")[2]

    def copyright_of(self, package: str) -> str:
        """The path of a package's copyright file, which may be another package's."""
        return f"{DOCS}{self.links.get(package, package)}/copyright"


def of_text(text: str) -> str:
    """Licences of a text, joined by AND; empty: none is recognised."""
    found = [name for name, words in TEXTS if re.search(words, text, re.IGNORECASE | re.DOTALL)]
    if "BSD-3-Clause" in found:
        found.remove("BSD-2-Clause")
    if found[:1] == ["Apache-2.0"] and len(text) < 13000:  # its own text names no other licence
        found = found[:1]
    return " AND ".join(found)


def of_name(name: str) -> str:
    """The usual name of a licence; an unknown one stays unchanged."""
    name = " ".join(name.split())
    return next((short for words, short in NAMES if re.search(words, name, re.IGNORECASE)), name)


def debian(copyright_file: str) -> str:
    """Licences of a Debian package: the short names of a machine-readable file, or the common
    licences to which another one refers.
    """
    fields = set[str]()
    if copyright_file.startswith("Format"):
        told = re.findall(r"^License:[ \t]*(\S.*)$", copyright_file, re.MULTILINE)
        fields = {" ".join(one.split()).rstrip(",") for one in told}
    if not fields:
        fields = set(re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", copyright_file))
    return ", ".join(sorted(fields)) or of_text(copyright_file) or NOT_FOUND


def python(metadata: str) -> str:
    """Licence of a Python package: expression, classifiers, or a short name."""
    fields = HeaderParser().parsestr(metadata)
    if fields.get("License-Expression"):
        return str(fields["License-Expression"])
    told = [
        one.rpartition(" :: ")[2]
        for one in fields.get_all("Classifier", [])
        if one.startswith("License ::") and one != "License :: OSI Approved"
    ]
    short = str(fields.get("License") or "").strip()
    if short and len(short) <= 40 and "\n" not in short:
        return of_name(short)
    return ", ".join(map(of_name, told)) or of_text(short) or NOT_FOUND


def jar(content: bytes) -> str:
    """Licence of a jar, by what is in it."""
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        names = opened.namelist()
        poms = [name for name in names if re.fullmatch(r"META-INF/maven/[^/]+/[^/]+/pom\.xml", name)]
        if len(poms) == 1:
            root = ElementTree.fromstring(opened.read(poms[0]))
            told = [node.text or "" for node in root.iterfind("{*}licenses/{*}license/{*}name")]
            if told:
                return " OR ".join(dict.fromkeys(map(of_name, told)))
        if "META-INF/MANIFEST.MF" in names:
            manifest = opened.read("META-INF/MANIFEST.MF").decode(errors="replace").replace("\r", "").replace("\n ", "")
            if found := re.search(r"^Bundle-License: (.*)$", manifest, re.MULTILINE):
                return _link(found[1])
        texts = [name for name in names if re.fullmatch(r"(META-INF/)?(LICENSE|license)(\.txt|\.md)?", name)]
        return of_text(opened.read(texts[0]).decode(errors="replace")) if texts else ""


def _link(text: str) -> str:
    """Licence that a manifest names, often by an address."""
    known = (
        (r"apache.org/licenses/LICENSE-2|Apache-2", "Apache-2.0"),
        (r"opensource.org/licenses/mit|\bMIT\b", "MIT"),
        (r"epl-v10|epl-1", "EPL-1.0"),
        (r"epl-2", "EPL-2.0"),
        (r"bsd-license|BSD-3|BSD-2", "BSD"),
        (r"cddl", "CDDL"),
    )
    found = [name for words, name in known if re.search(words, text, re.IGNORECASE)]
    return " OR ".join(found) or text.strip()[:80]


def module(folder: Path) -> str:
    """Licence of a Go module; that of a parent when it has none of its own."""
    name = re.compile(r"(LICEN[CS]E|COPYING|UNLICENSE)(\.txt|\.md|\.MIT|\.APACHE2)?", re.IGNORECASE)
    texts = [path for place in (folder, folder.parent) for path in sorted(place.glob("*")) if name.fullmatch(path.name)]
    found = (of_text(path.read_text(encoding="utf-8", errors="replace")) for path in texts)
    return next(filter(None, found), NOT_FOUND)


def escaped(name: str) -> str:
    """A module's path in Go's cache, where a capital letter is written as ! and the small one."""
    return re.sub(r"[A-Z]", lambda found: f"!{found[0].lower()}", name)


def licence(part: Component, image: Parts, paths: dict[str, str], modules: Path) -> str:
    """Licence of one part of an image. ``paths``: where Python packages and jars are in it."""
    told = [
        entry.get("expression") or entry["license"].get("id") or of_name(entry["license"].get("name", ""))
        for entry in part.get("licenses", [])
    ]
    if told:
        return " OR ".join(dict.fromkeys(told))
    name, kind = part["name"], part["purl"].partition("/")[0].removeprefix("pkg:")
    if kind == "deb":
        path = image.copyright_of(name)
        return debian(image.read(path).decode(errors="replace")) if path in paths else NOT_FOUND
    if kind == "pypi":
        return python(image.read(paths[f"{normal(name)} {part['version']}"]).decode(errors="replace"))
    if kind == "golang":
        if name == "std":
            return "BSD-3-Clause"
        return module(modules / f"{escaped(name)}@{part['version']}")
    file = re.search(r"file_name=(\S+)", part["purl"])
    if file:
        return jar(image.read(paths[file[1]])) or NOT_FOUND
    return OURS  # our jar, and the programs, whose main packages are ours


def places(image: Image) -> dict[str, str]:
    """Location of each part: copyright files, METADATA by name and version, jars by name."""
    found = {}
    for path in image:
        if match := re.fullmatch(rf"(?:{SITE}|{OFFICIAL_SITE})/([^/]+)-([^/-]+)\.dist-info/METADATA", path):
            found[f"{normal(match[1])} {match[2]}"] = path
        elif path.endswith(".jar"):
            found[path.rpartition("/")[2]] = path
        elif path.endswith("/copyright"):
            found[path] = path
    return found


GROUPS = {
    "deb": ("Debian packages", "Read in `/usr/share/doc/NAME/copyright`, which the images contain."),
    "pypi": ("Python packages", "Read in the package's METADATA."),
    "maven": ("Jars that are pinned, and what is packed into ours", "Read in the project's POM."),
    "generic": ("Jars that pyspark brings, and our own parts", "Read in the jar: POM, manifest or LICENSE."),
    "golang": (
        "Go modules",
        "Read in the LICENSE of the module. The images etcd and gateway contain one program each, and no texts: "
        "whoever publishes them passes these on.",
    ),
}


def _wrapped(paragraph: str) -> str:
    return textwrap.fill(paragraph, 100, break_long_words=False, break_on_hyphens=False)


def page(rows: dict[tuple[str, str, str], tuple[str, set[str]]]) -> str:
    """The page. ``rows``: kind, name and version to licence and images."""
    missing = sum(told == NOT_FOUND for told, _ in rows.values())
    lines = [
        "# Licences of what the images contain",
        "",
        _wrapped(
            "Made by `hack/sbom/licences` from the bills of materials of the images ([supply "
            "chain](supply-chain.md#bills-of-materials)) after a build; do not edit. A licence is what the part "
            "itself states, in its own words where they are no SPDX identifier; nobody has reviewed it, and a part "
            f"may contain files under others. {len(rows)} parts, of {missing} no licence was found in them. The texts "
            "of the licences, and the NOTICE files that some of them require to be passed on, are in the parts (not "
            "so for Go modules, below). The project itself: Apache License 2.0, see `LICENSE` and `NOTICE`."
        ),
        "",
    ]
    for kind, (title, how) in GROUPS.items():
        lines += [f"## {title}", "", _wrapped(how), "", "| part | version | licence | images |", "|---|---|---|---|"]
        for (of, name, version), (told, images) in sorted(rows.items(), key=lambda row: row[0][1].lower()):
            if of == kind:
                lines.append(f"| {name} | {version} | {told.replace('|', '/')} | {', '.join(sorted(images))} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main(layout: str, bills: str, modules: str, out: str) -> None:
    """Write the page."""
    rows: dict[tuple[str, str, str], tuple[str, set[str]]] = {}
    seen: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for name in IMAGES:
        bill = json.loads((Path(bills) / f"{name}.cdx.json").read_text())
        with ExitStack() as stack:
            image = Parts(Path(layout), f"localhost/hudi-operator/{name}:dev", stack)
            if image.digest != bill["metadata"]["component"]["version"]:
                sys.exit(f"{name}: the bill of materials is of another image: run hack/images/build-images")
            paths = places(image)
            for part in bill["components"]:
                kind = part["purl"].partition("/")[0].removeprefix("pkg:")
                group = f"{part['group']}:" if part.get("group") and kind == "maven" else ""
                key = (kind, group + part["name"], part.get("version", ""))
                seen[key].add(name)
                if key not in rows or rows[key][0] == NOT_FOUND:
                    rows[key] = (licence(part, image, paths, Path(modules)), seen[key])
    Path(out).write_text(page(rows), encoding="utf-8")
    print(f"{out}: {len(rows)} parts", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
