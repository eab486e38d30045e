"""What files show of the checks that docs/design/scorecard.md answers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import ROOT

PAGE = ROOT / "docs/design/scorecard.md"
CHECKS = {
    "Binary-Artifacts",
    "Branch-Protection",
    "CI-Tests",
    "CII-Best-Practices",
    "Code-Review",
    "Contributors",
    "Dangerous-Workflow",
    "Dependency-Update-Tool",
    "Fuzzing",
    "License",
    "Maintained",
    "Packaging",
    "Pinned-Dependencies",
    "SAST",
    "SBOM (experimental)",
    "Security-Policy",
    "Signed-Releases",
    "Token-Permissions",
    "Vulnerabilities",
    "Webhooks (experimental)",
}
WORKFLOWS = sorted((ROOT / ".github").glob("workflows/*.y*ml"))


def rows() -> dict[str, tuple[bool, str, str]]:
    """Check: whether it is tested, the answer, and what is said."""
    found = re.findall(r"^\| ([^|]+?)( \*)? \| \*\*([a-z ]+)\*\* \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    return {name: (bool(star), answer, said) for name, star, answer, said in found}


def test_each_check_has_an_answer() -> None:
    assert set(rows()) == CHECKS
    assert {answer for _, answer, _ in rows().values()} == {"yes", "in part", "no", "no answer"}


def problems(workflow: dict[Any, Any]) -> Iterator[str]:
    """What a workflow of GitHub must not have; one of another repository is an action, too."""
    # YAML 1.1 reads the name `on` as true.
    on = workflow.get("on", workflow.get(True, {}))
    for trigger in ("pull_request_target", "workflow_run"):
        if trigger in (on if isinstance(on, list | dict) else [on]):
            yield f"trigger {trigger}"
    if not _reads_only(workflow.get("permissions", "all")):
        yield "permissions of the workflow"
    for name, job in workflow.get("jobs", {}).items():
        for step in [job, *job.get("steps", [])]:
            uses = step.get("uses", "")
            if (
                uses
                and not uses.startswith("./")
                and not re.fullmatch(r"[^@]+@([0-9a-f]{40}|sha256:[0-9a-f]{64})", uses)
            ):
                yield f"{name}: {uses} is not named by a commit"
            if re.search(r"\$\{\{[^}]*\bgithub\.(event|head_ref)", step.get("run", "")):
                yield f"{name}: a text of an event in a script"


def _reads_only(permissions: object) -> bool:
    if isinstance(permissions, dict):
        return set(permissions.values()) <= {"read", "none"}
    return permissions in ("read-all", None)


@pytest.mark.parametrize("path", WORKFLOWS or [None])
def test_workflows_pin_actions_and_only_read(path: Path | None) -> None:
    if path is None:
        for name in ("Dangerous-Workflow", "Token-Permissions"):
            assert rows()[name][2].startswith("there is no workflow"), name
        return
    assert list(problems(yaml.safe_load(path.read_text()))) == []
    assert "there is no workflow" not in PAGE.read_text()


SHA = "a" * 40


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"on: [push]\npermissions: {{contents: read}}\njobs: {{a: {{steps: [uses: x/y@{SHA}, run: make]}}}}", []),
        ("on: push\npermissions: {}\njobs: {a: {steps: [uses: ./local]}}", []),
        ("on: push\njobs: {}", ["permissions of the workflow"]),
        ("on: push\npermissions: write-all\njobs: {}", ["permissions of the workflow"]),
        ("on: push\npermissions: {contents: write}\njobs: {}", ["permissions of the workflow"]),
        ("on: pull_request_target\npermissions: read-all\njobs: {}", ["trigger pull_request_target"]),
        ("on: {workflow_run: {}}\npermissions: read-all\njobs: {}", ["trigger workflow_run"]),
        (
            "on: push\npermissions: read-all\njobs: {a: {steps: [uses: x/y@v4]}, b: {uses: x/y/z.yml@main}}",
            ["a: x/y@v4 is not named by a commit", "b: x/y/z.yml@main is not named by a commit"],
        ),
        (
            "on: push\npermissions: read-all\njobs: {a: {steps: [{run: 'echo ${{ github.event.issue.title }}'}]}}",
            ["a: a text of an event in a script"],
        ),
    ],
)
def test_a_workflow_that_scorecard_would_not_like_is_found(text: str, expected: list[str]) -> None:
    assert list(problems(yaml.safe_load(text))) == expected


def test_the_licence_is_apaches_and_at_the_top() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text


def test_the_policy_has_a_process_and_times() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    assert len(re.findall(r"vulnerab", text, re.IGNORECASE)) >= 2
    assert re.search(r"within \d+ (working )?days", text)
    has_address = re.search(r"https?://|[\w.-]+@[\w-]+\.\w+", text)
    assert rows()["Security-Policy"][1] == ("yes" if has_address else "in part")


def test_hypothesis_is_used_and_pinned() -> None:
    used = [
        path for path in (ROOT / "tests/tiers/unit").rglob("*.py") if "from hypothesis import given" in path.read_text()
    ]
    assert len(used) >= 3
    assert re.search(r"^hypothesis==\S+", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)


def test_what_is_marked_as_tested_is() -> None:
    """Here, or by the test that is named."""
    elsewhere = {
        "Binary-Artifacts": ("test_layout.py", "test_no_compiled_program_is_in_the_tree"),
        "Pinned-Dependencies": ("test_pins.py", "test_pip_installs_what_has_a_hash"),
    }
    here = {"Dangerous-Workflow", "Token-Permissions", "License", "Security-Policy", "Fuzzing"}
    assert {name for name, (tested, _, _) in rows().items() if tested} == {*elsewhere, *here}
    for file, test in elsewhere.values():
        assert f"def {test}(" in (Path(__file__).parent / file).read_text()


def test_no_tool_for_updates_is_there_unless_the_page_says_so() -> None:
    found = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    there = re.search(r"^(\.github/dependabot\.ya?ml|(\.github/)?renovate\.json5?)$", found, re.MULTILINE)
    assert rows()["Dependency-Update-Tool"][1] == ("yes" if there else "no")
