"""Pods with a podTemplate: what the operator has set stays, everything else is added."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hudi_contract import naming, secret_names
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.manifests import configmaps, pods
from hudi_operator.model.config import OperatorConfig
from tests.support.pod_templates import GOOD, changed

JsonDict = dict[str, Any]
CONFIG = OperatorConfig()
AGENT = "hudi-agent-0123456789"


def template_of(container: str) -> JsonDict:
    return changed("spec.containers.0.name", container)


def made(container: str, template: JsonDict | None, operator: OperatorConfig = CONFIG) -> tuple[JsonDict, JsonDict]:
    """The pod of a container of ours, and the ConfigMap of its driver."""
    more = {} if template is None else {"podTemplate": template}
    own = {"instances": 1, **more} if container == "executor" else {"instances": 1}
    refs = [{"name": "creds", "as": "S3"}, {"name": "files", "as": "Files"}, {"name": "x", "as": "Env", "prefix": "X_"}]
    agent = {"executors": {"instances": 1}, **(more if container == "agent" else {})}
    spec = {"path": "s3a://lake/t", "recordKeyFields": ["id"], "storage": {"secretRefs": refs}, "agent": agent}
    table = TableSpec.from_object({"metadata": {"namespace": "ns", "name": "t", "uid": "u"}, "spec": spec})
    body: JsonDict = {"tableRef": {"name": "t"}, "source": {"files": {"format": "csv", "paths": ["s3a://in/"]}}}
    body |= {"executors": own, "driver": more if container == "driver" else {}}
    body["driver"] = {**body["driver"], "nodeSelector": {"disk": "hdd", "own": "1"}}
    load = WriterSpec.from_object({"metadata": {"namespace": "ns", "name": "load", "uid": "0123456789"}, "spec": body})
    config = configmaps.attempt_config(table, load, 3, operator, run=1)
    if container == "driver":
        return pods.driver_pod(table, load, 3, operator), config
    if container == "executor":
        return dict(yaml.safe_load(pods.executor_template(table, load, 3, operator))), config
    return pods.agent_pod(table, AGENT, 1, operator), config


def variables(container: JsonDict) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


@pytest.mark.parametrize("container", ["driver", "executor", "agent"])
def test_what_the_operator_sets_stays(container: str) -> None:
    plain, _ = made(container, None)
    pod, _ = made(container, template_of(container))
    assert pod["metadata"]["labels"].items() >= plain["metadata"]["labels"].items()
    assert pod["metadata"]["labels"]["team"] == "lake"
    assert pod["metadata"].get("annotations", {}).items() >= plain["metadata"].get("annotations", {}).items()
    assert pod["metadata"]["annotations"]["a/b"] == "c"
    assert pod["metadata"]["finalizers"] == plain["metadata"]["finalizers"]
    before, after = plain["spec"], pod["spec"]
    for field, value in before.items():
        if field in ("containers", "volumes", "securityContext", "nodeSelector"):
            continue
        assert after[field] == value, field
    assert after["volumes"][: len(before["volumes"])] == before["volumes"]
    ours, theirs = before["containers"][0], after["containers"][0]
    for field, value in ours.items():
        if field in ("volumeMounts", "envFrom"):
            assert theirs[field][: len(value)] == value
        elif field == "resources":
            assert all(theirs[field][kind].items() >= amounts.items() for kind, amounts in value.items())
        elif field != "env":
            assert theirs[field] == value, field
    lists = {secret_names.PREFIXES, secret_names.FOLDERS}
    kept = {name: value for name, value in variables(ours).items() if name not in lists}
    assert variables(theirs).items() >= kept.items()


@pytest.mark.parametrize("container", ["driver", "executor", "agent"])
def test_users_are_the_images_or_the_platforms(container: str) -> None:
    """`Platform`: none but what a template names."""
    confined = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    pod, _ = made(container, None)
    assert pod["spec"]["securityContext"] == {**confined, "runAsUser": 185, "runAsGroup": 0, "fsGroup": 185}
    platform = OperatorConfig.from_dict({"userIds": "Platform"})
    pod, _ = made(container, None, platform)
    assert pod["spec"]["securityContext"] == confined
    assert "runAsUser" not in pod["spec"]["containers"][0]["securityContext"]
    pod, _ = made(container, template_of(container), platform)
    assert pod["spec"]["securityContext"]["runAsUser"] == 100123


@pytest.mark.parametrize("container", ["driver", "executor", "agent"])
def test_what_the_template_says_is_added(container: str) -> None:
    pod, _ = made(container, template_of(container))
    spec, wanted = pod["spec"], GOOD["spec"]
    for field in ("affinity", "topologySpreadConstraints", "tolerations", "priorityClassName", "runtimeClassName"):
        assert spec[field] == wanted[field]
    assert spec["schedulerName"] == "volcano"
    assert spec["nodeSelector"] == ({"disk": "hdd", "own": "1"} if container == "driver" else {"disk": "ssd"}), (
        "a field beside the template comes first"
    )
    assert spec["securityContext"]["runAsUser"] == 100123
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["volumes"][-len(wanted["volumes"]) :] == wanted["volumes"]
    ours, beside = spec["containers"]
    assert (ours["name"], beside["name"]) == (container, "shipper")
    assert ours["volumeMounts"][-3:] == wanted["containers"][0]["volumeMounts"]
    assert ours["envFrom"][-2:] == wanted["containers"][0]["envFrom"]
    assert ours["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert [each["name"] for each in spec["initContainers"]] == ["proxy", "fetch"]
    assert spec["initContainers"][0]["restartPolicy"] == "Always"
    for each in (beside, *spec["initContainers"]):
        assert each["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize("container", ["driver", "executor", "agent"])
def test_values_of_its_secrets_are_hidden(container: str) -> None:
    """By the prefix of their variables, and by the folders where their files are."""
    pod, _ = made(container, template_of(container))
    found = variables(pod["spec"]["containers"][0])
    assert found[secret_names.PREFIXES] == "APP_,X_"
    assert "/keys" in found[secret_names.FOLDERS].split(",")
    assert "/etc/hudi/secrets/files" in found[secret_names.FOLDERS].split(",")
    plain = variables(made(container, None)[0]["spec"]["containers"][0])
    assert plain[secret_names.PREFIXES] == "X_"


def test_spark_spills_to_the_volume_that_is_named_for_it() -> None:
    """Spark looks for such mounts of executors itself."""
    for container, expected in (("driver", "/scratch"), ("agent", "/scratch"), ("executor", None)):
        pod, _ = made(container, template_of(container))
        assert variables(pod["spec"]["containers"][0]).get("SPARK_LOCAL_DIRS") == expected


def test_executors_are_compared_with_what_was_rendered() -> None:
    _, config = made("executor", template_of("executor"))
    data = config["data"]
    assert {"app", "keys", "more", "shipper"} <= set(data["executor-secrets"].split(","))
    assert data["executor-config-maps"] == "company-ca,mode,modes,settings"
    assert data["executor-claims"] == "data"
    assert data["executor-containers"] == "shipper=registry/shipper:1,proxy=registry/proxy:1,fetch=registry/fetch:1"
    _, plain = made("executor", None)
    compared = ("config-maps", "claims", "containers", "priority-class", "runtime-class")
    assert [plain["data"][f"executor-{name}"] for name in compared] == [""] * 5


@pytest.mark.parametrize("named", ["batch", "b" * 80, ""])
def test_executors_say_that_their_template_names_a_priority_class(named: str) -> None:
    """Admission compares the label: without it only the cluster's default class is accepted."""
    pod, config = made("executor", {"spec": {"priorityClassName": named, "runtimeClassName": "sandbox"}})
    assert config["data"]["executor-priority-class"] == pod["spec"]["priorityClassName"] == named
    assert config["data"]["executor-runtime-class"] == pod["spec"]["runtimeClassName"] == "sandbox"
    label = pod["metadata"]["labels"].get("hudioperator.io/priority-class")
    assert label == (naming.label_value(named) if named else None)
    listed = config["data"]["executor-labels"].split(",")
    assert [each for each in listed if "priority-class" in each] == (
        [f"hudioperator.io/priority-class={label}"] if named else []
    )


def test_a_template_makes_another_agent() -> None:
    def name(**agent: Any) -> str:
        spec = {"path": "s3a://lake/t", "recordKeyFields": ["id"], "agent": agent}
        obj = {"metadata": {"namespace": "ns", "name": "t", "uid": "u"}, "spec": spec}
        return TableSpec.from_object(obj).agent_name("image")

    assert name() != name(podTemplate={"spec": {"priorityClassName": "batch"}})


EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def annotations(container: str, operator: OperatorConfig, template: JsonDict | None = None) -> dict[str, str]:
    pod, _ = made(container, template, operator)
    found = dict(pod["metadata"].get("annotations", {}))
    found.pop(pods.HASH_ANNOTATION, None)
    return found


def test_the_node_of_a_writer_is_kept_and_that_of_an_agent_is_the_autoscalers_affair() -> None:
    for container, expected in (("driver", {EVICT: "false"}), ("executor", {EVICT: "false"}), ("agent", {})):
        assert annotations(container, CONFIG) == expected


def test_annotations_of_the_administrator_are_below_those_of_a_template() -> None:
    """Somebody who says in a podTemplate that a writer may move is believed."""
    operator = OperatorConfig.from_dict(
        {"driverAnnotations": {EVICT: "false", "team": "a"}, "agentAnnotations": {EVICT: "true", "team": "b"}}
    )
    for container, team in (("driver", "a"), ("executor", "a"), ("agent", "b")):
        template = {"metadata": {"annotations": {EVICT: "perhaps"}}}
        assert annotations(container, operator, template) == {EVICT: "perhaps", "team": team}
        assert annotations(container, OperatorConfig.from_dict({"driverAnnotations": {}})) == {}


def test_agents_that_tables_share_and_their_executors_have_annotations_too() -> None:
    operator = OperatorConfig.from_dict({"agentAnnotations": {EVICT: "true"}})
    spec: JsonDict = {"path": "s3a://lake/t", "recordKeyFields": ["id"]}
    meta = {"namespace": "ns", "name": "t", "uid": "u"}
    shared = TableSpec.from_object({"metadata": meta, "spec": spec})
    assert pods.agent_pod(shared, AGENT, 1, operator)["metadata"]["annotations"] == {EVICT: "true"}
    assert "annotations" not in pods.agent_pod(shared, AGENT, 1, CONFIG)["metadata"]
    own = TableSpec.from_object({"metadata": meta, "spec": {**spec, "agent": {"executors": {"instances": 1}}}})
    executor = yaml.safe_load(pods.agent_executor_template(own, AGENT, 1, operator))
    assert executor["metadata"]["annotations"][EVICT] == "true"
    assert pods.HASH_ANNOTATION in executor["metadata"]["annotations"]
