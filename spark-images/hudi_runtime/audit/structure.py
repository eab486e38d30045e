"""Checks of the table's structure. Pure functions of `Facts`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from hudi_contract.keys import Kind
from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.table_keys import Gate, InstantRecord
from hudi_contract.words import Concurrency, Outcome
from hudi_runtime.audit.facts import (
    COMPACTIONS,
    PLANNED,
    Commit,
    Facts,
    Keys,
    instant_of,
    is_data_file,
    is_metadata_file,
    left_behind,
)
from hudi_runtime.audit.report import Check, not_asked, ok, unknown, unsettled, violated
from hudi_runtime.table import timeline as tl


def _cannot(name: str, facts: Facts, *aspects: str) -> Check | None:
    failed = [f"{aspect}: {facts.errors[aspect]}" for aspect in aspects if aspect in facts.errors]
    return unknown(name, "could not be checked", failed) if failed else None


def files(facts: Facts) -> Check:
    """Every file of a completed instant exists in full size and can be opened (I8).

    Files that a completed clean lists as deleted are excepted.
    """
    if (cannot := _cannot("files", facts, "commits", "cleaned")) is not None:
        return cannot
    wrong: list[str] = []
    count = 0
    for commit in facts.commits:
        for path, size in sorted(commit.files.items()):
            found = facts.files.get(path)
            if found is None:
                if path not in facts.cleaned:
                    wrong.append(f"{path} of completed {commit.instant.requested} is missing")
                continue
            count += 1
            if size and found != size:
                wrong.append(f"{path} of completed {commit.instant.requested} has {found} bytes instead of {size}")
            elif path in facts.broken:
                wrong.append(f"{path} of completed {commit.instant.requested} does not open: {facts.broken[path]}")
    if wrong:
        return violated("files", f"{len(wrong)} files of completed instants are missing or broken", wrong)
    if (cannot := _cannot("files", facts, "open")) is not None:
        return cannot
    return ok("files", f"{len(facts.commits)} completed writes, {count} files")


def stray(facts: Facts) -> Check:
    """Every data file, marker and heartbeat bears a completed or pending instant.

    A completed instant lists its data files (I5). A file of an instant that the agent still has to
    sweep is no finding yet.
    """
    if (cannot := _cannot("stray", facts, "archived", "commits")) is not None:
        return cannot
    wrong = [f".hoodie/timeline/{name} is no instant" for name in facts.timeline.unknown]
    waits: list[str] = []
    swept_later = facts.keys.awaiting_sweep if facts.keys is not None else frozenset[str]()
    named = {commit.instant.requested: commit.files for commit in facts.commits}
    metadata = {i.requested for i in facts.metadata_timeline.instants}
    metadata_start = facts.metadata_timeline.earliest
    count = 0
    for path in sorted(facts.files):
        if is_data_file(path):
            count += 1
            (waits if instant_of(path) in swept_later else wrong).extend(_stray_data(path, facts, named))
        elif is_metadata_file(path):
            instant = instant_of(path)
            if instant not in metadata and not (metadata_start and instant < metadata_start):
                (waits if instant in swept_later else wrong).append(
                    f"{path}: the metadata table has no instant {instant or 'of that name'}"
                )
        elif (instant := left_behind(path)) and not path.endswith(".crc") and not _counts(instant, facts, metadata):
            (waits if instant in swept_later else wrong).append(f"{path}: there is no instant {instant}")
    if wrong:
        return violated("stray", f"{len(wrong)} files belong to no instant", [*wrong, *waits])
    if waits:
        return unsettled(
            "stray",
            f"{len(waits)} files are of instants that wait for the agent's sweep: run the audit again after that",
            waits,
        )
    return ok("stray", f"{count} data files")


def _counts(instant: str, facts: Facts, metadata: Iterable[str]) -> bool:
    return instant in facts.known or instant in metadata


def _stray_data(path: str, facts: Facts, named: Mapping[str, Mapping[str, int]]) -> list[str]:
    instant = instant_of(path)
    if not instant:
        return [f"{path}: its name bears no instant"]
    if instant not in facts.known:
        return [f"{path}: there is no instant {instant}"]
    if instant in named and path not in named[instant]:
        return [f"{path}: completed {instant} does not name it"]
    return []


def owners(facts: Facts) -> Check:
    """Every pending instant has an owner that is alive or being settled (I7).

    No instant is pending in the metadata table only.
    """
    pending = {i.requested: i.action for i in facts.timeline.pending}
    lone = [i for i in facts.metadata_timeline.pending if i.requested not in pending]
    if not pending and not lone:
        return ok("owners", "nothing is pending")
    if (cannot := _cannot("owners", facts, "keys")) is not None:
        return cannot
    every = [
        *(f"{t} {action}" for t, action in sorted(pending.items())),
        *(f"{i.requested} {i.action} in the metadata table" for i in lone),
    ]
    if facts.keys is None:
        return unknown(
            "owners", f"{len(every)} instants are pending, and their owners are unknown: no etcd was given", every
        )
    wrong: list[str] = []
    waits: list[str] = []
    for instant, action in sorted(pending.items()):
        verdict, why = _owner(instant, facts.keys)
        if verdict != "ok":
            (wrong if verdict == "wrong" else waits).append(f"{instant} {action}: {why}")
    for i in lone:
        busy = Kind.LOCK in facts.keys.tables or bool(pending)
        (waits if busy else wrong).append(
            f"{i.requested} {i.action} is pending in the metadata table only{': a commit is under way' if busy else ''}"
        )
    if wrong:
        return violated("owners", f"{len(wrong)} pending instants have no live owner", [*wrong, *waits])
    if waits:
        return unsettled(
            "owners", f"{len(waits)} pending instants are being settled: run the audit again after that", waits
        )
    return ok("owners", f"{len(pending)} pending, all of living owners")


def _owner(instant: str, keys: Keys) -> tuple[str, str]:
    settles = {inc: SettleRecord.known(value) for inc, value in keys.of(Kind.SETTLE).items()}
    named = [inc for inc, settle in settles.items() if instant in settle.instants and settle.phase is not Phase.Settled]
    recorded = keys.of(Kind.INSTANT).get(instant)
    if recorded is None:
        return ("waits", f"{named[0]} is being settled") if named else ("wrong", "no record in etcd: it is foreign")
    record = InstantRecord.known(recorded)
    inc = record.claimed_by or record.inc
    if inc in settles:
        phase = settles[inc].phase
        return (
            ("wrong", f"its owner {inc} is settled")
            if phase is Phase.Settled
            else ("waits", f"its owner {inc} is being settled, phase {phase.name}")
        )
    if record.abandoned:
        return "waits", f"abandoned by its owner {inc}, waits for the agent"
    if inc in keys.of(Kind.FENCE):
        return "wrong", f"its owner {inc} is fenced but not being settled"
    if inc not in keys.of(Kind.WRITER):
        return "wrong", f"its owner {inc} is not registered"
    if inc not in keys.of(Kind.ALIVE):
        return "waits", f"the lease of its owner {inc} is gone, it is not fenced yet"
    return "ok", ""


def metadata(facts: Facts) -> Check:
    """The metadata table lists exactly the files of the storage, with their sizes.

    Files of pending instants are ignored.
    """
    if (cannot := _cannot("metadata", facts, "metadata", "archived")) is not None:
        return cannot
    if facts.metadata_files is None:
        return ok("metadata", "the table has no metadata table")
    pending = {i.requested for timeline in (facts.before, facts.timeline) for i in timeline.pending}
    # A file of an unknown instant is a finding of `stray`, not a difference between
    # table and listing.
    stored = {p: s for p, s in facts.files.items() if is_data_file(p) and instant_of(p) in facts.known - pending}
    listed = {p: s for p, s in facts.metadata_files.items() if instant_of(p) not in pending}
    wrong = [f"{p} is in the storage, not in the metadata table" for p in sorted(stored.keys() - listed.keys())]
    wrong += [f"{p} is in the metadata table, not in the storage" for p in sorted(listed.keys() - stored.keys())]
    wrong += [
        f"{p} has {stored[p]} bytes, {listed[p]} in the metadata table"
        for p in sorted(stored.keys() & listed.keys())
        if stored[p] != listed[p]
    ]
    if not wrong:
        return ok("metadata", f"{len(listed)} files in both")
    if any(i.action == "clean" for i in facts.timeline.pending):
        return unsettled("metadata", "a clean is running: run the audit again", wrong)
    return violated("metadata", f"{len(wrong)} differences", wrong)


def late(facts: Facts) -> Check:
    """No instant was completed after it was rolled back, or found gone, in settling its owner.

    Otherwise a request was on the wire longer than D (I3).

    A compaction or clustering that was rolled back to its plan and executed again (I12) completes
    after that rollback.
    """
    if (cannot := _cannot("late", facts, "rollbacks", "keys", "archive")) is not None:
        return cannot
    writes = {commit.instant.requested: commit for commit in (*facts.archived_commits, *facts.commits)}
    completed = {t: commit.instant for t, commit in writes.items()} | {i.requested: i for i in facts.timeline.completed}
    planned = {t for t, commit in writes.items() if commit.operation in PLANNED}
    wrong = {
        t: f"{t} is completed at {completed[t].completion} although rollback {r} has removed it"
        for t, r in facts.rolled_back.items()
        if t in completed and not (t in planned and completed[t].completion > r)
    }
    settles = (
        {inc: SettleRecord.known(value) for inc, value in facts.keys.of(Kind.SETTLE).items()}
        if facts.keys is not None
        else {}
    )
    for inc, record in settles.items():
        for instant, item in record.instants.items():
            if item.outcome in (Outcome.ROLLED_BACK, Outcome.GONE) and instant in completed:
                at = completed[instant].completion
                wrong[instant] = (
                    f"{instant} is completed at {at} although its owner {inc} was settled with the outcome "
                    f"{item.outcome}"
                )
    if wrong:
        sentence = (
            "an instant was completed after its owner was settled: a request was in flight for longer than the drain "
            "(fencing.drainSeconds); the instant's data may be incomplete"
        )
        return violated("late", sentence, [wrong[t] for t in sorted(wrong)])
    if facts.keys is None:
        return not_asked(
            "late", "no rollback contradicts the timeline; settle records were not compared: no etcd was given"
        )
    return ok("late", f"{len(settles)} settled incarnations, {len(facts.rolled_back)} rollbacks")


def overlap(facts: Facts) -> Check:
    """For two commits on one file group, one was requested after the other completed (I9).

    This holds whether they are archived or not. Commits in mode NonBlocking are ignored.
    """
    if (cannot := _cannot("overlap", facts, "commits", "archive")) is not None:
        return cannot
    gate = facts.keys.gate if facts.keys is not None else Gate()
    if gate.concurrency == Concurrency.NON_BLOCKING:
        return not_asked("overlap", "the table allows concurrent commits on one file group")
    allowed = gate.non_blocking_until
    active = {commit.instant.requested for commit in facts.commits}
    every = [*(commit for commit in facts.archived_commits if commit.instant.requested not in active), *facts.commits]
    groups: dict[str, list[Commit]] = defaultdict(list)
    for commit in every:
        if commit.operation not in COMPACTIONS:
            for group in commit.groups:
                groups[group].append(commit)
    wrong: dict[tuple[str, str], str] = {}
    for group, commits in sorted(groups.items()):
        running: list[Commit] = []
        for later in sorted(commits, key=lambda c: c.instant.requested):
            running = [earlier for earlier in running if later.instant.requested < earlier.instant.completion]
            for earlier in running:
                if max(earlier.instant.completion, later.instant.completion) > allowed:
                    pair = (earlier.instant.requested, later.instant.requested)
                    wrong.setdefault(
                        pair, f"{_interval(earlier.instant)} and {_interval(later.instant)} both wrote {group}"
                    )
            running.append(later)
    if wrong:
        return violated(
            "overlap",
            f"{len(wrong)} pairs of commits overlap on a file group: rows of one of them may be lost",
            list(wrong.values()),
        )
    archived = f", {len(every) - len(facts.commits)} of them archived" if len(every) > len(facts.commits) else ""
    return ok("overlap", f"{len(every)} completed writes{archived}, {len(groups)} file groups")


def _interval(instant: tl.Instant) -> str:
    return f"{instant.requested} (completed {instant.completion})"


CHECKS = {"files": files, "stray": stray, "owners": owners, "metadata": metadata, "late": late, "overlap": overlap}
