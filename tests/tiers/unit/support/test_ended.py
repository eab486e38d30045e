"""Who has to leave nothing behind: every test that has passed, but those that say why not."""

from __future__ import annotations

import ast

import pytest

from tests.support import ROOT
from tests.support.trace import ended
from tests.support.trace.ended import complete

CONFTESTS = ("tests/tiers/hudi/conftest.py", "tests/tiers/e2e/conftest.py")


def told(item: pytest.Item, outcome: str, when: str = "call") -> None:
    """As pytest tells the end of a phase of a test."""
    hook = ended.pytest_runtest_makereport(item)
    next(hook)
    report = pytest.TestReport(item.nodeid, item.location, {}, outcome, None, when)  # type: ignore[arg-type]
    with pytest.raises(StopIteration) as stopped:
        hook.send(report)
    assert stopped.value.value is report


def test_a_test_that_has_passed_is_asked(request: pytest.FixtureRequest) -> None:
    assert not complete(request.node), "it has not ended"
    told(request.node, "passed", "setup")
    assert not complete(request.node)
    told(request.node, "failed")
    assert not complete(request.node), "it leaves what it was at"
    told(request.node, "passed")
    assert complete(request.node)
    request.node.add_marker(pytest.mark.unfinished("the last writer is killed"))
    assert not complete(request.node)


@pytest.mark.parametrize("words", [(), (" ",)])
def test_an_exception_says_why(request: pytest.FixtureRequest, words: tuple[str, ...]) -> None:
    request.node.add_marker(pytest.mark.unfinished(*words))
    with pytest.raises(AssertionError, match="say why"):
        complete(request.node)


@pytest.mark.parametrize("file", CONFTESTS)
def test_the_tiers_with_real_processes_ask(file: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    imported = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == ended.__name__
        for alias in node.names
    }
    assert imported == {"pytest_runtest_makereport"}, "without it no test counts as passed"
    (fixture,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "conform")
    assert "ended.complete(request.node)" in ast.unparse(fixture)
