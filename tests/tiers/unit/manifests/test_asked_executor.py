"""The executor that the API server is asked about is the one that Spark would make (F301).

What Spark really makes: `tests/tiers/component/operator/test_executor_pods.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.manifests import configmaps
from hudi_operator.manifests.asked_executor import executor_pod
from hudi_operator.model.config import OperatorConfig

JsonDict = dict[str, Any]
CONFIG = OperatorConfig()
SCRATCH = {"name": "spark-local-dir-9", "emptyDir": {}}
GPU = {"limits": {"nvidia.com/gpu": 1}}


def meta(name: str) -> JsonDict:
    return {"namespace": "ns", "name": name, "uid": f"{name}-0123456", "generation": 1}


def files(executors: JsonDict, **spec: Any) -> tuple[str, dict[str, str]]:
    """The name of the driver, and what it has mounted."""
    table = {"path": "s3a://lake/flights", "recordKeyFields": ["id"], "storage": {"serviceAccountName": "lake"}}
    source = {"files": {"format": "csv", "paths": ["s3a://in/"]}}
    body = {"tableRef": {"name": "flights"}, "source": source, "executors": executors, **spec}
    made = configmaps.attempt_config(
        TableSpec.from_object({"kind": "HudiTable", "metadata": meta("flights"), "spec": table}),
        WriterSpec.from_object({"kind": "HudiWriter", "metadata": meta("load"), "spec": body}),
        2,
        CONFIG,
        run=1,
    )
    return made["metadata"]["name"], made["data"]


def asked(executors: JsonDict, **spec: Any) -> JsonDict:
    driver, data = files(executors, **spec)
    return executor_pod(data, namespace="ns", driver=driver, uid="uid-of-driver")


def test_it_is_the_template_with_the_part_of_spark() -> None:
    driver, data = files({"instances": 2, "memory": "1Gi"})
    pod = executor_pod(data, namespace="ns", driver=driver, uid="uid-of-driver")
    template = yaml.safe_load(data["executor-template.yaml"])
    assert pod["metadata"]["name"] == f"{driver}-exec-0", "Spark counts from 1"
    assert pod["metadata"]["finalizers"] == template["metadata"]["finalizers"]
    assert template["metadata"]["labels"].items() <= pod["metadata"]["labels"].items()
    assert pod["metadata"]["labels"]["spark-role"] == "executor"
    assert pod["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": driver, "uid": "uid-of-driver", "controller": True}
    ]
    assert pod["spec"]["serviceAccountName"] == "lake"
    assert pod["spec"]["automountServiceAccountToken"] is False
    (container,) = pod["spec"]["containers"]
    assert (container["name"], container["image"], container["args"]) == ("executor", CONFIG.spark_image, ["executor"])
    assert container["resources"] == {"requests": {"cpu": "100m", "memory": "1536Mi"}, "limits": {"memory": "1536Mi"}}
    assert {"name": "spark-local-dir-1", "emptyDir": {}} in pod["spec"]["volumes"]


def test_sizes_are_those_of_the_attempt() -> None:
    sizes = {"requests": {"cpu": "500m", "memory": "3Gi"}, "limits": {"cpu": "2", "memory": "3Gi"}}
    template = {"spec": {"containers": [{"name": "executor", "resources": GPU}]}}
    executors = {"instances": 1, "memory": "1Gi", "resources": sizes, "podTemplate": template}
    conf = {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "256m"}
    (container,) = asked(executors, sparkConf=conf)["spec"]["containers"]
    memory = f"{3 * 1024 + 256}Mi"
    assert container["resources"] == {
        "requests": {"cpu": "500m", "memory": memory},
        "limits": {"cpu": "2", "memory": memory, "nvidia.com/gpu": 1},
    }


def test_a_scratch_volume_of_the_user_takes_the_place_of_sparks() -> None:
    mount = {"name": "spark-local-dir-9", "mountPath": "/scratch"}
    template = {"spec": {"volumes": [SCRATCH], "containers": [{"name": "executor", "volumeMounts": [mount]}]}}
    pod = asked({"instances": 1, "podTemplate": template})
    assert [v["name"] for v in pod["spec"]["volumes"] if v["name"].startswith("spark-local-dir-")] == [SCRATCH["name"]]


@pytest.mark.parametrize(
    "change",
    [
        {"executor-template.yaml": ""},
        {"executor-template.yaml": "{"},
        {"executor-template.yaml": "{metadata: {}, spec: {containers: []}}"},
        {"spark-defaults.conf": ""},
    ],
)
def test_what_the_operator_has_not_written_is_an_error(change: dict[str, str]) -> None:
    driver, data = files({"instances": 1})
    with pytest.raises(ValueError, match=driver):
        executor_pod({**data, **change}, namespace="ns", driver=driver, uid="u")
