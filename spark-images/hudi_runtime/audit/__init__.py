"""`audit`: check whether a table holds what it should.

Eleven checks of any Hudi table, as a command and as a library.

    report = audit(spark, "s3a://lake/flights", keys=..., expected=...)
    assert report.outcome is Outcome.OK, report.text()

The command is `python -m hudi_runtime.audit`, the entry point argument `audit` of the image
(docs/operate/operations.md). It only reads.

`reader` collects the `facts`, with `keys` from etcd; `structure` and `rows` check them, `report`
has the result, `command` is the command. May import `table`, `job` and `process`, and never a
tower: it judges without the code that it judges. Invariant I11: a check that cannot read its input
is unknown, never ok.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from pyspark.sql import SparkSession

from hudi_runtime.audit import rows, structure
from hudi_runtime.audit.facts import Facts, Keys
from hudi_runtime.audit.reader import TableReader, reason_of
from hudi_runtime.audit.report import TITLES, Check, Outcome, Report, not_asked, unknown, unsettled
from hudi_runtime.audit.rows import Expected

__all__ = ["TITLES", "Check", "Expected", "Facts", "Keys", "Outcome", "Report", "audit"]

#: Number of commits that the incremental check pulls one by one.
STEPS = 20
#: Maximum number of reads of a table that changes during the check.
ATTEMPTS = 3
ROW_CHECKS = ("rows", "origin", "unique", "hudi-rs", "incremental")


def audit(
    spark: SparkSession,
    path: str,
    *,
    expected: Expected | None = None,
    keys: Callable[[str], Keys] | None = None,
    hudi_rs_options: Mapping[str, str] | None = None,
    only: Collection[str] = tuple(TITLES),
    steps: int = STEPS,
) -> Report:
    """Run the checks in `only` on the table at `path`; report the others as not asked.

    `expected` makes the expected rows; `keys` reads the table's keys in etcd by its table id;
    `hudi_rs_options` are hudi-rs's storage options. Never raises because of the table's state: the
    outcome of a check that cannot read its input is unknown.
    """
    look = TableReader(spark, path, keys=keys, open_files="files" in only)
    done: dict[str, Check] = {name: not_asked(name, "switched off") for name in TITLES if name not in only}
    try:
        facts = look.facts()
        structural = [name for name in structure.CHECKS if name in only]
        done |= _structure(look, facts, structural)
        if any(name in only for name in ROW_CHECKS):
            with rows.row_reader(spark):
                done |= _rows(
                    spark, look, facts, expected=expected, only=only, hudi_rs_options=hudi_rs_options or {}, steps=steps
                )
    except Exception as error:
        for name in TITLES:
            done.setdefault(name, unknown(name, "could not be checked", [reason_of(error)]))
    return Report(path, tuple(done[name] for name in TITLES))


def _structure(look: TableReader, facts: Facts, names: Collection[str]) -> dict[str, Check]:
    """Confirm each violation by a second look.

    One that is not found again was an effect of the table changing between two listings.
    """
    first = {name: structure.CHECKS[name](facts) for name in names}
    doubtful = [name for name, check in first.items() if check.outcome is Outcome.VIOLATED]
    if not doubtful:
        return first
    again = look.facts()
    for name in doubtful:
        second = structure.CHECKS[name](again)
        if second.outcome is Outcome.VIOLATED:
            both = [finding for finding in second.findings if finding in first[name].findings]
            changing = unsettled(name, "the table changes too fast: run the audit again", second.findings)
            second = Check(name, Outcome.VIOLATED, second.sentence, tuple(both)) if both else changing
        first[name] = second
    return first


def _rows(
    spark: SparkSession,
    look: TableReader,
    facts: Facts,
    *,
    expected: Expected | None,
    only: Collection[str],
    hudi_rs_options: Mapping[str, str],
    steps: int,
) -> dict[str, Check]:
    """The checks that read rows, all of the same state of the table."""
    names = [name for name in ROW_CHECKS if name in only]
    if facts.timeline.last_completed is None and expected is None:
        return {name: Check(name, Outcome.OK, "nothing was committed") for name in names}
    for _ in range(ATTEMPTS):
        checks = _row_checks(spark, look, facts, expected=expected, hudi_rs_options=hudi_rs_options, steps=steps)
        done = {name: _guarded(name, checks[name]) for name in names}
        if all(check.outcome in (Outcome.OK, Outcome.NOT_ASKED) for check in done.values()) or rows.unchanged(
            facts.timeline, look.table.timeline()
        ):
            return done
        facts = look.facts()
    return {
        name: unsettled(name, f"the table was written to during each of {ATTEMPTS} reads: run the audit again")
        for name in names
    }


def _row_checks(
    spark: SparkSession,
    look: TableReader,
    facts: Facts,
    *,
    expected: Expected | None,
    hudi_rs_options: Mapping[str, str],
    steps: int,
) -> dict[str, Callable[[], Check]]:
    path = look.table.path
    snapshot = rows.read(spark, path)
    return {
        "rows": lambda: (
            rows.expected(spark, snapshot, expected) if expected else not_asked("rows", "no expected rows were given")
        ),
        "origin": lambda: rows.origin(snapshot, facts, look.archived),
        "unique": lambda: rows.unique(snapshot, facts),
        "hudi-rs": lambda: rows.hudi_rs(spark, path, snapshot, facts, hudi_rs_options),
        "incremental": lambda: rows.incremental(
            spark, path, snapshot, facts, steps=steps, ordering=look.ordering(), by_column=look.by_column()
        ),
    }


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except Exception as error:
        return unknown(name, "could not be read", [reason_of(error)])
