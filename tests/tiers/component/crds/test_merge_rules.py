"""`spec.merge` of a HudiTable: what `kubectl apply` accepts, and what it prints when
it does not.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api.merging import OF_HUDI
from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import Cluster, table

SIDE_BY_SIDE = {"index": {"type": "Bucket", "buckets": 4}, "concurrency": {"mode": "NonBlocking"}}
PARTIAL = {"partialUpdates": "IgnoreNulls"}
OWN: dict[str, Any] = {
    "mode": "Custom",
    "custom": {"strategyId": "7d6a3c1e-3f0f-4a52-9a51-2f3c1b0e6f55", "className": "com.example.Own"},
}
REFUSED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("mode", {"merge": {"mode": "Newest"}}, ("spec.merge.mode", '"Newest"', '"EventTime", "CommitTime", "Custom"')),
    (
        "custom-image",
        {"merge": OWN},
        ("spec.merge.mode", "merge.mode Custom needs image: an image of yours that has the class"),
    ),
    (
        "custom-none",
        {"image": "x:1", "merge": {"mode": "Custom"}},
        ("spec.merge.custom", "merge.custom is needed with merge.mode Custom, and only there"),
    ),
    (
        "custom-other",
        {"image": "x:1", "merge": {**OWN, "mode": "EventTime"}},
        ("spec.merge.custom", "is needed with merge.mode Custom, and only there"),
    ),
    (
        "custom-partial",
        {"image": "x:1", "merge": {**OWN, **PARTIAL}},
        ("spec.merge.partialUpdates", "there the class says what a null means"),
    ),
    (
        "custom-id",
        {"image": "x:1", "merge": {**OWN, "custom": {**OWN["custom"], "strategyId": "own"}}},
        ("spec.merge.custom.strategyId", "'own' is not a UUID in small letters"),
    ),
    *(
        (
            f"custom-id-{hudis[:2]}",
            {"image": "x:1", "merge": {**OWN, "custom": {**OWN["custom"], "strategyId": hudis}}},
            ("spec.merge.custom.strategyId", f"'{hudis}' is one of Hudi's own: have your class return another UUID"),
        )
        for hudis in sorted(OF_HUDI)
    ),
    (
        "custom-class",
        {"image": "x:1", "merge": {**OWN, "custom": {**OWN["custom"], "className": "Own,Other"}}},
        ("spec.merge.custom.className", "'Own,Other' is not the name of a Java class with its package"),
    ),
    ("word", {"merge": {"partialUpdates": "Never"}}, ("spec.merge.partialUpdates", '"Never"', '"IgnoreNulls"')),
    (
        "order",
        {"orderingFields": None, "merge": {"mode": "EventTime"}},
        ("spec.merge.mode", "merge.mode EventTime needs orderingFields"),
    ),
    (
        "partial-event",
        {"orderingFields": ["a"], "merge": PARTIAL},
        (
            "spec.merge.partialUpdates",
            "an update of one column would be lost to a later one of another; set mode CommitTime",
        ),
    ),
    (
        "partial-refuse",
        {"orderingFields": None, "merge": PARTIAL, "schema": {"missingColumns": "Refuse"}},
        ("spec.merge.partialUpdates", "contradicts schema.missingColumns Refuse"),
    ),
    (
        "side-by-side",
        {"orderingFields": ["a"], "merge": {"mode": "CommitTime"}, **SIDE_BY_SIDE},
        (
            "spec.concurrency.mode",
            (
                "NonBlocking needs orderingFields with merge.mode EventTime, or mode Custom, or merge.partialUpdates "
                "IgnoreNulls"
            ),
        ),
    ),
    (
        "side-by-side-unset",
        {"orderingFields": None, **SIDE_BY_SIDE},
        ("spec.concurrency.mode", "the kept version would depend on which write began last and on compactions"),
    ),
]


@pytest.mark.parametrize(("spec", "words"), [pytest.param(spec, words, id=name) for name, spec, words in REFUSED])
def test_a_refusal_names_field_value_and_rule(
    light_cluster: Cluster, spec: dict[str, Any], words: tuple[str, ...]
) -> None:
    message = light_cluster.refused(table("default", name="refused", **spec))
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "spec",
    [
        {"merge": {}},
        {"merge": {"mode": "EventTime"}},
        {"merge": {"mode": "CommitTime"}},
        {"image": "x:1", "merge": OWN, **SIDE_BY_SIDE},
        {"orderingFields": None, "merge": PARTIAL},
        {"merge": {"mode": "CommitTime", **PARTIAL}, **SIDE_BY_SIDE},
        {"merge": {"mode": "EventTime"}, **SIDE_BY_SIDE},
        SIDE_BY_SIDE,
    ],
)
def test_what_goes_together(light_cluster: Cluster, spec: dict[str, Any]) -> None:
    light_cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=quick_yaml.dump(table("default", **spec)))


def test_how_versions_are_merged_cannot_be_changed(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(table(namespace, name="with", merge={"mode": "CommitTime"}), table(namespace, name="without"))
    for name, change in (("with", {"mode": "EventTime"}), ("with", None), ("without", {"mode": "EventTime"})):
        assert "merge is immutable: rows that were merged" in light_cluster.refused(
            table(namespace, name=name, merge=change)
        )
    light_cluster.apply(table(namespace, name="own", image="x:1", merge=OWN))
    other = {**OWN, "custom": {**OWN["custom"], "className": "com.example.Other"}}
    assert "merge is immutable: rows that were merged" in light_cluster.refused(
        table(namespace, name="own", image="x:1", merge=other)
    )
    assert "merge.mode Custom needs image" in light_cluster.refused(table(namespace, name="own", merge=OWN))
    light_cluster.apply(table(namespace, name="own", image="registry.example.com/spark:2", merge=OWN))
