"""Names that several parts compute independently and must agree on.

Table ids, pods, attempts, agents, labels, finalizers.

Every name is deterministic, so a repeated action finds the object that an earlier one created and
does not create a second one (I6). The Java module computes the table id with the same rule; both
sides are tested against the same examples.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

GROUP = "hudioperator.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
TABLE_KIND = "HudiTable"
WRITER_KIND = "HudiWriter"

EVIDENCE_FINALIZER = f"{GROUP}/evidence"
"""Finalizer of driver, executor and agent pods. It keeps the pod object until its proof of death is
recorded (F14). Also of the ConfigMap that says what a pod's executors may be: it stays as long as
that pod's object (F200).
"""
SETTLE_FINALIZER = f"{GROUP}/settle"
"""Finalizer of HudiTable and HudiWriter. It keeps the object until none of its incarnations can
hold the lock.
"""

LABEL_TABLE = f"{GROUP}/table"
LABEL_WRITER = f"{GROUP}/writer"
LABEL_ATTEMPT = f"{GROUP}/attempt"
LABEL_ROLE = f"{GROUP}/role"
LABEL_DRIVER = f"{GROUP}/driver"
LABEL_AGENT = f"{GROUP}/agent"
LABEL_PRIORITY_CLASS = f"{GROUP}/priority-class"
"""Label of an executor whose podTemplate names a priority class."""
MANAGED = {"app.kubernetes.io/managed-by": "hudi-operator"}
"""The label of everything that the operator makes."""
LABEL_COMPONENT = "app.kubernetes.io/component"

ROLE_DRIVER = "driver"
ROLE_EXECUTOR = "executor"
ROLE_AGENT = "agent"

_TABLE_ID_DIGITS = 32
"""128 bits: the id decides which keys of etcd are a table's, and tenants choose paths. Nobody finds
another path with the id of somebody else's table (F275).
"""
TABLE_ID = rf"[0-9a-f]{{{_TABLE_ID_DIGITS}}}"
"""Regular expression of a table's id, as :func:`table_id` makes it."""
_AGENT = "hudi-agent-"
_AGENT_DIGITS = 32
"""128 bits: nobody finds another access to storage whose agent has the same name (F207)."""
_AGENT_POD = re.compile(rf"{_AGENT}[0-9a-f]{{{_AGENT_DIGITS}}}-[0-9]+")
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):/*(.*)$", re.DOTALL)
_S3_ALIASES = ("s3", "s3n")


def canonical_path(path: str) -> str:
    """Canonical spelling of a base path.

    Scheme in lower case, ``s3``/``s3n`` as ``s3a``, no repeated and no trailing ``/``.

    Bucket and key keep their case. A path without a scheme keeps its leading ``/``.
    """
    match = _SCHEME.match(path.strip())
    if match is None:
        return re.sub(r"/{2,}", "/", path.strip()).rstrip("/")
    scheme = match.group(1).lower()
    if scheme in _S3_ALIASES:
        scheme = "s3a"
    rest = re.sub(r"/{2,}", "/", match.group(2)).strip("/")
    return f"{scheme}://{rest}"


_DEFAULT_PORTS = {"hdfs": ":8020", "abfs": ":80", "abfss": ":443"}


def place(path: str) -> str:
    """The path with host spellings normalized.

    Use it only to tell whether two paths may name the same place, never to access one.

    Hosts and buckets are lower case without a final dot, the scheme's default port is omitted,
    ``abfs`` and ``abfss`` are equal. Two buckets that differ in case only count as one: that
    refuses more than necessary. A name service and its hosts are not recognized as the same.
    """
    scheme, _, rest = canonical_path(path).partition("://")
    authority, slash, folder = rest.partition("/")
    authority = authority.lower().removesuffix(_DEFAULT_PORTS.get(scheme, "\0")).rstrip(".")
    return f"{'abfs' if scheme == 'abfss' else scheme}://{authority}{slash}{folder}"


def overlaps(one: str, other: str) -> bool:
    """True when two base paths may be the same folder, or one may contain the other."""
    first, second = place(one) + "/", place(other) + "/"
    return first.startswith(second) or second.startswith(first)


def path_scheme(path: str) -> str:
    """Scheme of the canonical path; empty when the path has none."""
    return canonical_path(path).partition("://")[0] if "://" in canonical_path(path) else ""


def table_id(path: str) -> str:
    """First 32 hex digits of SHA-256 of the canonical path."""
    return hashlib.sha256(canonical_path(path).encode()).hexdigest()[:_TABLE_ID_DIGITS]


def trial_id(table_uid: str) -> str:
    """Id of the range in which the agent of a HudiTable, by uid, says that it reaches the table.

    It has the form of a table's id, and no path has it: nobody finds a path with this hash.
    """
    return hashlib.sha256(f"trial/{table_uid}".encode()).hexdigest()[:_TABLE_ID_DIGITS]


def driver_pod_name(writer_name: str, writer_uid: str, number: int) -> str:
    """``<writer, at most 40>-<first 8 of uid>-<number>``.

    At most 63 characters, different for a writer that was deleted and recreated.
    """
    return f"{writer_name[:40].rstrip('-.')}-{writer_uid[:8]}-{number}"


SPARK_KEY_SUFFIX = "-spark-key"
"""Suffix of the names of Secrets with a key of Spark's connections."""


def spark_key_name(pod: str) -> str:
    """Secret with the key of the connections between this driver or agent pod and its executors."""
    return f"{pod}{SPARK_KEY_SUFFIX}"


STORAGE_KEY_SUFFIX = "-storage-key"
"""Suffix of the names of Secrets with the storage credentials of one attempt."""


def storage_key_name(pod: str) -> str:
    """Secret with the storage credentials of this driver pod and its executors."""
    return f"{pod}{STORAGE_KEY_SUFFIX}"


def credential_id(table_id: str, attempt: str) -> str:
    """Id by which a broker knows the credentials of an attempt: the same for every request."""
    return "hudi-" + hashlib.sha256(f"{table_id}/{attempt}".encode()).hexdigest()[:40]


def driver_number(pod_name: str) -> int | None:
    """Attempt number at the end of a driver pod's name.

    None when it is not the name of a driver pod.
    """
    tail = pod_name.rpartition("-")[2]
    return int(tail) if tail.isdigit() else None


def attempt_id(namespace: str, driver_pod: str) -> str:
    """Attempt as etcd knows it: ``<namespace>.<driver pod name>``."""
    return f"{namespace}.{driver_pod}"


def split_attempt(attempt: str) -> tuple[str, str]:
    """``(namespace, pod name)`` of an attempt id; a namespace never contains a dot."""
    namespace, _, pod = attempt.partition(".")
    return namespace, pod


def agent_name(*, shard: int = 0, **access: Any) -> str:
    """Name of an agent that serves tables with this access to storage, see :func:`agent_key`.

    Tables with equal access in one namespace share their agents: ``shard`` is the number of one
    among them, and the first one is 0.
    """
    return agent_of_key(agent_key(**access), shard)


def agent_key(
    *,
    namespace: str,
    service_account: str,
    secret_refs: Sequence[Mapping[str, str]],
    storage_options: Mapping[str, str],
    image: str,
    own: Mapping[str, Any] | None = None,
    callback_secret: str = "",
    pull_secrets: Sequence[str] = (),
) -> str:
    """An access to storage, from which the names of its agents are made: JSON, a list.

    ``own``: the table that has an agent of its own, and its settings for that agent's pods; None:
    the table shares its agent. ``callback_secret``: name of the Secret for a receiver of commits,
    which is mounted into the agent's pod; empty when there is none.
    """
    access: list[Any] = [
        namespace,
        service_account,
        sorted([r["name"], r["as"], *([r["prefix"]] if r.get("prefix") else [])] for r in secret_refs),
        dict(storage_options),
        image,
    ]
    access += [*([] if own is None else [own]), *([callback_secret] if callback_secret else [])]
    access += [{"imagePullSecrets": sorted(pull_secrets)}] if pull_secrets else []
    return json.dumps(access, sort_keys=True, separators=(",", ":"))


def agent_of_key(key: str, shard: int) -> str:
    """Name of one of the agents with the access to storage of :func:`agent_key`."""
    named = f'{key[:-1]},{{"shard":{shard}}}]' if shard else key
    return f"{_AGENT}{hashlib.sha256(named.encode()).hexdigest()[:_AGENT_DIGITS]}"


def is_agent_pod(pod: str) -> bool:
    """Whether a pod's name is one of an agent's."""
    return _AGENT_POD.fullmatch(pod) is not None


def agent_pod_name(agent: str, generation: int) -> str:
    """Pod of one generation of an agent."""
    return f"{agent}-{generation}"


def common_labels(component: str) -> dict[str, str]:
    """Labels that every object made by the operator carries."""
    return {
        "app.kubernetes.io/name": "hudi",
        **MANAGED,
        LABEL_COMPONENT: component,
    }


def driver_labels(*, table: str, writer: str, number: int, driver_pod: str) -> dict[str, str]:
    """Labels of a driver pod."""
    return {
        **common_labels(ROLE_DRIVER),
        LABEL_TABLE: label_value(table),
        LABEL_WRITER: label_value(writer),
        LABEL_ATTEMPT: str(number),
        LABEL_ROLE: ROLE_DRIVER,
        LABEL_DRIVER: driver_pod,
    }


def executor_labels(
    *, table: str, writer: str, number: int, driver_pod: str, priority_class: str = ""
) -> dict[str, str]:
    """Labels of the executors of a driver."""
    return {
        **driver_labels(table=table, writer=writer, number=number, driver_pod=driver_pod),
        LABEL_COMPONENT: ROLE_EXECUTOR,
        LABEL_ROLE: ROLE_EXECUTOR,
        **_class_label(priority_class),
    }


def _class_label(priority_class: str) -> dict[str, str]:
    return {LABEL_PRIORITY_CLASS: label_value(priority_class)} if priority_class else {}


def agent_labels(*, agent: str, generation: int, table: str = "") -> dict[str, str]:
    """Labels of an agent pod.

    ``table`` is set only for a table's own agent: any other agent serves several tables.
    """
    labels = {
        **common_labels(ROLE_AGENT),
        LABEL_ROLE: ROLE_AGENT,
        LABEL_AGENT: agent,
        LABEL_ATTEMPT: str(generation),
    }
    return {**labels, LABEL_TABLE: label_value(table)} if table else labels


def agent_executor_labels(*, table: str, generation: int, agent_pod: str, priority_class: str = "") -> dict[str, str]:
    """Labels of the executors of an agent of ``table``'s own.

    The agent's name is omitted, because that label identifies agents.
    """
    return {
        **common_labels(ROLE_EXECUTOR),
        LABEL_TABLE: label_value(table),
        LABEL_ATTEMPT: str(generation),
        LABEL_ROLE: ROLE_EXECUTOR,
        LABEL_DRIVER: agent_pod,
        **_class_label(priority_class),
    }


def label_value(name: str) -> str:
    """A name as a label value: label values are limited to 63 characters, object names are not."""
    if len(name) <= 63:
        return name
    # The operator finds a table's pods by it, so it has as many bits as an id (F275).
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{name[:30].rstrip('-.')}-{digest}"
