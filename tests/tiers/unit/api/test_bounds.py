"""No object of one tenant makes the operator compute for long: it serves all of them in one thread
(F628, F629).
"""

from __future__ import annotations

import re
import sys
import time
from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.api import patterns, schedule
from hudi_operator.api.bounds import MOST_LEVELS, MOST_VALUES, TooLarge, check_size, kept, problem
from hudi_operator.api.fields import SpecError
from hudi_operator.api.pod_settings import OwnAgent
from hudi_operator.api.pod_template import MOST_USES
from hudi_operator.api.schedule import Schedule
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.api.tolerant import former_agents, read_table
from hudi_operator.model.objects import Objects
from tests.support.large_objects import table, wide, with_secrets, writer

JsonDict = dict[str, Any]
SECONDS = 1.0
"""Far more than anything here takes; what it is for took between 5 and 60 s."""


def deep(levels: int) -> JsonDict:
    found: Any = []
    for _ in range(levels):
        found = [found]
    return {"spec": {"affinity": {"x": found}}}


@pytest.mark.parametrize(
    ("template", "told"),
    [
        (wide(470_000), f"podTemplate.spec.affinity.x: has more than {MOST_VALUES} values"),
        ({"spec": {"nodeSelector": {str(n): "" for n in range(50_000)}}}, "podTemplate.spec.nodeSelector: has more"),
        (deep(5_000), f"podTemplate.spec.affinity.x: is nested deeper than {MOST_LEVELS} levels"),
    ],
    ids=["wide", "keys", "deep"],
)
def test_what_is_too_large_is_refused_before_it_is_read(template: JsonDict, told: str) -> None:
    """The table can still be settled; neither reading nor naming its agents takes long."""
    began = time.monotonic()
    spec, error = read_table(table(template))
    assert spec is not None
    assert spec.agent is None
    assert f"spec.agent.{told}" in error
    former_agents(table(template), spec, spec.agent_name("image"), "image")
    ((_, found, why),) = Objects(None, (writer(template),)).writer_specs
    assert found is None
    assert f"spec.driver.{told}" in why
    assert time.monotonic() - began < SECONDS


def test_as_much_as_anybody_needs_is_read() -> None:
    """Eight sidecars of 64 variables in both pods of a writer."""
    one = [{"name": f"V{n}", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}} for n in range(64)]
    sidecars = [{"name": f"c{n}", "image": "i", "env": one[: 64 if n < 3 else 32]} for n in range(4)]
    template = {"spec": {"initContainers": sidecars}}
    obj = writer(template)
    obj["spec"]["executors"] = {"instances": 1, "podTemplate": template}
    assert WriterSpec.from_object(obj).driver.pod_template == template
    assert problem(wide(MOST_VALUES - 10), "x") == ""
    assert problem(deep(MOST_LEVELS - 10), "x") == ""


def test_settings_of_an_agent_are_digested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    key = OwnAgent.key

    def counting(self: OwnAgent, name: str) -> JsonDict:
        counted.append(name)
        return key(self, name)

    monkeypatch.setattr(OwnAgent, "key", counting)
    obj = table(wide(MOST_VALUES - 100))
    spec = TableSpec.from_object(obj)
    name = spec.agent_name("image")
    assert former_agents(obj, spec, name, "image") == (), "a table with its own agent has no other one"
    assert spec.agent_name("image", 3) not in (name, spec.agent_name("other"))
    assert counted == ["flights", "flights"], "once for each image of the operator"


def test_names_of_agents_are_those_of_before() -> None:
    """Other names would give each table another agent."""
    access: JsonDict = {"namespace": "ns", "service_account": "a", "secret_refs": [], "storage_options": {}}
    spec = TableSpec.from_object(table(storage={"serviceAccountName": "a"}))
    for shard in (0, 1, 63):
        assert spec.agent_name("i", shard) == naming.agent_name(**access, image="i", shard=shard)
    assert [naming.agent_name(**access, image="i", shard=shard) for shard in (0, 1)] == NAMES


NAMES = ["hudi-agent-1deeaa0665ba31eb8d805474f11325b5", "hudi-agent-d94657512f54bcaa04deeefe26a0c155"]


def test_what_is_too_large_is_not_kept() -> None:
    obj = table(wide(470_000), suspend=True)
    obj["spec"]["agent"]["executors"] = {"instances": 2, "podTemplate": wide(10)}
    small = kept(obj["spec"])
    assert small["agent"]["executors"] == {"instances": 2, "podTemplate": wide(10)}
    assert isinstance(small["agent"]["podTemplate"], TooLarge)
    assert len(obj["spec"]["agent"]["podTemplate"]["spec"]["affinity"]["x"]) == 470_000, "the object is as it was"
    assert read_table({**obj, "spec": small})[1] == read_table(obj)[1] != ""
    assert kept(table()["spec"]) == table()["spec"]
    for odd in (None, "text", {"agent": "text"}, {"agent": {"podTemplate": None}}):
        assert kept(odd) == odd
        check_size(odd)


def test_one_object_names_few_secrets() -> None:
    """F629: a look asks for each of them."""
    assert WriterSpec.from_object(writer(with_secrets(MOST_USES)))
    told = rf"spec\.driver\.podTemplate: .* {MOST_USES + 1} Secrets.* at most {MOST_USES}"
    with pytest.raises(SpecError, match=told):
        WriterSpec.from_object(writer(with_secrets(MOST_USES + 1)))
    with pytest.raises(SpecError, match=r"spec\.agent\.podTemplate: .* at most"):
        TableSpec.from_object(table(with_secrets(MOST_USES + 1)))
    both = writer(with_secrets(MOST_USES))
    both["spec"]["executors"] = {"instances": 1, "podTemplate": {"spec": {"volumes": [
        {"name": "v", "configMap": {"name": "other"}},
    ]}}}  # fmt: skip
    with pytest.raises(SpecError, match=r"spec\.executors\.podTemplate: .* at most"):
        WriterSpec.from_object(both)


def test_a_schedule_without_a_date_is_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Schedule(cron="0 0 */31 * 0#5", time_zone="Europe/Berlin")
    assert "no such date" in found.problem("spec.schedule")
    misses = schedule._unusable.cache_info().misses
    for _ in range(10):
        assert "no such date" in found.problem("spec.schedule")
    assert schedule._unusable.cache_info().misses == misses
    assert schedule._unusable.cache_info().maxsize


@pytest.mark.parametrize("pattern", ["[\x01-\uffff]", r"[\x01-\uffff]", "[\x01-\U000fffff]"])
def test_wide_classes_are_bounded(pattern: str) -> None:
    began = time.monotonic()
    assert patterns.problem("(?i)" + pattern * patterns.MOST_CLASSES) == ""
    assert patterns.problem("(?i)" + pattern * (patterns.MOST_CLASSES + 1)).startswith("too wide: 9 character classes")
    assert time.monotonic() - began < SECONDS


def test_case_does_not_matter_for_what_is_an_expression() -> None:
    for pattern in (
        "(?i)a", "(?im)a", "(?i:a)b", "(?-i:a)b", "(?i-m:a)b", "(?s-im:a)", "[(?i)]", "[(?i:]", r"\(?i)", "(?:a)",
        "(?)", "(?i", "a(", "(?i-i:a)", "(?#i)a", "(?P<i>a)(?P=i)", "(?-:a)", "x(?i)", "[a-z]{4}/[0-9]{2}" * 20,
    ):  # fmt: skip
        try:
            re.compile(pattern)
            valid = True
        except re.error:
            valid = False
        if pattern not in ("(?i-i:a)", "(?-:a)"):  # told by Java, which uses it
            assert (patterns.problem(pattern) == "") is valid, pattern


def test_what_python_cannot_compile_is_told() -> None:
    assert patterns.problem("a{99999999999}").startswith("not a regular expression")
    assert patterns.problem("(" * (sys.getrecursionlimit() * 2)).startswith("not a regular expression")
