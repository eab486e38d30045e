"""The campaign that tries each alert: it has a fault for each, runs the alerts that the chart has,
and knows every command of the runbooks.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.alerts import page, rules, runbook
from tests.campaigns.alerts.acts import Acts
from tests.support import promtool, quick_yaml
from tests.support.promtool import selectors

ALERTS = rules.every()
RESULT: dict[str, Any] = {
    "alert": "HudiTableStalled",
    "severity": "critical",
    "commit": "abc",
    "at": "2030-01-01T00:00Z",
    "fault": "a fault",
    "repaired": "a repair",
    "firedAfter": 3.4,
    "endedAfter": 12.0,
    "commands": [{"command": "a", "exit": 0, "lines": 1, "shows": ["why|so"]}, {"command": "b", "notRun": "no b"}],
    "shows": ["why|so"],
    "verdict": "ok",
    "wrong": [],
}


def test_each_alert_has_one_fault() -> None:
    named = [fault.alert for act in Acts().every() for fault in act.faults]
    assert sorted(named) == sorted(ALERTS)


def test_promtool_accepts_the_shortened_rules(tmp_path: Path) -> None:
    promtool.need()
    rules.write(tmp_path / "rules.yaml")
    done = promtool.run("check", "rules", "--lint-fatal", str(tmp_path / "rules.yaml"))
    assert done.returncode == 0, done.stdout
    written = quick_yaml.load((tmp_path / "rules.yaml").read_text())["groups"]
    assert [rule["alert"] for group in written for rule in group["rules"]] == list(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_only_times_are_shortened(name: str) -> None:
    rule, short = ALERTS[name], rules.shortened(ALERTS[name])
    assert {key: value for key, value in short.items() if key not in ("for", "expr")} == {
        key: value for key, value in rule.items() if key not in ("for", "expr")
    }
    assert selectors(short["expr"]) == selectors(rule["expr"])
    differ = [
        (old, new)
        for old, new in zip(
            re.split(r"([\s()\[\]]+)", rule["expr"]), re.split(r"([\s()\[\]]+)", short["expr"]), strict=True
        )
        if old != new
    ]
    ages = {str(part) for pair in [rules.SHORTER.get(name, ())] for part in pair}
    for old, new in differ:
        assert new == rules.WINDOW or {old, new} == ages, (old, new)
    assert len([change for change in rules.changes(rule) if change.startswith("for ")]) == 1
    assert (name in rules.SHORTER) == any(change.startswith("older ") for change in rules.changes(rule))


@pytest.mark.parametrize("name", ALERTS)
def test_each_runbook_has_commands_that_are_known(name: str) -> None:
    found = runbook.commands(name)
    assert [command for command in found if not command.why_not], "nothing can be run"
    for command in found:
        assert command.section in ("Diagnosis", "Mitigation"), command
        assert set(re.findall(r"\b[A-Z]{3,}\b", re.sub(r"'[^']*'", "", command.line))) <= set(runbook.WORDS), command


def test_a_command_that_fails_or_shows_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runbook, "FOLDER", tmp_path)
    text = "# X\n\n## Diagnosis\n\n    echo the table is TABLE\n    false\n    kubectl top pods\n\n`kubectl -n POD x`\n"
    (tmp_path / "X.md").write_text(text)
    done, wrong = runbook.followed("X", {"TABLE": "t"}, ("table is t", "why"), kubeconfig=tmp_path, etcd_metrics=1)
    assert [command.get("exit", command.get("notRun")) for command in done] == [0, 1, "there is no metrics-server"]
    assert done[0]["shows"] == ["table is t"]
    assert wrong == ["false: exit status 1: ", "kubectl -n POD x: what is POD?", "no command shows 'why'"]


def test_a_row_says_what_was_seen() -> None:
    text = page.page(lambda name: RESULT if name == RESULT["alert"] else None)
    assert "the last one of each of 1 of 39 alerts, 1 of them ok; 1 of 2 commands" in text
    assert "| a fault | 3 s | 1 of 2 commands, shown: `why/so` | a repair | 12 s | `abc`" in text
    assert text.count("| not run |") == len(ALERTS) - 1
    assert "| HudiTableStalled | `b` | no b |" in text
    bad = {**RESULT, "verdict": "failed", "wrong": ["no command shows 'x'"]}
    assert "**failed**: no command shows 'x'" in page.page(lambda name: bad if name == RESULT["alert"] else None)
    assert "0 of them ok" in page.page(lambda name: bad if name == RESULT["alert"] else None)
