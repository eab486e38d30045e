"""ConfigMaps of attempts and agents: the files of docs/design/contracts.md §5 and the attempt itself (§6)."""

from __future__ import annotations

import json
from typing import Any

from hudi_contract import naming
from hudi_operator.api import kafka, partitions
from hudi_operator.api.sources import View, ViewFiles
from hudi_operator.api.spec import Application, TableSpec, WriterSpec
from hudi_operator.manifests import hudi_conf, pods, spark_conf
from hudi_operator.model.config import OperatorConfig

JsonDict = dict[str, Any]

_CODE_DIR = "/etc/hudi/code"
_OPERATIONS = {"Upsert": "upsert", "Insert": "insert", "BulkInsert": "bulk_insert", "Delete": "delete", "RemoveDuplicates": "remove_duplicates"}


def attempt_config(table: TableSpec, writer: WriterSpec, number: int, config: OperatorConfig, *, run: int) -> JsonDict:
    """The ConfigMap of attempt ``number``, which belongs to run ``run``: same name as its driver pod, owned by the HudiWriter."""
    name = writer.driver_pod(number)
    labels = naming.driver_labels(table=table.ref.name, writer=writer.ref.name, number=number, driver_pod=name)
    data = {
        "hudi-defaults.conf": hudi_conf.properties(hudi_conf.hudi_defaults(table)),
        "spark-defaults.conf": spark_conf.properties(spark_conf.spark_defaults(table, writer, number, config)),
        "log4j2.properties": spark_conf.LOG4J2,
        "executor-template.yaml": pods.executor_template(table, writer, number, config),
        "job.json": _json(job(table, writer, number, run=run)),
    }
    # Nobody changes what a driver that starts again, or its executors, would read (F56).
    config_map = {**_config_map(writer.ref.namespace, name, labels, data), "immutable": True}
    config_map["metadata"]["ownerReferences"] = [pods.owner(naming.WRITER_KIND, writer.ref)]
    return config_map


def agent_config(table: TableSpec, agent: str, generation: int, config: OperatorConfig) -> JsonDict:
    """The ConfigMap of an agent, of all its generations; the tables themselves come with their assignments in etcd.

    A table's own agent has one for each generation, with the name of its pod: its executors belong to that pod.
    """
    own, pod = table.agent is not None, naming.agent_pod_name(agent, generation)
    labels = {**naming.common_labels(naming.ROLE_AGENT), naming.LABEL_AGENT: agent}
    data = {
        "hudi-defaults.conf": hudi_conf.properties(hudi_conf.common_defaults()),
        "spark-defaults.conf": spark_conf.properties(spark_conf.agent_defaults(table, config, agent_pod=pod)),
        "log4j2.properties": spark_conf.LOG4J2,
        "executor-template.yaml": pods.agent_executor_template(table, agent, generation, config) if own else "",
        "job.json": _json({"agent": agent}),
    }
    if not own:
        return _config_map(table.ref.namespace, agent, labels, data)
    config_map = _config_map(table.ref.namespace, pod, {**labels, naming.LABEL_TABLE: naming.label_value(table.ref.name)}, data)
    config_map["metadata"]["ownerReferences"] = [pods.owner(naming.TABLE_KIND, table.ref)]
    return config_map


def job(table: TableSpec, writer: WriterSpec, number: int, *, run: int) -> JsonDict:
    """``job.json``: the attempt as the runtime reads it (docs/design/contracts.md §6). Paths of Hudi tables that are read must be known by now."""
    return {
        "writer": {"namespace": writer.ref.namespace, "name": writer.ref.name, "uid": writer.ref.uid},
        "attempt": {"id": writer.attempt_id(number), "number": number},
        "run": run,
        "driverPod": writer.driver_pod(number),
        "table": {
            "id": table.table_id,
            "table": table.ref.key,
            "name": table.table_name,
            "path": table.canonical_path,
            "type": table.hudi_type,
            "recordKeyFields": list(table.record_key_fields),
            "partitionFields": list(table.partition_fields),
            "orderingFields": list(table.ordering_fields),
            "hiveStylePartitioning": table.hive_style_partitioning,
            "merge": table.merge.word,
            "missingColumns": table.missing_columns,
        },
        "source": _source(writer),
        "transform": {"sql": writer.transform_sql} if writer.transform_sql else None,
        "operation": _operation(table, writer),
        "duplicates": writer.duplicates,
        "application": None if writer.application is None else _application(writer.application),
        "conflict": {
            "inProcess": writer.retry.write_conflict_in_process,
            "serializeAfter": table.serialize_after_conflicts,
            "earlyDetection": table.early_conflict_detection,
        },
        "partitions": [partitions.normal(pattern, table.partition_fields) for pattern in writer.partitions],
        "streaming": None if writer.streaming_seconds is None else {"intervalSeconds": writer.streaming_seconds},
        "hudiOptions": dict(writer.hudi_options),
        "executors": writer.executors.instances,
    }


def _operation(table: TableSpec, writer: WriterSpec) -> str:
    """Hudi's bulk insert would give a bucket that is there a second file group (F75): of such a table it is an insert."""
    operation = _OPERATIONS[writer.operation]
    return "insert" if operation == "bulk_insert" and table.index_type == "Bucket" else operation


def _source(writer: WriterSpec) -> JsonDict | None:
    """None when an application writes itself, and with RemoveDuplicates."""
    if writer.files is not None:
        return {"files": {**_files(writer.files), "maxFilesPerCommit": writer.files.max_files_per_commit}}
    if writer.hudi is not None:
        hudi = writer.hudi
        return {
            "hudi": {
                "path": hudi.path,
                **_merged_by(hudi.merger),
                "startFrom": hudi.start_from,
                "order": hudi.order,
                "maxCommitsPerBatch": hudi.max_commits_per_batch,
                "ifPositionLost": hudi.if_position_lost,
                "deletes": hudi.deletes,
            }
        }
    if writer.kafka is not None:
        return {"kafka": kafka.job(writer.kafka)}
    if writer.python is not None:
        source = writer.python
        return {"python": {"file": f"{_CODE_DIR}/{source.config_map.key}", "function": source.function, "arguments": dict(source.arguments)}}
    if writer.sql is not None:
        return {"sql": {"query": writer.sql.query, "views": [_view(view) for view in writer.sql.views]}}
    return None


def _files(files: ViewFiles) -> JsonDict:
    return {"format": files.format, "paths": list(files.paths), "options": dict(files.options)}


def _view(view: View) -> JsonDict:
    if view.files is not None:
        return {"name": view.name, "files": _files(view.files)}
    return {"name": view.name, "hudi": {"path": view.path, **_merged_by(view.merger)}}


def _merged_by(class_name: str) -> JsonDict:
    """Of a table that is read: the class that merges it, when there is one."""
    return {"merger": class_name} if class_name else {}


def _application(application: Application) -> JsonDict:
    main_file = application.main_file.removeprefix("local://")
    if application.config_map is not None:
        main_file = f"{_CODE_DIR}/{application.config_map.key}"
    return {"mainFile": main_file, "arguments": list(application.arguments)}


def _config_map(namespace: str, name: str, labels: dict[str, str], data: dict[str, str]) -> JsonDict:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": data,
    }


def _json(value: JsonDict) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"
