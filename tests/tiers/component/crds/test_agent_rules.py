"""`spec.agent` of a HudiTable: what `kubectl apply` says, and what becomes of what is left out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers.component.crds.cluster import Cluster, table

REFUSED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("memory-word", {"memory": "2g"}, ("spec.agent.memory", "'2g' is not a size: a whole number and Mi or Gi")),
    (
        "heap",
        {"memory": "4Gi", "resources": {"limits": {"memory": "2Gi"}}},
        ("spec.agent", "(the JVM's heap) 4Gi is more than resources.limits.memory 2Gi"),
    ),
    (
        "executor-heap",
        {"executors": {"memory": "4Gi", "resources": {"limits": {"memory": "2Gi"}}}},
        ("spec.agent.executors", "memory (the JVM's heap) 4Gi is more than resources.limits.memory 2Gi"),
    ),
    ("none", {"executors": {"instances": -1}}, ("spec.agent.executors.instances", "-1", "greater than or equal to 0")),
    ("many", {"executors": {"instances": 201}}, ("spec.agent.executors.instances", "201", "less than or equal to 200")),
    ("cores", {"cores": 0}, ("spec.agent.cores", "0", "greater than or equal to 1")),
    (
        "java",
        {"executors": {"javaOptions": ["-javaagent:x"]}},
        ("spec.agent.executors.javaOptions[0]", "'-javaagent:x' is not a JVM option"),
    ),
    (
        "env",
        {"env": [{"name": "SPARK_CONF_DIR", "value": "/tmp"}]},
        ("spec.agent.env[0].name", "'SPARK_CONF_DIR' is set by the operator"),
    ),
    ("unknown", {"instances": 2}, ('unknown field "spec.agent.instances"',)),
]


@pytest.mark.parametrize(("agent", "words"), [pytest.param(agent, words, id=name) for name, agent, words in REFUSED])
def test_a_refusal_names_field_value_and_rule(
    light_cluster: Cluster, agent: dict[str, Any], words: tuple[str, ...]
) -> None:
    message = light_cluster.refused(table("default", name="refused", agent=agent))
    for word in words:
        assert word in message


def test_an_empty_section_is_an_agent_without_executors(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(table(namespace, agent={}), table(namespace, "shared", path="s3a://lake/shared"))
    agent = light_cluster.get("huditable", "flights", "-n", namespace)["spec"]["agent"]
    assert agent == {"cores": 1, "memory": "1Gi", "executors": {"instances": 0, "cores": 1, "memory": "1Gi"}}
    assert "agent" not in light_cluster.get("huditable", "shared", "-n", namespace)["spec"]
