"""Start and end of the Spark session, and the state of its JVM process.

Configuration comes from `SPARK_CONF_DIR/spark-defaults.conf` and
`HUDI_CONF_DIR/hudi-defaults.conf`, both rendered by the operator. Safety depends on no setting of
this module.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from hudi_contract.environment import PROGRAM
from hudi_runtime.process import class_archive, dependencies, jvm_names


def start(name: str, *, program: bool = False, brought: dependencies.Brought | None = None) -> SparkSession:
    """Start the session of this process.

    It has what only the pod knows: its address, and the class archive of its image.

    `program`: user code may write rows by itself, so the files are checked (F212, F281).

    `brought`: what that code brings along. Raises RuntimeFailure when it cannot be loaded.
    """
    os.environ[PROGRAM] = str(program).lower()
    settings = class_archive.settings()
    # Executors reach the driver there.
    if address := os.environ.get("POD_IP"):
        settings["spark.driver.host"] = address
    loaded = dependencies.Loaded({}, ()) if brought is None or brought.nothing else _load(settings, brought)
    builder = SparkSession.builder.appName(name)
    for key, value in {**settings, **loaded.settings}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    jvm: Any = spark.sparkContext._jvm
    jvm_names.keep(jvm)
    for path in loaded.py_files:
        spark.sparkContext.addPyFile(path)
    _report_unused_archive()
    return spark


def _load(settings: dict[str, str], brought: dependencies.Brought) -> dependencies.Loaded:
    """In the JVM that the SparkContext is made in next."""
    conf = SparkConf()
    for key, value in settings.items():
        conf.set(key, value)
    SparkContext._ensure_initialized(conf=conf)
    return dependencies.load(SparkContext._jvm, brought)


def _report_unused_archive() -> None:
    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)  # spark-submit, which the JVM has replaced
    if process is not None and (message := class_archive.unused(process.pid)):
        print(message, file=sys.stderr, flush=True)


def stop(*, wait_seconds: float) -> None:
    """End the session, so that executors end in order and an event log is completed.

    Waits at most `wait_seconds`.
    """

    def end() -> None:
        context: Any = SparkContext._active_spark_context  # not the active session: that one belongs to a thread
        if context is not None:
            with contextlib.suppress(Exception):  # a JVM that is gone needs no stop
                context.stop()

    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    thread.join(wait_seconds)


def jvm_exit_code(*, wait_seconds: float = 0.0) -> int | None:
    """Exit code of the JVM, waiting at most `wait_seconds` for it; None while it runs.

    A halt by the Java session is 15 or 16.
    """
    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is None:
        return None
    try:
        return int(process.wait(timeout=wait_seconds))
    except subprocess.TimeoutExpired:
        return None


def interruptible(spark: SparkSession) -> None:
    """Let tasks be interrupted when their jobs are cancelled.

    This concerns the jobs that this thread starts from now on.
    """
    spark.sparkContext.setLocalProperty("spark.job.interruptOnCancel", "true")


def cancel_jobs(spark: SparkSession) -> None:
    """Ask every Spark job of this driver to stop; a batch driver has no work except its write."""
    if spark.sparkContext._jsc is not None:
        spark.sparkContext.cancelAllJobs()


IDLE_SECONDS = 60
"""Time that tasks of a cancelled write have to end."""


def await_idle(spark: SparkSession, seconds: float, *, group: str = "") -> bool:
    """Wait until no executor that the driver knows runs a task; False on timeout.

    Spark reports a cancelled job as ended while its tasks still run. The scheduler is asked, which
    knows of the end of a task first; what Spark's status store says comes later, and may not come
    while nothing else happens. An executor that is not reached, and is not lost yet, counts as one
    that runs a task: the scheduler has forgotten its tasks (F598). Lost executors are not counted:
    see :func:`lost_executors`.

    `group`: only the tasks of this job group count, in a JVM that works for others as well.
    """
    end = time.monotonic() + seconds
    # In this order: whose tasks the scheduler has just forgotten is not reached any more
    while (_at_work(spark) and (not group or _group_at_work(spark, group))) or _has_unreached(spark):
        if time.monotonic() >= end:
            return False
        time.sleep(0.1)
    return True


def _has_unreached(spark: SparkSession) -> bool:
    """Whether there is an executor that the driver does not reach and has not given up yet."""
    context: Any = spark.sparkContext
    if context._jsc is None:
        return False
    return bool(context._jvm.io.hudioperator.session.LostExecutors.hasUnreached(context._jsc.sc()))


def _group_at_work(spark: SparkSession, group: str) -> bool:
    """Whether a task of a job group runs, as the scheduler knows it: its status store hears later.

    Each task names the task set that it was launched for, with the properties of its job (F636).
    """
    context: Any = spark.sparkContext
    if context._jsc is None:
        return False
    # Not as a map: py4j would look up its keys as smaller numbers than they are, and find nothing
    running = context._jsc.sc().taskScheduler().taskIdToTaskSetManager().elements()
    while running.hasMoreElements():
        job = running.nextElement().taskSet().properties()
        if job is not None and job.getProperty("spark.jobGroup.id") == group:
            return True
    return False


def _at_work(spark: SparkSession) -> dict[str, int]:
    """The executors that run tasks, and how many each."""
    context: Any = spark.sparkContext
    if context._jsc is None:
        return {}
    running = context._jsc.sc().taskScheduler().runningTasksByExecutors().iterator()
    found = {}
    while running.hasNext():
        executor = running.next()
        found[str(executor._1())] = int(executor._2())
    return {executor: tasks for executor, tasks in found.items() if tasks}


def running_tasks(spark: SparkSession) -> str:
    """The tasks that run, for a message: executor, stage, task and attempt of each.

    The stacks of their threads are written to stderr.
    """
    executors = _at_work(spark)
    context: Any = spark.sparkContext
    said = ["an executor is not reached, and Spark has not given it up yet"] if _has_unreached(spark) else []
    for executor, number in executors.items():
        said.append(f"executor {executor} runs {number}")
        with contextlib.suppress(Exception):  # it helps to look for the cause, and nothing depends on it
            said += _tasks_of(context, executor)
            _print_threads(context, executor)
    return ", ".join(said)


def _tasks_of(context: Any, executor: str) -> list[str]:
    """As Spark's status store knows them."""
    store, said = context._jsc.sc().statusStore(), []
    stages = store.stageList(None, False, False, context._gateway.new_array(context._jvm.double, 0), None)
    for stage in (stages.apply(index) for index in range(stages.size())):
        if not stage.numActiveTasks():
            continue
        tasks = store.taskList(stage.stageId(), stage.attemptId(), MAX_TASKS)
        for task in (tasks.apply(index) for index in range(tasks.size())):
            if task.status() == "RUNNING" and task.executorId() == executor:
                said.append(
                    f"task {task.taskId()} (number {task.index()} of stage {stage.stageId()}.{stage.attemptId()}, "
                    f"attempt {task.attempt()}, since {task.launchTime().toInstant()})"
                )
    return said


def _print_threads(context: Any, executor: str) -> None:
    threads = context._jsc.sc().getExecutorThreadDump(executor)
    if threads.isDefined():
        for thread in threads.get():
            if thread.threadName().startswith("Executor task launch worker"):
                print(f"{executor}: {thread.toString()}", file=sys.stderr, flush=True)


MAX_TASKS = 1000
"""Limit on the tasks of a stage that are read for a message."""


def lost_executors(spark: SparkSession) -> bool:
    """Whether the driver has lost an executor, or does not reach one; also True if unknown.

    A lost executor may still run and write until the end of its pod is proven (F4). The Java module
    counts, by events that nobody drops; Spark's status store misses losses in large jobs (F559). It
    may wait for two seconds.
    """
    context: Any = spark.sparkContext
    if context._jsc is None:
        return True
    return bool(context._jvm.io.hudioperator.session.LostExecutors.lost(context._jsc.sc()))
