"""List the jars that name a package, as evidence for a reason in vulnerabilities.yaml.

    python -m hack.sbom.references JARS PACKAGE...

JARS names folders of jars, separated by colons, as for hack/sbom/advisories.py. For each PACKAGE
(`io.netty.handler.ssl`) one line per jar: how many of its classes, and which of its services, name
a class of the package or of one below it, by its type or by a text with its name. Jars that contain
the package themselves are marked; a copy under another name (`shaded.io.netty`) is not counted. A
class that is named need not be loaded; a class that nothing names can only be loaded by a name that
is put together, or comes from a setting.
"""

from __future__ import annotations

import re
import struct
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
"""Kinds of constants in a class file, and their lengths; 1 is a text, 5 and 6 count as two."""


def constants(content: bytes) -> Iterator[bytes]:
    """The texts of a class file: names, types, and the strings of its code."""
    (count,) = struct.unpack_from(">H", content, 8)
    at, index = 10, 1
    while index < count:
        kind = content[at]
        if kind == 1:
            (length,) = struct.unpack_from(">H", content, at + 1)
            yield content[at + 3 : at + 3 + length]
            at += 3 + length
        else:
            at += 1 + _SIZES[kind]
        index += 2 if kind in (5, 6) else 1


def names(package: str) -> re.Pattern[bytes]:
    """A package in a text: at its beginning, or where a type or a word begins."""
    path, text = re.escape(package.replace(".", "/")), re.escape(package)
    return re.compile(rf"(?:^|[()<;:\[])[BCDFIJSZ\[]*L?{path}/|(?<![\w.$/]){text}\.".encode())


def of_jar(jar: Path, packages: Iterable[str]) -> dict[str, tuple[int, list[str], bool]]:
    """Package to the number of classes that name it, services that do, and whether it is here."""
    wanted = {package: (f"{package.replace('.', '/')}/".encode(), f"{package}.".encode()) for package in packages}
    classes, services, own = Counter[str](), dict[str, list[str]](), set[str]()
    with zipfile.ZipFile(jar) as opened:
        for name in opened.namelist():
            is_class = name.endswith(".class")
            if not is_class and not name.startswith("META-INF/services/"):
                continue
            content = opened.read(name)
            for package, (path, text) in wanted.items():
                if is_class and name.startswith(path.decode()):
                    own.add(package)
                elif is_class and (path in content or text in content):
                    classes[package] += any(map(names(package).search, constants(content)))
                elif not is_class and names(package).search(content):
                    services.setdefault(package, []).append(name.rpartition("/")[2])
    return {package: (classes[package], services.get(package, []), package in own) for package in wanted}


def report(folders: Iterable[Path], packages: list[str]) -> dict[str, list[str]]:
    """Package to the lines that are printed for it."""
    lines: dict[str, list[str]] = {package: [] for package in packages}
    for jar in sorted(jar for folder in folders for jar in folder.glob("*.jar")):
        for package, (classes, services, own) in of_jar(jar, packages).items():
            if classes or services or own:
                words = [f"{classes} classes" if classes else "", *(f"service {name}" for name in services)]
                words.append("contains it" if own else "")
                lines[package].append(f"{jar.name}: {', '.join(filter(None, words))}")
    return lines


def main(jars: str, *packages: str) -> None:
    """Print the lines of each package."""
    for package, lines in report(map(Path, jars.split(":")), list(packages)).items():
        print(package)
        print("\n".join(f"  {line}" for line in lines) or "  nothing")


if __name__ == "__main__":
    main(*sys.argv[1:])
