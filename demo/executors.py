"""Work of each executor pod, from Spark's event log: finished tasks, and data files by
their write token.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from demo.lake import DataFile


@dataclass
class Executor:
    """One executor pod of one application."""

    pod: str
    host: str = ""
    tasks: set[str] = field(default_factory=set)
    """Finished tasks as partition-stage-task, which is Hudi's write token."""
    files: list[DataFile] = field(default_factory=list)


def from_event_log(text: str, files: list[DataFile]) -> list[Executor]:
    """Executors of the application with their finished tasks, and those of ``files`` that these
    tasks wrote.
    """
    prefix, application = "", ""
    found: dict[str, Executor] = {}
    for line in text.splitlines():
        event = json.loads(line)
        kind = event.get("Event")
        if kind == "SparkListenerEnvironmentUpdate":
            prefix = event["Spark Properties"].get("spark.kubernetes.executor.podNamePrefix", "")
        elif kind == "SparkListenerApplicationStart":
            application = event.get("App ID", "")
        elif kind == "SparkListenerExecutorAdded" and event["Executor ID"] != "driver":
            name = event["Executor ID"]
            found[name] = Executor(f"{prefix or application}-exec-{name}", event["Executor Info"].get("Host", ""))
        elif kind == "SparkListenerTaskEnd" and event.get("Task End Reason", {}).get("Reason") == "Success":
            info = event["Task Info"]
            if info["Executor ID"] in found:
                found[info["Executor ID"]].tasks.add(
                    f"{info.get('Partition ID', info['Index'])}-{event['Stage ID']}-{info['Task ID']}"
                )
    for executor in found.values():
        executor.files = [file for file in files if file.token in executor.tasks]
    return list(found.values())
