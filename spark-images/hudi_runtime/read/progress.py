"""The progress of a writer.

It is stored in the commit, and only a completed commit counts (F5, I9).

The commit's metadata holds a bounded checkpoint, `{"digest", "count", "manifest"}`; for a Hudi
source also `hudi`, the source table and the position in it; for Kafka `kafka`, the next offset of
each partition; for a database `jdbc`, the greatest value that was read; and `bad` when records were
left out (`bad_records`). For files the checkpoint names a manifest (`manifests`), which is written
before the commit; without a completed commit that names it, it has no effect.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hudi_contract import metadata
from hudi_runtime.read import manifests
from hudi_runtime.read.manifests import KnownFiles, ManifestError, Manifests, SourceFile
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import CommitInfo, Table
from hudi_runtime.table.storage import Storage


@dataclass(frozen=True)
class Progress:
    """Progress according to the newest completed commit of this writer."""

    count: int = 0
    digest: str = ""
    files: KnownFiles = field(default_factory=KnownFiles)
    instant: str = ""
    completion: str = ""
    run: str = ""
    """The run that counted batches (`Job.run`); empty for other sources."""
    hudi: Mapping[str, object] | None = None
    """`path` of the source table and the position in it; None when the commit is not of
    such a source.
    """
    kafka: Mapping[str, object] | None = None
    """The position in topics of Kafka; None when the commit is not of such a source."""
    jdbc: Mapping[str, object] | None = None
    """The position in a table or query of a database; None when the commit is not of such a
    source, or each run reads everything.
    """
    bad: int = 0
    """Records that the writer's commits have left out until then (`bad_records`)."""

    def checkpoint(self, *, manifest: str = "") -> dict[str, object]:
        """The bounded form that goes into commit metadata."""
        return {"count": self.count, "digest": self.digest, "manifest": manifest}


class ProgressError(Exception):
    """A completed commit names a manifest that does not match it.

    Continuing would lose or repeat rows.
    """


def batches_checkpoint(run: str, count: int) -> dict[str, object]:
    """Checkpoint of a source that counts the batches of one run."""
    return {
        "count": count,
        "digest": hashlib.sha256(f"batches:{run}:{count}".encode()).hexdigest()[:32],
        "manifest": "",
        "run": run,
    }


def hudi_checkpoint(count: int, path: str, position: Mapping[str, object]) -> dict[str, object]:
    """Checkpoint of a Hudi source: `count` commits read, and the position after them."""
    hudi = {"path": path, **position}
    digest = hashlib.sha256(json.dumps(hudi, sort_keys=True).encode()).hexdigest()[:32]
    return {"count": count, "digest": digest, "manifest": "", "hudi": hudi}


def kafka_checkpoint(count: int, position: Mapping[str, object]) -> dict[str, object]:
    """Checkpoint of a Kafka source: `count` offsets read, and the position after them."""
    digest = hashlib.sha256(json.dumps(position, sort_keys=True).encode()).hexdigest()[:32]
    return {"count": count, "digest": digest, "manifest": "", "kafka": dict(position)}


def jdbc_checkpoint(count: int, position: Mapping[str, object]) -> dict[str, object]:
    """Checkpoint of a database: `count` rows read, and the position after them."""
    digest = hashlib.sha256(json.dumps(position, sort_keys=True).encode()).hexdigest()[:32]
    return {"count": count, "digest": digest, "manifest": "", "jdbc": dict(position)}


def of_checkpoint(
    checkpoint: Mapping[str, object],
    *,
    files: KnownFiles = KnownFiles(),  # noqa: B008 - immutable
    instant: str = "",
    completion: str = "",
) -> Progress:
    """Progress of the commit that carries this checkpoint; `files` are those of its manifest."""
    hudi, kafka, jdbc = (checkpoint.get(kind) for kind in ("hudi", "kafka", "jdbc"))
    return Progress(
        count=int(str(checkpoint["count"])),
        digest=str(checkpoint["digest"]),
        files=files,
        instant=instant,
        completion=completion,
        run=str(checkpoint.get("run", "")),
        hudi=hudi if isinstance(hudi, dict) else None,
        kafka=kafka if isinstance(kafka, dict) else None,
        jdbc=jdbc if isinstance(jdbc, dict) else None,
        bad=left_out(checkpoint),
    )


def left_out(checkpoint: Mapping[str, object] | None) -> int:
    """Records that the writer's commits have left out, up to the one with this checkpoint."""
    bad = (checkpoint or {}).get("bad")
    return int(bad["total"]) if isinstance(bad, dict) else 0


def advance(progress: Progress, files: Sequence[SourceFile]) -> Progress:
    """Progress after one more commit of `files`."""
    known = progress.files.plus(files)
    return Progress(count=len(known), digest=known.digest, files=known)


def chunks(files: Iterable[SourceFile], progress: Progress, size: int | None) -> list[list[SourceFile]]:
    """Files not yet processed, in order, `size` at a time; None puts all of them in one commit."""
    waiting = sorted(item for item in files if item not in progress.files)
    step = size or max(len(waiting), 1)
    return [waiting[start : start + step] for start in range(0, len(waiting), step)]


def parse_checkpoint(info: CommitInfo, writer: str) -> Mapping[str, object] | None:
    """The checkpoint in a commit's metadata.

    None when the commit is another writer's or carries none.
    """
    if info.extra.get(metadata.WRITER) != writer or metadata.PROGRESS not in info.extra:
        return None
    checkpoint = json.loads(info.extra[metadata.PROGRESS])
    return checkpoint if isinstance(checkpoint, dict) else None


def read(table: Table, writer: str, *, of_files: bool = False) -> tuple[Progress, str]:
    """Newest progress of the writer, and the completion time up to which the timeline was read.

    The time is `0` for an empty timeline.

    `of_files`: a HudiWriter that reads files continues from its newest commit of files, even if it
    has read another source since (F103).
    """
    timeline = table.timeline()
    base = timeline.newest
    for instant, checkpoint in _checkpoints(
        table, writer, tuple(reversed(timeline.completed)), archived=lambda _: True
    ):
        if not of_files or checkpoint.get("manifest"):
            return _load(table.storage, writer, checkpoint, instant), base
    return Progress(), base


def _checkpoints(
    table: Table, writer: str, active: tuple[tl.Instant, ...], *, archived: Callable[[tl.Instant], bool]
) -> Iterator[tuple[tl.Instant, Mapping[str, object]]]:
    """The writer's checkpoints in these commits, then in archived ones, newest first."""
    for instant, info in table.commits(active):
        if (checkpoint := parse_checkpoint(info, writer)) is not None:
            yield instant, checkpoint
    if table.has_archive():
        for instant, info in table.archived_commits():
            if archived(instant) and (checkpoint := parse_checkpoint(info, writer)) is not None:
                yield instant, checkpoint


def manifests_of(table: Table, writer: str) -> Manifests:
    """The manifests of a writer, for one attempt (`at_savepoints`)."""
    return Manifests(table.storage, writer, needed=at_savepoints(table, writer))


def at_savepoints(table: Table, writer: str) -> list[str]:
    """The writer's manifests at each savepoint: a restore would need them again.

    No savepoint is taken while an attempt runs.
    """
    timeline = table.timeline()
    found = list[str]()
    for savepoint in (s for s in timeline.savepoints if not s.pending):
        until = savepoint.completion
        before = tuple(i for i in reversed(timeline.completed) if i.completion < until)
        checkpoints = _checkpoints(
            table,
            writer,
            before,
            archived=lambda i, until=until: i.completion < until,  # type: ignore[misc]
        )
        found += itertools.islice((str(c["manifest"]) for _, c in checkpoints if c.get("manifest")), 1)
    return found


def _load(storage: Storage, writer: str, checkpoint: Mapping[str, object], instant: tl.Instant) -> Progress:
    files = KnownFiles()
    if checkpoint.get("manifest"):
        try:
            files = manifests.load(storage, writer, str(checkpoint["manifest"]))
        except ManifestError as error:
            raise ProgressError(f"commit {instant.requested}: {error}") from error
        if files.digest != checkpoint["digest"]:
            raise ProgressError(
                f"commit {instant.requested}: the files of {checkpoint['manifest']} do not have the digest "
                f"that the commit names"
            )
    return of_checkpoint(checkpoint, files=files, instant=instant.requested, completion=instant.completion)
