"""One commit, from the write to its confirmed outcome.

The result of `save()` is not evidence: it raises when the unlock is refused although the commit is
complete, and a time-out of the store leaves the outcome open. The timeline decides
(docs/design/protocol.md, Release): a completed instant with this incarnation and this progress
is a success.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession, types

from hudi_contract import metadata
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS, exponential
from hudi_contract.outcomes import FailureClass
from hudi_contract.words import Operation, Stage
from hudi_runtime.job.job import Job, KafkaSource
from hudi_runtime.job.options import key_options, schema_options, write_options
from hudi_runtime.process import spark as sp
from hudi_runtime.process.errors import (
    RuntimeFailure,
    UserCodeError,
    classify_causes,
    concerns_schema,
    early_conflict,
    java_causes,
    pending_service,
    user_error,
)
from hudi_runtime.process.result import Reporter, Tally
from hudi_runtime.process.session import Conflict, Session
from hudi_runtime.process.stopping import Stop
from hudi_runtime.read import bad_records
from hudi_runtime.read.deletions import DELETED
from hudi_runtime.read.progress import left_out, parse_checkpoint
from hudi_runtime.read.sources import Batch, transform
from hudi_runtime.read.update import plain, take
from hudi_runtime.table import partitions, values
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import CommitInfo, Table
from hudi_runtime.writer import deletes, duplicates, overwrite, validations
from hudi_runtime.writer import schema as sc
from hudi_runtime.writer.fairness import Fairness

FIRST_BACKOFF_SECONDS = 1.0
RECOMPUTED = "hoodie.write.lock.etcd.recomputed"
SCHEMA_COMMITS = 5
"""Maximum number of commits of a new schema, when concurrent commits hide it again."""


class Committer:
    """Commits batches of one attempt, one at a time."""

    _spares = False
    """Whether rows of the batch that the table cannot hold are left out (`onBadRecord`)."""

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        *,
        table: Table,
        session: Session,
        tally: Tally,
        reporter: Reporter,
        stop: Stop,
    ) -> None:
        self._spark = spark
        self._job = job
        self._table = table
        self._session = session
        self._tally = tally
        self._reporter = reporter
        self._stop = stop
        self._fairness = Fairness(session, table, reporter, stop, after=job.serialize_after, early=job.early_detection)
        self._rules = sc.Rules.of(job)
        self._fitted_to: types.StructType | None = None
        self._listed: str | None = None
        """Newest completion time in the last listing that was made here; None before the first."""
        self._recomputed = session.recomputed()
        """As the attempt began."""

    def commit(self, batch: Batch, *, base: str) -> str:
        """Commit the batch, with new instants after lost races.

        Returns its completion time, the next progress base.

        Raises the error of the write when it is not a conflict, RuntimeFailure(WriteConflict) when
        the in-process retries are exhausted.
        """
        with self._session.batch():
            return self._tries(batch, base=base)

    def _tries(self, batch: Batch, *, base: str) -> str:
        since = self._tally.conflict_count
        retry = 0
        self._fairness.begin()
        while retry <= self._job.in_process_retries:
            if self._fairness.wait():
                break
            before = self._session.last_conflict()
            with self._session.trying():
                error = self._write(batch, base=base)
            found = self._find(batch, base=base)
            if found is not None:
                instant, info = found
                self._tally.committed(instant.requested, instant.completion, info.records, since=since)
                self._tally.bad_records = left_out(parse_checkpoint(info, self._job.writer))
                self._fairness.committed()
                self._reporter.stage(Stage.COMMITTED)
                return instant.completion
            if error is None:
                raise RuntimeFailure(
                    FailureClass.INFRASTRUCTURE,
                    "the write ended without an error, but its commit is not on the timeline",
                )
            abandoned = self.abandon_pending()
            if not self._is_conflict(error):
                raise batch.blame(error) or error
            conflict = self._conflict(error, abandoned, before)
            self._tally.conflict(conflict)
            if batch.base is not None and abandoned:
                message = (
                    "write conflict: the batch was computed from rows of the table that were read earlier; the next "
                    "attempt calls the function again"
                )
                raise RuntimeFailure(
                    FailureClass.WRITE_CONFLICT, f"{message} (an Update is retried within the attempt)"
                )
            self._fairness.lost(conflict)
            if conflict.yielded:
                continue
            self._reporter.stage(Stage.RETRYING)
            if retry < self._job.in_process_retries and self._stop.wait(_backoff(retry)):
                break
            retry += 1
        message = f"write conflict after all retries in this process ({self._job.in_process_retries})"
        raise RuntimeFailure(FailureClass.WRITE_CONFLICT, message)

    def _write(self, batch: Batch, *, base: str) -> Exception | None:
        """Write the batch with the table's columns.

        Returns the error of the JVM; raises an error of the batch itself, without an instant.
        """
        sp.interruptible(self._spark)
        recomputed = self._session.recomputed()
        try:
            taken, since = self._rows(batch)
            made = self._transformed(batch, taken)
            frame = partitions.held(made, self._job)
            self._spares = batch.bad is not None and self._repeatable(made)
            fit, schema_base = self._evolved(batch, frame)
            with (
                self._checked(fit.apply(frame)) as (rows, refused),
                self._left_out(batch, refused) as bad,
                self._ready(batch, rows) as ready,
                deletes.held(ready, self._job, columns=self._fitted_to) as (given, deleted),
            ):
                self._save(
                    given,
                    {
                        **write_options(
                            self._job,
                            inc=self._session.inc,
                            progress={**batch.checkpoint, **bad},
                            progress_base=base,
                            schema_base=schema_base,
                        ),
                        **batch.options,
                        **deleted,
                        **since,
                        **validations.options(batch.validations(self._job)),
                        **self._computed_once(made, recomputed),
                        **key_options(fit.schema, self._job.table.record_keys),
                        **duplicates.as_upsert(self._table, self._job),
                    },
                )
        except Exception as error:
            if not java_causes(error):
                raise
            causes = java_causes(error)
            print(f"write failed: {causes[-1].type}: {causes[-1].message[:300]}", file=sys.stderr, flush=True)
            return error
        return None

    @contextmanager
    def _checked(self, frame: DataFrame) -> Iterator[tuple[DataFrame, DataFrame | None]]:
        """The rows with a check that fails at one that the table cannot hold, within this context.

        Rows that are spared are left out instead, and are the second, if they say their records.
        Both are then of one execution, which Spark keeps: the time of a query is another one in
        each (F638). `frame` has the table's columns.
        """
        table, delete, adds = self._job.table, self._job.operation == Operation.DELETE, self._job.adds
        marks = values.marked(frame, table, delete=delete, adds=adds) if self._spares else None
        if marks is None:
            kafka = isinstance(self._job.source, KafkaSource)
            yield values.held(frame, table, delete=delete, adds=adds, kafka=kafka), None
            return
        kept = marks.persist()
        try:
            yield values.valid(kept), values.refused(kept)
        finally:
            kept.unpersist()

    @contextmanager
    def _left_out(self, batch: Batch, refused: DataFrame | None) -> Iterator[Mapping[str, object]]:
        """The part of the commit's progress about bad records.

        Those to be set aside have been, within this context: no commit comes before its file.
        """
        bad = batch.bad.found(refused) if batch.bad is not None else ()
        file = ""
        if batch.bad is not None and bad and batch.bad.keep:
            file = batch.bad.set_aside(self._table.storage, self._job.writer, bad)
        yield bad_records.progress(bad, self._tally.bad_records, file)

    @contextmanager
    def _ready(self, batch: Batch, rows: DataFrame) -> Iterator[DataFrame]:
        """The rows of the batch, checked, to be written within this context.

        `rows`: of `_checked`. Raises the error of the first check that fails.
        """
        asked = batch.validations(self._job)
        delete = self._job.operation == Operation.DELETE
        with (
            self._session.looking_up(deletes=delete and not validations.read_the_table(asked)),
            duplicates.held(self._spark, rows, self._job, columns=self._fitted_to, validated=bool(asked)) as checked,
            overwrite.held(checked, self._job) as kept,
            validations.held(kept, asked, self._job.table.path) as valid,
        ):
            yield valid

    def _transformed(self, batch: Batch, rows: DataFrame) -> DataFrame:
        """The rows after the user's SELECT.

        Raises UserCodeError when it drops the column that marks deletes: they would be
        written as rows.
        """
        frame = transform(rows, self._job.transform)
        if batch.deletes and DELETED not in frame.columns:
            raise UserCodeError(
                f"transform.sql: the result has no column {DELETED}, which marks deleted rows (source.hudi.deletes is "
                "Carry): select it"
            )
        return frame

    def _rows(self, batch: Batch) -> tuple[DataFrame, Mapping[str, str]]:
        """The rows of this try, and write options with the base of the rows.

        The base is that of the table's rows that they are made from (empty: they are not).
        """
        if isinstance(batch.frame, DataFrame):
            return batch.frame, batch.base.options("snapshot") if batch.base else {}
        snapshot, since = take(self._spark, self._table)
        try:
            with self._session.asking():
                rows = batch.frame.rows(plain(snapshot))
        except Exception as error:
            if classify_causes(java_causes(error)) is FailureClass.WRITE_CONFLICT:
                raise  # of a read, beside a clean: the function is called again
            raise user_error(error, "the function of an Update") from error
        if not isinstance(rows, DataFrame):
            raise UserCodeError(f"the function of an Update: expected a DataFrame, got {type(rows).__name__}")
        return rows, since.options(batch.frame.isolation)

    def _computed_once(self, frame: DataFrame, begun: int) -> Mapping[str, str]:
        """Rows that differ each time they are computed are committed only if computed once (F106).

        Their plan shows which rows these are (F165). None of them may have been computed twice
        since this write began. Rows that executors may have held before it (cached ones) may have
        been part of an earlier batch: none may have been computed twice since the attempt began
        (F172).

        `begun`: `Session.recomputed` as this write began.
        """
        if self._repeatable(frame):
            return {}
        plan: Any = frame._jdf
        held = self._rules_of_plans.HeldRows.test(plan.queryExecution())
        return {RECOMPUTED: str(self._recomputed if held else begun)}

    def _repeatable(self, frame: DataFrame) -> bool:
        """Whether the rows are the same each time they are computed."""
        plan: Any = frame._jdf
        return bool(self._rules_of_plans.RepeatablePlan.test(plan.queryExecution().analyzed()))

    @property
    def _rules_of_plans(self) -> Any:
        return self._spark.sparkContext._jvm.io.hudioperator.statements  # type: ignore[union-attr]

    def _is_conflict(self, error: Exception) -> bool:
        """Whether another instant may succeed.

        A refusal because the table's columns changed during the write is a conflict as well.
        """
        kind = classify_causes(java_causes(error))
        moved = kind is FailureClass.SCHEMA_MISMATCH and self._table.columns()[0] != self._fitted_to
        return moved or kind is FailureClass.WRITE_CONFLICT

    def _save(self, frame: DataFrame, options: Mapping[str, str]) -> None:
        frame.write.format("hudi").options(**options).mode("append").save(self._table.path)

    def _evolved(self, batch: Batch, frame: DataFrame) -> tuple[sc.Fit, str]:
        """The fit of the batch to the table, and the schema base of the write.

        If necessary, a commit without rows first changes the table's schema.

        The change is a separate commit because readers use the schema of the commit that was
        *begun* last: a long write with a new column would be hidden by any short write that began
        after it without the column. Raises SchemaMismatch.
        """
        for _ in range(SCHEMA_COMMITS):
            self._fitted_to, schema_base = self._table.columns(listed=self._listed)
            fit = sc.fit(frame.schema, self._fitted_to, self._rules)
            if not fit.evolves:
                return fit, schema_base
            if batch.validations(self._job):  # one that is refused leaves no column behind
                with self._checked(fit.apply(frame)) as (rows, _), self._ready(batch, rows):
                    pass
            empty = self._spark.createDataFrame([], fit.schema)
            self._save(empty, schema_options(self._job, inc=self._session.inc, schema_base=schema_base))
        raise RuntimeFailure(
            FailureClass.WRITE_CONFLICT,
            f"the table's schema was changed {SCHEMA_COMMITS} times, and hidden by other commits each time",
        )

    def _find(self, batch: Batch, *, base: str) -> tuple[tl.Instant, CommitInfo] | None:
        if not self._session.quiet():
            # This process cannot decide: the lock and the registration stay, and the operator
            # settles (I1).
            raise RuntimeFailure(FailureClass.INFRASTRUCTURE, "the outcome of the publication is unknown")
        timeline = self._table.timeline()
        self._listed = timeline.newest
        newer = tuple(instant for instant in reversed(timeline.completed) if instant.completion > base)
        for instant, info in self._table.commits(newer):
            checkpoint = parse_checkpoint(info, self._job.writer)
            if (
                checkpoint is not None
                and checkpoint.get("digest") == batch.digest
                and info.extra.get(metadata.INC) == self._session.inc
            ):
                return instant, info
        return None

    def abandon_pending(self) -> list[str]:
        """Declare the Pending instants of this incarnation Abandoned.

        Returns those that are not completed. The agent checks the timeline itself.

        No task of the failed write may continue then (F4): its tasks are stopped first. Raises
        RuntimeFailure when they do not end; the instant stays Pending and the registration stays,
        so the operator settles both after proof of death.
        """
        pending = self._session.pending()
        if not pending:
            return []
        sp.cancel_jobs(self._spark)
        if not sp.await_idle(self._spark, sp.IDLE_SECONDS):
            running = sp.running_tasks(self._spark)
            raise RuntimeFailure(
                FailureClass.INFRASTRUCTURE,
                f"tasks of the failed write do not end in {sp.IDLE_SECONDS} s: {running or 'they have ended since'}",
            )
        completed = {instant.requested for instant in self._table.timeline().completed}
        return [instant for instant in pending if self._session.abandon(instant) and instant not in completed]

    def _conflict(self, error: Exception, abandoned: list[str], before: Conflict | None) -> Conflict:
        """Conflict that a try has lost.

        `before`: the last conflict of the session when the try began. A look-up that was refused
        has met none: no instant was begun (F489).
        """
        met = early_conflict(java_causes(error))
        if met is not None:
            return Conflict(met[0], met[1], (met[2],), early=True)
        if service := pending_service(java_causes(error)):
            # The next try waits for it: it is pending, and Hudi deletes nothing beside it.
            return Conflict(abandoned[0] if abandoned else "", service, (), early=True)
        known = self._session.last_conflict()
        if (
            known is not None
            and known != before
            and (not abandoned or known.instant in abandoned)
            and not concerns_schema(java_causes(error))
        ):
            return known
        return Conflict(abandoned[0] if abandoned else "", "", ())


def _backoff(retry: int) -> float:
    """Exponential back-off with full jitter.

    So two writers in conflict do not retry at the same time.
    """
    longest = exponential(retry + 1, first=FIRST_BACKOFF_SECONDS, longest=LONGEST_PAUSE_SECONDS)
    return random.uniform(0.1, longest)  # noqa: S311 - not cryptographic
