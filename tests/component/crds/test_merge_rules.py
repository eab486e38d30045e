"""`spec.merge` of a HudiTable: what `kubectl apply` accepts, and what it prints when it does not."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.component.crds.cluster import Cluster, table

SIDE_BY_SIDE = {"index": {"type": "Bucket", "buckets": 4}, "concurrency": {"mode": "NonBlocking"}}
PARTIAL = {"partialUpdates": "IgnoreNulls"}
REFUSED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("mode", {"merge": {"mode": "Custom"}}, ("spec.merge.mode", '"Custom"', '"EventTime", "CommitTime"')),
    ("empty", {"merge": {}}, ("spec.merge", "at least 1 properties")),
    ("word", {"merge": {"partialUpdates": "Never"}}, ("spec.merge.partialUpdates", '"Never"', '"IgnoreNulls"')),
    ("order", {"orderingFields": None, "merge": {"mode": "EventTime"}}, ("spec.merge.mode", "merge.mode EventTime needs orderingFields")),
    (
        "partial-event",
        {"orderingFields": ["a"], "merge": PARTIAL},
        ("spec.merge.partialUpdates", "an update of one column would be lost to a later one of another; set mode CommitTime"),
    ),
    (
        "partial-refuse",
        {"orderingFields": None, "merge": PARTIAL, "schema": {"missingColumns": "Refuse"}},
        ("spec.merge.partialUpdates", "contradicts schema.missingColumns Refuse"),
    ),
    (
        "side-by-side",
        {"orderingFields": ["a"], "merge": {"mode": "CommitTime"}, **SIDE_BY_SIDE},
        ("spec.concurrency.mode", "NonBlocking needs orderingFields with merge.mode EventTime, or merge.partialUpdates IgnoreNulls"),
    ),
    (
        "side-by-side-unset",
        {"orderingFields": None, **SIDE_BY_SIDE},
        ("spec.concurrency.mode", "of two versions written at once, the one that was begun last would stay"),
    ),
]


@pytest.mark.parametrize(("spec", "words"), [pytest.param(spec, words, id=name) for name, spec, words in REFUSED])
def test_a_refusal_names_field_value_and_rule(light_cluster: Cluster, spec: dict[str, Any], words: tuple[str, ...]) -> None:
    message = light_cluster.refused(table("default", name="refused", **spec))
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "spec",
    [
        {"merge": {"mode": "EventTime"}},
        {"merge": {"mode": "CommitTime"}},
        {"orderingFields": None, "merge": PARTIAL},
        {"merge": {"mode": "CommitTime", **PARTIAL}, **SIDE_BY_SIDE},
        {"merge": {"mode": "EventTime"}, **SIDE_BY_SIDE},
        SIDE_BY_SIDE,
    ],
)
def test_what_goes_together(light_cluster: Cluster, spec: dict[str, Any]) -> None:
    light_cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(table("default", **spec)))


def test_how_versions_are_merged_cannot_be_changed(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(table(namespace, name="with", merge={"mode": "CommitTime"}), table(namespace, name="without"))
    for name, change in (("with", {"mode": "EventTime"}), ("with", None), ("without", {"mode": "EventTime"})):
        assert "merge is immutable: rows that were merged" in light_cluster.refused(table(namespace, name=name, merge=change))
