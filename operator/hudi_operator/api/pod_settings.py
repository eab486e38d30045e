"""User settings for the pods of drivers, of executors, and of a table's own agent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hudi_operator.api.fields import SpecError, number, quantity, record, records, size, text, text_map, texts, tree

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
    env: tuple[JsonDict, ...] = records(Variable, at_most=32, plain=True, by="name")
    java_options: tuple[str, ...] = texts(at_most=32, length=(None, 256))
    node_selector: Mapping[str, str] = text_map(at_most=16, longest=63)
    tolerations: tuple[JsonDict, ...] = records(Toleration, at_most=16, plain=True)
    pod_template: JsonDict = tree()
    """More of the pod, see :mod:`hudi_operator.api.pod_template`."""


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


_SWITCHES = (
    "AlwaysPreTouch",
    "CrashOnOutOfMemoryError",
    "DisableExplicitGC",
    "ExitOnOutOfMemoryError",
    "HeapDumpOnOutOfMemoryError",
    "OptimizeStringConcat",
    "ParallelRefProcEnabled",
    "PerfDisableSharedMem",
    "PrintCommandLineFlags",
    "PrintFlagsFinal",
    "ScavengeBeforeFullGC",
    "ShowCodeDetailsInExceptionMessages",
    "TieredCompilation",
    "UnlockExperimentalVMOptions",
    "UseAdaptiveSizePolicy",
    "UseCompressedClassPointers",
    "UseCompressedOops",
    "UseContainerSupport",
    "UseCountedLoopSafepoints",
    "UseDynamicNumberOfGCThreads",
    "UseG1GC",
    "UseGCOverheadLimit",
    "UseNUMA",
    "UseParallelGC",
    "UseSerialGC",
    "UseShenandoahGC",
    "UseStringDeduplication",
    "UseThreadPriorities",
    "UseTransparentHugePages",
    "UseZGC",
    "ZUncommit",
)
_AMOUNTS = (
    "ActiveProcessorCount",
    "CICompilerCount",
    "CompressedClassSpaceSize",
    "ConcGCThreads",
    "G1HeapRegionSize",
    "G1MaxNewSizePercent",
    "G1MixedGCCountTarget",
    "G1NewSizePercent",
    "G1PeriodicGCInterval",
    "G1ReservePercent",
    "GCTimeRatio",
    "InitialCodeCacheSize",
    "InitialRAMPercentage",
    "InitiatingHeapOccupancyPercent",
    "MaxDirectMemorySize",
    "MaxGCPauseMillis",
    "MaxHeapFreeRatio",
    "MaxInlineSize",
    "MaxMetaspaceSize",
    "MaxNewSize",
    "MaxRAMPercentage",
    "MaxTenuringThreshold",
    "MetaspaceSize",
    "MinHeapFreeRatio",
    "MinRAMPercentage",
    "NewRatio",
    "NewSize",
    "ParallelGCThreads",
    "ReservedCodeCacheSize",
    "SoftRefLRUPolicyMSPerMB",
    "SurvivorRatio",
    "ThreadStackSize",
    "TieredStopAtLevel",
    "ZCollectionInterval",
    "ZUncommitDelay",
)
_PATHS = "XX:(HeapDumpPath|ErrorFile)=/tmp(/[A-Za-z0-9_%-][A-Za-z0-9._%-]*)+"
_WORDS = "XX:(NativeMemoryTracking|ShenandoahGCMode|ShenandoahGCHeuristics)=[A-Za-z-]+"
_NUMBERS = f"XX:({'|'.join(_AMOUNTS)})=[0-9]+([.][0-9]+)?[kKmMgGtT]?"
JAVA_OPTION = (
    f"-(XX:[+-]({'|'.join(_SWITCHES)})|{_NUMBERS}|{_PATHS}|{_WORDS}|Xss[0-9]+[kKmM]|Xlog:[A-Za-z0-9+*=,]+|Xint)"
)
"""JVM options that the CRDs allow, by name: memory, collectors, threads, and their logging. The JVM
reads further options from some files (VMOptionsFile, Flags; a number names one, too), code from
others, and runs commands (F56, F131).
"""
ALLOWED_JAVA = (
    "-XX: options for memory, garbage collection and threads by name, -XX:HeapDumpPath= and -XX:ErrorFile= below "
    "/tmp, -Xss, -Xlog:, -Xint"
)
ENV_NAME = "[A-Za-z_][A-Za-z0-9_]*"
OWNED_ENV = (
    "(HUDI_.*|SPARK_.*|HADOOP_.*|HIVE_.*|YARN_.*|CLASSPATH|JAVA_.*|_JAVA_.*|JDK_.*|JRE_.*|JVM_.*|.*_JAVA_OPTIONS"
    "|LD_.*|GLIBC_.*|MALLOC_.*|GCONV_PATH|LOCPATH|NLSPATH|RES_OPTIONS|HOSTALIASES|LOCALDOMAIN|NIS_PATH|TZDIR"
    "|PYTHON.*|PYSPARK_.*|PY4J_.*|ARROW_.*|BASH.*|ENV|SHELL.*|PS[0-9]|PROMPT_COMMAND|IFS|CDPATH|GLOBIGNORE"
    "|PATH|HOME|PWD|OLDPWD|USER|LOGNAME|TMP|TMPDIR|TEMP|TINI_.*|OPENSSL_.*|SSL_.*|GRPC_.*|LOG4J_.*|POD_.*"
    "|NODE_NAME|TZ|_|KUBERNETES_.*|KUBECONFIG"
    "|AWS_(ACCESS_KEY.*|SECRET.*|SESSION_TOKEN|SECURITY_TOKEN|PROFILE|.*CONFIG_FILE|.*CREDENTIALS.*|CONTAINER_.*"
    "|ROLE_.*|WEB_IDENTITY_.*|CA_BUNDLE|ENDPOINT_URL.*))"
)
"""Variables that define a pod's role, or from which the loader, the C library, a shell, Python or
the JVM take code, options or a place (F131): whole classes of names, compared case-insensitively.
"""
ENV_PREFIX = "^[A-Za-z][A-Za-z0-9_]*_$"
"""A prefix for the keys of a Secret as variables."""
_RESERVED = (
    "HUDI_",
    "SPARK_",
    "HADOOP_",
    "HIVE_",
    "YARN_",
    "CLASSPATH",
    "JAVA_",
    "_JAVA_",
    "JDK_",
    "JRE_",
    "JVM_",
    "LD_",
    "GLIBC_",
    "MALLOC_",
    "GCONV_PATH",
    "LOCPATH",
    "NLSPATH",
    "RES_OPTIONS",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "NIS_PATH",
    "TZDIR",
    "PYTHON",
    "PYSPARK_",
    "PY4J_",
    "ARROW_",
    "BASH",
    "SHELL",
    "PROMPT_COMMAND",
    "TMPDIR",
    "TINI_",
    "OPENSSL_",
    "SSL_",
    "GRPC_",
    "LOG4J_",
    "POD_",
    "NODE_NAME",
    "KUBERNETES_",
    "KUBECONFIG",
    "AWS_",
)
"""Prefix of each class of OWNED_ENV, in a form that another prefix can be compared with."""


def prefix_problem(prefix: str) -> str:
    """Why variables may not begin with this prefix; empty when they may.

    Whatever the Secret's keys are, none of its variables may be one that the operator owns.
    """
    name = prefix.upper()
    taken = next((each for each in _RESERVED if name.startswith(each) or each.startswith(name)), "")
    return f"{prefix!r}: variables that begin with {taken} are the operator's" if taken else ""


def check_pods(settings: PodSettings, where: str) -> None:
    """Raise SpecError for a JVM option or a variable that may not be set.

    A CRD of another release may have accepted it.
    """
    for option in settings.java_options:
        if not re.fullmatch(JAVA_OPTION, option):
            raise SpecError(f"{where}.javaOptions: {option!r} is not a JVM option that may be set here: {ALLOWED_JAVA}")
    for variable in settings.env:
        name = str(variable["name"])
        if not re.fullmatch(ENV_NAME, name):
            raise SpecError(f"{where}.env: {name!r} is not the name of an environment variable")
        if re.fullmatch(OWNED_ENV, name.upper()):
            raise SpecError(f"{where}.env: {name!r} is set by the operator and cannot be set here")
        if set(variable) - {"name", "value"}:
            raise SpecError(f"{where}.env: {name!r} has more than a name and a plain value")
