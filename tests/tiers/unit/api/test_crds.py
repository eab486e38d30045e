"""CRDs and types say the same: each field, type, default, bound and choice, in both directions.

And every field is described.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from hudi_contract.keys import protocol
from hudi_operator.api import services
from hudi_operator.api.fields import DISTINCT, KEYS, NOTHING, declarations
from hudi_operator.api.fields import RULE as RULE_OF_A_TYPE
from hudi_operator.api.spec import FencingSpec, LockSpec, TableSpec, WriterSpec
from tests.support import crds
from tests.support.crds import JsonDict

TYPES: dict[str, type[Any]] = {"huditables": TableSpec, "hudiwriters": WriterSpec}


@pytest.mark.parametrize("plural", TYPES)
def test_the_types_and_the_crds_say_the_same(plural: str) -> None:
    assert crds.differences(crds.schema(plural, "spec"), crds.declared(TYPES[plural])) == []


@pytest.mark.parametrize("plural", TYPES)
def test_an_objects_default_is_that_of_its_fields(plural: str) -> None:
    assert crds.wrong_object_defaults(crds.schema(plural, "spec")) == []


@pytest.mark.parametrize("plural", TYPES)
def test_what_the_api_server_fills_in_is_what_the_operator_assumes(plural: str) -> None:
    """A spec with nothing but what is required is the same value before and after the
    API server's defaults.
    """
    least = {
        "huditables": {"path": "s3a://lake/t", "recordKeyFields": ["id"]},
        "hudiwriters": {"tableRef": {"name": "t"}, "streaming": {}},
    }[plural]
    stored = crds.completed(least, crds.schema(plural, "spec"))
    assert stored != least
    assert TYPES[plural].from_object({"spec": stored}) == TYPES[plural].from_object({"spec": least})


RULE = re.compile(r"self[.]matches\('([^']*)'\)( && self != 'source'| && !self[.]contains\('/[.][.]/'\))?")
ELSEWHERE = (
    "path",
    "paths[]",
    "application.file",
    "deps.jars[]",
    "deps.files[]",
    "deps.pyFiles[]",
    "memory",
    "maxMemory",
    "maxExecutorMemory",
    "FileSize",
    "env[].name",
    "javaOptions[]",
    "spec.partitions[]",
    "cron",
)
"""Fields whose rules are compared elsewhere: api/paths.py, api/dependencies.py, sizes,
api/pod_settings.py, patterns of partitions, and schedules, which are parsed."""


@pytest.mark.parametrize("plural", TYPES)
def test_a_rule_on_a_text_is_asked_again_at_launch(plural: str) -> None:
    """An object may have been stored under another CRD, or by somebody who may write to etcd."""
    types = dict(crds.fields(crds.declared(TYPES[plural]), "spec"))
    seen = 0
    for at, value in crds.fields(crds.schema(plural, "spec"), "spec"):
        if value.get("type") != "string" or at.endswith(ELSEWHERE) or ".podTemplate." in at:
            continue
        found = [RULE.fullmatch(rule["rule"]) for rule in value.get("x-kubernetes-validations", ())]
        wanted = [rule[1].replace("\\\\", "\\") for rule in found if rule]
        said = types[at].get(RULE_OF_A_TYPE)
        assert ([said] if said else []) == wanted, at
        seen += len(wanted)
    assert seen > 10


def node(schema: JsonDict, path: str) -> JsonDict:
    for name in path.split("."):
        schema = schema["items"] if name == "[]" else schema["properties"][name]
    return schema


def changed(path: str, **keywords: Any) -> Callable[[JsonDict], None]:
    """None removes a keyword."""

    def change(schema: JsonDict) -> None:
        found = node(schema, path)
        for keyword, value in keywords.items():
            assert found.get(keyword) != value, "nothing would be changed"
            found[keyword] = value
            if value is None:
                del found[keyword]

    return change


def renamed(path: str, name: str) -> Callable[[JsonDict], None]:
    def change(schema: JsonDict) -> None:
        way, _, last = path.rpartition(".")
        properties = (node(schema, way) if way else schema)["properties"]
        properties[name] = properties.pop(last)

    return change


DIFFERENCES = [
    (
        "a field of another name",
        renamed("fencing.drainSeconds", "drainTimeout"),
        ["spec.fencing.drainTimeout: only in", "spec.fencing.drainSeconds: only in"],
    ),
    ("a section of another name", renamed("storage", "access"), ["spec.storage: only in", "spec.access: only in"]),
    ("another default", changed("lock.leaseSeconds", default=11), ["spec.lock.leaseSeconds: default"]),
    ("no default", changed("fencing.mode", default=None), ["spec.fencing.mode: default"]),
    (
        "a default where there was none",
        changed("concurrency.maxWriters", default=16),
        ["spec.concurrency.maxWriters: default"],
    ),
    ("a lower bound", changed("lock.leaseSeconds", minimum=2), ["spec.lock.leaseSeconds: minimum"]),
    ("an upper bound", changed("lock.leaseSeconds", maximum=None), ["spec.lock.leaseSeconds: maximum"]),
    (
        "a list in which values may stand twice",
        changed("adoption.rollbackInstants", **{DISTINCT: "atomic"}),
        [f"spec.adoption.rollbackInstants: {DISTINCT}"],
    ),
    (
        "a list by another key",
        changed("storage.secretRefs", **{KEYS: ["as"]}),
        [f"spec.storage.secretRefs: {KEYS}"],
    ),
    (
        "a multiple",
        changed("services.clean.retainSeconds", multipleOf=60),
        ["spec.services.clean.retainSeconds: multipleOf"],
    ),
    ("one choice more", changed("type", enum=["CopyOnWrite", "MergeOnRead", "Both"]), ["spec.type: enum"]),
    ("one choice less", changed("adoption.policy", enum=["AdoptOrCreate", "Adopt"]), ["spec.adoption.policy: enum"]),
    ("no choices", changed("fencing.mode", enum=None), ["spec.fencing.mode: enum"]),
    ("a longer text", changed("path", maxLength=2048), ["spec.path: maxLength"]),
    ("a shorter text", changed("path", minLength=None), ["spec.path: minLength"]),
    (
        "a pattern",
        changed("fencing.attestations.[].podUID", pattern="^.*$"),
        ["spec.fencing.attestations[].podUID: pattern"],
    ),
    ("a format", changed("fencing.attestations.[].at", format=None), ["spec.fencing.attestations[].at: format"]),
    ("a longer list", changed("recordKeyFields", maxItems=17), ["spec.recordKeyFields: maxItems"]),
    ("a shorter list", changed("recordKeyFields", minItems=None), ["spec.recordKeyFields: minItems"]),
    ("a larger map", changed("hudiOptions", maxProperties=65), ["spec.hudiOptions: maxProperties"]),
    ("a longer item", changed("recordKeyFields.[]", maxLength=256), ["spec.recordKeyFields[]: maxLength"]),
    (
        "a longer entry",
        changed("hudiOptions", additionalProperties={"type": "string"}),
        ["spec.hudiOptions{}: maxLength", "spec.hudiOptions{}: pattern"],
    ),
    ("another type", changed("suspend", type="string"), ["spec.suspend: type"]),
    ("a number of another size", changed("lock.leaseSeconds", format="int64"), ["spec.lock.leaseSeconds: format"]),
    (
        "a quantity that is a text",
        changed("agent.resources.limits.cpu", anyOf=None),
        ["spec.agent.resources.limits.cpu: anyOf"],
    ),
    ("a required field that is not", changed("index", required=None), ["spec.index: required"]),
    ("a field that is required", changed("restore", required=["savepoint"]), ["spec.restore: required"]),
]


@pytest.mark.parametrize("side", ["CRD", "type"])
@pytest.mark.parametrize(
    ("change", "words"), [(change, words) for _, change, words in DIFFERENCES], ids=[what for what, _, _ in DIFFERENCES]
)
def test_each_kind_of_difference_is_found_on_either_side(
    side: str, change: Callable[[JsonDict], None], words: list[str]
) -> None:
    ours, theirs = crds.declared(TableSpec), crds.schema("huditables", "spec")
    change(theirs if side == "CRD" else ours)
    found = crds.differences(theirs, ours)
    for word in words:
        assert sum(said.startswith(word) for said in found) == 1, found
    assert len(found) == len(words), found


def test_a_wrong_default_of_an_object_is_found() -> None:
    schema = crds.schema("huditables", "spec")
    schema["properties"]["lock"]["default"]["leaseSeconds"] = 9
    (found,) = crds.wrong_object_defaults(schema)
    assert found.startswith("spec.lock: default")


@pytest.mark.parametrize("plural", TYPES)
@pytest.mark.parametrize("part", ["spec", "status"])
def test_every_field_is_described(plural: str, part: str) -> None:
    """`kubectl explain` says something of each.

    Items of lists and entries of maps are described by their field.
    """
    bare = [
        path
        for path, field in crds.fields(crds.schema(plural, part), part)
        if not path.endswith(("[]", "{}")) and not field.get("description")
    ]
    assert bare == []


def assumed(kind: type[Any], at: str) -> dict[str, str]:
    """What the type takes when a field is unset and the API server fills nothing in, by path."""
    found = {}
    for _, field in declarations(kind):
        path = ".".join([at, *field.at])
        if field.record is not None and field.schema["type"] == "object" and not field.plain:
            found |= assumed(field.record, path)
        elif (
            field.default is NOTHING
            and not field.required
            and isinstance(field.unset, (str, int))
            and field.unset not in ("", False)
        ):
            found[path] = str(field.unset)
    return found


@pytest.mark.parametrize("plural", TYPES)
def test_what_an_unset_field_means_is_described(plural: str) -> None:
    described = {path: field.get("description", "") for path, field in crds.fields(crds.schema(plural, "spec"), "spec")}
    values = assumed(TYPES[plural], "spec")
    assert values["spec.concurrency.maxWriters" if plural == "huditables" else "spec.operation"] in ("16", "Upsert")
    wrong = [
        f"{path}: {value}"
        for path, value in values.items()
        if value not in described[path] or not re.search("[Dd]efault|[Uu]nset", described[path])
    ]
    assert wrong == []


def test_the_triggers_of_table_services_are_described() -> None:
    described = {
        path: field.get("description", "") for path, field in crds.fields(crds.schema("huditables", "spec"), "spec")
    }
    for kind, commits in services.AFTER_COMMITS.items():
        assert f"Default {commits}, unless schedule is set" in described[f"spec.services.{kind}.afterCommits"]


def test_durations_of_the_lock_are_those_of_the_protocol() -> None:
    lock, fencing = LockSpec(), FencingSpec()
    assert protocol()["durations"] == {
        "leaseSeconds": lock.lease_seconds,
        "keepAliveSeconds": lock.keep_alive_seconds,
        "rpcTimeoutSeconds": lock.rpc_timeout_seconds,
        "silenceSeconds": lock.silence_seconds,
        "suspectSeconds": lock.suspect_seconds,
        "maxHoldSeconds": lock.max_hold_seconds,
        "maxClockSkewSeconds": lock.max_clock_skew_seconds,
        "drainSeconds": fencing.drain_seconds,
    }


OTHER_NAMES = ("strategyId", "tableId")
"""Hudi's own word, and an id that is no uid."""
OTHER_UNITS = re.compile("(Days|Hours|Minutes|Millis|MiB|GiB|Uid|Url|Id)$")


@pytest.mark.parametrize("plural", TYPES)
def test_one_unit_and_one_spelling_for_each_kind_of_name(plural: str) -> None:
    """Durations are whole seconds, sizes are quantities, acronyms keep their capitals."""
    for part in ("spec", "status"):
        names = [path.rpartition(".")[2] for path, _ in crds.fields(crds.schema(plural, part), part)]
        assert [name for name in names if OTHER_UNITS.search(name)] == [name for name in names if name in OTHER_NAMES]
