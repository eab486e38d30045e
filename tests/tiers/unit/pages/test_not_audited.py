"""After a run with data the audit is asked; which tests do not is on a list, with the reason."""

from __future__ import annotations

import pytest

from tests.support import ROOT
from tests.support.evidence import not_audited

PAGE = ROOT / "docs" / "design" / "testing.md"


def test_a_new_test_without_an_audit_is_a_decision() -> None:
    """docs/design/testing.md lists each, and no other."""
    listed, found = not_audited.listed(PAGE.read_text(encoding="utf-8")), not_audited.found()
    missing = [f"| `{file}` | {', '.join(found[file])} | why |" for file in found if listed.get(file) != found[file]]
    gone = sorted(listed.keys() - found.keys())
    assert not missing, "\n".join(["docs/design/testing.md must have:", *missing])
    assert not gone, f"docs/design/testing.md lists files whose tests are all audited: {gone}"


@pytest.mark.parametrize(
    ("text", "silent"),
    [
        ("def test_one(table):\n    table.audited([])\ndef test_two(table):\n    table.audit()\n", ()),
        ("def test_one(table):\n    table.audited([])\ndef test_two(table):\n    table.read()\n", ("test_two",)),
        ("def test_one(table):\n    table.read()\n", (not_audited.ALL,)),
        ("def ends(table):\n    table.audited([])\ndef test_one(table):\n    ends(table)\n", ()),
        ("def ends(table):\n    ends(table)\ndef test_one(table):\n    ends(table)\n", (not_audited.ALL,)),
        ("class Run:\n    def end(self):\n        self.table.audited([])\ndef test_one(run):\n    run.end()\n", ()),
        ("from tests.support.cluster.scene import Scene\ndef test_one(scene):\n    scene.finish()\n", ()),
        ("from tests.support.cluster.scene import Scene\ndef test_one(scene):\n    scene.inflight()\n", ("all",)),
        ("from tests.support.harness.local import Table\ndef test_one(t: Table):\n    t.timeline()\n", ("all",)),
        ("def rows(x):\n    return x\n", ()),
    ],
)
def test_an_audit_is_found_in_what_a_test_uses(text: str, silent: tuple[str, ...]) -> None:
    assert not_audited.without(text) == silent


def test_no_audit_is_asked_in_part() -> None:
    """Each asks every check; one that does not hold is named with the reason."""
    own = {"tests/support/harness/local.py", "tests/tiers/hudi/test_audit.py"}  # `audited` itself; tests of the audit
    files = (str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").rglob("*.py")))
    read = {file: not_audited.partial((ROOT / file).read_text(encoding="utf-8")) for file in files if file not in own}
    assert {file: lines for file, lines in read.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("table.audited([], only=CHECKS)\n", (1,)),
        ("x = 1\naudit(spark, path, only=['rows'])\n", (2,)),
        ("table.audited([], without={'rows': 'they are compared above'})\n", ()),
        ("sign(only=True)\n", ()),
    ],
)
def test_an_audit_in_part_is_found(text: str, lines: tuple[int, ...]) -> None:
    assert not_audited.partial(text) == lines


def test_each_line_says_why() -> None:
    page = f"x\n\n{not_audited.HEAD}\n|---|---|---|\n{{}}\n\nmore | text | here\n"
    assert not_audited.listed(page.format("| `hudi/test_a.py` | test_b, test_a | because |")) == {
        "hudi/test_a.py": ("test_a", "test_b")
    }
    line = "| `hudi/test_a.py` | all | because |"
    for bad in ("| `hudi/test_a.py` | all | |", f"{line}\n{line}"):
        with pytest.raises(ValueError, match=r"hudi/test_a.py: one line for each file, with the reason"):
            not_audited.listed(page.format(bad))
