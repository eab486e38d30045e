"""Layout of the source tree."""

from __future__ import annotations

import ast
import operator
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.evidence.prose import wrapped

PURE = [
    f"operator/{room}"
    for room in (
        "hudi_contract",
        "hudi_operator/api",
        "hudi_operator/model",
        "hudi_operator/manifests",
        "hudi_operator/plan",
    )
]
PORTS = ROOT / "operator/hudi_operator/model/ports.py"
"""Protocols of what is asynchronous, and no code."""


def impure(tree: ast.AST) -> list[str]:
    """What reads a clock, a file or a person, or waits.

    The import contracts forbid the modules that could.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("now", "utcnow", "today") or (
                isinstance(node.func, ast.Name) and name in ("open", "print", "input", "__import__", "eval", "exec")
            ):
                found.append(f"{node.lineno}: {name}()")
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            found.append(f"{node.lineno}: {type(node).__name__}")
    return found


@pytest.mark.parametrize("room", PURE)
def test_planners_and_what_they_use_read_no_clock_and_wait_for_nothing(room: str) -> None:
    sources = [path for path in (ROOT / room).rglob("*.py") if path != PORTS]
    assert sources
    assert {str(path): found for path in sources if (found := impure(ast.parse(path.read_text())))} == {}


@pytest.mark.parametrize("code", ["datetime.now(UTC)", "date.today()", "open('x')", "async def f():\n    await g()"])
def test_what_is_not_pure_is_found(code: str) -> None:
    assert impure(ast.parse(code))


def test_specs_are_parsed_in_one_place() -> None:
    """Each spec is parsed once, and what cannot be read is treated in the same way everywhere."""
    operator_sources = (ROOT / "operator/hudi_operator").rglob("*.py")
    found = {
        path.relative_to(ROOT / "operator/hudi_operator").as_posix()
        for path in operator_sources
        if re.search(r"\b(?:Table|Writer)Spec\.from_object\(", path.read_text())
    }
    assert found == {"api/defaults.py", "api/tolerant.py", "model/objects.py"}


def test_the_contract_needs_nothing_but_the_standard_library() -> None:
    """It is in the images of operator and runtime, whose libraries differ."""
    used = set()
    for path in (ROOT / "operator/hudi_contract").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                used |= {alias.name.partition(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                used.add((node.module or "").partition(".")[0])
    assert used - sys.stdlib_module_names - {"hudi_contract"} == set()


def paragraphs() -> dict[Path, str]:
    """Docstring of each package of the operator and of the runtime."""
    sources = [path for tree in ("operator", "spark-images/hudi_runtime") for path in (ROOT / tree).rglob("*.py")]
    return {
        folder: ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
        for folder in {path.parent for path in sources}
    }


def says_what_it_may_use(text: str) -> bool:
    """A path as docs/use says nothing."""
    return re.search(r"(?i)(?<!/)\b(uses?|imports?|below)\b", text) is not None


def left_out(rooms: set[str], text: str) -> set[str]:
    """Modules and packages that a docstring leaves out which names most of them.

    Where they are many of one kind, a docstring describes them together.
    """
    missing = {room for room in rooms if not re.search(rf"\b{room}\b", text)}
    return missing if 2 * len(missing) <= len(rooms) else set()


def test_every_package_says_what_lives_in_it_and_what_it_may_use() -> None:
    said = paragraphs()
    assert len(said) >= 32
    assert not [
        str(folder) for folder, text in said.items() if len(text.split()) < 30 or not says_what_it_may_use(text)
    ]


def test_a_package_that_lists_its_rooms_leaves_none_out() -> None:
    found = {}
    for folder, text in paragraphs().items():
        modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
        packages = {path.parent.name for path in folder.glob("*/__init__.py")}
        found[str(folder.relative_to(ROOT))] = left_out(modules | packages, text)
    assert {folder: missing for folder, missing in found.items() if missing} == {}


def test_what_a_docstring_leaves_out_is_found() -> None:
    assert left_out({"gate", "turns"}, "`gate` opens it, `turnsx` does not.") == {"turns"}
    assert left_out({"gate", "turns", "asked"}, "`gate` opens it, one module for each of the others.") == set()
    assert not says_what_it_may_use("Sends commits (docs/use/callbacks.md).")
    assert says_what_it_may_use("May import `table`.")


def test_the_folder_operator_is_no_package() -> None:
    assert not (ROOT / "operator/__init__.py").exists(), "it would shadow the standard library's `operator`"
    assert ROOT not in Path(operator.__file__).parents


def too_long(java: str) -> list[str]:
    """Lines of Java beyond 120 columns, and lines of comments beyond 100.

    The formatter wraps code alone, and no literal.
    """
    found, inside = [], False
    for number, line in enumerate(java.splitlines(), 1):
        text = line.strip()
        prose = inside or text.startswith(("//", "/*"))
        inside = (inside or text.startswith("/*")) and not text.endswith("*/")
        if len(line) > (100 if prose else 120):
            found.append(f"{number}: {len(line)}")
    return found


def test_lines_of_java_are_short() -> None:
    sources = [*(ROOT / "spark-images/etcd-lock/src").rglob("*.java"), *(ROOT / "tests/campaigns").rglob("*.java")]
    assert len(sources) >= 140
    assert {str(path.relative_to(ROOT)): found for path in sources if (found := too_long(path.read_text()))} == {}


@pytest.mark.parametrize("line", ["x" * 121, "// " + "x" * 98, "/** " + "x" * 98 + " */", f"/*\n * {'x' * 98}\n */"])
def test_a_long_line_of_java_is_found(line: str) -> None:
    assert too_long(f"{'x' * 120}\n// {'x' * 97}\n/** x */\n{line}\n{'x' * 120}\n")
    assert not too_long(f"/** x */\n{'x' * 120}\n/*\n * {'x' * 97}\n */\n{'x' * 120}\n")


def test_prose_wraps() -> None:
    """`python -m tests.support.evidence.prose FILE` wraps a page; `wrapping`, what is generated.

    Pages of results are left out: what they stand on is one line, which is read again.
    """
    names = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    pages = [ROOT / name for name in names.split("\n") if name and (ROOT / name).is_file()]
    assert len(pages) >= 100
    texts = {str(page.relative_to(ROOT)): page.read_text() for page in pages}
    long = [name for name, text in texts.items() if wrapped(text) != text and "**Evidence.**" not in text]
    assert long == [], "python -m tests.support.evidence.prose " + " ".join(long)


def test_a_long_line_of_prose_is_wrapped() -> None:
    words = " ".join(["word"] * 30)
    assert [len(line) for line in wrapped(f"* {words}\n").split("\n")] == [96, 56, 0]
    block = f"text:\n\n    short\n    {words}\n\n    {words}"
    assert wrapped(f"{words[:99]} 3. {words}").split("\n")[0] == words[:94], "a number is no item of a list"
    assert wrapped(f"{words[:94]} `` a`b c `` {words}").split("\n")[1].startswith("`` a`b c `` word")
    for kept in (block, f"| {words} |", f"# {words}", f"```\n{words}\n```", f"`{words}`", f"text\n\n    {words}"):
        assert wrapped(kept) == kept


PROGRAMS = (b"\x7fELF", b"\xca\xfe\xba\xbe", b"PK\x03\x04", b"!<ar")
"""How programs of Linux, classes, archives with them, and libraries begin."""


def test_no_compiled_program_is_in_the_tree() -> None:
    """Everything is built from its sources on the machine that runs it."""
    found = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    names = [name for name in found.split("\0") if name and (ROOT / name).is_file()]
    assert len(names) > 1000
    assert [name for name in names if (ROOT / name).read_bytes()[:4].startswith(PROGRAMS)] == []
