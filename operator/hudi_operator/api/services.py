"""`spec.services`: the table services that the agent runs, their triggers, and the Hudi options that they are run with.

The defaults are Hudi's own: a table that nobody tends would grow for ever, so cleaning, archival and compaction are on. Clustering rewrites data
for the sake of readers, and is on when it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract import assignment, words
from hudi_operator.api.fields import get, strings
from hudi_operator.api.schedule import Schedule

JsonDict = dict[str, Any]

KINDS = tuple(kind.value for kind in words.Service)
COMPACTION, CLUSTERING, TTL, CLEAN, ARCHIVE = KINDS
ON_REQUEST = frozenset({CLUSTERING, TTL})
"""Services that are off unless their section is there."""
#: Commits between two runs when neither afterCommits nor schedule is set.
AFTER_COMMITS = {COMPACTION: 5, CLUSTERING: 20, TTL: 20, CLEAN: 10, ARCHIVE: 10}
RETAIN_COMMITS = 10
SMALL_FILE_MIB, TARGET_FILE_MIB = 300, 1024
LAYOUTS = {"Linear": "LINEAR", "ZOrder": "ZORDER", "Hilbert": "HILBERT"}
PLAN = "hoodie.clustering.plan.strategy"
TTL_SINCE = {"LastWrite": "KEEP_BY_TIME", "Creation": "KEEP_BY_CREATION_TIME"}
MAX_EXPIRED = 1000
TTL_PATTERN = "hudi.operator.ttl.partition.pattern"
"""Read by the runtime; Hudi has no such option."""
MIN_COMMITS_TO_KEEP, MAX_COMMITS_TO_KEEP = 20, 30


@dataclass(frozen=True)
class Window:
    """Runs begin only within so many minutes after a tick."""

    opens: Schedule
    minutes: int

    def around(self, now_ms: int) -> tuple[int, int]:
        """The window that is open at a moment, else the next one: begin and end, Unix milliseconds."""
        begin = int(self.opens.previous(now_ms).timestamp() * 1000)
        if now_ms >= begin + self.minutes * 60_000:
            begin = int(self.opens.next(now_ms).timestamp() * 1000)
        return begin, begin + self.minutes * 60_000


@dataclass(frozen=True)
class Service:
    """One service that is switched on; ``after_commits`` None: only the schedule starts it; ``window`` None: it may begin at any time."""

    kind: str
    after_commits: int | None
    schedule: Schedule | None
    options: Mapping[str, str] = field(default_factory=dict)
    window: Window | None = None


def from_spec(raw: JsonDict, *, merge_on_read: bool) -> tuple[Service, ...]:
    """Read ``spec.services``; services that are off (and compaction of a CopyOnWrite table) are left out. Raises SpecError."""
    found = []
    for kind in KINDS:
        where = f"spec.services.{kind}"
        if kind in ON_REQUEST and raw.get(kind) is None:
            continue
        part = get(raw, kind, dict, {}, "spec.services")
        if not get(part, "enabled", bool, True, where) or (kind == COMPACTION and not merge_on_read):
            continue
        schedule = _schedule(part, "schedule", where)
        default = AFTER_COMMITS[kind] if schedule is None else 0
        after = get(part, "afterCommits", int, default, where)
        found.append(Service(kind, after or None, schedule, _options(kind, raw), _window(part, where)))
    return tuple(found)


def _schedule(part: JsonDict, name: str, where: str) -> Schedule | None:
    raw = part.get(name)
    if raw is None:
        return None
    return Schedule(get(raw, "cron", str, "", f"{where}.{name}"), get(raw, "timeZone", str, "Etc/UTC", f"{where}.{name}"))


def _window(part: JsonDict, where: str) -> Window | None:
    opens = _schedule(part, "window", where)
    return None if opens is None else Window(opens, get(part["window"], "minutes", int, 0, f"{where}.window"))


def _options(kind: str, raw: JsonDict) -> dict[str, str]:
    """Hudi options of a service. Archival must know what cleaning retains: it goes no further."""
    if kind == CLEAN:
        return _clean(raw)
    if kind == COMPACTION:
        # The trigger is ours: when Hudi is asked it plans whatever has log files.
        return {"hoodie.compact.inline.trigger.strategy": "NUM_COMMITS", "hoodie.compact.inline.max.delta.commits": "1"}
    if kind == CLUSTERING:
        return _clustering(get(raw, CLUSTERING, dict, {}, "spec.services"))
    if kind == TTL:
        return _ttl(get(raw, TTL, dict, {}, "spec.services"))
    archive = get(raw, ARCHIVE, dict, {}, "spec.services")
    minimum, maximum = _keep(archive)
    return {**_clean(raw), "hoodie.keep.min.commits": str(minimum), "hoodie.keep.max.commits": str(maximum)}


def _keep(archive: JsonDict) -> tuple[int, int]:
    where = "spec.services.archive"
    return get(archive, "minCommitsToKeep", int, MIN_COMMITS_TO_KEEP, where), get(archive, "maxCommitsToKeep", int, MAX_COMMITS_TO_KEEP, where)


def _clustering(raw: JsonDict) -> dict[str, str]:
    where = "spec.services.clustering"
    small, target = get(raw, "smallFileMiB", int, SMALL_FILE_MIB, where), get(raw, "targetFileMiB", int, TARGET_FILE_MIB, where)
    options = {f"{PLAN}.small.file.limit": str(small << 20), f"{PLAN}.target.file.max.bytes": str(target << 20)}
    columns = strings(raw, "sortColumns", where)
    if columns:
        layout = get(raw, "layout", str, "Linear", where)
        options |= {f"{PLAN}.sort.columns": ",".join(columns), "hoodie.layout.optimize.strategy": LAYOUTS.get(layout, layout)}
    else:
        # Without an order there is nothing to gain from writing one file again.
        options[f"{PLAN}.single.group.clustering.enabled"] = "false"
    pattern, skip = get(raw, "partitionPattern", str, "", where), get(raw, "skipNewestPartitions", int, 0, where)
    if pattern:
        options[f"{PLAN}.partition.regex.pattern"] = pattern
    if skip:
        options |= {
            "hoodie.clustering.plan.partition.filter.mode": "RECENT_DAYS",
            f"{PLAN}.daybased.skipfromlatest.partitions": str(skip),
            f"{PLAN}.daybased.lookback.partitions": str(2**31 - 1),
        }
    return options


def _ttl(raw: JsonDict) -> dict[str, str]:
    where = "spec.services.ttl"
    since, pattern = get(raw, "since", str, "LastWrite", where), get(raw, "partitionPattern", str, "", where)
    options = {
        "hoodie.partition.ttl.management.strategy.type": TTL_SINCE.get(since, since),
        "hoodie.partition.ttl.strategy.days.retain": str(get(raw, "retainDays", int, -1, where)),
        "hoodie.partition.ttl.strategy.max.delete.partitions": str(get(raw, "maxPartitionsPerRun", int, MAX_EXPIRED, where)),
    }
    return options | ({TTL_PATTERN: pattern} if pattern else {})


def _clean(raw: JsonDict) -> dict[str, str]:
    clean, where = get(raw, CLEAN, dict, {}, "spec.services"), "spec.services.clean"
    hours, versions = get(clean, "retainHours", int, 0, where), get(clean, "retainFileVersions", int, 0, where)
    if hours:
        return {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": str(hours)}
    if versions:
        return {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": str(versions)}
    commits = get(clean, "retainCommits", int, RETAIN_COMMITS, where)
    return {"hoodie.clean.policy": "KEEP_LATEST_COMMITS", "hoodie.clean.commits.retained": str(commits)}


def problem(services: tuple[Service, ...]) -> str:
    """Why these services cannot be run as specified (field, value, rule); empty when they can. The CRD refuses most of it before."""
    for service in services:
        if service.schedule is not None:
            found = service.schedule.problem(f"spec.services.{service.kind}.schedule")
            if found:
                return found
        if service.window is not None:
            where = f"spec.services.{service.kind}.window"
            if service.window.minutes < 1:
                return f"{where}.minutes {service.window.minutes}: must be at least 1"
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
    """Why this table cannot be clustered as specified (field, value, rule); empty when it can, or need not. The CRD refuses it before."""
    options = next((s.options for s in services if s.kind == CLUSTERING), None)
    if options is None:
        return ""
    where = "spec.services.clustering"
    if mode == "NonBlocking":
        return f"{where}: contradicts concurrency.mode NonBlocking: writers that do not look at each other would write to file groups that were replaced"
    if index == "Bucket":
        return f"{where}: contradicts index.type Bucket: the rows of a bucket belong to one file group and cannot be written into another one"
    skip = options.get(f"{PLAN}.daybased.skipfromlatest.partitions", "")
    if skip and not partitioned:
        return f"{where}.skipNewestPartitions = {skip}: the table has no partitionFields"
    if int(options[f"{PLAN}.small.file.limit"]) > int(options[f"{PLAN}.target.file.max.bytes"]):
        return f"{where}: smallFileMiB must not be more than targetFileMiB: files as large as that would be written again and again"
    layout = options.get("hoodie.layout.optimize.strategy", "LINEAR")
    if layout not in LAYOUTS.values():
        return f"{where}.layout = {layout!r}: must be one of {', '.join(LAYOUTS)}"
    return _pattern_problem(f"{where}.partitionPattern", options.get(f"{PLAN}.partition.regex.pattern", ""))


def ttl_problem(services: tuple[Service, ...], *, partitioned: bool) -> str:
    """Why partitions of this table cannot expire as specified (field, value, rule); empty when they can, or need not. The CRD refuses it before."""
    options = next((s.options for s in services if s.kind == TTL), None)
    if options is None:
        return ""
    where = "spec.services.ttl"
    if not partitioned:
        return f"{where}: the table has no partitionFields, and whole partitions are what expires"
    if int(options["hoodie.partition.ttl.strategy.days.retain"]) < 0:
        return f"{where}.retainDays: required"
    if options["hoodie.partition.ttl.management.strategy.type"] not in TTL_SINCE.values():
        return f"{where}.since = {options['hoodie.partition.ttl.management.strategy.type']!r}: must be one of {', '.join(TTL_SINCE)}"
    return _pattern_problem(f"{where}.partitionPattern", options.get(TTL_PATTERN, ""))


def _pattern_problem(field_name: str, pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        return f"{field_name} {pattern!r}: not a regular expression: {error}"
    return ""


def orders(services: tuple[Service, ...], now_ms: int) -> dict[str, assignment.ServiceOrder]:
    """What the agent must know of them: also the window that is open now, or opens next."""
    return {
        s.kind: assignment.ServiceOrder(after_commits=s.after_commits, scheduled=s.schedule is not None, options=dict(s.options), window=_open(s, now_ms))
        for s in services
    }


def _open(service: Service, now_ms: int) -> assignment.Window | None:
    if service.window is None or problem((service,)):
        return None
    begin, end = service.window.around(now_ms)
    return assignment.Window(from_ms=begin, until_ms=end)
