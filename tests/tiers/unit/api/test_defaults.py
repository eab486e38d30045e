"""Defaults of a namespace: what they may set, what is said of what they may not, and who comes
first.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from hudi_contract import defaults as contract
from hudi_operator.api import defaults, pod_template, references
from hudi_operator.api.defaults import Defaults, read
from hudi_operator.api.fields import SpecError
from hudi_operator.api.spec import WriterSpec
from hudi_operator.manifests import pods
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.objects import Objects, writer_under
from tests.support import ROOT, crds, quick_yaml
from tests.support.hostile.grammar import Generator
from tests.support.hostile.launch import made, refusal
from tests.support.hostile.oracle import wrong

JsonDict = dict[str, Any]
TABLE = {"path": "s3a://lake/flights", "recordKeyFields": ["id"], "storage": {}}
SOURCE = {"files": {"format": "csv", "paths": ["s3a://lake/in"]}}
WHERE = "ConfigMap hudi-operator-defaults, defaults.yaml: "
HOSTILE = 400


def config_map(text: str, **data: str) -> JsonDict:
    meta = {"namespace": "lake", "name": contract.CONFIG_MAP, "uid": "u", "resourceVersion": "1"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {contract.KEY: text, **data}}


def given(text: str) -> Defaults:
    found = read(config_map(text))
    assert not found.problem, found.problem
    return found


def writer(**spec: Any) -> JsonDict:
    """As the API server stores it: with the CRD's defaults."""
    filled = {"driver": {"cores": 1, "memory": "1Gi"}, "executors": {"instances": 0, "cores": 1, "memory": "1Gi"}}
    for part in filled:
        filled[part] |= spec.pop(part, {})
    history = {"limit": 3, **spec.pop("podHistory", {})}
    body = {"tableRef": {"name": "flights"}, "source": SOURCE, **filled, "podHistory": history, **spec}
    return made("HudiWriter", "load", body)


def under(text: str, **spec: Any) -> WriterSpec:
    return writer_under(writer(**spec), given(text))


WHOLE = """\
driver:
  nodeSelector: {pool: hudi, arch: arm64}
  tolerations:
  - {key: hudi, operator: Exists}
  podTemplate:
    metadata:
      labels: {cost-center: "4711"}
      annotations: {team: lake}
    spec:
      priorityClassName: lake
      securityContext: {runAsUser: 2000, fsGroup: 2000}
      affinity: {podAntiAffinity: {}}
      topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
executors:
  nodeSelector: {pool: spot}
podHistory:
  ttlSecondsAfterFinished: 3600
sparkConf:
  spark.sql.shuffle.partitions: "64"
startDeadlineSeconds: 600
"""


# ---- who comes first
def test_a_writer_that_says_nothing_gets_them_all() -> None:
    found = under(WHOLE)
    assert found.driver.node_selector == {"pool": "hudi", "arch": "arm64"}
    assert found.executors.node_selector == {"pool": "spot"}
    assert found.driver.tolerations == ({"key": "hudi", "operator": "Exists"},)
    assert found.driver.pod_template["metadata"] == {"labels": {"cost-center": "4711"}, "annotations": {"team": "lake"}}
    assert found.driver.pod_template["spec"]["priorityClassName"] == "lake"
    assert found.spark_conf == {"spark.sql.shuffle.partitions": "64"}
    assert found.start_deadline_seconds == 600
    assert found.pod_history.ttl_seconds == 3600
    assert found.pod_history.limit == 3
    assert found.defaults_problem == ""
    assert "spec.sparkConf['spark.sql.shuffle.partitions']" in found.from_defaults
    assert "spec.driver.nodeSelector['pool']" in found.from_defaults
    assert len(found.from_defaults) == 14


def test_what_is_at_rest_in_a_pod_is_theirs() -> None:
    """In the driver's manifest, and nothing of it in that of a writer without defaults."""
    plain, found = under(""), under(WHOLE)
    table = Objects({"metadata": {"namespace": "lake", "name": "flights", "uid": "u"}, "spec": TABLE}).table_spec.spec
    assert table is not None
    pod = pods.driver_pod(table, found, 1, OperatorConfig())
    assert pod["spec"]["nodeSelector"] == {"pool": "hudi", "arch": "arm64"}
    assert pod["spec"]["securityContext"]["runAsUser"] == 2000
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert pod["metadata"]["labels"]["cost-center"] == "4711"
    assert "nodeSelector" not in pods.driver_pod(table, plain, 1, OperatorConfig())["spec"]


OWN: list[tuple[str, JsonDict, str, Any]] = [
    ("a key of a map", {"driver": {"nodeSelector": {"pool": "gpu"}}}, "nodeSelector", {"pool": "gpu", "arch": "arm64"}),
    ("a list as a whole", {"driver": {"tolerations": []}}, "tolerations", None),
    (
        "a list in the podTemplate",
        {"driver": {"podTemplate": {"spec": {"tolerations": [{"key": "own", "operator": "Exists"}]}}}},
        "tolerations",
        [{"key": "own", "operator": "Exists"}],
    ),
    (
        "a key of the podTemplate's map",
        {"driver": {"podTemplate": {"spec": {"nodeSelector": {"pool": "gpu", "disk": "ssd"}}}}},
        "nodeSelector",
        {"pool": "gpu", "disk": "ssd", "arch": "arm64"},
    ),
    ("a text", {"driver": {"podTemplate": {"spec": {"priorityClassName": "own"}}}}, "priorityClassName", "own"),
    (
        "an object as a whole",
        {"driver": {"podTemplate": {"spec": {"affinity": {"nodeAffinity": {}}}}}},
        "affinity",
        {"nodeAffinity": {}},
    ),
]


@pytest.mark.parametrize(("own", "field", "value"), [case[1:] for case in OWN], ids=[case[0] for case in OWN])
def test_a_writers_own_fields_come_first(own: JsonDict, field: str, value: Any) -> None:
    """In the pod itself, wherever its author has set the field."""
    table = Objects({"metadata": {"namespace": "lake", "name": "flights", "uid": "u"}, "spec": TABLE}).table_spec.spec
    assert table is not None
    pod = pods.driver_pod(table, under(WHOLE, **copy.deepcopy(own)), 1, OperatorConfig())
    assert pod["spec"].get(field) == value


def test_other_fields_of_ones_own_come_first_too() -> None:
    found = under(
        WHOLE,
        startDeadlineSeconds=60,
        podHistory={"ttlSecondsAfterFinished": 0},
        sparkConf={"spark.sql.Shuffle.partitions": "8", "spark.ui.enabled": "true"},
        driver={
            "podTemplate": {
                "metadata": {"labels": {"cost-center": "1"}},
                "spec": {"securityContext": {"fsGroup": 1}},
            }
        },
    )
    assert found.start_deadline_seconds == 60
    assert found.pod_history.ttl_seconds == 0
    # Spark and Hudi read names in any case: a second spelling would be a second value.
    assert found.spark_conf == {"spark.sql.Shuffle.partitions": "8", "spark.ui.enabled": "true"}
    assert found.driver.pod_template["metadata"]["labels"] == {"cost-center": "1"}
    assert found.driver.pod_template["spec"]["securityContext"] == {"runAsUser": 2000, "fsGroup": 1}


def test_nothing_of_the_objects_that_were_read_is_changed() -> None:
    """One text is under the writers of a whole namespace."""
    parsed, own = given(WHOLE), writer(driver={"nodeSelector": {"x": "y"}})
    before = json.dumps([parsed.fields, own])
    writer_under(own, parsed)
    assert json.dumps([parsed.fields, own]) == before


@pytest.mark.parametrize("text", ["", "# nothing", "{}", "driver:\n", "driver: {}\nsparkConf: {}\n", "null"])
def test_nothing_in_it_changes_nothing(text: str) -> None:
    assert under(text) == WriterSpec.from_object(writer())
    assert writer_under(writer(), read(None)) == WriterSpec.from_object(writer())


def test_json_is_yaml_too() -> None:
    assert given(json.dumps(given(WHOLE).fields)).fields == given(WHOLE).fields


# ---- what may not be there
REFUSED = [
    ("image: x:1", "image = 'x:1': cannot be a default of a namespace; driver, executors, podHistory, sparkConf, "),
    ("serviceAccountName: admin", "serviceAccountName = 'admin': cannot be a default"),
    ("imagePullSecrets: [{name: x}]", "imagePullSecrets = a list: cannot be a default"),
    ("hudiOptions: {hoodie.a: b}", "hudiOptions = an object: cannot be a default"),
    ("driver: {memory: 2Gi}", "driver.memory = '2Gi': cannot be a default of a namespace; of driver, nodeSelector, "),
    ("driver: {env: [{name: PASSWORD, value: x7}]}", "driver.env = a list: cannot be a default"),
    ("driver: {javaOptions: [-Xint]}", "driver.javaOptions = a list: cannot be a default"),
    ("executors: {instances: 3}", "executors.instances = 3: cannot be a default"),
    ("retryPolicy: {limit: 9}", "retryPolicy = an object: cannot be a default"),
    ("podHistory: {limit: 9}", "podHistory.limit = 9: cannot be a default"),
    ("driver: {podTemplate: {spec: {volumes: []}}}", "driver.podTemplate.spec.volumes = a list: cannot be a default"),
    ("driver: {podTemplate: {spec: {containers: []}}}", "driver.podTemplate.spec.containers = a list: cannot be"),
    ("driver: {podTemplate: {spec: {dnsConfig: {}}}}", "driver.podTemplate.spec.dnsConfig = an object: cannot be"),
    ("driver: {podTemplate: {spec: {hostNetwork: true}}}", "driver.podTemplate.spec.hostNetwork = True: cannot be"),
    ("driver: {podTemplate: {spec: {serviceAccountName: x}}}", "driver.podTemplate.spec.serviceAccountName = 'x'"),
    ("driver: {podTemplate: {metadata: {finalizers: []}}}", "driver.podTemplate.metadata.finalizers = a list"),
    ("apiToken: hunter2", "apiToken = <redacted>: cannot be a default"),
    # Values that a HudiWriter may not have either.
    (
        "driver: {podTemplate: {spec: {securityContext: {runAsUser: 0}}}}",
        "driver.podTemplate.spec.securityContext: runs as root",
    ),
    (
        "driver: {podTemplate: {spec: {securityContext: {runAsNonRoot: false}}}}",
        "driver.podTemplate.spec.securityContext: runs as root",
    ),
    (
        "driver: {podTemplate: {spec: {securityContext: {seccompProfile: {type: Unconfined}}}}}",
        "driver.podTemplate.spec.securityContext.seccompProfile: must be RuntimeDefault or Localhost",
    ),
    (
        "driver: {podTemplate: {spec: {securityContext: {sysctls: []}}}}",
        "driver.podTemplate.spec.securityContext.sysctls: not for a podTemplate",
    ),
    (
        "executors: {podTemplate: {spec: {priorityClassName: system-node-critical}}}",
        "executors.podTemplate.spec.priorityClassName: system-node-critical is for parts of the system",
    ),
    (
        "driver: {podTemplate: {metadata: {labels: {hudioperator.io/role: agent}}}}",
        "driver.podTemplate.metadata.labels: hudioperator.io/role is set by the operator",
    ),
    ("sparkConf: {spark.plugins: x}", "sparkConf['spark.plugins'] = 'x': owned by the operator"),
    ("sparkConf: {spark.hadoop.fs.s3a.endpoint: x}", "sparkConf['spark.hadoop.fs.s3a.endpoint'] = 'x': owned by"),
    ("sparkConf: {spark.something.new: x}", "sparkConf['spark.something.new'] = 'x': not on the allow-list"),
    (
        "sparkConf: {spark.sql.shuffle.partitions: 64}",
        "sparkConf['spark.sql.shuffle.partitions']: expected str, found 64",
    ),
    ("startDeadlineSeconds: 5", "startDeadlineSeconds: 5 must be at least 30"),
    ("startDeadlineSeconds: 10m", "startDeadlineSeconds: expected int, found '10m'"),
    ("driver: {nodeSelector: {pool: 1}}", "driver.nodeSelector['pool']: expected str, found 1"),
    ("driver: {tolerations: {key: x}}", "driver.tolerations: expected a list, found {'key': 'x'}"),
    ("driver: [1]", "driver: expected an object, found a list"),
    ("sparkConf: x", "sparkConf: expected an object, found 'x'"),
    ("[1, 2]", "expected an object, found a list"),
    # What is no YAML, or more than JSON.
    ("a: b: c", "line 1, column 5: mapping values are not allowed here"),
    ("driver: {}\ndriver: {}", "line 2: driver stands there twice"),
    ("true: 1", "line 1: 'true' is no name of a field: put it in quotes"),
    ("a: &x {}\nb: *x", "line 1: anchors, aliases and tags of YAML are not read: write the value out"),
    ("a: !!python/object:os.system x", "line 1: anchors, aliases and tags of YAML are not read"),
    ("driver: {}\n---\ndriver: {}", "line 2, column 1: but found another document"),
    ("a: " + "[" * 33, "objects and lists are nested too deeply"),
    ("- " * 5000, "objects and lists are nested too deeply"),
    ("\n".join(f"{' ' * n}a:" for n in range(40)), "objects and lists are nested too deeply"),
    (f"startDeadlineSeconds: {'9' * 5000}", "Exceeds the limit"),
    (f"# {'x' * contract.MOST_CHARACTERS}", "has 32770 characters, must have at most 32768"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text[:60] for text, _ in REFUSED])
def test_what_may_not_be_there_is_named(text: str, message: str) -> None:
    """ConfigMap, field, value and rule; and nothing of the text is used."""
    found = read(config_map(text))
    assert found.problem.startswith(f"{WHERE}{message}"), found.problem
    assert found.fields == {}
    assert "\n" not in found.problem
    assert "hunter2" not in found.problem
    assert "x7" not in found.problem
    kept = writer_under(writer(), found)
    assert kept.defaults_problem == found.problem
    assert kept.from_defaults == ()
    assert kept.driver == WriterSpec.from_object(writer()).driver


def test_a_config_map_without_the_key_is_told() -> None:
    found = read({**config_map(""), "data": {"default.yaml": "driver: {}"}})
    assert found.problem == "ConfigMap hudi-operator-defaults: needs the key defaults.yaml, has default.yaml"
    assert read({"metadata": {}}).problem.endswith("has none")


def test_a_name_too_long_for_a_condition_is_cut() -> None:
    assert len(read(config_map(f"{'x' * 20_000}: 1")).problem) < 1000


def test_what_only_some_writer_does_not_bear_is_told_of_that_one() -> None:
    """Its own fields and the defaults are more than there may be together."""
    text = f"driver: {{nodeSelector: {json.dumps({f'a{n}': 'x' for n in range(10)})}}}"
    own = {f"b{n}": "x" for n in range(10)}
    found = under(text, driver={"nodeSelector": own})
    assert found.defaults_problem == (
        f"{WHERE}together with this HudiWriter: spec.driver.nodeSelector: has 20 entries, must have at most 16"
    )
    assert found.driver.node_selector == own, "its attempt goes on as it began"
    assert under(text).defaults_problem == ""


def test_a_mistake_of_the_writer_is_told_as_its_own() -> None:
    for own in ({"driver": {"nodeSelector": "x"}}, {"startDeadlineSeconds": 1}):
        with pytest.raises(SpecError, match=r"^spec\.(driver\.nodeSelector|startDeadlineSeconds)"):
            writer_under(writer(**own), given(WHOLE))
    broken = made("HudiWriter", "load", {**writer()["spec"], "driver": "x"})
    with pytest.raises(SpecError, match=r"^spec\.driver: expected an object"):
        writer_under(broken, given(WHOLE))


def test_a_config_map_that_cannot_be_read_starts_nothing() -> None:
    """It might have said where pods may run. The look goes on: the dead are settled."""
    objects = Objects(None, (writer(),), None, "read ConfigMap lake/hudi-operator-defaults: forbidden (403)")
    ((_, spec, error),) = objects.writer_specs
    assert error == ""
    assert spec is not None
    assert spec.defaults_problem == f"{WHERE}cannot be read: {objects.defaults_unread}"
    for nonsense in ({"data": [1]}, {"data": {"defaults.yaml": {}}}):
        ((_, spec, _),) = Objects(None, (writer(),), nonsense).writer_specs
        assert spec is not None
        assert spec.defaults_problem.startswith("ConfigMap hudi-operator-defaults")


# ---- what may be there
def _leaves(tree: JsonDict, at: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, kind in tree.items():
        found |= {f"{at}{name}": kind} if isinstance(kind, str) else _leaves(kind, f"{at}{name}.")
    return found


def test_its_fields_are_fields_of_a_hudiwriter_without_a_default() -> None:
    """The API server writes those of the CRD into each HudiWriter: they would always come first."""
    schema = crds.schema("hudiwriters", "spec")
    for path in _leaves(contract.FIELDS):
        node = schema
        for name in path.split("."):
            node = node["properties"].get(name, {"properties": {}})
        assert "default" not in node, path
        first, *_ = path.split(".")
        assert first in schema["properties"]


def test_nothing_in_it_names_another_object() -> None:
    """Whoever writes it is not asked for the verb `use`."""
    words = ("secret", "account", "image", "volume", "env", "container", "configmap", "claim", "host", "token")
    assert not [path for path in _leaves(contract.FIELDS) if any(word in path.lower() for word in words)]


def images(spec: WriterSpec) -> list[dict[str, str]]:
    return [pod_template.images(settings.pod_template) for _, settings in references.templated(spec)]


def test_random_texts_bring_nothing_but_their_fields() -> None:
    """Hostile ones: those that are used name no object, image or account, and launch what the
    writer would be with them written out.
    """
    used = 0
    for seed in range(HOSTILE):
        table, plain = Generator(seed).objects()
        tree = Generator(seed).defaults()
        found = read(config_map(json.dumps(tree)))
        if found.problem or refusal(table, plain):
            continue
        try:
            spec = writer_under(plain, found)
        except SpecError as error:
            raise AssertionError(f"{seed}: {error}") from None
        own = WriterSpec.from_object(plain)
        assert references.of_writer(spec) == references.of_writer(own), seed
        assert images(spec) == images(own), seed
        assert (spec.image, spec.service_account_name) == (own.image, own.service_account_name)
        merged = {**plain, "spec": contract.under(plain["spec"], found.fields).spec}
        if not spec.defaults_problem and not refusal(table, merged):
            assert wrong(table, merged) == "", seed
            used += bool(spec.from_defaults)
    assert used > HOSTILE / 40, used


# ---- the example
def test_the_example_is_read() -> None:
    (found,) = quick_yaml.load_all((ROOT / "examples" / "defaults" / "defaults.yaml").read_text())
    assert found["metadata"]["name"] == contract.CONFIG_MAP
    parsed = defaults.read(found)
    assert parsed.problem == ""
    assert set(parsed.fields) == set(contract.FIELDS)
    (one,) = quick_yaml.load_all((ROOT / "examples" / "defaults" / "writer.yaml").read_text())
    spec = writer_under({**one, "metadata": {**one["metadata"], "uid": "0123456789"}}, parsed)
    assert spec.defaults_problem == ""
    assert (spec.executors.node_selector, spec.executors.tolerations) == ({"pool": "disks"}, ())
    assert spec.driver.node_selector == {"pool": "hudi"}
    assert spec.executors.pod_template["metadata"]["labels"] == {"cost-center": "4711"}
