"""The manual as a site: its navigation has each page once, and its links lead where they lead in
the repository.

The site itself is built with `make test-all` alone: that installs its tools.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tests.support import ROOT

SITE = ROOT / "hack/site"


class Loader(yaml.SafeLoader):
    """MkDocs' tag for a variable is its name and default."""


Loader.add_constructor("!ENV", lambda loader, node: loader.construct_sequence(node))


def config() -> dict[str, Any]:
    found: dict[str, Any] = yaml.load((SITE / "mkdocs.yml").read_text(encoding="utf-8"), Loader=Loader)
    return found


@pytest.fixture(scope="module")
def hooks() -> Iterator[ModuleType]:
    """hack/site/hooks.py, without MkDocs."""
    names = ("mkdocs", "mkdocs.structure", "mkdocs.structure.files")
    stand_ins = {name: ModuleType(name) for name in names}
    for name in ("File", "Files"):
        setattr(stand_ins["mkdocs.structure.files"], name, type(name, (), {}))
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(stand_ins)
    try:
        spec = importlib.util.spec_from_file_location("site_hooks", SITE / "hooks.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        for name, old in before.items():
            if old is None:
                del sys.modules[name]
            else:
                sys.modules[name] = old


def pages(nav: Any) -> list[str]:
    """Every page that a navigation names."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in pages(part)]


def test_the_navigation_names_each_page_once(hooks: ModuleType) -> None:
    named = Counter(pages(config()["nav"]))
    docs = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert [page for page, times in named.items() if times > 1] == []
    assert set(named) == docs | set(hooks.PAGES)


def test_pages_that_lie_elsewhere_are_there(hooks: ModuleType) -> None:
    assert len(hooks.PAGES) > 20
    assert [source for source in hooks.PAGES.values() if not (ROOT / source).is_file()] == []


def test_every_link_is_one_on_the_site(hooks: ModuleType) -> None:
    """No file that a link names is missing; a page is linked as a page."""
    there = set(pages(config()["nav"]))
    for page in sorted(there):
        text, missing = hooks.rewritten(
            (ROOT / hooks.source_of(page)).read_text(encoding="utf-8"), page, there, "https://git.example.com/x"
        )
        assert missing == [], page
        for target in re.findall(r"\]\((?!https?:|mailto:)([^)#\s]+)", re.sub(r"`[^`]*`", "", text)):
            place = (Path("/") / page).parent / target
            assert str(place.resolve()).removeprefix("/") in there or not target.endswith(".md"), (page, target)


LINKS = [
    ("[a](operations.md#etcd)", "[a](operations.md#etcd)"),
    ("[a](../../examples/flights)", "[a](../tutorials/flights.md)"),
    ("[a](../../examples/flights/README.md)", "[a](../tutorials/flights.md)"),
    ("[a](../../README.md#limits-today)", "[a](../overview.md#limits-today)"),
    ("[a](../use)", "[a](../use/README.md)"),
    ("[`a` b](../../Makefile)", "[`a` b](https://git.example.com/x/Makefile)"),
    ("[a](../results/values.json)", "[a](https://git.example.com/x/docs/results/values.json)"),
    ("[a](https://example.org)", "[a](https://example.org)"),
    ("`[a](../../Makefile)`", "`[a](../../Makefile)`"),
    ("```\n[a](../../Makefile)\n```", "```\n[a](../../Makefile)\n```"),
    ("is struct<a:int> or <https://example.org>", "is struct&lt;a:int> or <https://example.org>"),
]


@pytest.mark.parametrize(("text", "wanted"), LINKS)
def test_a_link_leads_to_where_its_target_is(hooks: ModuleType, text: str, wanted: str) -> None:
    there = set(pages(config()["nav"]))
    made, missing = hooks.rewritten(text, "operate/stores.md", there, "https://git.example.com/x/")
    assert (made, missing) == (wanted, [])


def test_a_page_of_another_place_and_a_site_without_a_repository(hooks: ModuleType) -> None:
    there = set(pages(config()["nav"]))
    made, _ = hooks.rewritten("[a](table.yaml) [b](../../docs/use/pods.md)", "tutorials/pods.md", there, "")
    assert made == "[a](table.yaml) [b](../use/pods.md)"  # that example has no table.yaml
    made, missing = hooks.rewritten("[a](writer.yaml)", "tutorials/pods.md", there, "")
    assert (made, missing) == ('<span class="file" title="examples/pods/writer.yaml">a</span>', [])
    assert hooks.rewritten("[a](gone.md) [b](../../../x)", "use/pods.md", there, "")[1] == ["gone.md", "../../../x"]


def test_anchors_are_those_of_a_git_host(hooks: ModuleType) -> None:
    hooks.SEEN.clear()
    assert [hooks.anchor(text) for text in ("Read, modify, write", "a_b of I1", "x &amp; y", "Twice", "Twice")] == [
        "read-modify-write",
        "a_b-of-i1",
        "x--y",
        "twice",
        "twice-1",
    ]


def test_nothing_comes_from_another_host() -> None:
    """Material loads a script for Mermaid from a CDN, and fonts unless it is told not to."""
    made = config()
    assert made["theme"]["font"] is False
    assert made["plugins"] == ["search"]
    assert not {"extra_css", "extra_javascript"} & set(made)
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}
    assert [str(path) for path, text in texts.items() if re.search(r"^```+ *mermaid", text, re.MULTILINE)] == []


def test_tools_of_the_site_have_hashes() -> None:
    entries = re.split(r"\n(?=[a-z])", (SITE / "requirements.txt").read_text())[1:]
    assert len(entries) > 20
    assert [
        entry for entry in entries if not re.match(r"[a-z0-9.-]+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", entry)
    ] == []
    wanted = set(re.findall(r"^([a-z0-9-]+==\S+)", (SITE / "requirements.in").read_text(), re.MULTILINE))
    assert len(wanted) == 3
    assert wanted <= {entry.split()[0] for entry in entries}
    assert "--require-hashes" in (SITE / "site").read_text()


class Shape(HTMLParser):
    """What a reader sees of a page: text without blanks, items by depth, tables, blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter[str]()
        self.text = ""
        self.depth = 0
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.depth += tag in ("ul", "ol")
        if self.hidden or (tag == "a" and ("class", "headerlink") in attrs):
            self.hidden += 1
        elif tag == "li":
            self.counts[f"item at depth {self.depth}"] += 1
        elif tag in ("tr", "th", "pre", "code", "img", "h1", "h2", "h3", "h4", "strong", "em"):
            self.counts[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in ("ul", "ol")
        self.hidden -= bool(self.hidden)

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.text += re.sub(r"\s+", "", data)


def shape(html: str) -> tuple[Counter[str], str]:
    parser = Shape()
    parser.feed(html)
    return parser.counts, parser.text


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_the_site_is_built_and_shows_what_the_pages_say(hooks: ModuleType, tmp_path: Path) -> None:
    """With another implementation of Markdown as the judge; the build itself checks links."""
    from markdown_it import MarkdownIt

    done = subprocess.run([SITE / "site", tmp_path / "site"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    judge = MarkdownIt("commonmark").enable("table")
    for page in pages(config()["nav"]):
        path = tmp_path / "site" / re.sub(r"(README)?\.md$", "", page).rstrip("/") / "index.html"
        html = path.read_text(encoding="utf-8")
        for address in re.findall(r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="([^"]+)"', html):
            assert not re.match(r"(https?:)?//", address), (page, address)
        article = re.search(r"<article[^>]*>(.*)</article>", html, re.DOTALL)
        assert article is not None, page
        wanted = shape(judge.render((ROOT / hooks.source_of(page)).read_text(encoding="utf-8")))
        assert shape(article[1]) == wanted, page
    assert (tmp_path / "site/search/search_index.json").stat().st_size > 100_000


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path) -> None:
    """A copy of what the site is made of, with one wrong anchor."""
    copied = tmp_path / "copy"
    names = ("docs", "examples", "hack", *(path.name for path in ROOT.glob("*.md")))
    copied.mkdir()
    subprocess.run(["cp", "-r", *(ROOT / name for name in names), copied], check=True)
    for path in (*ROOT.iterdir(),):
        if path.name not in {*names, "build", ".git"}:
            (copied / path.name).symlink_to(path)
    with (copied / "docs/use/pods.md").open("a", encoding="utf-8") as page:
        page.write("\n[x](schema.md#no-such-heading)\n")
    done = subprocess.run([copied / "hack/site/site", tmp_path / "site"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "schema.md#no-such-heading" in done.stderr
