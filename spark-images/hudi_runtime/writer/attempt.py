"""Driver of one attempt: `python -m hudi_runtime.writer`.

Exit codes and the termination message: docs/design/contracts.md, section 5.
"""

from __future__ import annotations

import functools
import sys
import traceback

from pyspark.sql import SparkSession

from hudi_contract.job import Dependencies
from hudi_contract.words import Stage
from hudi_runtime.job import job as job_file
from hudi_runtime.job import merging
from hudi_runtime.job.options import check_allowed, commit_metadata
from hudi_runtime.process import spark as sp
from hudi_runtime.process.dependencies import Brought
from hudi_runtime.process.diagnosis import diagnose
from hudi_runtime.process.errors import Failure, environment_secrets, redact
from hudi_runtime.process.result import Reporter, Tally, write_termination
from hudi_runtime.process.session import Session
from hudi_runtime.process.stopping import Stop
from hudi_runtime.read import context, files, progress, sources
from hudi_runtime.table.hudi import Table
from hudi_runtime.writer import application, gate, predecessor
from hudi_runtime.writer.commit import Committer
from hudi_runtime.writer.run import Run

STOP_SECONDS = 20.0
"""Time for the end of the Spark session, after the result has been written."""


class Attempt:
    """One attempt with its session, from Starting to Finished."""

    def __init__(self, spark: SparkSession, job: job_file.Job, tally: Tally) -> None:
        self._spark = spark
        self._job = job
        self._tally = tally
        self.must_be_proven_dead = False
        self._session = Session.current(spark)
        self._reporter = Reporter(self._session, tally)
        self._table = Table(spark, job.table.path)
        self._stop = Stop(self._grace_over)
        self._stop.install()
        self._committer = Committer(
            spark, job, table=self._table, session=self._session, tally=tally, reporter=self._reporter, stop=self._stop
        )

    def _grace_over(self) -> None:
        sp.cancel_jobs(self._spark)

    @property
    def cancelled(self) -> bool:
        """Whether it was asked to stop, and its jobs were cancelled."""
        return self._stop.cancelled

    def run(self) -> None:
        """Do the job, or raise its error.

        Pending instants are Abandoned when this returns or raises.
        """
        self._reporter.stage(Stage.STARTING)
        try:
            merging.require(self._spark.sparkContext._jvm, self._job.table.merge)
            self._await_predecessor()
            if self._job.application is not None:
                self._application(self._job.application)
            else:
                self._batches()
        except Exception:
            self._leave_clean()
            raise
        self._leave()

    def _leave(self) -> None:
        """Report the end and deregister.

        Not when the attempt has abandoned an instant and lost an executor, whose end
        needs proof (F4).
        """
        self._reporter.stage(Stage.FINISHED)
        if self._session.gave_up() and sp.lost_executors(self._spark):
            print(
                "an executor was lost and an instant was abandoned: the operator settles this attempt",
                file=sys.stderr,
                flush=True,
            )
            self.must_be_proven_dead = True
            return
        self._session.close()

    def _leave_clean(self) -> None:
        """After a failure: abandon and deregister, if the session is still alive.

        Otherwise the operator settles, and nothing is lost.
        """
        try:
            if self._session.quiet(1.0):
                self._committer.abandon_pending()
                self._leave()
        except Exception as error:
            print(f"left to the operator to settle: {type(error).__name__}", file=sys.stderr, flush=True)

    def _await_predecessor(self) -> None:
        """Nothing is read of the table, and no code of a user runs, before it returns (F5)."""
        waited = predecessor.await_lock(
            self._session,
            stop=self._stop,
            closed=lambda: gate.closed_for(self._session),
            alive=lambda: sp.jvm_exit_code() is None,
            rehearse=self._rehearse,
            seconds=self._job.predecessor_seconds,
        )
        if waited:
            print(f"the lock is free after {waited:.1f} s", file=sys.stderr, flush=True)

    def _rehearse(self) -> None:
        """Read what a run reads first, and drop it: it may change until the lock is free.

        Classes are loaded and connections made meanwhile.
        """
        if self._job.application is None:
            progress.read(Table(self._spark, self._job.table.path), self._job.writer)
            if isinstance(self._job.source, job_file.FilesSource):
                files.listed(self._spark, self._job.source.paths, wait=True)

    def _batches(self) -> None:
        self._reporter.stage(Stage.READING)
        remembers = isinstance(self._job.source, job_file.FilesSource) and not self._job.overwrites
        done, base = progress.read(self._table, self._job.writer, of_files=remembers)
        self._tally.bad_records = done.bad
        arguments = self._job.source.arguments if isinstance(self._job.source, job_file.PythonSource) else {}
        user_context = context.make(self._job, self._session, self._spark, arguments)
        manifests = functools.cache(progress.manifests_of)  # of this attempt, however often it looks
        Run(
            lambda progress: sources.batches(
                self._spark,
                self._job,
                self._table,
                user_context,
                progress,
                looking_up=self._session.looking_up,
                manifests=manifests,
            ),
            lambda batch, base: self._committer.commit(batch, base=base),
            stop=self._stop,
            tally=self._tally,
            report=self._reporter.stage,
            alive=lambda: sp.jvm_exit_code() is None,
            closed=lambda: gate.closed_for(self._session),
            interval=self._job.interval,
        ).run(done, base)

    def _application(self, program: job_file.Application) -> None:
        base = self._table.timeline().newest
        context.set_current(context.make(self._job, self._session, self._spark, {}))
        self._reporter.stage(Stage.WRITING)
        self._session.give_up_left_writes(self._spark)
        try:
            try:
                metadata = commit_metadata(self._job, inc=self._session.inc, progress=None)
                application.run(self._spark, program, metadata=metadata, cancelled=lambda: self.cancelled)
            finally:
                self._session.program_ended()
                application.end_threads(self._spark, program)
            self._committer.abandon_pending()
        finally:
            application.count_commits(self._table, self._session, self._tally, base=base)


def main() -> int:
    """Run the attempt and report its result to the operator."""
    tally = Tally()
    failure: Failure | None = None
    attempt: Attempt | None = None
    try:
        job = job_file.load()
        check_allowed(job.options)
        brought = Brought(job.deps or Dependencies(), job.application.jar if job.application is not None else "")
        spark = sp.start(f"{job.writer} {job.number}", program=job.runs_user_code, brought=brought)
        attempt = Attempt(spark, job, tally)
        attempt.run()
    except Exception as error:
        failure = diagnose(error, cancelled=attempt is not None and attempt.cancelled)
        print(redact(traceback.format_exc(), secrets=environment_secrets()), file=sys.stderr, flush=True)
    write_termination(tally, failure)
    # Stopping Spark makes the plugin end the registration; do not stop it when executors must be
    # proven dead first (F4).
    if attempt is None or not attempt.must_be_proven_dead:
        sp.stop(wait_seconds=STOP_SECONDS)
    return failure.exit_code if failure else 0
