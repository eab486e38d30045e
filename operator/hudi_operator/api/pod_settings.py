"""User settings for the pods of drivers, of executors, and of a table's own agent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hudi_operator.api.fields import SpecError, number, quantity, record, records, size, text, text_map, texts

JsonDict = dict[str, Any]


@dataclass(frozen=True)
class Amounts:
    """Requests or limits of a container."""

    cpu: int | str | None = quantity()
    memory: int | str | None = quantity()
    ephemeral_storage: int | str | None = quantity(at="ephemeral-storage")


@dataclass(frozen=True)
class Resources:
    """Requests and limits of a container."""

    requests: Amounts = record(Amounts)
    limits: Amounts = record(Amounts)


@dataclass(frozen=True)
class Variable:
    """An environment variable with a plain value."""

    name: str = text(required=True, at_least=1, at_most=128)
    value: str = text(required=True, at_most=4096)


@dataclass(frozen=True)
class Toleration:
    """A taint that a pod tolerates."""

    key: str = text(at_most=317)
    operator: str = text(choices=("Exists", "Equal"))
    value: str = text(at_most=63)
    effect: str = text(choices=("NoSchedule", "PreferNoSchedule", "NoExecute"))
    toleration_seconds: int | None = number(unset=None, at_least=0, form="int64")


@dataclass(frozen=True)
class PodSettings:
    """User settings for a pod.

    ``memory`` is the JVM's heap, ``resources`` are the container's, ``java_options`` the JVM's.
    """

    cores: int = number(1, at_least=1, at_most=64)
    memory: str = size("1Gi")
    resources: JsonDict = record(Resources, plain=True)
    env: tuple[JsonDict, ...] = records(Variable, at_most=32, plain=True)
    java_options: tuple[str, ...] = texts(at_most=32, length=(None, 256))
    node_selector: Mapping[str, str] = text_map(at_most=16, longest=63)
    tolerations: tuple[JsonDict, ...] = records(Toleration, at_most=16, plain=True)


@dataclass(frozen=True)
class ExecutorSettings(PodSettings):
    """The same for executors. ``instances`` 0: the driver, or the agent, computes locally."""

    instances: int = number(0, at_least=0, at_most=200)


@dataclass(frozen=True)
class OwnAgent:
    """An agent that serves a single HudiTable. Its pod is the Spark driver."""

    pod: PodSettings = record(PodSettings, at="")
    executors: ExecutorSettings = record(ExecutorSettings)

    def key(self, table: str) -> JsonDict:
        """Identity of the agent, as JSON.

        Other settings, or another table, give another agent name.
        """
        return {"table": table, **asdict(self)}


_PATHS = "XX:(HeapDumpPath|ErrorFile)=[A-Za-z0-9._/%-]+"
_WORDS = "XX:(NativeMemoryTracking|CompilationMode|ShenandoahGCMode|ShenandoahGCHeuristics)=[A-Za-z-]+"
_NUMBERS = "XX:[A-Za-z0-9]+=[0-9]+([.][0-9]+)?[kKmMgGtT]?"
JAVA_OPTION = f"-(XX:[+-][A-Za-z0-9]+|{_NUMBERS}|{_PATHS}|{_WORDS}|Xss[0-9]+[kKmM]|Xlog:[A-Za-z0-9+*=,]+|Xint)"
"""JVM options that the CRDs allow. Options with a path are excluded in general: the JVM reads
further options from some files (VMOptionsFile, Flags), code from others, and runs a few (F56).
"""
ENV_NAME = "[A-Za-z_][A-Za-z0-9_]*"
OWNED_ENV = (
    "(HUDI_.*|SPARK_.*|HADOOP_.*|JAVA_.*|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|LD_.*|PYTHON.*|PYSPARK_.*|PATH|POD_.*|"
    "NODE_NAME|TZ"
    "|AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN))"
)
"""Variables that define a pod's role, compared case-insensitively."""


def check_pods(settings: PodSettings, where: str) -> None:
    """Raise SpecError for a JVM option or a variable that may not be set.

    A CRD of another release may have accepted it.
    """
    for option in settings.java_options:
        if not re.fullmatch(JAVA_OPTION, option):
            allowed = "-XX:+NAME, -XX:-NAME, -XX:NAME=NUMBER, -XX:HeapDumpPath= and -XX:ErrorFile=, -Xss, -Xlog:, -Xint"
            raise SpecError(f"{where}.javaOptions: {option!r} is not a JVM option that may be set here: {allowed}")
    for variable in settings.env:
        name = str(variable["name"])
        if not re.fullmatch(ENV_NAME, name):
            raise SpecError(f"{where}.env: {name!r} is not the name of an environment variable")
        if re.fullmatch(OWNED_ENV, name.upper()):
            raise SpecError(f"{where}.env: {name!r} is set by the operator and cannot be set here")
        if set(variable) - {"name", "value"}:
            raise SpecError(f"{where}.env: {name!r} has more than a name and a plain value")
