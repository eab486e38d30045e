"""Makes pages of the repository pages of the site: what MkDocs calls while it builds.

Pages are written for a reader of the repository: a link names a file beside the page, whether it is
a page or not. On the site a link to a page of the site stays one; a link to any other file leads to
that file below `extra.source_url` (SITE_SOURCE_URL, as `monitoring.rules.runbookBaseURL` of the
chart). Without it there is no host to link to: the text stays, and its title names the file. A link
to a file that is not there is a warning, which ends a strict build.

Files outside of docs/ that are pages of the site, too, are in PAGES. Headings have the anchors that
a Git host gives them.
"""

from __future__ import annotations

import html
import logging
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
LOG = logging.getLogger("mkdocs.hooks.site")
PAGES = {
    "overview.md": "README.md",
    **{f"tutorials/{path.parent.name}.md": f"examples/{path.parent.name}/README.md"
       for path in sorted(ROOT.glob("examples/*/README.md"))},
    "project/contributing.md": "CONTRIBUTING.md",
    "project/governance.md": "GOVERNANCE.md",
    "project/maintainers.md": "MAINTAINERS.md",
    "project/adopters.md": "ADOPTERS.md",
    "project/code-of-conduct.md": "CODE_OF_CONDUCT.md",
    "project/security.md": "SECURITY.md",
    "project/changelog.md": "CHANGELOG.md",
}  # fmt: skip
"""Page of the site to the file that it is made of."""
SITE = {source: page for page, source in PAGES.items()}
PART = re.compile(
    r"(?P<fence>^```.*?^```)"
    r"|(?P<link>(?P<mark>!?)\[(?P<text>(?:[^\]\[]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\))"
    r"|(?P<code>(?P<tick>`+)(?!`)(?:(?!\n\n|\n\|).)*?(?<!`)(?P=tick)(?!`))"
    r"|(?P<block>^    .*?$)"
    r"|(?P<type><(?=[a-z]+[,:](?!//)))",
    re.MULTILINE | re.DOTALL,
)
"""A block or span of code, in which nothing is a link; a link or picture; a type with
parameters (`struct<a:int>`), which Python-Markdown takes for a tag.
"""
SEEN = Counter[str]()
"""Anchors of the page that is being made."""


def anchor(heading: str, _: str = "-") -> str:
    """Anchor of a heading, as a Git host makes it; the second of a name has -1 behind it."""
    slug = re.sub(r"[^\w\- ]", "", html.unescape(heading).lower()).replace(" ", "-")
    SEEN[slug] += 1
    return slug if SEEN[slug] == 1 else f"{slug}-{SEEN[slug] - 1}"


def source_of(page: str) -> str:
    """The file of the repository that a page of the site is made of."""
    return PAGES.get(page, f"docs/{page}")


def page_at(path: str, there: set[str]) -> str:
    """The file of the site that a path of the repository is; empty: none."""
    for one in (path, f"{path}/README.md"):
        page = SITE.get(one, one.removeprefix("docs/") if one.startswith("docs/") else "")
        if page in there:
            return page
    return ""


def rewritten(markdown: str, page: str, there: set[str], base: str) -> tuple[str, list[str]]:
    """A page with its links on the site, and the targets of links that are not there."""
    missing = []
    folder = os.path.dirname(source_of(page))

    def one(found: re.Match[str]) -> str:
        if found["type"]:
            return "&lt;"
        target, _, fragment = (found["target"] or "").partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return found[0]
        path = os.path.normpath(os.path.join(folder, target))
        behind = f"#{fragment}" if fragment else ""
        if not (ROOT / path).exists() or path.startswith(".."):
            missing.append(found["target"])
            return found[0]
        if known := page_at(path, there):
            relative = os.path.relpath(known, os.path.dirname(page) or ".")
            return f"{found['mark']}[{found['text']}]({relative}{behind})"
        if base:
            return f"{found['mark']}[{found['text']}]({base.rstrip('/')}/{path}{behind})"
        return f'<span class="file" title="{html.escape(path)}">{found["text"]}</span>'

    return PART.sub(one, markdown), missing


def on_config(config: Any) -> Any:
    """Anchors as a Git host makes them."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = anchor
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that lie outside of docs/."""
    for page, source in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_content(content: str, **_: Any) -> str:
    """Show a bar in the code of a table's cell, which is written with a backslash, as a bar."""
    return re.sub(r"<t[dh]\b.*?</t[dh]>", lambda cell: cell[0].replace("\\|", "|"), content, flags=re.DOTALL)


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Lead links to where their targets are on the site."""
    SEEN.clear()
    there = {file.src_uri for file in files if file.inclusion.is_included()}
    text, missing = rewritten(markdown, page.file.src_uri, there, config.extra.get("source_url") or "")
    for target in missing:
        LOG.warning("%s: %s: no such file", source_of(page.file.src_uri), target)
    return text
