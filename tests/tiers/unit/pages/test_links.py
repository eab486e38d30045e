"""Every relative link of every Markdown page leads to a file that is there, and to a
heading of it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support import ROOT

FOLDERS = ("charts", "crds", "demo", "deploy", "docs", "examples", "hack", "operator", "spark-images", "tests")
LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def below(folder: Path) -> list[Path]:
    """Pages below a folder. Maven may be at work in its own folder meanwhile."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "target"]
        found += [Path(place, name) for name in files if name.endswith(".md")]
    return found


PAGES = sorted([*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in below(ROOT / folder))])


def prose(text: str) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


CODE = re.compile(r"(`+)(?!`)(?:(?!\n\n|\n\|).)*?(?<!`)\1(?!`)", re.DOTALL)


def without_code(text: str) -> str:
    """A page without spans of code that look like a link."""
    return CODE.sub(lambda span: "" if "](" in span[0] else span[0], prose(text))


def anchors(text: str) -> set[str]:
    """What `#` may name: headings in lower case, without punctuation, blanks as hyphens.

    A second one of the same name has -1 behind it.
    """
    seen: Counter[str] = Counter()
    found = set[str]()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", prose(text), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def broken(page: Path, text: str) -> list[str]:
    """Links of a page that lead nowhere."""
    bad = []
    for link in LINK.findall(without_code(text)):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        place = (page.parent / target).resolve() if target else page
        if not place.exists():
            bad.append(f"{link}: no such file")
        elif anchor and (
            not place.is_file() or anchor not in anchors(place.read_text(encoding="utf-8") if target else text)
        ):
            bad.append(f"{link}: no such heading")
    return bad


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page, page.read_text(encoding="utf-8")) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(
        "# Other\n\n## Read, modify, write\n\n## `a` of I1\n\n## Twice\n\n## Twice\n\n```\n# no heading\n```\n"
    )
    page = tmp_path / "page.md"
    page.touch()
    good = (
        "[a](other.md) [b](other.md#read-modify-write) [c](other.md#a-of-i1) [d](other.md#twice-1) [e](#page) "
        "[f](https://example.org/x.md#y) `[g](gone.md)` [`h`](other.md)\n"
    )
    assert broken(page, f"# Page\n\n{good}") == []
    bad = "[a](gone.md) [b](other.md#no-heading) [c](#gone) [d](other.md#twice-2)\n"
    assert broken(page, f"# Page\n\n{bad}") == [
        "gone.md: no such file",
        "other.md#no-heading: no such heading",
        "#gone: no such heading",
        "other.md#twice-2: no such heading",
    ]


CITED = ("operator", "spark-images/hudi_runtime", "spark-images/etcd-lock/src", "tests", "docs", "crds", "hack", "demo")


def test_every_finding_that_is_cited_is_defined() -> None:
    """Numbers such as F12, wherever they stand; F401 and the like are names of lint rules."""
    page = (ROOT / "docs/design/findings.md").read_text()
    headings = re.findall(r"^### (F\d+): ", page, re.MULTILINE)
    defined = set(headings)
    assert len(headings) == len(defined), "a number is used twice"
    bodies = re.split(r"^### F\d+: .*$", page, flags=re.MULTILINE)[1:]
    for number, body in zip(headings, bodies, strict=True):
        assert "\n* **Prevention:** " in body, number
        assert re.search(r"^\* \*\*Tests?:\*\*(?: |$)", body, re.MULTILINE), number
    cited = {
        number
        for root in CITED
        for path in (ROOT / root).rglob("*")
        if path.suffix in {".py", ".java", ".md", ".yaml", ".json"} and path.is_file()
        for number in re.findall(r"(?<![\w#-])F\d{1,3}(?![\w-])", path.read_text(encoding="utf-8"))
        if not re.fullmatch(r"F(401|811|821)", number)
    }
    assert len(cited) > 90
    assert sorted(cited - defined) == []
