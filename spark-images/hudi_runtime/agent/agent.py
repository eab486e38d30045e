"""The agent of a table: `python -m hudi_runtime.agent`.

One warm Spark session, any number of tables.

There is no RPC with the operator: the agent's queue is etcd (`control/agents/<agent>/`, `settle/*`,
Abandoned instants). It never ingests, and never runs a Hudi path that chooses instants by itself.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from hudi_contract import environment
from hudi_contract.job import AgentJob
from hudi_contract.keys import agent_range
from hudi_contract.outcomes import ErrorCode, FailureClass
from hudi_contract.shape import ShapeError
from hudi_runtime.agent.assignment import Assignment
from hudi_runtime.agent.trial import Trial
from hudi_runtime.job import job as job_file
from hudi_runtime.process import spark as sp
from hudi_runtime.process.diagnosis import diagnose
from hudi_runtime.process.errors import RuntimeFailure, environment_secrets, redact
from hudi_runtime.process.etcd import Etcd, unbound
from hudi_runtime.process.result import Tally, write_termination
from hudi_runtime.process.stopping import Stop
from hudi_runtime.services.tasks import Slot

TICK_SECONDS = 1.0
SLOW_STORAGE_SECONDS = 40.0
HAND_OVER_SECONDS = 90.0
"""Seconds for which running work at other tables may continue after the operator has ended this
process's incarnation at one; its pod then has a grace of 120 s.
"""
HAND_OVER_CLOSE_SECONDS = 20.0


class MustEnd(Exception):
    """This process must end.

    Another generation continues when this one and its executors are proven dead.
    """


class ClockRefused(RuntimeFailure, MustEnd):
    """The wall clock of this host is wrong, or was.

    Nothing that this process begins is accepted; the next agent's clock is compared at its
    registration (F414).
    """

    def __init__(self, message: str) -> None:
        super().__init__(FailureClass.CLOCK_SKEW, message)


class Agent:
    """Steps every assigned table about once a second.

    A table that hangs or fails does not block the others.
    """

    def __init__(self, spark: SparkSession, name: str, *, stop: Stop, handing_over: threading.Event) -> None:
        self._spark = spark
        self._name = name
        self._stop = stop
        self._handing_over = handing_over
        self._etcd: Etcd = unbound(spark)
        self._assignments: dict[str, Assignment | Trial] = {}
        self._left: list[Assignment | Trial] = []
        """Assignments of tables that this agent no longer serves; the operator settles their
        incarnations.
        """
        self._running: dict[str, tuple[Future[None], float]] = {}
        self._unread: dict[str, str] = {}
        """The error of each assignment that cannot be read, by table."""
        self._slot = Slot()
        self._pool = ThreadPoolExecutor(
            max_workers=int(os.environ.get(environment.AGENT_THREADS, "4")), thread_name_prefix="table"
        )

    def run(self) -> None:
        """Serve until a stop is requested.

        Raises when the JVM is gone, etcd was set back, the host's clock is wrong, or another
        generation must continue.
        """
        while not self._stopping():
            try:
                self._tick()
            except Exception as error:
                if (
                    sp.jvm_exit_code() is not None
                    or isinstance(error, MustEnd)
                    or ErrorCode.ETCD_SET_BACK in str(error)
                ):
                    raise  # etcd was set back: send nothing more to it; another agent begins with its present content
                # etcd does not answer: nothing can be decided. The Java sessions halt the JVM when
                # this lasts.
                text = redact(str(error), secrets=environment_secrets())[:300]
                print(f"agent {self._name}: {type(error).__name__}: {text}", file=sys.stderr, flush=True)
            if not self._stopping():
                self._stop.wait(TICK_SECONDS)
        if self._handing_over.is_set() or self._fence_stands():
            self._hand_over()
        self._close()

    def _stopping(self) -> bool:
        return self._stop.requested or self._handing_over.is_set()

    def _fence_stands(self) -> bool:
        """Whether this process must end because of one of its tables.

        The fence precedes the signal, and the heartbeat may not have seen it yet.
        """
        try:
            return any(assignment.fence_stands() for assignment in (*self._assignments.values(), *self._left))
        except Exception:
            return False

    def _tick(self) -> None:
        if sp.jvm_exit_code() is not None:
            raise ConnectionError("the JVM has ended")
        if any(assignment.must_end for assignment in self._assignments.values()):
            raise MustEnd(
                "a table service ended after an executor was lost: that executor may still write, so another agent "
                "continues when its end is proven"
            )
        if refused := next((why for each in self._assignments.values() if (why := each.clock_refused)), ""):
            raise ClockRefused(refused)
        if any(assignment.fenced for assignment in (*self._assignments.values(), *self._left)):
            self._handing_over.set()
            return
        known = self._assignments
        wanted = {  # an assignment that cannot be read changes nothing; the operator writes it again
            entry.name: known[entry.name].value if entry.unreadable and entry.name in known else entry.value
            for entry in self._etcd.range(agent_range(self._name))
        }
        for table_id in [
            table_id for table_id in known if table_id not in wanted or wanted[table_id] != known[table_id].value
        ]:
            self._assignments[table_id].retire(gone=table_id not in wanted)
            if self._idle(table_id) and self._assignments[table_id].idle:
                self._leave(table_id)
        for table_id, value in wanted.items():
            if table_id not in self._assignments and not self._take(table_id, value):
                continue
            self._step(table_id, self._assignments[table_id])

    def _take(self, table_id: str, value: Mapping[str, Any]) -> bool:
        """Begin to serve a table.

        False when its assignment cannot be read, which affects no other table.
        """
        try:
            self._assignments[table_id] = (
                Trial(self._spark, value, etcd=self._etcd)
                if value.get("trial") is True
                else Assignment(self._spark, value, etcd=self._etcd, stopping=self._stopping, slot=self._slot)
            )
        except ShapeError as error:
            if self._unread.get(table_id) != str(error):
                print(f"agent {self._name}: table {table_id} is not served: {error}", file=sys.stderr, flush=True)
            self._unread[table_id] = str(error)
            return False
        self._unread.pop(table_id, None)
        return True

    def _idle(self, table_id: str) -> bool:
        running = self._running.get(table_id)
        if running is None:
            return True
        if not running[0].done():
            return False
        del self._running[table_id]
        return True

    def _step(self, table_id: str, assignment: Assignment | Trial) -> None:
        if self._idle(table_id):
            self._running[table_id] = (self._pool.submit(assignment.step), time.monotonic())
            return
        since = self._running[table_id][1]
        if not assignment.reachable and time.monotonic() - since > SLOW_STORAGE_SECONDS:
            message = f"the storage has not answered for {int(SLOW_STORAGE_SECONDS)} seconds"
            assignment.report_error(FailureClass.STORAGE_UNREACHABLE, message, exists=False)

    def _leave(self, table_id: str) -> None:
        assignment = self._assignments.pop(table_id)
        if not assignment.close():
            self._left.append(assignment)

    def _hand_over(self) -> None:
        """The operator ended the incarnation at one table.

        Do nothing more there, and leave each other table when its running work has ended (F48).
        """
        self._handing_over.set()
        print(
            f"agent {self._name}: its incarnation at a table was ended, another agent takes over",
            file=sys.stderr,
            flush=True,
        )
        timer = threading.Timer(HAND_OVER_SECONDS + HAND_OVER_CLOSE_SECONDS, lambda: os._exit(0))
        timer.daemon = True
        timer.start()
        for table_id in [table_id for table_id, assignment in self._assignments.items() if assignment.fence_stands()]:
            self._assignments.pop(table_id).cease()
        end = time.monotonic() + HAND_OVER_SECONDS
        while self._assignments and time.monotonic() < end and sp.jvm_exit_code() is None:
            for table_id in [
                table_id
                for table_id, assignment in self._assignments.items()
                if self._idle(table_id) and assignment.idle
            ]:
                self._leave(table_id)
            time.sleep(TICK_SECONDS)

    def _close(self) -> None:
        self._pool.shutdown(wait=not self._handing_over.is_set())
        for assignment in self._assignments.values():
            assignment.cancel_service()
        self._slot.close()
        for assignment in self._assignments.values():
            try:
                assignment.close()
            except Exception as error:
                print(f"left to the operator to settle: {type(error).__name__}", file=sys.stderr, flush=True)


def agent_name() -> str:
    """The agent's name from job.json."""
    path = Path(os.environ.get(environment.JOB, job_file.DEFAULT_PATH))
    return AgentJob.from_json(json.loads(path.read_text(encoding="utf-8"))).agent


def main() -> int:
    """Serve until SIGTERM (exit code 0), or until the JVM ends."""
    failure = None
    try:
        name = agent_name()
        handing_over = threading.Event()
        stop = Stop(lambda: None if handing_over.is_set() else os._exit(0))
        stop.install()
        Agent(sp.start(name), name, stop=stop, handing_over=handing_over).run()
    except Exception as error:
        failure = diagnose(error)
        print(redact(traceback.format_exc(), secrets=environment_secrets()), file=sys.stderr, flush=True)
    write_termination(Tally(), failure)
    return failure.exit_code if failure else 0
