from typing import Any

import pytest

from hudi_operator.api.spec import LockSpec, SpecError, TableSpec, WriterSpec


def table(**spec: Any) -> TableSpec:
    return TableSpec.from_object({"kind": "HudiTable", "metadata": {"namespace": "lake", "name": "t"}, "spec": {"path": "s3://lake/t", **spec}})


def writer(**spec: Any) -> WriterSpec:
    return WriterSpec.from_object({"kind": "HudiWriter", "metadata": {"name": "w", "uid": "0123456789"}, "spec": {"tableRef": {"name": "t"}, **spec}})


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
    assert (found.retry.limit, found.retry.backoff_seconds, found.retry.max_backoff_seconds, found.retry.write_conflict_in_process) == (3, 10, 300, 3)
    assert found.stop_grace_seconds == 60
    assert found.driver_pod(2) == "w-01234567-2"


def test_single_writer_means_one() -> None:
    assert table(concurrency={"mode": "SingleWriter", "maxWriters": 5}).max_writers == 1


def test_options_written_as_booleans_and_numbers() -> None:
    assert dict(table(hudiOptions={"a": True, "b": 3}).hudi_options) == {"a": "true", "b": "3"}


def test_sources_and_application() -> None:
    files = writer(source={"files": {"format": "csv", "paths": ["s3a://x/"], "maxFilesPerCommit": 5}}).files
    assert files is not None
    assert (files.format, files.paths, files.max_files_per_commit) == ("csv", ("s3a://x/",), 5)
    python = writer(source={"python": {"configMapRef": {"name": "c", "key": "k.py"}, "function": "f", "arguments": {"a": "b"}}}).python
    assert python is not None
    assert (python.config_map.name, python.function, dict(python.arguments)) == ("c", "f", {"a": "b"})
    application = writer(application={"mainFile": "local:///x.py", "arguments": ["1"]}).application
    assert application is not None
    assert application.config_map is None
    assert application.arguments == ("1",)
    assert writer(restartNonce="1").restart_nonce == "1"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"path": 5}, "spec.path"),
        ({"lock": {"leaseSeconds": "x"}}, "spec.lock.leaseSeconds"),
        ({"lock": {"leaseSeconds": True}}, "spec.lock.leaseSeconds"),
        ({"suspend": "yes"}, "spec.suspend"),
        ({"path": ""}, "spec.path"),
    ],
)
def test_errors_name_the_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError, match=field.replace(".", r"\.")):
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
