"""A trial: whether this agent's credentials reach a path that other namespaces may use, too (F617).

The operator makes no gate for such a path, and admits nobody at its keys, before the agent has said
so here. The trial's range of etcd is the HudiTable's own. A trial changes nothing that exists.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from hudi_contract import environment, naming
from hudi_contract.assignment import TrialRecord
from hudi_contract.reports import TimelineReport
from hudi_runtime.agent import facts
from hudi_runtime.agent.keys import AgentKeys
from hudi_runtime.agent.preparation import PROBE_SETTINGS
from hudi_runtime.agent.reports import Reports
from hudi_runtime.agent.trouble import Trouble, told
from hudi_runtime.process.errors import classify, environment_secrets, record_message
from hudi_runtime.process.etcd import Etcd
from hudi_runtime.table.hudi import PROPERTIES
from hudi_runtime.table.storage import Storage

FOLDER = ".hudi-operator-trial"


def reach(spark: SparkSession, path: str) -> None:
    """Read the table's properties if there is a table; create a file in its folder and delete it.

    Read-only access does not reserve the path. Raises the store's error.
    """
    storage = Storage(spark, path, settings=PROBE_SETTINGS)
    try:
        name = next((name for name in PROPERTIES if storage.exists(name)), "")
        if name:
            storage.read(name)
        try:
            storage.write(f"{FOLDER}/{uuid.uuid4()}", "")
        finally:
            storage.delete(FOLDER, recursive=True)
    finally:
        storage.close()


class Trial:
    """One trial; it has no session and holds nothing, so it may end at any time."""

    must_end = False
    fenced = False
    clock_refused = ""
    idle = True

    def __init__(self, spark: SparkSession, value: Mapping[str, Any], *, etcd: Etcd) -> None:
        self.value = dict(value)
        order = TrialRecord.from_json(value)
        self._spark, self._path = spark, order.path
        self._reports = Reports(AgentKeys(etcd, order.id))
        self._trouble = Trouble(order.table)
        self._attempt = naming.attempt_id(
            os.environ.get(environment.POD_NAMESPACE, "default"), os.environ.get(environment.POD_NAME, "agent")
        )
        self.reachable = False

    def step(self) -> None:
        """Try once, when a try is due, and report what came of it. A success is reported again."""
        if self._trouble.rests:
            return
        try:
            if not self.reachable:
                reach(self._spark, self._path)
                self.reachable = True
            self._reports.put(TimelineReport(agent_inc=self._attempt, exists=True))
            self._trouble.over()
        except Exception as error:
            code, message = told(error)
            self._trouble.met(f"{code}: {message}")
            self._report(code, message)

    def _report(self, code: str, message: str) -> None:
        try:
            self.report_error(code, message, exists=False)
        except Exception as error:
            failure = classify(error, secrets=environment_secrets())
            print(f"trial of {self._path}: this cannot be reported: {failure.message}", file=sys.stderr, flush=True)

    def report_error(self, code: str, message: str, *, exists: bool) -> None:
        """Report why the path is not reached."""
        text = record_message(message)
        self._reports.put(facts.error_report(inc=self._attempt, exists=exists, code=code, message=text))

    def fence_stands(self) -> bool:
        """Never: it has no incarnation."""
        return False

    def retire(self, *, gone: bool) -> None:
        """Nothing to end."""

    def cease(self) -> None:
        """Nothing to end."""

    def cancel_service(self) -> None:
        """Nothing to end."""

    def close(self) -> bool:
        """True: the operator has nothing to settle."""
        return True
