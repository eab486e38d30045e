"""Index of the findings, one line each: docs/design/findings-index.md.

python -m tests.campaigns.pages.findings    write the page
"""

from __future__ import annotations

import re
import sys

from tests.support import ROOT

SOURCE = ROOT / "docs" / "design" / "findings.md"
PAGE = SOURCE.with_name("findings-index.md")
HEAD = """\
# Findings, one line each

Made by `python -m tests.campaigns.pages.findings`; do not edit. What happened, what prevents it and
which test shows that is in [findings](findings.md).

| finding | what happened | subject |
|---|---|---|
"""
_HEADING = re.compile(r"^(##|###) (?:F(\d+): )?(.+)$", re.MULTILINE)


def anchor(heading: str) -> str:
    """The address of a heading on its page, as Markdown's renderers make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def page() -> str:
    """The whole page, by number."""
    rows, subject = dict[int, str](), ""
    for level, number, title in _HEADING.findall(SOURCE.read_text(encoding="utf-8")):
        if level == "##":
            subject = title
        else:
            link = f"[F{number}](findings.md#{anchor(f'F{number}: {title}')})"
            rows[int(number)] = f"| {link} | {title.replace('|', chr(92) + '|')} | {subject} |"
    return HEAD + "\n".join(rows[number] for number in sorted(rows)) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
