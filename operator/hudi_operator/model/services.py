"""`spec.services`: the table services that the agent runs, their triggers, and the Hudi options that they are run with.

The defaults are Hudi's own: a table that nobody tends would grow for ever, so the services are on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.model.fields import get
from hudi_operator.model.schedule import Schedule

JsonDict = dict[str, Any]

COMPACTION, CLEAN, ARCHIVE = "compaction", "clean", "archive"
KINDS = (COMPACTION, CLEAN, ARCHIVE)
#: Commits between two runs when neither afterCommits nor schedule is set.
AFTER_COMMITS = {COMPACTION: 5, CLEAN: 10, ARCHIVE: 10}
RETAIN_COMMITS = 10
MIN_COMMITS_TO_KEEP, MAX_COMMITS_TO_KEEP = 20, 30


@dataclass(frozen=True)
class Service:
    """One service that is switched on; ``after_commits`` None: only the schedule starts it."""

    kind: str
    after_commits: int | None
    schedule: Schedule | None
    options: Mapping[str, str] = field(default_factory=dict)


def from_spec(raw: JsonDict, *, merge_on_read: bool) -> tuple[Service, ...]:
    """Read ``spec.services``; services that are off (and compaction of a CopyOnWrite table) are left out. Raises SpecError."""
    found = []
    for kind in KINDS:
        where = f"spec.services.{kind}"
        part = get(raw, kind, dict, {}, "spec.services")
        if not get(part, "enabled", bool, True, where) or (kind == COMPACTION and not merge_on_read):
            continue
        schedule = _schedule(part, where)
        default = AFTER_COMMITS[kind] if schedule is None else 0
        after = get(part, "afterCommits", int, default, where)
        found.append(Service(kind, after or None, schedule, _options(kind, raw)))
    return tuple(found)


def _schedule(part: JsonDict, where: str) -> Schedule | None:
    raw = part.get("schedule")
    if raw is None:
        return None
    return Schedule(get(raw, "cron", str, "", f"{where}.schedule"), get(raw, "timeZone", str, "Etc/UTC", f"{where}.schedule"))


def _options(kind: str, raw: JsonDict) -> dict[str, str]:
    """Hudi options of a service. Archival must know what cleaning retains: it goes no further."""
    if kind == CLEAN:
        return _clean(raw)
    if kind == COMPACTION:
        # The trigger is ours: when Hudi is asked it plans whatever has log files.
        return {"hoodie.compact.inline.trigger.strategy": "NUM_COMMITS", "hoodie.compact.inline.max.delta.commits": "1"}
    archive = get(raw, ARCHIVE, dict, {}, "spec.services")
    minimum, maximum = _keep(archive)
    return {**_clean(raw), "hoodie.keep.min.commits": str(minimum), "hoodie.keep.max.commits": str(maximum)}


def _keep(archive: JsonDict) -> tuple[int, int]:
    where = "spec.services.archive"
    return get(archive, "minCommitsToKeep", int, MIN_COMMITS_TO_KEEP, where), get(archive, "maxCommitsToKeep", int, MAX_COMMITS_TO_KEEP, where)


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
    archive = next((s.options for s in services if s.kind == ARCHIVE), {})
    minimum, maximum = int(archive.get("hoodie.keep.min.commits", 0)), int(archive.get("hoodie.keep.max.commits", 1))
    retained = int(archive.get("hoodie.clean.commits.retained", 0))
    if minimum >= maximum:
        return f"spec.services.archive: maxCommitsToKeep {maximum} must be more than minCommitsToKeep {minimum}"
    if archive and minimum <= retained:
        return f"spec.services.archive: minCommitsToKeep {minimum} must be more than clean.retainCommits {retained}"
    return ""


def assignment(services: tuple[Service, ...]) -> JsonDict:
    """What the agent must know of them (docs/contracts.md §1)."""
    return {s.kind: {"afterCommits": s.after_commits, "scheduled": s.schedule is not None, "options": dict(s.options)} for s in services}
