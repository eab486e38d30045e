"""ConfigMaps of attempts and agents.

The files of docs/design/contracts.md §5, and the attempt's description (§6).
"""

from __future__ import annotations

import json
from typing import Any

from hudi_contract import environment, naming
from hudi_contract import job as contract
from hudi_contract.job import JobRecord
from hudi_contract.words import Duplicates, FencingMode, Operation
from hudi_operator.api import jdbc, kafka, partitions, pod_template
from hudi_operator.api.dependencies import Application, Deps
from hudi_operator.api.pod_settings import ExecutorSettings
from hudi_operator.api.sources import View, ViewFiles
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.manifests import confinement, hudi_conf, pods, spark_conf
from hudi_operator.model.config import OperatorConfig

JsonDict = dict[str, Any]

_OPERATIONS = {
    "Upsert": Operation.UPSERT,
    "Insert": Operation.INSERT,
    "BulkInsert": Operation.BULK_INSERT,
    "Delete": Operation.DELETE,
    "InsertOverwrite": Operation.INSERT_OVERWRITE,
    "DeletePartition": Operation.DELETE_PARTITION,
    "RemoveDuplicates": Operation.REMOVE_DUPLICATES,
}


def attempt_config(table: TableSpec, writer: WriterSpec, number: int, config: OperatorConfig, *, run: int) -> JsonDict:
    """The ConfigMap of attempt ``number``, which belongs to run ``run``.

    Same name as its driver pod, owned by the HudiWriter.
    """
    name = writer.driver_pod(number)
    labels = naming.driver_labels(table=table.ref.name, writer=writer.ref.name, number=number, driver_pod=name)
    data = {
        "hudi-defaults.conf": hudi_conf.properties(hudi_conf.hudi_defaults(table, keys_once=_keys_once(table, writer))),
        "spark-defaults.conf": spark_conf.properties(spark_conf.spark_defaults(table, writer, number, config)),
        "log4j2.properties": spark_conf.LOG4J2,
        "executor-template.yaml": pods.executor_template(table, writer, number, config),
        environment.JOB_FILE: _json(
            job(
                table,
                writer,
                number,
                run=run,
                longest_drain=_longest_drain(table, config),
                mirror=config.maven_mirror,
            ).to_json()
        ),
    }
    if writer.executors.instances > 0:
        secrets = [secret for secret in pods.source_secrets(writer).values() if secret]
        executor = pods.executor_pod(table, writer, number, config)
        data |= _allowed_executors(table, name, executor, secrets, writer.executors, config)
    # Immutable, so that nobody can change the files that a restarting driver or its executors would
    # read (F56).
    config_map = {**_config_map(writer.ref.namespace, name, labels, data), "immutable": True}
    _hold(config_map)
    config_map["metadata"]["ownerReferences"] = [pods.owner(naming.WRITER_KIND, writer.ref)]
    return config_map


def _keys_once(table: TableSpec, writer: WriterSpec) -> bool:
    """Whether code of the user writes to a table with record keys, and may write no key twice."""
    code = writer.application is not None or writer.python is not None
    return code and writer.duplicates != Duplicates.ALLOW and bool(table.record_key_fields)


def agent_config(table: TableSpec, agent: str, generation: int, config: OperatorConfig) -> JsonDict:
    """The ConfigMap of an agent, for all its generations.

    The tables come from their assignments in etcd.

    A table's own agent has one for each generation, with the name of its pod, because its executors
    belong to that pod.
    """
    own, pod = table.agent is not None, naming.agent_pod_name(agent, generation)
    labels = {**naming.common_labels(naming.ROLE_AGENT), naming.LABEL_AGENT: agent}
    data = {
        "hudi-defaults.conf": hudi_conf.properties(hudi_conf.common_defaults()),
        "spark-defaults.conf": spark_conf.properties(spark_conf.agent_defaults(table, config, agent_pod=pod)),
        "log4j2.properties": spark_conf.LOG4J2,
        "executor-template.yaml": pods.agent_executor_template(table, agent, generation, config) if own else "",
        environment.JOB_FILE: _json(contract.AgentJob(agent=agent).to_json()),
    }
    if table.agent is not None and table.agent.executors.instances > 0:
        executor = pods.agent_executor_pod(table, table.agent, agent, generation, config)
        data |= _allowed_executors(table, pod, executor, [], table.agent.executors, config)
    if not own:
        return _config_map(table.ref.namespace, agent, labels, data)
    config_map = _config_map(
        table.ref.namespace, pod, {**labels, naming.LABEL_TABLE: naming.label_value(table.ref.name)}, data
    )
    config_map["metadata"]["ownerReferences"] = [pods.owner(naming.TABLE_KIND, table.ref)]
    _hold(config_map)
    return config_map


def _hold(config_map: JsonDict) -> None:
    """Keep it while its driver may start executors, even if its owner is deleted (F200)."""
    if "executor-image" in config_map["data"]:
        config_map["metadata"]["finalizers"] = [naming.EVIDENCE_FINALIZER]


def _allowed_executors(
    table: TableSpec,
    driver: str,
    executor: JsonDict,
    secrets: list[str],
    settings: ExecutorSettings,
    config: OperatorConfig,
) -> dict[str, str]:
    """Values with which the admission policy ``drivers`` compares executors of the pod ``driver``.

    They are the image, the ServiceAccount, their labels of our group, and the names of the Secrets
    that they may use: those of the storage and of the source, and the key of their connections. A
    driver with credentials of its own shares them instead of those of the storage. From their
    podTemplate: more Secrets, ConfigMaps, claims of volumes, containers with their images, and the
    classes of priority and runtime. From the ``executor`` that was rendered: what confines it.
    """
    template, labels = settings.pod_template, executor["metadata"]["labels"]
    own = pods.own_credentials(table, driver) if naming.LABEL_WRITER in labels else ""
    storage = [own] if own else [ref.name for ref in table.storage.secret_refs]
    more = pod_template.names(template, "Secret")
    named = {*storage, *secrets, *more, naming.spark_key_name(driver)} - {""}
    return {
        "executor-image": table.image or config.spark_image,
        "executor-account": spark_conf.executor_account(table),
        "executor-labels": ",".join(sorted(f"{k}={v}" for k, v in labels.items() if k.startswith(f"{naming.GROUP}/"))),
        "executor-secrets": ",".join(sorted(named)),
        "executor-config-maps": ",".join(pod_template.names(template, "ConfigMap")),
        "executor-claims": ",".join(pod_template.names(template, "PersistentVolumeClaim")),
        "executor-containers": ",".join(f"{name}={image}" for name, image in pod_template.images(template).items()),
        "executor-priority-class": pod_template.class_of(template, "priorityClassName"),
        "executor-runtime-class": pod_template.class_of(template, "runtimeClassName"),
        **confinement.values(executor, config),
    }


FAILOVER_SECONDS = 300
"""Seconds added to the longest drain: another operator restarts the drain."""


def _longest_drain(table: TableSpec, config: OperatorConfig) -> int:
    """The longest drain of a lock of this table, seconds. Another operator restarts it."""
    revoked = config.credentials_broker.request_seconds if table.fencing.mode == FencingMode.CREDENTIALS else 0
    return max(table.fencing.drain_seconds, revoked)


def job(
    table: TableSpec, writer: WriterSpec, number: int, *, run: int, longest_drain: int = 0, mirror: str = ""
) -> JobRecord:
    """``job.json``: the description of an attempt for the runtime.

    Paths of source Hudi tables must already be resolved. ``longest_drain``: of a lock of the table.
    ``mirror``: the Maven repository of packages; empty: there is none.
    """
    return JobRecord(
        predecessor_seconds=max(JobRecord.predecessor_seconds, longest_drain + FAILOVER_SECONDS),
        writer=contract.WriterName(namespace=writer.ref.namespace, name=writer.ref.name, uid=writer.ref.uid),
        attempt=contract.AttemptName(id=writer.attempt_id(number), number=number),
        run=run,
        driver_pod=writer.driver_pod(number),
        table=contract.TableOfJob(
            id=table.table_id,
            table=table.ref.key,
            name=table.table_name,
            path=table.canonical_path,
            type=table.hudi_type,
            record_key_fields=tuple(table.record_key_fields),
            partition_fields=tuple(table.partition_fields),
            ordering_fields=tuple(table.ordering_fields),
            hive_style_partitioning=table.hive_style_partitioning,
            merge=table.merge.of_job,
            missing_columns=table.missing_columns,
        ),
        source=_source(writer),
        transform=contract.Transform(sql=writer.transform_sql) if writer.transform_sql else None,
        operation=_operation(table, writer),
        duplicates=writer.duplicates,
        may_truncate=writer.overwrite.if_empty == "Truncate",
        validations=tuple(validation.of_job for validation in writer.validations),
        application=None if writer.application is None else _application(writer.application),
        deps=None if writer.deps is None else _deps(writer.deps, mirror),
        conflict=contract.ConflictPolicy(
            in_process=writer.retry.write_conflict_in_process,
            serialize_after=table.serialize_after_conflicts,
            early_detection=table.early_conflict_detection,
        ),
        partitions=tuple(partitions.normal(pattern, table.partition_fields) for pattern in writer.partitions),
        streaming=None
        if writer.streaming_seconds is None
        else contract.Streaming(interval_seconds=writer.streaming_seconds),
        hudi_options=dict(writer.hudi_options),
        executors=writer.executors.instances,
    )


def _operation(table: TableSpec, writer: WriterSpec) -> Operation:
    """Hudi's name of the operation.

    Hudi's bulk insert would give an existing bucket a second file group, so it becomes an insert
    for a table with a bucket index (F75).
    """
    operation = _OPERATIONS[writer.operation]
    if operation is Operation.INSERT_OVERWRITE and writer.overwrite.scope == "Table":
        return Operation.INSERT_OVERWRITE_TABLE
    return Operation.INSERT if operation is Operation.BULK_INSERT and table.index_type == "Bucket" else operation


def _source(writer: WriterSpec) -> contract.Source | None:
    """None for an application that does its own writes, and for an operation without a batch."""
    if writer.files is not None:
        return contract.Source(files=_files(writer.files, writer.files.max_files_per_commit))
    if (hudi := writer.hudi) is not None:
        return contract.Source(
            hudi=contract.Hudi(
                path=hudi.path,
                merger=hudi.merger,
                start_from=hudi.start_from,
                order=hudi.order,
                max_commits_per_batch=hudi.max_commits_per_batch,
                if_position_lost=hudi.if_position_lost,
                deletes=hudi.deletes,
            )
        )
    if writer.kafka is not None:
        return contract.Source(kafka=kafka.job(writer.kafka))
    if writer.jdbc is not None:
        return contract.Source(jdbc=jdbc.job(writer.jdbc))
    if writer.python is not None:
        source = writer.python
        file = f"{pods.CODE_DIR}/{source.config_map.key}"
        return contract.Source(
            python=contract.Python(file=file, function=source.function, arguments=dict(source.arguments))
        )
    if writer.sql is not None:
        return contract.Source(
            sql=contract.Sql(query=writer.sql.query, views=tuple(_view(view) for view in writer.sql.views))
        )
    return None


def _files(files: ViewFiles, most: int | None = None) -> contract.Files:
    return contract.Files(
        format=files.format, paths=tuple(files.paths), options=dict(files.options), max_files_per_commit=most
    )


def _view(view: View) -> contract.View:
    if view.files is not None:
        return contract.View(name=view.name, files=_files(view.files))
    return contract.View(name=view.name, hudi=contract.ViewedTable(path=view.path, merger=view.merger))


def _application(application: Application) -> contract.Application:
    main_file = application.main_file.removeprefix("local://")
    if application.config_map is not None:
        main_file = f"{pods.CODE_DIR}/{application.config_map.key}"
    return contract.Application(
        main_file=main_file,
        arguments=tuple(application.arguments),
        module=application.module,
        main_class=application.main_class,
        jar=application.file,
    )


def _deps(deps: Deps, mirror: str) -> contract.Dependencies:
    return contract.Dependencies(
        jars=deps.jars,
        files=deps.files,
        py_files=deps.py_files,
        packages=deps.packages,
        exclude_packages=deps.exclude_packages,
        mirror=mirror if deps.packages else "",
    )


def _config_map(namespace: str, name: str, labels: dict[str, str], data: dict[str, str]) -> JsonDict:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": data,
    }


def _json(value: JsonDict) -> str:
    return json.dumps(value, indent=1, sort_keys=True) + "\n"
