"""Writers that read another Hudi table: they wait for it, and are refused what their own table's
access does not reach.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hudi_operator.api.spec import WriterSpec
from hudi_operator.control.observe import _sources_of
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.objects import Objects
from hudi_operator.plan.core.view import build_view
from hudi_operator.plan.writers import source_tables
from tests.support.world.simulated_world import CONFIG, NAMESPACE, World, finished, ready_world

S3: dict[str, Any] = {"secretRefs": [{"name": "lake", "as": "S3"}], "options": {"fs.s3a.endpoint": "http://s3:9000"}}
BRONZE = {"hudi": {"tableRef": {"name": "bronze"}}}


def bronze(*, created: bool = True, **spec: Any) -> dict[str, Any]:
    meta = {"namespace": NAMESPACE, "name": "bronze", "uid": "bronze-uid"}
    status = {"timeline": {"pendingCount": 0}} if created else {"timeline": {}}
    return {
        "kind": "HudiTable",
        "metadata": meta,
        "spec": {"path": "s3://lake/bronze/", "recordKeyFields": ["id"], **spec},
        "status": status,
    }


def test_a_writer_waits_for_its_source() -> None:
    world = ready_world()
    world.make_writer("silver", source=BRONZE)
    for state, reason in ((None, "SourceNotFound"), (bronze(created=False), "SourceNotReady")):
        if state is not None:
            world.sources["bronze"] = state
        for _ in range(5):
            world.reconcile()
            world.tick()
        admitted = world.condition(world.writers["silver"], "Admitted")
        assert (admitted["status"], admitted["reason"]) == ("False", reason)
        assert "HudiTable bronze, the source," in admitted["message"]
        assert world.writers["silver"]["status"]["queue"]["blockedBy"] == "table bronze"
    world.sources["bronze"] = bronze()
    world.run(finished("silver"))
    assert world.is_true(world.writers["silver"], "Succeeded")
    (attempt,) = [m for m in world.applied if m["kind"] == "ConfigMap" and m["metadata"]["name"].startswith("silver-")]
    source = json.loads(attempt["data"]["job.json"])["source"]
    wanted = {
        "path": "s3a://lake/bronze",
        "startFrom": "Earliest",
        "order": "CompletionTime",
        "maxCommitsPerBatch": None,
        "ifPositionLost": "Fail",
    }
    assert source == {"hudi": {**wanted, "deletes": "Ignore"}}


def test_a_source_that_goes_after_the_attempt_was_announced_is_waited_for() -> None:
    """The number is in status, the operator dies, and the source is gone: no pod without a source,
    and the attempt comes when it is back.
    """
    world = ready_world()
    world.sources["bronze"] = bronze()
    world.make_writer("silver", source=BRONZE)
    while not world.writers["silver"].get("status", {}).get("attempts"):
        plan = world.reconcile(crash_after=0)
        for action in plan.actions:
            if type(action).__name__ in ("PatchFinalizers", "UpdateStatus"):
                world.perform(action)
    del world.sources["bronze"]
    for _ in range(10):
        world.reconcile()
        world.tick()
    assert not [name for name in world.pods if name.startswith("silver-")]
    world.sources["bronze"] = bronze()
    world.run(finished("silver"))
    assert world.writers["silver"]["status"]["attempt"] == 1


def test_views_of_a_query_are_tables_too() -> None:
    world = ready_world()
    files = {"format": "csv", "paths": ["s3a://landing/x"]}
    views = [
        {"name": "b", "hudi": {"tableRef": {"name": "bronze"}}},
        {"name": "f", "files": files},
        {"name": "p", "hudi": {"path": "s3://lake/flights"}},
    ]
    world.make_writer("silver", source={"sql": {"query": "SELECT 1", "views": views}})
    world.run(lambda w: w.condition(w.writers["silver"], "Admitted")["reason"] == "SourceNotFound")
    world.sources["bronze"] = bronze(path="gs://lake/bronze")
    world.run(lambda w: w.is_true(w.writers["silver"], "Stalled"))
    message = world.condition(world.writers["silver"], "Stalled")["message"]
    assert message.startswith("spec.source.sql.views[0].hudi.tableRef: gs://lake/bronze has another scheme")
    world.sources["bronze"] = bronze()
    world.run(finished("silver"))
    (attempt,) = [m for m in world.applied if m["kind"] == "ConfigMap" and m["metadata"]["name"].startswith("silver-")]
    wanted = [
        {"name": "b", "hudi": {"path": "s3a://lake/bronze"}},
        {"name": "f", "files": {**files, "options": {}}},
        {"name": "p", "hudi": {"path": "s3a://lake/flights"}},
    ]
    assert json.loads(attempt["data"]["job.json"])["source"] == {"sql": {"query": "SELECT 1", "views": wanted}}


def test_a_class_that_merges_a_source_reaches_its_readers() -> None:
    own = {
        "mode": "Custom",
        "custom": {"strategyId": "7d6a3c1e-3f0f-4a52-9a51-2f3c1b0e6f55", "className": "com.example.Own"},
    }
    views = [
        {"name": "b", "hudi": {"tableRef": {"name": "bronze"}}},
        {"name": "p", "hudi": {"path": "s3a://lake/flights"}},
    ]
    for source, wanted in (
        (BRONZE, {"path": "s3a://lake/bronze", "merger": "com.example.Own"}),
        ({"sql": {"query": "SELECT 1", "views": views}}, {"path": "s3a://lake/bronze", "merger": "com.example.Own"}),
    ):
        world = ready_world()
        world.sources["bronze"] = bronze(image="x:1", merge=own)
        world.make_writer("silver", source=source)
        world.run(finished("silver"))
        (attempt,) = [
            m for m in world.applied if m["kind"] == "ConfigMap" and m["metadata"]["name"].startswith("silver-")
        ]
        told = json.loads(attempt["data"]["job.json"])["source"]
        found = told["hudi"] if "hudi" in told else told["sql"]["views"][0]["hudi"]
        assert {key: found.get(key) for key in wanted} == wanted
        assert "hudi" in told or "merger" not in told["sql"]["views"][1]["hudi"]


def test_which_tables_are_read_for_a_writer() -> None:
    views = [
        {"name": "a", "hudi": {"tableRef": {"name": "one"}}},
        {"name": "b", "hudi": {"path": "s3a://x/y"}},
        {"name": "c", "hudi": {"tableRef": {"name": "two"}}},
    ]
    spec = {"tableRef": {"name": "flights"}}
    sql = {"spec": {**spec, "source": {"sql": {"query": "SELECT 1", "views": views}}}}
    bronze = {"spec": {**spec, "source": BRONZE}}
    unreadable = {"spec": {**spec, "source": {"hudi": {"tableRef": "bronze"}}}}
    assert _sources_of(Objects(None, (sql,))) == {"one", "two"}
    assert _sources_of(Objects(None, (bronze, sql))) == {"bronze", "one", "two"}
    assert _sources_of(Objects(None, (unreadable,))) == set()


def problem(
    table: dict[str, Any],
    source: dict[str, Any],
    *,
    found: dict[str, Any] | None = None,
    config: OperatorConfig = CONFIG,
) -> str:
    world = World()
    world.make_table(**table)
    world.make_writer("silver", source={"hudi": source})
    if found is not None:
        world.sources["bronze"] = found
    return source_tables.problem(build_view(world.observe(), config), WriterSpec.from_object(world.writers["silver"]))


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        (S3, ""),
        ({"options": S3["options"]}, ""),
        (
            {**S3, "secretRefs": [{"name": "other", "as": "S3"}]},
            "needs secretRef other as S3, which HudiTable flights does not have",
        ),
        ({**S3, "options": {"fs.s3a.endpoint": "http://elsewhere"}}, "needs option fs.s3a.endpoint with its value"),
        ({**S3, "serviceAccountName": "reader"}, "needs serviceAccountName reader"),
    ],
)
def test_access_to_the_source(storage: dict[str, Any], message: str) -> None:
    found = problem({"storage": S3}, {"tableRef": {"name": "bronze"}}, found=bronze(storage=storage))
    assert message in found
    assert bool(found) is bool(message)
    assert not found or found.startswith("spec.source.hudi.tableRef: HudiTable bronze ")


@pytest.mark.parametrize(
    ("path", "prefixes", "message"),
    [
        ("s3a://lake/bronze", {}, ""),
        ("s3://lake/bronze", {}, ""),
        ("gs://lake/bronze", {}, "has another scheme than s3a://lake/flights"),
        ("s3://lake/flights/", {}, "is the table that this writer writes to"),
        ("s3a://lake", {}, "must be scheme://bucket-or-host/path"),
        ("s3a://lake/a/../b", {}, "must not contain '.' or '..'"),
        ("s3a://other/bronze", {NAMESPACE: ("s3a://lake/",)}, "not below a prefix that namespace lake may use"),
    ],
)
def test_paths_of_sources(path: str, prefixes: dict[str, tuple[str, ...]], message: str) -> None:
    found = problem({}, {"path": path}, config=OperatorConfig(path_prefixes=prefixes))
    assert message in found
    assert bool(found) is bool(message)
    assert not found or found.startswith("spec.source.hudi.path: ")


def test_a_refused_source_stalls_the_writer_and_names_the_rule() -> None:
    world = ready_world()
    world.sources["bronze"] = bronze(path="s3a://lake/flights")
    world.make_writer("silver", source=BRONZE)
    world.run(lambda w: w.is_true(w.writers["silver"], "Stalled"))
    stalled = world.condition(world.writers["silver"], "Stalled")
    assert stalled["reason"] == "SourceNotAllowed"
    assert "is the table that this writer writes to" in stalled["message"]
    world.sources["bronze"] = bronze()
    world.run(finished("silver"))


@pytest.mark.parametrize(
    ("table", "deletes", "refused"),
    [
        ({"type": "MergeOnRead", "merge": {"partialUpdates": "IgnoreNulls"}}, "Carry", True),
        ({"type": "MergeOnRead", "merge": {"partialUpdates": "IgnoreNulls"}}, "Ignore", False),
        ({"type": "CopyOnWrite", "merge": {"partialUpdates": "IgnoreNulls"}}, "Carry", False),
        ({"type": "MergeOnRead"}, "Carry", False),
    ],
)
def test_deletes_are_carried_to_tables_that_take_them(table: dict[str, Any], deletes: str, refused: bool) -> None:
    """I8: with partial updates a record that comes again after its deletion would have values that
    were deleted.
    """
    world = ready_world(orderingFields=[], **table)
    world.sources["bronze"] = bronze()
    world.make_writer("silver", source={"hudi": {**BRONZE["hudi"], "deletes": deletes}})
    if not refused:
        world.run(finished("silver"))
        return
    world.run(lambda w: w.is_true(w.writers["silver"], "Stalled"))
    stalled = world.condition(world.writers["silver"], "Stalled")
    assert stalled["reason"] == "SourceNotAllowed"
    assert "spec.source.hudi.deletes: Carry: HudiTable" in stalled["message"]


@pytest.mark.parametrize(("kind", "refused"), [("MergeOnRead", True), ("CopyOnWrite", False)])
def test_deletes_are_not_carried_from_tables_whose_files_do_not_tell(kind: str, refused: bool) -> None:
    own = {
        "mode": "Custom",
        "custom": {"strategyId": "7d6a3c1e-3f0f-4a52-9a51-2f3c1b0e6f55", "className": "com.example.Own"},
    }
    world = ready_world()
    world.sources["bronze"] = bronze(type=kind, merge=own, image="lake:1")
    world.make_writer("silver", source={"hudi": {**BRONZE["hudi"], "deletes": "Carry"}})
    if not refused:
        world.run(finished("silver"))
        return
    world.run(lambda w: w.is_true(w.writers["silver"], "Stalled"))
    assert (
        "HudiTable bronze, the source, is of type MergeOnRead with merge.mode Custom"
        in world.condition(world.writers["silver"], "Stalled")["message"]
    )


@pytest.mark.parametrize(
    ("source", "field"),
    [
        ({"files": {"format": "csv", "paths": ["s3a://lake/x", "{path}"]}}, "spec.source.files.paths[1]"),
        (
            {"sql": {"query": "SELECT 1", "views": [{"name": "v", "files": {"format": "csv", "paths": ["{path}"]}}]}},
            "spec.source.sql.views[0].files.paths[0]",
        ),
        ({"hudi": {"path": "{path}"}}, "spec.source.hudi.path"),
    ],
)
@pytest.mark.parametrize(
    "path", ["file:///etc/hudi/etcd/tls.key", "s3a://lake/team/../other", "s3a://user:password@lake/x", "s3a://else/x"]
)
def test_files_are_held_to_the_rules_for_tables(source: dict[str, Any], field: str, path: str) -> None:
    """F130: a pod's own files, and what is not below the namespace's prefixes, are no source."""
    world = World()
    world.make_table()
    world.make_writer("silver", source=json.loads(json.dumps(source).replace("{path}", path)))
    config = replace(CONFIG, path_prefixes={NAMESPACE: ("s3a://lake",)})
    said = source_tables.problem(build_view(world.observe(), config), WriterSpec.from_object(world.writers["silver"]))
    assert said.startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"application": {"mainClass": "a.B", "file": "s3a://else/b.jar"}}, "spec.application.file"),
        ({"deps": {"jars": ["local:///a.jar", "s3a://else/b.jar"]}}, "spec.deps.jars[1]"),
        ({"deps": {"files": ["s3a://else/b"]}}, "spec.deps.files[0]"),
        ({"deps": {"pyFiles": ["gs://lake/b.py"]}}, "spec.deps.pyFiles[0]"),
        ({"deps": {"packages": ["a:b:1"]}}, "spec.deps.packages"),
    ],
)
def test_what_code_brings_along_is_held_to_the_same_rules(more: dict[str, Any], field: str) -> None:
    """Files of a store are below the namespace's prefixes, and packages come from the mirror."""
    world = World()
    world.make_table()
    world.make_writer("silver", source=None, **{"application": {"mainFile": "local:///a.py"}, **more})
    config = replace(CONFIG, path_prefixes={NAMESPACE: ("s3a://lake",)})
    writer = WriterSpec.from_object(world.writers["silver"])
    assert source_tables.problem(build_view(world.observe(), config), writer).startswith(f"{field}: ")
    config = replace(config, path_prefixes={}, allowed_schemes=("s3a", "gs"), maven_mirror="https://m.example.com/")
    assert not source_tables.problem(build_view(world.observe(), config), writer)


@pytest.mark.parametrize(
    ("source", "operation", "said"),
    [
        ({"startFrom": "20260101000000000", "order": "Fenced"}, "Upsert", "spec.source.hudi.startFrom: "),
        ({"deletes": "Carry", "ifPositionLost": "Snapshot"}, "Upsert", "spec.source.hudi.deletes: Carry"),
        ({"deletes": "Carry"}, "Insert", "spec.operation: Insert"),
        ({"deletes": "Carry"}, "Upsert", ""),
    ],
)
def test_fields_of_a_source_that_do_not_go_together(source: dict[str, Any], operation: str, said: str) -> None:
    world = World()
    world.make_table()
    world.make_writer("silver", source={"hudi": {"tableRef": {"name": "bronze"}, **source}}, operation=operation)
    found = source_tables.problem(build_view(world.observe(), CONFIG), WriterSpec.from_object(world.writers["silver"]))
    assert found.startswith(said)
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("fs.s3a.impl", "x.Y", "options['fs.s3a.impl']: is not an option"),
        ("fs.s3a.endpoint", "http://evil", "options['fs.s3a.endpoint']: is not an option"),
        ("avroSchemaUrl", "file:///etc/hudi/etcd/tls.key", "options['avroSchemaUrl']: is not an option"),
        ("path", "file:///etc/hudi/etcd/tls.key", "options['path']: is not an option"),
        ("PATHS", "[]", "options['PATHS']: is not an option"),
        ("__globPaths__", "true", "options['__globPaths__']: is not an option"),
        ("BasePath", "file:///etc", "options['basePath']: scheme file is not allowed"),
        ("basePath", "s3a://lake/landing", ""),
        ("HEADER", "true", ""),
    ],
)
def test_options_of_a_reader_are_an_allow_list(name: str, value: str, said: str) -> None:
    """F132: Spark hands what it does not know on to Hadoop's configuration."""
    world = World()
    world.make_table()
    files = {"format": "csv", "paths": ["s3a://lake/x"], "options": {name: value}}
    world.make_writer("silver", source={"files": files})
    found = source_tables.problem(build_view(world.observe(), CONFIG), WriterSpec.from_object(world.writers["silver"]))
    assert found.startswith(f"spec.source.files.{said}" if said else "")
    assert bool(found) == bool(said)
