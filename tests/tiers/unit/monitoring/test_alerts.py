"""The chart's alerts: each fires at its fault and not without it, asks for metrics that exist, and
has a runbook.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_contract.outcomes import FailureClass
from hudi_contract.settle import Phase, Reason
from hudi_operator.metrics import catalog
from hudi_operator.model import classify
from tests.support import ROOT, promtool, quick_yaml

RULES = ROOT / "charts" / "hudi-operator" / "files" / "alerts.yaml"
RUNBOOKS = ROOT / "docs" / "operate" / "runbooks"
JsonDict = dict[str, Any]

SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]
OF_TARGETS = {"job", "pod", "le"}
"""Labels of Prometheus, and of buckets."""
LABELS = {"T": 'namespace="lake", table="orders"', "W": 'namespace="lake", table="orders", writer="live"'}
JOBS = {"hudi_operator": "hudi-operator", "hudi_gateway": "hudi-operator-gateway"}
MINUTE = "1m"


def load(path: Path) -> JsonDict:
    found: JsonDict = quick_yaml.load(path.read_text())
    return found


ALERTS: dict[str, JsonDict] = {rule["alert"]: rule for group in load(RULES)["groups"] for rule in group["rules"]}
CASES: dict[str, JsonDict] = load(Path(__file__).with_name("cases.yaml"))
every_alert = pytest.mark.parametrize("name", ALERTS)


def metrics() -> dict[str, catalog.Definition]:
    """By the name of each series."""
    return {series: metric for metric in catalog.every() for series in metric.series}


def words(label: str) -> set[str]:
    """Values that a label can have; empty when the code does not list them."""
    conditions = set(
        re.findall(
            r'"([A-Z]\w+)"',
            "\n".join(
                line
                for path in (ROOT / "operator" / "hudi_operator" / "plan").rglob("*.py")
                for line in re.findall(r"(?:ondition\(|CONDITION = |kind = )\s*\"[A-Z]\w+\"", path.read_text())
            ),
        )
    )
    return {
        "condition": conditions,
        "phase": {phase.name for phase in Phase},
        "reason": set(Reason),
        "class": {
            *FailureClass,
            classify.SUCCEEDED,
            classify.CANCELLED,
            classify.OUT_OF_MEMORY,
            classify.EVICTION,
            classify.DEADLINE_EXCEEDED,
            classify.NODE_LOST,
        },
        "outcome": {"ok", "changed", "conflict", "error"},
        "certificate": {"etcd-client", "etcd-authority", "etcd-server", "gateway-authority", "metrics-server"},
    }.get(label, set())


def test_promtool_accepts_the_rules() -> None:
    promtool.need()
    done = promtool.run("check", "rules", "--lint-fatal", str(RULES))
    assert done.returncode == 0, done.stdout


def test_each_alert_has_cases_and_a_runbook_and_nothing_else_has() -> None:
    assert ALERTS.keys() == CASES.keys()
    assert {f"{name}.md" for name in ALERTS} | {"README.md"} == {path.name for path in RUNBOOKS.iterdir()}


@every_alert
def test_it_asks_for_metrics_that_exist(name: str) -> None:
    expression = ALERTS[name]["expr"]
    selectors, known = promtool.selectors(expression), metrics()
    assert selectors
    labels = set(OF_TARGETS)
    for selector in selectors:
        job = next(value for label, _, value in selector.matchers if label == "job")
        if selector.metric == "up":
            assert job in JOBS.values()
            continue
        metric = known[selector.metric]
        assert job == JOBS["_".join(selector.metric.split("_")[:2])], "two releases in one cluster"
        assert selector.labels <= {*metric.labels, "job"}, selector
        labels |= set(metric.labels)
        for label, operator, value in selector.matchers:
            if possible := words(label):
                values = value.split("|") if "~" in operator else [value]
                assert set(values) <= possible, (label, values)
    assert promtool.grouped(expression) <= labels


@every_alert
def test_it_says_what_a_person_needs(name: str) -> None:
    rule = ALERTS[name]
    assert re.fullmatch(r"Hudi[A-Z]\w+", name)
    assert re.fullmatch(r"[1-9]\d*[mh]", rule["for"]), "a moment is no reason to wake anybody"
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in ("critical", "warning")
    said = rule["annotations"]
    assert said.keys() == {"summary", "description", "runbook_url"}
    assert said["summary"].endswith(".")
    named = set(re.findall(r"\$labels\.(\w+)", said["description"]))
    assert named <= CASES[name]["labels"].keys(), "an empty word in the text"
    assert (ROOT / said["runbook_url"]).exists()


@every_alert
def test_its_runbook_helps(name: str) -> None:
    """One form for all: what it means, whom it hurts, what to look at, what to do."""
    text = (RUNBOOKS / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    for section in text.split("\n## ")[1:]:
        assert section.partition("\n")[2].strip(), section
    diagnosis = text.partition("\n## Diagnosis\n")[2].partition("\n## ")[0]
    assert re.search(r"^    kubectl ", diagnosis, re.MULTILINE), "a command to begin with"
    index = (RUNBOOKS / "README.md").read_text()
    rule = ALERTS[name]
    assert f"| [{name}]({name}.md) | {rule['labels']['severity']} | {rule['annotations']['summary']} |" in index


# ---- what promtool evaluates


def series(text: str) -> JsonDict:
    """One series of promtool's test format."""
    name, _, values = re.sub(r"\{(T|W)\b", lambda m: "{" + LABELS[m[1]], text).rpartition("} ")
    if not name:
        name, _, values = text.partition(" ")
        name += "{"
    job = "" if 'job="' in name else f'job="{JOBS["_".join(name.split("_")[:2])]}"'
    separator = ", " if job and not name.endswith("{") else ""
    return {"series": f"{name}{separator}{job}}}", "values": values}


def minutes(duration: str) -> int:
    return int(duration[:-1]) * (60 if duration.endswith("h") else 1)


def document(name: str, rules: str) -> JsonDict:
    """Promtool's test of one alert."""
    rule, case = ALERTS[name], CASES[name]
    expected = {
        "exp_labels": {**rule["labels"], **case["labels"]},
        "exp_annotations": {**rule["annotations"], "description": case["says"]},
    }
    fired = {"alertname": name, "eval_time": case["at"], "exp_alerts": [expected]}
    early = {"alertname": name, "eval_time": f"{minutes(rule['for']) - 1}m", "exp_alerts": []}
    tests = [
        {"interval": MINUTE, "input_series": [series(s) for s in case["fault"]], "alert_rule_test": [fired, early]}
    ]
    for silent in case["silent"]:
        quiet = {"alertname": name, "eval_time": case["at"], "exp_alerts": []}
        tests.append({"interval": MINUTE, "input_series": [series(s) for s in silent], "alert_rule_test": [quiet]})
    return {"rule_files": [rules], "evaluation_interval": MINUTE, "tests": tests}


def evaluated(rule: JsonDict, directory: Path) -> str:
    """What promtool complains about; empty when the alert does what its case says."""
    (directory / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "one", "rules": [rule]}]}))
    (directory / "test.yaml").write_text(yaml.safe_dump(document(rule["alert"], "rules.yaml")))
    done = promtool.run("test", "rules", "test.yaml", cwd=directory)
    return "" if done.returncode == 0 else done.stdout


@every_alert
def test_it_fires_at_its_fault_and_only_then(name: str, tmp_path: Path) -> None:
    promtool.need()
    assert evaluated(ALERTS[name], tmp_path) == ""


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("HudiTableStalled", "== 1", "== 2"),
        ("HudiTableStalled", '"for": "5m"', '"for": "1m"'),
        ("HudiTableNotReady", "Stalled|Suspended", "Stalled"),
        ("HudiEtcdAlmostFull", "humanizePercentage", "humanize"),
        ("HudiCertificateExpiring", "604800", "60480"),
    ],
)
def test_an_alert_that_does_not_do_what_its_case_says_is_found(
    name: str, before: str, after: str, tmp_path: Path
) -> None:
    promtool.need()
    rule = json.dumps(ALERTS[name])
    assert before in rule
    assert name in evaluated(json.loads(rule.replace(before, after)), tmp_path)
