"""The gateway's own tests (``gateway/*_test.go``), each of which is counted here.

They ask its rules, tokens and limits one by one; ``test_identities.py`` asks the whole program
before a real etcd.
"""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from tests.support import ROOT

GATEWAY = ROOT / "gateway"
NAMES = sorted(
    name
    for file in GATEWAY.glob("*_test.go")
    for name in re.findall(r"^func (Test\w+)", file.read_text(), re.MULTILINE)
)


@pytest.fixture(scope="module")
def said() -> dict[str, tuple[str, str]]:
    """Test to its outcome and output; one run of all of them."""
    command = ["go", "test", "-json", "-count=1", "./..."]
    done = subprocess.run(command, cwd=GATEWAY, capture_output=True, text=True, timeout=600, check=False)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    output: dict[str, str] = {}
    for event in events:
        name = event.get("Test", "").partition("/")[0]
        output[name] = output.get(name, "") + event.get("Output", "")
    outcomes = {
        event["Test"]: event["Action"]
        for event in events
        if event["Action"] in ("pass", "fail", "skip", "output") and "/" not in event.get("Test", "/")
    }
    assert outcomes, done.stdout + done.stderr
    return {name: (outcome, output[name]) for name, outcome in outcomes.items()}


@pytest.mark.parametrize("name", NAMES)
def test_go(said: dict[str, tuple[str, str]], name: str) -> None:
    outcome, output = said.get(name, ("not run", ""))
    assert outcome == "pass", output
