"""Pages on disasters have the form of runbooks, and commands of the plugin that administrators are
told to type are ones that it has.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from hudi_kubectl import __main__ as plugin
from tests.support import ROOT

FOLDER = ROOT / "docs" / "operate" / "disasters"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
OPERATE = sorted((ROOT / "docs" / "operate").rglob("*.md"))
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_says_what_it_means_whom_it_hurts_what_to_look_at_and_what_to_do(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    for section in text.split("\n## ")[1:]:
        assert section.partition("\n")[2].strip(), section
    diagnosis = text.partition("\n## Diagnosis\n")[2].partition("\n## ")[0]
    assert re.search(r"^    kubectl ", diagnosis, re.MULTILINE), "a command to begin with"
    title = text.partition("\n")[0].removeprefix("# ")
    assert f"| [{title[0].lower()}{title[1:]}]({page.name}) |" in (FOLDER / "README.md").read_text()


def test_there_are_three() -> None:
    assert [page.stem for page in PAGES] == ["bucket-replicated", "cluster-gone", "etcd-gone"]


def commands(page: Path) -> list[str]:
    """`kubectl hudi` in blocks of code, without what is optional."""
    found = re.findall(r"^ {4,}(?:\$ )?kubectl hudi (.+)$", page.read_text(), re.MULTILINE)
    return [re.sub(r"\s*\[[^]]*\]", "", one) for one in found]


@pytest.mark.parametrize("page", [page for page in OPERATE if commands(page)], ids=lambda page: page.stem)
def test_commands_of_the_plugin_exist(page: Path) -> None:
    for command in commands(page):
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                plugin.parser().parse_args(shlex.split(command, comments=True))
        except SystemExit:
            raise AssertionError(f"{command}: {said.getvalue()}") from None
