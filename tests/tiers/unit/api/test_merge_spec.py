"""`spec.merge`: what an unset mode means, what goes together, and that it reaches both
kinds of pods.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api import options
from hudi_operator.api.merging import Merge
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.manifests import configmaps, hudi_conf
from hudi_operator.plan.agent import agents

CLASSES = "hoodie.write.record.merge.custom.implementation.classes"
ORDERED = {"orderingFields": ["ts"]}
PARTIAL = {"partialUpdates": "IgnoreNulls"}
OWN: dict[str, Any] = {
    "mode": "Custom",
    "custom": {"strategyId": "7d6a3c1e-3f0f-4a52-9a51-2f3c1b0e6f55", "className": "com.example.Own"},
}
SIDE_BY_SIDE = {
    "type": "MergeOnRead",
    "index": {"type": "Bucket", "buckets": 2},
    "concurrency": {"mode": "NonBlocking"},
}


def table(**spec: Any) -> TableSpec:
    return TableSpec.from_object(
        {"metadata": {"namespace": "n", "name": "t"}, "spec": {"path": "s3a://b/t", "recordKeyFields": ["id"], **spec}}
    )


@pytest.mark.parametrize(
    ("spec", "merge"),
    [
        ({}, Merge("CommitTime")),
        (ORDERED, Merge("EventTime")),
        ({**ORDERED, "merge": {"mode": "CommitTime"}}, Merge("CommitTime")),
        ({"merge": PARTIAL}, Merge("CommitTime", "IgnoreNulls")),
        (
            {"merge": OWN, "image": "x:1"},
            Merge("Custom", strategy_id=OWN["custom"]["strategyId"], class_name="com.example.Own"),
        ),
    ],
)
def test_what_it_means_reaches_drivers_and_agents(spec: dict[str, Any], merge: Merge) -> None:
    found = table(**spec)
    assert found.merge == merge
    assert options.table_problem(found) == ""
    writer = WriterSpec.from_object({"metadata": {"namespace": "n", "name": "w"}, "spec": {"tableRef": {"name": "t"}}})
    word = {
        "mode": merge.mode,
        "partialUpdates": merge.partial_updates or None,
        "strategyId": merge.strategy_id or None,
        "className": merge.class_name or None,
    }
    assert configmaps.job(found, writer, 1, run=1).to_json()["table"]["merge"] == word
    assert agents.assignment(found, 0)["merge"] == word


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"merge": OWN}, "needs spec.image: an image of yours that has the class"),
        ({"merge": {"mode": "Custom"}, "image": "x:1"}, "spec.merge.custom: needed with mode Custom"),
        ({"merge": {**OWN, "mode": "CommitTime"}}, "spec.merge.custom: needed with mode Custom, and only there"),
        (
            {
                "merge": {**OWN, "custom": {**OWN["custom"], "strategyId": "00000000-0000-0000-0000-000000000000"}},
                "image": "x:1",
            },
            "spec.merge.custom.strategyId = '00000000-0000-0000-0000-000000000000': is one of Hudi's own",
        ),
        (
            {"merge": {**OWN, **PARTIAL}, "image": "x:1"},
            "contradicts mode Custom: there the class says what a null means",
        ),
        ({"merge": {"mode": "EventTime"}}, "spec.merge.mode = 'EventTime': needs orderingFields"),
        ({**ORDERED, "merge": PARTIAL}, "contradicts mode EventTime: a row has one ordering value for all its columns"),
        ({"merge": PARTIAL, "schema": {"missingColumns": "Refuse"}}, "contradicts schema.missingColumns Refuse"),
        (SIDE_BY_SIDE, "contradicts concurrency.mode NonBlocking: if two versions of a record are written at once"),
        ({**SIDE_BY_SIDE, **ORDERED, "merge": {"mode": "CommitTime"}}, "contradicts concurrency.mode NonBlocking"),
    ],
)
def test_what_does_not_go_together(spec: dict[str, Any], words: str) -> None:
    assert words in options.table_problem(table(**spec))


@pytest.mark.parametrize("spec", [ORDERED, {"merge": PARTIAL}, {**ORDERED, "merge": {"mode": "CommitTime", **PARTIAL}}])
def test_what_goes_together_side_by_side(spec: dict[str, Any]) -> None:
    assert options.table_problem(table(**SIDE_BY_SIDE, **spec)) == ""


def test_the_class_reaches_all_pods_of_the_table() -> None:
    """Compaction merges in the agent: it gets the options of the table with its assignment."""
    found = table(merge=OWN, image="x:1")
    assert hudi_conf.hudi_defaults(found)[CLASSES] == "com.example.Own"
    assert agents.assignment(found, 0)["hudiProps"][CLASSES] == "com.example.Own"
    assert CLASSES not in hudi_conf.hudi_defaults(table(**ORDERED))
