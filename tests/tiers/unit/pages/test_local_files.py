"""S3 is what the tests with Spark stand on; who does not is on a list, with the reason."""

from __future__ import annotations

import pytest

from tests.support import ROOT
from tests.support.evidence import local_files
from tests.support.evidence.local_files import Place

PAGE = ROOT / "docs" / "design" / "testing.md"


def found(text: str) -> list[Place]:
    return list(local_files.of_source("tests/tiers/hudi/test_a.py", text))


def test_a_new_exception_is_a_decision() -> None:
    """docs/design/testing.md lists each place and its reason, and no other."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    begin = lines.index(local_files.table()[0])
    listed = lines[begin : lines.index("", begin)]
    assert listed == local_files.table(), "\n".join(["docs/design/testing.md must have:", *local_files.table()])


def test_each_exception_says_why() -> None:
    why = "# local files: because\n"
    table = "def test_one(world):\n    world.table('t', local_files={})\n"
    assert found(table.format("'because'")) == [Place("tests/tiers/hudi/test_a.py", "because", "test_one")]
    assert [one.why for one in found("WHY = 'because'\n" + table.format("WHY if world else ''"))] == ["because"]
    assert [(one.why, one.of) for one in found(f"{why}a = f'file://{{b}}'\nc = 'file://{{d}}'\n")] == [("because", "")]
    assert found("a = 's3a://b'\nb = 'file:// is a scheme'\n") == []
    for bad in ("a = f'file://{b}'\n", f"{why}a = 1\nb = f'file://{{c}}'\n"):
        with pytest.raises(ValueError, match="no `# local files: why` above it"):
            found(bad)
    with pytest.raises(ValueError, match="says no reason"):
        found(table.format("why"))
