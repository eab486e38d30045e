import re
from typing import Any

import pytest

from hudi_operator.api.dependencies import Application, Deps
from hudi_operator.api.spec import LockSpec, SpecError, TableSpec, WriterSpec


def table(**spec: Any) -> TableSpec:
    body = {"path": "s3://lake/t", "recordKeyFields": ["id"], **spec}
    return TableSpec.from_object({"kind": "HudiTable", "metadata": {"namespace": "lake", "name": "t"}, "spec": body})


def writer(**spec: Any) -> WriterSpec:
    return WriterSpec.from_object(
        {
            "kind": "HudiWriter",
            "metadata": {"name": "w", "uid": "0123456789"},
            "spec": {"tableRef": {"name": "t"}, **spec},
        }
    )


def test_defaults_of_a_table() -> None:
    found = table()
    assert found.table_name == "t"
    assert found.hudi_type == "COPY_ON_WRITE"
    assert found.max_writers == 16
    assert found.lock == LockSpec(10, 3, 3, 60, 5, 600, 5)
    assert found.fencing.mode == "PodTermination"
    assert found.fencing.drain_seconds == 10
    assert found.canonical_path == "s3a://lake/t"


def test_defaults_of_a_writer() -> None:
    found = writer()
    assert found.operation == "Upsert"
    assert found.executors.instances == 0
    assert (
        found.retry.limit,
        found.retry.backoff_seconds,
        found.retry.max_backoff_seconds,
        found.retry.write_conflict_in_process,
    ) == (3, 10, 300, 3)
    assert found.stop_grace_seconds == 60
    assert found.driver_pod(2) == "w-01234567-2"


def test_single_writer_means_one() -> None:
    assert table(concurrency={"mode": "SingleWriter"}).max_writers == 1
    assert table(concurrency={"mode": "SingleWriter", "maxWriters": 1, "admission": "Always"}).max_writers == 1
    for field, value in (("maxWriters", 5), ("admission", "DisjointPartitions")):
        with pytest.raises(SpecError, match=rf"spec.concurrency.{field} = .*: contradicts mode SingleWriter"):
            table(concurrency={"mode": "SingleWriter", field: value})


def test_what_names_an_item_stands_once() -> None:
    for storage, said in (
        ([{"name": "keys", "as": "S3"}, {"name": "keys", "as": "Files"}], "'name': 'keys'"),
        ([{"name": "keys"}, {"name": "keys"}], "'name': 'keys'"),
    ):
        with pytest.raises(SpecError, match=rf"spec.storage.secretRefs\[1\]: .*{said}.* stands there twice"):
            table(storage={"secretRefs": storage})
    assert (
        len(
            table(
                storage={"secretRefs": [{"name": "keys", "as": "S3"}, {"name": "k", "as": "Files"}]}
            ).storage.secret_refs
        )
        == 2
    )
    with pytest.raises(SpecError, match=r"spec.partitions\[1\]: 'a' stands there twice"):
        writer(partitions=["a", "a"])


def test_sources_and_application() -> None:
    files = writer(source={"files": {"format": "csv", "paths": ["s3a://x/"], "maxFilesPerCommit": 5}}).files
    assert files is not None
    assert (files.format, files.paths, files.max_files_per_commit) == ("csv", ("s3a://x/",), 5)
    python = writer(
        source={"python": {"configMapKeyRef": {"name": "c", "key": "k.py"}, "function": "f", "arguments": {"a": "b"}}}
    ).python
    assert python is not None
    assert (python.config_map.name, python.function, dict(python.arguments)) == ("c", "f", {"a": "b"})
    application = writer(application={"mainFile": "local:///x.py", "arguments": ["1"]}).application
    assert application is not None
    assert application.config_map is None
    assert application.arguments == ("1",)
    jvm = {"mainClass": "com.example.Load", "file": "s3://lake/load.jar"}
    assert writer(application=jvm).application == Application(main_class="com.example.Load", file="s3://lake/load.jar")
    deps = {"jars": ["local:///opt/a.jar"], "pyFiles": ["hdfs://n:8020/x-1-py3-none-any.whl"], "packages": ["a:b:1"]}
    assert writer(application={"module": "jobs.load"}, deps=deps).deps == Deps(
        jars=("local:///opt/a.jar",), py_files=("hdfs://n:8020/x-1-py3-none-any.whl",), packages=("a:b:1",)
    )
    assert writer(restartNonce="1").restart_nonce == "1"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"path": 5}, "spec.path: expected str, found 5"),
        ({"lock": {"leaseSeconds": "x"}}, "spec.lock.leaseSeconds"),
        ({"lock": {"leaseSeconds": True}}, "spec.lock.leaseSeconds"),
        ({"suspend": "yes"}, "spec.suspend"),
        ({"path": ""}, "spec.path: has 0 characters, must have at least 1"),
        ({"path": None}, "spec.path: required"),
        ({"recordKeyFields": None}, "spec.recordKeyFields: required"),
        ({"recordKeyFields": []}, "spec.recordKeyFields: has 0 items, must have at least 1"),
        ({"recordKeyFields": ["id", 7]}, "spec.recordKeyFields: expected str, found 7"),
        ({"type": "MOR"}, "spec.type: 'MOR' must be one of CopyOnWrite, MergeOnRead"),
        ({"lock": {"leaseSeconds": 2}}, "spec.lock.leaseSeconds: 2 must be at least 3"),
        ({"lock": {"leaseSeconds": 301}}, "spec.lock.leaseSeconds: 301 must be at most 300"),
        ({"index": {"buckets": 4}}, "spec.index.type: required"),
        ({"index": "Bucket"}, "spec.index: expected an object, found 'Bucket'"),
        ({"hudiOptions": {"a": True}}, "spec.hudiOptions['a']: expected str, found True"),
        ({"hudiOptions": {"a": "x\n"}}, "spec.hudiOptions['a']: 'x\\n' must match"),
        ({"hudiOptions": {f"a{n}": "" for n in range(65)}}, "spec.hudiOptions: has 65 entries, must have at most 64"),
        (
            {"storage": {"secretRefs": [{"name": "a", "as": "S3"}, {"name": "b"}]}},
            "spec.storage.secretRefs[1].as: required",
        ),
        ({"agent": {"memory": "2g"}}, "spec.agent.memory: '2g' is not a size: a whole number and Mi or Gi"),
        (
            {"agent": {"resources": {"limits": {"cpu": "2 cores"}}}},
            "spec.agent.resources.limits.cpu: '2 cores' must match",
        ),
        (
            {"agent": {"tolerations": [{"operator": "Maybe"}]}},
            "spec.agent.tolerations[0].operator: 'Maybe' must be one of Exists, Equal",
        ),
    ],
)
def test_errors_name_the_field(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        table(**spec)


def test_a_writer_needs_a_table() -> None:
    with pytest.raises(SpecError, match="tableRef"):
        writer(tableRef={})


@pytest.mark.parametrize(
    ("lock", "fits"),
    [
        ({}, True),
        ({"keepAliveSeconds": 5}, False),
        ({"leaseSeconds": 9}, True),
        ({"leaseSeconds": 8}, False),
        ({"silenceSeconds": 15}, False),
        ({"silenceSeconds": 16}, True),
    ],
)
def test_relations_between_durations(lock: dict[str, int], fits: bool) -> None:
    assert (not table(lock=lock).lock.problem()) is fits
