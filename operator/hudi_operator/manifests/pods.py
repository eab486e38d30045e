"""Pods of drivers, executors and agents.

Every pod carries the evidence finalizer from its creation (F14), never restarts (an incarnation is
one JVM start), uses its own network (F7: a dead process's request must die with the sandbox) and
may only write to ``/tmp``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from hudi_contract import environment, naming, secret_names
from hudi_contract.words import FencingMode, Role
from hudi_operator.api import jdbc, kafka
from hudi_operator.api import pod_template as template_api
from hudi_operator.api.pod_settings import OwnAgent, PodSettings
from hudi_operator.api.spec import ObjectRef, StorageSpec, TableSpec, WriterSpec
from hudi_operator.manifests import namespace, pod_template, quantity, spark_conf
from hudi_operator.manifests.hudi_conf import conf_hash
from hudi_operator.model.config import OperatorConfig

JsonDict = dict[str, Any]

USER = 185
AGENT_GRACE_SECONDS = 30
HASH_ANNOTATION = f"{naming.GROUP}/hudi-defaults"
_CONF_VOLUME, _CODE_VOLUME, _ETCD_VOLUME, _TMP_VOLUME = "conf", "code", "etcd", "tmp"
_SOURCE_DIRS = {"kafka": kafka.SECRET_DIR, "registry": kafka.REGISTRY_DIR, "jdbc": jdbc.SECRET_DIR}
"""Volumes of the Secrets of sources, and where they are."""
_CALLBACK_VOLUME = "callback"
_SPARK_KEY_VOLUME = "spark-key"
_TOKEN_SECONDS = 3600
CODE_DIR = "/etc/hudi/code"
_ETCD_DIR = "/etc/hudi/etcd"
_DOWNWARD = {
    environment.POD_NAME: "metadata.name",
    environment.POD_NAMESPACE: "metadata.namespace",
    environment.POD_UID: "metadata.uid",
    environment.NODE_NAME: "spec.nodeName",
    "POD_IP": "status.podIP",
}
_S3_DIR, _SECRETS_DIR = "/etc/hudi/s3", "/etc/hudi/secrets"
_S3_VOLUME, _SECRET_VOLUME = "s3", "secret"


def driver_pod(table: TableSpec, writer: WriterSpec, number: int, config: OperatorConfig) -> JsonDict:
    """The driver pod of attempt ``number``; its ConfigMap has the same name."""
    name, with_executors = writer.driver_pod(number), writer.executors.instances > 0
    labels = naming.driver_labels(table=table.ref.name, writer=writer.ref.name, number=number, driver_pod=name)
    env = [
        *_common_env(table.storage),
        *_etcd_env(config),
        _variable(environment.TABLE_ID, table.table_id),
        _variable(environment.TABLE_PATH, table.canonical_path),
        _variable(environment.ATTEMPT, writer.attempt_id(number)),
        _variable(environment.ROLE, Role.WRITER),
        _variable(environment.PRIORITY, str(writer.priority)),
        _variable(environment.STOP_GRACE_SECONDS, str(writer.stop_grace_seconds)),
        *_plain(writer.driver),
    ]
    volumes, mounts = _volumes(config_map=name, with_job=True, tmp_size_limit=config.tmp_size_limit)
    _add_credentials(table.storage, volumes, mounts, own=own_credentials(table, name))
    _add_source_secret(writer, volumes, mounts)
    code = _code_config_map(writer)
    if code:
        volumes.append({"name": _CODE_VOLUME, "configMap": {"name": code}})
        mounts.append({"name": _CODE_VOLUME, "mountPath": CODE_DIR, "readOnly": True})
    container = _container(
        "driver", "writer", env, mounts, _resources(writer.driver), image=_image(table, config), config=config
    )
    container["envFrom"] = _env_from(table.storage)
    if with_executors:
        container["ports"] = _driver_ports()
        _add_spark_key(name, volumes, mounts)
    pod = _pod(table, writer.ref.namespace, name, labels, container, volumes, config)
    pod["metadata"]["ownerReferences"] = [owner(naming.WRITER_KIND, writer.ref)]
    pod["spec"].update(
        serviceAccountName=table.storage.service_account_name or spark_conf.DRIVER_SERVICE_ACCOUNT,
        automountServiceAccountToken=with_executors,
        terminationGracePeriodSeconds=writer.stop_grace_seconds,
        **_placement(writer.driver),
    )
    if writer.active_deadline_seconds is not None:
        pod["spec"]["activeDeadlineSeconds"] = writer.active_deadline_seconds
    pod_template.apply(writer.driver.pod_template, pod, "driver")
    _annotate(pod, config.driver_annotations)
    return pod


def executor_template(table: TableSpec, writer: WriterSpec, number: int, config: OperatorConfig) -> str:
    """The pod template for Spark's executors, as YAML. Spark sets name, image and resources."""
    return _yaml(executor_pod(table, writer, number, config))


def executor_pod(table: TableSpec, writer: WriterSpec, number: int, config: OperatorConfig) -> JsonDict:
    """The same as an object."""
    name, labels = writer.driver_pod(number), executor_labels(table, writer, number)
    pod = _executor(table, name, labels, writer.executors, config, credentials=own_credentials(table, name))
    _add_source_secret(writer, pod["spec"]["volumes"], pod["spec"]["containers"][0]["volumeMounts"])
    pod_template.apply(writer.executors.pod_template, pod, spark_conf.EXECUTOR_CONTAINER)
    _annotate(pod, config.driver_annotations)
    return pod


def executor_labels(table: TableSpec, writer: WriterSpec, number: int) -> dict[str, str]:
    """Labels of the executors of attempt ``number``."""
    return naming.executor_labels(
        table=table.ref.name,
        writer=writer.ref.name,
        number=number,
        driver_pod=writer.driver_pod(number),
        priority_class=template_api.class_of(writer.executors.pod_template, "priorityClassName"),
    )


def agent_executor_labels(table: TableSpec, own: OwnAgent, agent: str, generation: int) -> dict[str, str]:
    """Labels of the executors of ``agent``, the ``own`` one of the table."""
    return naming.agent_executor_labels(
        table=table.ref.name,
        generation=generation,
        agent_pod=naming.agent_pod_name(agent, generation),
        priority_class=template_api.class_of(own.executors.pod_template, "priorityClassName"),
    )


def agent_executor_template(table: TableSpec, agent: str, generation: int, config: OperatorConfig) -> str:
    """The same for the executors of a table's own agent; empty when it has none."""
    if table.agent is None or table.agent.executors.instances == 0:
        return ""
    return _yaml(agent_executor_pod(table, table.agent, agent, generation, config))


def agent_executor_pod(
    table: TableSpec, own: OwnAgent, agent: str, generation: int, config: OperatorConfig
) -> JsonDict:
    """The same as an object."""
    name = naming.agent_pod_name(agent, generation)
    labels = agent_executor_labels(table, own, agent, generation)
    pod = _executor(table, name, labels, own.executors, config)
    pod_template.apply(own.executors.pod_template, pod, spark_conf.EXECUTOR_CONTAINER)
    _annotate(pod, config.agent_annotations)
    return pod


def _yaml(pod: JsonDict) -> str:
    # libyaml writes the same several times faster; it is part of PyYAML's wheels.
    return str(yaml.dump(pod, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=True))


def _executor(
    table: TableSpec,
    driver: str,
    labels: JsonDict,
    settings: PodSettings,
    config: OperatorConfig,
    *,
    credentials: str = "",
) -> JsonDict:
    """An executor of the driver or agent pod ``driver``, whose ConfigMap has the same name.

    ``credentials``: the Secret of the driver's own storage credentials; empty: the table's.
    """
    env = [*_common_env(table.storage), *_plain(settings)]
    volumes, mounts = _volumes(config_map=driver, with_job=False, tmp_size_limit=config.tmp_size_limit, with_etcd=False)
    _add_credentials(table.storage, volumes, mounts, own=credentials)
    _add_spark_key(driver, volumes, mounts)
    container = _container(
        spark_conf.EXECUTOR_CONTAINER, "executor", env, mounts, {}, image=_image(table, config), config=config
    )
    container["envFrom"] = _env_from(table.storage)
    # Spark adds its own argument and sizes.
    del container["args"], container["resources"]
    pod = _pod(table, table.ref.namespace, "", labels, container, volumes, config)
    del pod["metadata"]["name"], pod["metadata"]["namespace"]
    pod["spec"].update(
        automountServiceAccountToken=False,
        terminationGracePeriodSeconds=AGENT_GRACE_SECONDS,
        **_placement(settings),
    )
    return pod


def agent_pod(table: TableSpec, agent: str, generation: int, config: OperatorConfig) -> JsonDict:
    """Pod of generation ``generation`` of the agent ``agent``.

    It has the access to storage that ``table`` shares with the agent's other tables.

    The pod has no owner reference: it serves several tables, and the operator deletes it when the
    last one is gone. A table's own agent names its table; it may create pods, like a driver, only
    if it has executors.
    """
    name, own = naming.agent_pod_name(agent, generation), table.agent
    with_executors = own is not None and own.executors.instances > 0
    volumes, mounts = _volumes(
        config_map=agent if own is None else name, with_job=True, tmp_size_limit=config.tmp_size_limit
    )
    _add_credentials(table.storage, volumes, mounts)
    _add_callback_secret(table, volumes, mounts)
    env = [
        *_common_env(table.storage),
        *_etcd_env(config),
        _variable(environment.ROLE, Role.AGENT),
        *(_plain(own.pod) if own is not None else ()),
    ]
    resources = dict(config.agent.resources) if own is None else _resources(own.pod)
    container = _container("agent", "agent", env, mounts, resources, image=_image(table, config), config=config)
    container["envFrom"] = _env_from(table.storage)
    if with_executors:
        container["ports"] = _driver_ports()
        _add_spark_key(name, volumes, mounts)
    labels = naming.agent_labels(agent=agent, generation=generation, table="" if own is None else table.ref.name)
    pod = _pod(table, table.ref.namespace, name, labels, container, volumes, config)
    # The agent serves several tables: their options come with the assignments.
    del pod["metadata"]["annotations"]
    account = spark_conf.DRIVER_SERVICE_ACCOUNT if with_executors else spark_conf.AGENT_SERVICE_ACCOUNT
    pod["spec"].update(
        serviceAccountName=table.storage.service_account_name or account,
        automountServiceAccountToken=with_executors,
        terminationGracePeriodSeconds=AGENT_GRACE_SECONDS,
        **(_placement(own.pod) if own is not None else {}),
    )
    if own is not None:
        pod_template.apply(own.pod.pod_template, pod, "agent")
    _annotate(pod, config.agent_annotations)
    return pod


def _annotate(pod: JsonDict, defaults: Mapping[str, str]) -> None:
    """The administrator's annotations, below those of a podTemplate and the operator's own."""
    found = {**defaults, **pod["metadata"].get("annotations", {})}
    if found:
        pod["metadata"]["annotations"] = found


def _driver_ports() -> list[JsonDict]:
    """Ports on which executors reach their driver."""
    return [
        {"name": "driver-rpc", "containerPort": spark_conf.DRIVER_PORT, "protocol": "TCP"},
        {"name": "blockmanager", "containerPort": spark_conf.BLOCK_MANAGER_PORT, "protocol": "TCP"},
    ]


def _pod(
    table: TableSpec,
    in_namespace: str,
    name: str,
    labels: JsonDict,
    container: JsonDict,
    volumes: list[JsonDict],
    config: OperatorConfig,
) -> JsonDict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": in_namespace,
            "labels": labels,
            "annotations": {HASH_ANNOTATION: conf_hash(table)},
            "finalizers": [naming.EVIDENCE_FINALIZER],
        },
        "spec": {
            "restartPolicy": "Never",
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                **({"runAsUser": USER, "runAsGroup": 0, "fsGroup": USER} if config.user_ids == "Image" else {}),
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": volumes,
            **({"imagePullSecrets": [{"name": name} for name in table.pull_secrets]} if table.pull_secrets else {}),
        },
    }


def _container(
    name: str,
    role: str,
    env: list[JsonDict],
    mounts: list[JsonDict],
    resources: JsonDict,
    *,
    image: str,
    config: OperatorConfig,
) -> JsonDict:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": config.image_pull_policy,
        "args": [role],
        "env": [*env, *_secret_folders(mounts)],
        "resources": resources,
        "volumeMounts": mounts,
        "terminationMessagePath": environment.TERMINATION_LOG,
        # The runtime writes its result there; if it could not, the end of the log is
        # better than nothing.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _image(table: TableSpec, config: OperatorConfig) -> str:
    return table.image or config.spark_image


def _volumes(
    *, config_map: str, with_job: bool, tmp_size_limit: str, with_etcd: bool = True
) -> tuple[list[JsonDict], list[JsonDict]]:
    """Volumes and mounts of the operator's files.

    One ConfigMap, mounted as the directories that Hudi, Spark and the runtime expect.
    """
    directories = {
        spark_conf.HUDI_CONF_DIR: ["hudi-defaults.conf"],
        spark_conf.SPARK_CONF_DIR: ["spark-defaults.conf", "log4j2.properties", "executor-template.yaml"],
    }
    if with_job:
        directories[environment.JOB_DIR] = [environment.JOB_FILE]
    items = [
        {"key": key, "path": f"{directory.rpartition('/')[2]}/{key}"}
        for directory, keys in directories.items()
        for key in keys
    ]
    volumes: list[JsonDict] = [
        {"name": _CONF_VOLUME, "configMap": {"name": config_map, "items": items}},
        {"name": _TMP_VOLUME, "emptyDir": {"sizeLimit": tmp_size_limit}},
    ]
    mounts: list[JsonDict] = [
        *(
            {"name": _CONF_VOLUME, "mountPath": directory, "subPath": directory.rpartition("/")[2], "readOnly": True}
            for directory in directories
        ),
        {"name": _TMP_VOLUME, "mountPath": "/tmp"},
    ]
    if with_etcd:
        volumes.append({"name": _ETCD_VOLUME, "projected": {"sources": _etcd_sources(), "defaultMode": 0o440}})
        mounts.append({"name": _ETCD_VOLUME, "mountPath": _ETCD_DIR, "readOnly": True})
    return volumes, mounts


def _add_spark_key(driver: str, volumes: list[JsonDict], mounts: list[JsonDict]) -> None:
    """The key of the connections between ``driver`` and its executors, as a file in all of them."""
    source = {"secretName": naming.spark_key_name(driver), "defaultMode": 0o440}
    volumes.append({"name": _SPARK_KEY_VOLUME, "secret": source})
    mounts.append({"name": _SPARK_KEY_VOLUME, "mountPath": spark_conf.SPARK_KEY_DIR, "readOnly": True})


def own_credentials(table: TableSpec, driver: str) -> str:
    """Secret of a driver's own storage credentials; empty when it has the table's."""
    return naming.storage_key_name(driver) if table.fencing.mode == FencingMode.CREDENTIALS else ""


def _add_credentials(storage: StorageSpec, volumes: list[JsonDict], mounts: list[JsonDict], *, own: str = "") -> None:
    """Credentials as files, which follow changes of their Secrets: no ``subPath``, which would not.

    A Secret that does not exist does not keep a pod from its start: the store's client names it,
    and finds it when it comes. For ``own``, a Secret that takes the place of the one as S3, the
    kubelet waits.
    """
    for number, ref in enumerate(storage.secret_refs):
        source: JsonDict = {"secretName": ref.name, "optional": True, "defaultMode": 0o440}
        if ref.as_kind == "S3":
            name, path = _S3_VOLUME, _S3_DIR
            source["items"] = [{"key": key, "path": key} for key in environment.S3_KEYS]
            if own:
                source = {"secretName": own, "defaultMode": 0o440}
        elif ref.as_kind == "Files":
            name, path = f"{_SECRET_VOLUME}-{number}", f"{_SECRETS_DIR}/{ref.name}"
        else:
            continue
        volumes.append({"name": name, "secret": source})
        mounts.append({"name": name, "mountPath": path, "readOnly": True})


def _etcd_sources() -> list[JsonDict]:
    """The token by which the gateway knows the pod, and the authority by which the pod knows it.

    The kubelet renews the token in the running pod.
    """
    token = {"audience": namespace.ETCD_AUDIENCE, "expirationSeconds": _TOKEN_SECONDS, "path": "token"}
    authority = {"name": namespace.ETCD_CONFIG_MAP, "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return [{"serviceAccountToken": token}, {"configMap": authority}]


def source_secrets(writer: WriterSpec) -> dict[str, str]:
    """The Secret that each kind of source names, by the kind; empty: it names none."""
    registry = writer.kafka.value.registry if writer.kafka is not None else None
    return {
        "kafka": writer.kafka.security.secret if writer.kafka is not None else "",
        "registry": registry.secret if registry is not None else "",
        "jdbc": writer.jdbc.secret if writer.jdbc is not None else "",
    }


def _add_source_secret(writer: WriterSpec, volumes: list[JsonDict], mounts: list[JsonDict]) -> None:
    """The Secret of the source as files, for driver and executors.

    Only the clients of Kafka, of the registry, or of the database read the values.
    """
    for volume, secret in source_secrets(writer).items():
        if secret:
            volumes.append({"name": volume, "secret": {"secretName": secret, "defaultMode": 0o440}})
            mounts.append({"name": volume, "mountPath": _SOURCE_DIRS[volume], "readOnly": True})


def _add_callback_secret(table: TableSpec, volumes: list[JsonDict], mounts: list[JsonDict]) -> None:
    """The Secret of ``commitCallback`` as files in the agent, which follow its changes.

    The agent starts without it, because it must settle.
    """
    if table.callback is not None and table.callback.secret:
        items = [{"key": key, "path": key} for key in environment.CALLBACK_KEYS]
        source = {"secretName": table.callback.secret, "items": items, "optional": True, "defaultMode": 0o440}
        volumes.append({"name": _CALLBACK_VOLUME, "secret": source})
        mounts.append({"name": _CALLBACK_VOLUME, "mountPath": environment.CALLBACK_DIR, "readOnly": True})


def _plain(settings: PodSettings) -> list[JsonDict]:
    """The user's variables, with the values that the user wrote.

    The kubelet replaces ``$(NAME)`` in a value by the variable of that name, which may be a
    credential; ``$$`` is one ``$``.
    """
    return [_variable(each["name"], each["value"].replace("$", "$$")) for each in settings.env]


def _variable(name: str, value: str) -> JsonDict:
    return {"name": name, "value": value}


def _common_env(storage: StorageSpec) -> list[JsonDict]:
    env: list[JsonDict] = [
        {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}
        for name, path in _DOWNWARD.items()
    ]
    env += [
        # The address that Spark binds to and passes to executors: a pod's host name does not
        # resolve anywhere else.
        _variable("SPARK_LOCAL_IP", "$(POD_IP)"),
        _variable("SPARK_LOCAL_HOSTNAME", "$(POD_IP)"),
        _variable("HOME", "/tmp"),
        _variable("HUDI_CONF_DIR", spark_conf.HUDI_CONF_DIR),
        _variable("SPARK_CONF_DIR", spark_conf.SPARK_CONF_DIR),
        _variable("TZ", "UTC"),
    ]
    prefixes = [ref.prefix for ref in storage.secret_refs if ref.prefix]
    if prefixes:
        env.append(_variable(secret_names.PREFIXES, ",".join(sorted(prefixes))))
    if any(ref.as_kind == "S3" for ref in storage.secret_refs):
        env.append(_variable(environment.S3_CREDENTIALS, _S3_DIR))
    return env


def _secret_folders(mounts: list[JsonDict]) -> list[JsonDict]:
    """Folders in which the process finds values that must not appear in its messages."""
    roots = (f"{_SECRETS_DIR}/", *_SOURCE_DIRS.values(), environment.CALLBACK_DIR)
    found = sorted(mount["mountPath"] for mount in mounts if mount["mountPath"].startswith(roots))
    return [_variable(secret_names.FOLDERS, ",".join(found))] if found else []


def _env_from(storage: StorageSpec) -> list[JsonDict]:
    return [
        {"prefix": ref.prefix, "secretRef": {"name": ref.name}} for ref in storage.secret_refs if ref.as_kind == "Env"
    ]


def _etcd_env(config: OperatorConfig) -> list[JsonDict]:
    return [
        _variable(environment.ETCD_ENDPOINTS, ",".join(config.pod_etcd.endpoints)),
        _variable(environment.ETCD_PREFIX, config.etcd.prefix),
        _variable(environment.ETCD_CA, f"{_ETCD_DIR}/ca.crt"),
        _variable(environment.ETCD_TOKEN, f"{_ETCD_DIR}/token"),
    ]


def _resources(settings: PodSettings) -> JsonDict:
    """The user's resources, completed.

    Memory from the JVM's heap, a small CPU request and no CPU limit.
    """
    requests = dict(settings.resources.get("requests") or {})
    limits = dict(settings.resources.get("limits") or {})
    heap = quantity.kubernetes_mib(settings.memory)
    memory = requests.get("memory") or limits.get("memory") or f"{heap + quantity.overhead_mib(heap)}Mi"
    requests.setdefault("cpu", "100m")
    requests.setdefault("memory", memory)
    limits.setdefault("memory", memory)
    return {"requests": requests, "limits": limits}


def _placement(settings: PodSettings) -> JsonDict:
    placement: JsonDict = {}
    if settings.node_selector:
        placement["nodeSelector"] = dict(settings.node_selector)
    if settings.tolerations:
        placement["tolerations"] = list(settings.tolerations)
    return placement


def _code_config_map(writer: WriterSpec) -> str:
    """Name of the user's ConfigMap with code; empty when there is none."""
    if writer.python is not None:
        return writer.python.config_map.name
    if writer.application is not None and writer.application.config_map is not None:
        return writer.application.config_map.name
    return ""


def owner(kind: str, ref: ObjectRef) -> JsonDict:
    """Owner reference to the HudiWriter or HudiTable as controller.

    Its dependents are deleted with it.
    """
    return {
        "apiVersion": naming.API_VERSION,
        "kind": kind,
        "name": ref.name,
        "uid": ref.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
