"""What a user may say about the pods of drivers, of executors, and of an agent of a table's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hudi_operator.api.fields import SpecError, get, string_map, strings

JsonDict = dict[str, Any]


@dataclass(frozen=True)
class PodSettings:
    """What a user may say about driver or executor pods. ``memory`` is Spark's (``1g``), ``resources`` Kubernetes', ``java_options`` the JVM's."""

    cores: int = 1
    memory: str = "1g"
    instances: int = 1
    resources: JsonDict = field(default_factory=dict)
    env: tuple[JsonDict, ...] = ()
    java_options: tuple[str, ...] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[JsonDict, ...] = ()


@dataclass(frozen=True)
class OwnAgent:
    """An agent that serves one HudiTable alone. Its pod is Spark's driver; with ``executors.instances`` 0 it computes by itself."""

    pod: PodSettings
    executors: PodSettings

    def key(self, table: str) -> JsonDict:
        """What the agent's name stands for, as JSON: other settings, or another table, are another agent."""
        return {"table": table, **asdict(self)}


def pod_settings(raw: JsonDict, where: str, *, instances: int) -> PodSettings:
    """Read ``driver`` or ``executors``. Raises SpecError."""
    return PodSettings(
        cores=get(raw, "cores", int, 1, where),
        memory=get(raw, "memory", str, "1g", where),
        instances=get(raw, "instances", int, instances, where),
        resources=get(raw, "resources", dict, {}, where),
        env=_env(raw, where),
        java_options=_java_options(raw, where),
        node_selector=string_map(raw, "nodeSelector", where),
        tolerations=tuple(get(raw, "tolerations", list, [], where)),
    )


def own_agent(spec: JsonDict) -> OwnAgent | None:
    """Read ``spec.agent`` of a HudiTable; None: the table shares an agent. Raises SpecError."""
    raw, where = spec.get("agent"), "spec.agent"
    if raw is None:
        return None
    executors = get(raw, "executors", dict, {}, where)
    return OwnAgent(pod_settings(raw, where, instances=1), pod_settings(executors, f"{where}.executors", instances=0))


_PATHS = "XX:(HeapDumpPath|ErrorFile)=[A-Za-z0-9._/%-]+"
_WORDS = "XX:(NativeMemoryTracking|CompilationMode|ShenandoahGCMode|ShenandoahGCHeuristics)=[A-Za-z-]+"
_NUMBERS = "XX:[A-Za-z0-9]+=[0-9]+([.][0-9]+)?[kKmMgGtT]?"
JAVA_OPTION = f"-(XX:[+-][A-Za-z0-9]+|{_NUMBERS}|{_PATHS}|{_WORDS}|Xss[0-9]+[kKmM]|Xlog:[A-Za-z0-9+*=,]+|Xint)"
"""What the CRDs allow. Not a path in general: the JVM reads more options from some (VMOptionsFile, Flags), code from others, and runs a few (F56)."""
ENV_NAME = "[A-Za-z_][A-Za-z0-9_]*"
OWNED_ENV = (
    "(HUDI_.*|SPARK_.*|HADOOP_.*|JAVA_.*|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|LD_.*|PYTHON.*|PYSPARK_.*|PATH|POD_.*|NODE_NAME|TZ"
    "|AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN))"
)
"""Variables that decide what a pod is; in any case of letters."""


def _java_options(raw: JsonDict, where: str) -> tuple[str, ...]:
    options = strings(raw, "javaOptions", where)
    for option in options:
        if not re.fullmatch(JAVA_OPTION, option):
            allowed = "-XX:+NAME, -XX:-NAME, -XX:NAME=NUMBER, -XX:HeapDumpPath= and -XX:ErrorFile=, -Xss, -Xlog:, -Xint"
            raise SpecError(f"{where}.javaOptions: {option!r} is not a JVM option that may be set here: {allowed}")
    return options


def _env(raw: JsonDict, where: str) -> tuple[JsonDict, ...]:
    """Variables by name and plain value. Names are looked at once more, for a CRD of another release may have let one pass."""
    variables = get(raw, "env", list, [], where)
    for variable in variables:
        name = str(variable.get("name") or "") if isinstance(variable, dict) else ""
        if not re.fullmatch(ENV_NAME, name):
            raise SpecError(f"{where}.env: {name!r} is not the name of an environment variable")
        if re.fullmatch(OWNED_ENV, name.upper()):
            raise SpecError(f"{where}.env: {name!r} is set by the operator and cannot be set here")
        if set(variable) - {"name", "value"}:
            raise SpecError(f"{where}.env: {name!r} has more than a name and a plain value")
    return tuple(variables)
