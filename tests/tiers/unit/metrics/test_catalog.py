"""What the operator serves, what the gateway's source prints and what the page says is what one
table declares, by Prometheus' conventions.
"""

from __future__ import annotations

import re

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from hudi_contract.outcomes import FailureClass
from hudi_contract.settle import Reason
from hudi_operator.metrics import catalog
from hudi_operator.metrics.catalog import COUNTER, GATEWAY, HISTOGRAM, OPERATOR, Definition
from hudi_operator.metrics.meter import Metrics
from hudi_operator.model import classify
from tests.support import ROOT

BY_OBJECT = {"namespace", "table", "writer", "agent"}
"""Labels whose values are names of objects; the series end with the object."""
CHOSEN_HERE = {
    "condition",
    "state",
    "class",
    "reason",
    "phase",
    "service",
    "outcome",
    "verb",
    "code",
    "action",
    "certificate",
    "version",
}
"""Labels whose values are words of this project, of HTTP or of gRPC."""


def test_the_operator_serves_what_is_declared_and_nothing_else() -> None:
    served = {
        family.name: family for family in text_string_to_metric_families(generate_latest(Metrics().registry).decode())
    }
    ours = {name: family for name, family in served.items() if name.startswith("hudi_")}
    declared = {metric.name.removesuffix("_total"): metric for metric in catalog.every(OPERATOR)}
    assert ours.keys() == declared.keys()
    for name, metric in declared.items():
        assert (ours[name].type, ours[name].documentation) == (metric.kind, metric.text)
    assert {"process_cpu_seconds", "process_resident_memory_bytes"} <= served.keys()


RULES = ROOT / "charts" / "hudi-operator" / "files" / "alerts.yaml"


def test_what_alerts_ask_for_by_its_increase_begins_at_zero() -> None:
    """F646. Not of tables and writers: their counters begin with the object."""
    served = [
        sample
        for family in text_string_to_metric_families(generate_latest(Metrics().registry).decode())
        for sample in family.samples
    ]
    by_name = {metric.name: metric for metric in catalog.every(OPERATOR)}
    checked = 0
    for found in re.finditer(r"increase\((\w+)\{", RULES.read_text()):
        metric = by_name[found[1]]
        if BY_OBJECT & set(metric.labels):
            continue
        assert [sample.value for sample in served if sample.name == metric.name], metric.name
        checked += 1
    assert checked == 3
    refused = {s.labels["code"] for s in served if s.name == "hudi_operator_api_requests_total"}
    assert refused == {"401", "403", "422"}
    assert {s.labels["reason"] for s in served if s.name == "hudi_operator_fences_total"} == set(Reason)
    ended = {s.labels["class"] for s in served if s.name == "hudi_operator_attempts_ended_total"}
    told = {value for name, value in vars(classify).items() if name.isupper() and isinstance(value, str)}
    assert ended == {*FailureClass, *(word for word in told if re.fullmatch(r"[A-Z]\w+", word))}


def test_the_gateway_prints_what_is_declared() -> None:
    source = "\n".join(path.read_text() for path in sorted((ROOT / "gateway").glob("*.go")) if "_test" not in path.name)
    typed = set(re.findall(r"# TYPE (\w+) (\w+)", source))
    assert typed == {(metric.name, metric.kind) for metric in catalog.every(GATEWAY)}


def test_the_page_is_made_from_the_table() -> None:
    page = ROOT / "docs" / "operate" / "metrics.md"
    assert page.read_text() == catalog.page(), "run `python -m hudi_operator.metrics.catalog > docs/operate/metrics.md`"


@pytest.mark.parametrize("metric", list(catalog.every()), ids=lambda metric: metric.name)
def test_names_and_labels_follow_the_conventions(metric: Definition) -> None:
    assert re.fullmatch(r"hudi_(operator|gateway)(_[a-z0-9]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == COUNTER)
    assert not re.search(r"_(ms|millis|minutes|kb|mib|percent)(_|$)", metric.name), "a base unit"
    assert bool(metric.buckets) == (metric.kind == HISTOGRAM)
    assert set(metric.labels) <= BY_OBJECT | CHOSEN_HERE, "a label without a bound"
    if metric.kind == HISTOGRAM and "table" in metric.labels:
        assert len(metric.buckets) <= 8, "each bucket is a series of each table"
