"""`spec.services`: the table services that the agent runs, their triggers, and their Hudi options.

The defaults are Hudi's own: without services a table grows forever, so cleaning, archival and
compaction are enabled. Clustering rewrites data to speed up readers, and must
be enabled explicitly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract import assignment, words
from hudi_contract.options import TTL_PATTERN
from hudi_operator.api import patterns
from hudi_operator.api.fields import NONCE, flag, number, record, size, size_bytes, text, texts
from hudi_operator.api.schedule import Schedule

JsonDict = dict[str, Any]

KINDS = tuple(kind.value for kind in words.Service)
COMPACTION, CLUSTERING, TTL, CLEAN, ARCHIVE = KINDS
ALWAYS = (COMPACTION, CLEAN, ARCHIVE)
"""Services that are enabled unless their section disables them; the others are enabled by the
presence of their section.
"""
#: Commits between two runs when neither afterCommits nor schedule is set.
AFTER_COMMITS = {COMPACTION: 5, CLUSTERING: 20, TTL: 20, CLEAN: 10, ARCHIVE: 10}
LINEAR = "Linear"
LAYOUTS = {LINEAR: "LINEAR", "ZOrder": "ZORDER", "Hilbert": "HILBERT"}
PLAN = "hoodie.clustering.plan.strategy"
TTL_SINCE = {"LastWrite": "KEEP_BY_TIME", "Creation": "KEEP_BY_CREATION_TIME"}
HOUR, DAY = 3600, 86400


@dataclass(frozen=True)
class Window:
    """Runs begin only within this many seconds after a tick."""

    opens: Schedule = record(Schedule, at="")
    duration_seconds: int = number(required=True, at_least=60, at_most=7 * DAY)

    def around(self, now_ms: int) -> tuple[int, int]:
        """The window that is open at a given time, else the next one.

        Begin and end, Unix milliseconds.
        """
        begin = int(self.opens.previous(now_ms).timestamp() * 1000)
        if now_ms >= begin + self.duration_seconds * 1000:
            begin = int(self.opens.next(now_ms).timestamp() * 1000)
        return begin, begin + self.duration_seconds * 1000


@dataclass(frozen=True)
class Section:
    """Fields that every section of ``spec.services`` has."""

    enabled: bool = flag(True)
    after_commits: int | None = number(unset=None, at_least=1, at_most=10_000)
    schedule: Schedule | None = record(Schedule, optional=True)
    window: Window | None = record(Window, optional=True)
    run_nonce: str = text(at_least=1, at_most=64, matches=NONCE)


@dataclass(frozen=True)
class Clean(Section):
    """``spec.services.clean``: what cleaning retains; at most one of the three fields is set."""

    retain_commits: int = number(unset=10, at_least=1, at_most=10_000)
    retain_seconds: int | None = number(unset=None, at_least=HOUR, at_most=3650 * DAY, multiple_of=HOUR)
    retain_file_versions: int | None = number(unset=None, at_least=1, at_most=1000)

    @property
    def options(self) -> dict[str, str]:
        """Hudi options for cleaning, and for archival, which must not go further."""
        if self.retain_seconds is not None:
            return {
                "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS",
                "hoodie.clean.hours.retained": str(self.retain_seconds // HOUR),
            }
        if self.retain_file_versions is not None:
            return {
                "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS",
                "hoodie.clean.fileversions.retained": str(self.retain_file_versions),
            }
        return {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": str(self.retain_commits)}


@dataclass(frozen=True)
class Archive(Section):
    """``spec.services.archive``: the length of the active timeline."""

    min_commits_to_keep: int = number(unset=20, at_least=2, at_most=100_000)
    max_commits_to_keep: int = number(unset=30, at_least=3, at_most=100_000)

    @property
    def options(self) -> dict[str, str]:
        """Hudi's."""
        return {
            "hoodie.keep.min.commits": str(self.min_commits_to_keep),
            "hoodie.keep.max.commits": str(self.max_commits_to_keep),
        }


@dataclass(frozen=True)
class Clustering(Section):
    """``spec.services.clustering``.

    Which files are rewritten, with which size, and in which order.
    """

    small_file_size: str = size(unset="300Mi")
    target_file_size: str = size(unset="1Gi")
    sort_columns: tuple[str, ...] = texts(at_least=1, at_most=16, length=(1, 256), matches="^[^, ]+$")
    layout: str = text(choices=tuple(LAYOUTS))
    """Order of the rows; ``Linear`` when it is empty."""
    partition_pattern: str = text(at_least=1, at_most=512)
    skip_newest_partitions: int | None = number(unset=None, at_least=1, at_most=10_000)

    @property
    def options(self) -> dict[str, str]:
        """Hudi's."""
        options = {
            f"{PLAN}.small.file.limit": str(size_bytes(self.small_file_size)),
            f"{PLAN}.target.file.max.bytes": str(size_bytes(self.target_file_size)),
        }
        if self.sort_columns:
            options |= {
                f"{PLAN}.sort.columns": ",".join(self.sort_columns),
                "hoodie.layout.optimize.strategy": LAYOUTS[self.layout or LINEAR],
            }
        else:
            # Without a sort order, rewriting a single file gains nothing.
            options[f"{PLAN}.single.group.clustering.enabled"] = "false"
        if self.partition_pattern:
            options[f"{PLAN}.partition.regex.pattern"] = self.partition_pattern
        if self.skip_newest_partitions is not None:
            options |= {
                "hoodie.clustering.plan.partition.filter.mode": "RECENT_DAYS",
                f"{PLAN}.daybased.skipfromlatest.partitions": str(self.skip_newest_partitions),
                f"{PLAN}.daybased.lookback.partitions": str(2**31 - 1),
            }
        return options


@dataclass(frozen=True, kw_only=True)
class Ttl(Section):
    """``spec.services.ttl``: which partitions expire, and when."""

    retain_seconds: int = number(required=True, at_least=DAY, at_most=24855 * DAY, multiple_of=DAY)
    since: str = text(unset="LastWrite", choices=tuple(TTL_SINCE))
    partition_pattern: str = text(at_least=1, at_most=512)
    max_partitions_per_run: int = number(unset=1000, at_least=1, at_most=100_000)

    @property
    def options(self) -> dict[str, str]:
        """Hudi options, and the runtime's own option."""
        options = {
            "hoodie.partition.ttl.management.strategy.type": TTL_SINCE[self.since],
            "hoodie.partition.ttl.strategy.days.retain": str(self.retain_seconds // DAY),
            "hoodie.partition.ttl.strategy.max.delete.partitions": str(self.max_partitions_per_run),
        }
        return options | ({TTL_PATTERN: self.partition_pattern} if self.partition_pattern else {})


@dataclass(frozen=True)
class ServicesSpec:
    """``spec.services``."""

    clean: Clean = record(Clean)
    archive: Archive = record(Archive)
    compaction: Section = record(Section)
    clustering: Clustering | None = record(Clustering, optional=True)
    """None: disabled, like ``ttl``."""
    ttl: Ttl | None = record(Ttl, optional=True)


@dataclass(frozen=True)
class Service:
    """One enabled service; ``after_commits`` None: only its schedule or a person starts it.

    ``window`` None: it may begin at any time. ``run_nonce``: a value that was not served runs it
    once.
    """

    kind: str
    after_commits: int | None
    schedule: Schedule | None
    options: Mapping[str, str] = field(default_factory=dict)
    window: Window | None = None
    run_nonce: str = ""


def switched_on(spec: ServicesSpec, *, merge_on_read: bool) -> tuple[Service, ...]:
    """The enabled services; disabled ones (and compaction of a CopyOnWrite table) are omitted."""
    # The trigger of a compaction is ours: when asked, Hudi plans every file group with log files.
    compact = {"hoodie.compact.inline.trigger.strategy": "NUM_COMMITS", "hoodie.compact.inline.max.delta.commits": "1"}
    sections: list[tuple[str, Section | None, Mapping[str, str]]] = [
        (COMPACTION, spec.compaction if merge_on_read else None, compact),
        (CLUSTERING, spec.clustering, spec.clustering.options if spec.clustering else {}),
        (TTL, spec.ttl, spec.ttl.options if spec.ttl else {}),
        (CLEAN, spec.clean, spec.clean.options),
        (ARCHIVE, spec.archive, {**spec.clean.options, **spec.archive.options}),
    ]
    return tuple(
        _service(kind, section, options)
        for kind, section, options in sections
        if section is not None and section.enabled
    )


def _service(kind: str, section: Section, options: Mapping[str, str]) -> Service:
    triggered = section.after_commits is not None or section.schedule is not None or _on_demand(section)
    after = section.after_commits if triggered else AFTER_COMMITS[kind]
    return Service(kind, after, section.schedule, options, section.window, section.run_nonce)


def _on_demand(section: Section) -> bool:
    """True for a section of clustering that has a ``runNonce`` and nothing else (F554).

    The section switches the service on, and its author wanted one run.
    """
    return (
        isinstance(section, Clustering)
        and bool(section.run_nonce)
        and section == Clustering(run_nonce=section.run_nonce)
    )


def problem(services: tuple[Service, ...]) -> str:
    """Why these services cannot be run as specified (field, value, rule); empty when they can.

    The CRD refuses most of these first.
    """
    for service in services:
        if service.schedule is not None:
            found = service.schedule.problem(f"spec.services.{service.kind}.schedule")
            if found:
                return found
        if service.window is not None:
            where = f"spec.services.{service.kind}.window"
            found = service.window.opens.problem(where)
            if found:
                return found
    archive = next((s.options for s in services if s.kind == ARCHIVE), {})
    minimum, maximum = int(archive.get("hoodie.keep.min.commits", 0)), int(archive.get("hoodie.keep.max.commits", 1))
    retained = int(archive.get("hoodie.clean.commits.retained", 0))
    if minimum >= maximum:
        return f"spec.services.archive: maxCommitsToKeep {maximum} must be more than minCommitsToKeep {minimum}"
    if archive and minimum <= retained:
        return f"spec.services.archive: minCommitsToKeep {minimum} must be more than clean.retainCommits {retained}"
    return ""


def clustering_problem(services: tuple[Service, ...], *, mode: str, index: str, partitioned: bool) -> str:
    """Why this table cannot be clustered as specified (field, value, rule).

    Empty when it can, or is not clustered. The CRD refuses these first.
    """
    options = next((s.options for s in services if s.kind == CLUSTERING), None)
    if options is None:
        return ""
    where = "spec.services.clustering"
    if mode == words.Concurrency.NON_BLOCKING:
        return (
            f"{where}: contradicts concurrency.mode NonBlocking: writers do not detect conflicts in this mode, and "
            "would write to file groups that were replaced"
        )
    if index == "Bucket":
        return (
            f"{where}: contradicts index.type Bucket: the rows of a bucket belong to one file group and cannot be "
            "written into another one"
        )
    skip = options.get(f"{PLAN}.daybased.skipfromlatest.partitions", "")
    if skip and not partitioned:
        return f"{where}.skipNewestPartitions = {skip}: the table has no partitionFields"
    if int(options[f"{PLAN}.small.file.limit"]) > int(options[f"{PLAN}.target.file.max.bytes"]):
        return (
            f"{where}: smallFileSize must not be more than targetFileSize: otherwise files of the "
            "target size would be rewritten again and again"
        )
    return _pattern_problem(f"{where}.partitionPattern", options.get(f"{PLAN}.partition.regex.pattern", ""))


def layout_problem(clustering: Clustering | None) -> str:
    """Why files cannot be sorted as specified (field, value, rule); empty when they can."""
    if clustering is None or not clustering.layout:
        return ""
    if len(clustering.sort_columns) >= (1 if clustering.layout == LINEAR else 2):
        return ""
    return (
        f"spec.services.clustering: layout {clustering.layout} needs sortColumns: one for Linear, two or more for "
        "ZOrder and Hilbert"
    )


def ttl_problem(services: tuple[Service, ...], *, mode: str, partitioned: bool) -> str:
    """Why partitions of this table cannot expire as specified (field, value, rule).

    Empty when they can, or do not expire. The CRD refuses these first.
    """
    options = next((s.options for s in services if s.kind == TTL), None)
    if options is None:
        return ""
    where = "spec.services.ttl"
    if not partitioned:
        return f"{where}: the table has no partitionFields, and whole partitions are what expires"
    if mode == words.Concurrency.NON_BLOCKING:
        return (
            f"{where}: contradicts concurrency.mode NonBlocking: a bucket keeps its file id in this mode, so rows that "
            "are written to a partition after its deletion would be invisible. Delete the rows instead"
        )
    return _pattern_problem(f"{where}.partitionPattern", options.get(TTL_PATTERN, ""))


def _pattern_problem(field_name: str, pattern: str) -> str:
    found = patterns.problem(pattern)
    return f"{field_name} {pattern!r}: {found}" if found else ""


def orders(services: tuple[Service, ...], now_ms: int) -> dict[str, assignment.ServiceOrder]:
    """The services in the agent's assignment, with the window that is open now, or opens next."""
    return {
        s.kind: assignment.ServiceOrder(
            after_commits=s.after_commits,
            scheduled=s.schedule is not None,
            options=dict(s.options),
            window=_open(s, now_ms),
        )
        for s in services
    }


def _open(service: Service, now_ms: int) -> assignment.Window | None:
    if service.window is None or problem((service,)):
        return None
    begin, end = service.window.around(now_ms)
    return assignment.Window(from_ms=begin, until_ms=end)
