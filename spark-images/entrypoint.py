"""Entry point of every pod that runs Spark; the first argument is the role.

Python and no shell: a shell would take code from variables (`BASH_ENV`, exported functions) before
its first line (F131). Spark's own `bin/spark-submit`, by which Python starts the JVM, still is one;
the operator lets nobody set the variables that it looks at.

A platform may start the pod as a user that the image does not know (OpenShift). Hadoop logs in by
the user's name and fails without one, so such a user gets the name of the image's own.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping, Sequence

MODULES = {name: f"hudi_runtime.{name}" for name in ("writer", "agent", "audit")}
USAGE = "usage: writer | agent | executor | audit PATH | COMMAND..."
MASTER = "-Dspark.master=k8s://https://kubernetes.default.svc"
"""Spark reads the key of its connections from a file only where it knows its master to be
Kubernetes, and does not tell an executor before the first connection (F150)."""
ACCOUNTS = "/tmp/passwd"
BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"


def command(arguments: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Command to run instead of this process. Raises KeyError for a missing variable."""
    role, *others = arguments
    if role in MODULES:
        return ["python3", "-m", MODULES[role], *others]
    return executor(environ) if role == "executor" else [role, *others]


def executor(environ: Mapping[str, str]) -> list[str]:
    """As Spark's kubernetes/dockerfiles/spark/entrypoint.sh, which pyspark leaves out."""
    options: list[str] = []
    while f"SPARK_JAVA_OPT_{len(options)}" in environ:
        options.append(environ[f"SPARK_JAVA_OPT_{len(options)}"])
    memory = environ["SPARK_EXECUTOR_MEMORY"]
    configuration = environ.get("SPARK_CONF_DIR", "/opt/spark/conf")
    # -I leaves out the folder of this file, which has the runtime.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from hudi_runtime.process import class_archive

    mapped, first = class_archive.of_image(class_archive.FOLDER)
    path = [first, environ.get("SPARK_CLASSPATH", ""), configuration, f"{environ['SPARK_HOME']}/jars/*"]
    said = {
        "--driver-url": "SPARK_DRIVER_URL",
        "--executor-id": "SPARK_EXECUTOR_ID",
        "--cores": "SPARK_EXECUTOR_CORES",
        "--app-id": "SPARK_APPLICATION_ID",
        "--hostname": "SPARK_EXECUTOR_POD_IP",
        "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
        "--podName": "SPARK_EXECUTOR_POD_NAME",
    }
    java = [f"{environ['JAVA_HOME']}/bin/java", *mapped, *options, MASTER, f"-Xms{memory}", f"-Xmx{memory}"]
    backend = ["-cp", ":".join(filter(None, path)), BACKEND]
    return [*java, *backend, *(part for name, variable in said.items() for part in (name, environ[variable]))]


def named(user: int, group: int) -> dict[str, str]:
    """Variables by which programs find a name and a home for a user that the system does not know.

    Empty for one that it knows.
    """
    try:
        pwd.getpwuid(user)
    except KeyError:
        pass
    else:
        return {}
    with open("/etc/passwd") as known, open(ACCOUNTS, "w") as accounts:
        accounts.write(known.read())
        accounts.write(f"spark:x:{user}:{group}:a user of the platform:/tmp:/usr/sbin/nologin\n")
    return {
        "LD_PRELOAD": "libnss_wrapper.so",
        "NSS_WRAPPER_PASSWD": ACCOUNTS,
        "NSS_WRAPPER_GROUP": "/etc/group",
    }


if __name__ == "__main__":
    if len(sys.argv) < 2 or not sys.argv[1]:
        print(USAGE, file=sys.stderr)
        sys.exit(2)
    os.environ.update(named(os.getuid(), os.getgid()))
    wanted = command(sys.argv[1:], os.environ)
    os.execvp(wanted[0], wanted)  # noqa: S606 - no shell is what this file is for
