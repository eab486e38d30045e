"""Pods and files of a table's own agent: a driver of Spark with executors only when they
are asked for.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hudi_contract import environment, naming
from hudi_operator.api.spec import SpecError, TableSpec
from hudi_operator.manifests import configmaps, namespace, pods, spark_conf
from hudi_operator.model.config import OperatorConfig

JsonDict = dict[str, Any]
CONFIG = OperatorConfig()
ALONE = {"cores": 2, "memory": "2Gi", "nodeSelector": {"pool": "services"}}
WITH_EXECUTORS = {
    "executors": {
        "instances": 2,
        "cores": 3,
        "memory": "4Gi",
        "resources": {"limits": {"memory": "6Gi"}},
        "nodeSelector": {"pool": "big"},
    }
}


def table(name: str = "flights", **spec: Any) -> TableSpec:
    body = {
        "path": f"s3a://lake/{name}",
        "recordKeyFields": ["id"],
        "storage": {"secretRefs": [{"name": "creds", "as": "S3"}]},
        **spec,
    }
    return TableSpec.from_object(
        {"kind": "HudiTable", "metadata": {"namespace": "ns", "name": name, "uid": "t-uid"}, "spec": body}
    )


def agent_of(spec: TableSpec) -> tuple[JsonDict, dict[str, str], JsonDict]:
    """Pod, Spark settings and ConfigMap of its first generation."""
    name = spec.agent_name("image")
    settings = spark_conf.agent_defaults(spec, CONFIG, agent_pod=naming.agent_pod_name(name, 1))
    return pods.agent_pod(spec, name, 1, CONFIG), settings, configmaps.agent_config(spec, name, 1, CONFIG)


def test_a_table_without_own_agent_has_the_name_that_it_always_had() -> None:
    """Another name would be another agent: every table would change its agent with the operator's
    next version.
    """
    shared = table().agent_name("image")
    assert shared == "hudi-agent-1137fe46a742371ee7f24fc999653dc6"
    assert shared == table("events").agent_name("image")


@pytest.mark.parametrize(
    "other",
    [
        table(),
        table("events", agent=ALONE),
        table(agent={**ALONE, "cores": 3}),
        table(agent={**ALONE, **WITH_EXECUTORS}),
        table(agent={}),
    ],
)
def test_an_own_agent_is_shared_with_nobody_and_changes_with_its_settings(other: TableSpec) -> None:
    assert other.agent_name("image") != table(agent=ALONE).agent_name("image")


def test_what_is_left_out_is_the_default() -> None:
    written = {"cores": 1, "memory": "1Gi", "executors": {"instances": 0, "cores": 1, "memory": "1Gi"}}
    assert table(agent={}).agent_name("image") == table(agent=written).agent_name("image")
    assert table(agent=None).agent is None


def test_an_own_agent_without_executors_has_a_larger_pod_and_no_rights() -> None:
    pod, settings, config_map = agent_of(table(agent=ALONE))
    assert settings["spark.master"] == "local[2]"
    assert settings["spark.driver.memory"] == "2g"
    assert "spark.plugins" not in settings
    assert not [key for key in settings if key.startswith(("spark.kubernetes.", "spark.executor."))]
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["automountServiceAccountToken"]) == ("hudi-agent", False)
    assert pod["spec"]["nodeSelector"] == {"pool": "services"}
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"memory": "2867Mi"}
    assert "ports" not in pod["spec"]["containers"][0]
    assert config_map["data"]["executor-template.yaml"] == ""


def test_an_own_agent_names_its_table_and_its_files_are_its_generations() -> None:
    pod, _, config_map = agent_of(table(agent=WITH_EXECUTORS))
    assert pod["metadata"]["labels"] == {
        "app.kubernetes.io/name": "hudi",
        "app.kubernetes.io/managed-by": "hudi-operator",
        "app.kubernetes.io/component": "agent",
        "hudioperator.io/table": "flights",
        "hudioperator.io/attempt": "1",
        "hudioperator.io/role": "agent",
        "hudioperator.io/agent": pod["metadata"]["name"].removesuffix("-1"),
    }
    assert "ownerReferences" not in pod["metadata"]
    assert pod["metadata"]["finalizers"] == [naming.EVIDENCE_FINALIZER]
    assert config_map["metadata"]["name"] == pod["metadata"]["name"]
    (volume,) = [v for v in pod["spec"]["volumes"] if "configMap" in v]
    assert volume["configMap"]["name"] == pod["metadata"]["name"]
    (owner,) = config_map["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("HudiTable", "t-uid")


def test_only_an_agent_with_executors_may_make_pods() -> None:
    pod, settings, _ = agent_of(table(agent=WITH_EXECUTORS))
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["automountServiceAccountToken"]) == ("hudi-driver", True)
    assert [port["containerPort"] for port in pod["spec"]["containers"][0]["ports"]] == [7078, 7079]
    assert settings["spark.kubernetes.authenticate.executor.serviceAccountName"] == "hudi-agent"
    bound = [o for o in namespace.namespace_objects("ns", CONFIG, "") if o["kind"] == "RoleBinding"]
    assert [subject["name"] for o in bound for subject in o["subjects"]] == ["hudi-driver"]
    of_a_cloud = agent_of(table(agent=WITH_EXECUTORS, storage={"serviceAccountName": "irsa"}))[0]
    assert of_a_cloud["spec"]["serviceAccountName"] == "irsa"


def test_its_executors_belong_to_its_pod_and_leave_evidence() -> None:
    """What the admission policy asks of every executor, and by what the operator finds them."""
    pod, settings, config_map = agent_of(table(agent=WITH_EXECUTORS))
    name = pod["metadata"]["name"]
    assert settings["spark.master"].startswith("k8s://")
    assert settings["spark.kubernetes.driver.pod.name"] == settings["spark.kubernetes.executor.podNamePrefix"] == name
    assert (
        settings["spark.executor.instances"],
        settings["spark.executor.cores"],
        settings["spark.executor.memory"],
    ) == ("2", "3", "4g")
    assert settings["spark.executor.memoryOverhead"] == "2048m"
    assert settings["spark.sql.shuffle.partitions"] == "6"
    assert settings["spark.plugins"] == spark_conf.PLUGIN, "each JVM that writes the metadata table needs it"
    assert settings["spark.scheduler.mode"] == "FAIR"
    assert settings["spark.hadoop.fs.s3a.impl"] == environment.GUARD
    template = yaml.safe_load(config_map["data"]["executor-template.yaml"])
    assert template["metadata"]["labels"] == {
        "app.kubernetes.io/name": "hudi",
        "app.kubernetes.io/managed-by": "hudi-operator",
        "app.kubernetes.io/component": "executor",
        "hudioperator.io/table": "flights",
        "hudioperator.io/attempt": "1",
        "hudioperator.io/role": "executor",
        "hudioperator.io/driver": name,
    }
    assert template["metadata"]["finalizers"] == [naming.EVIDENCE_FINALIZER]
    assert (template["spec"]["restartPolicy"], template["spec"]["automountServiceAccountToken"]) == ("Never", False)
    assert template["spec"]["nodeSelector"] == {"pool": "big"}
    assert {v["configMap"]["name"] for v in template["spec"]["volumes"] if "configMap" in v} == {name}
    assert "etcd" not in [volume["name"] for volume in template["spec"]["volumes"]]
    assert not [item for item in template["spec"]["containers"][0]["env"] if "ETCD" in item["name"]]


def test_a_bad_jvm_option_is_named() -> None:
    with pytest.raises(SpecError, match=r"spec\.agent\.executors\.javaOptions: '-javaagent:x'"):
        table(agent={"executors": {"javaOptions": ["-javaagent:x"]}})
