"""Progress: each file once, whatever is interrupted where (I9)."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_runtime.job.job import Job
from hudi_runtime.read import progress as pg
from hudi_runtime.read.progress import Progress, SourceFile
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import CommitInfo
from tests.support.world.job_json import JOB

FILES = st.lists(
    st.builds(
        SourceFile, path=st.text("abc/", min_size=1, max_size=6), size=st.integers(0, 3), modified=st.integers(0, 3)
    ),
    unique=True,
)


@settings(deadline=None)
@given(FILES, st.integers(1, 5))
def test_chunks_cover_every_file_once(files: list[SourceFile], size: int) -> None:
    progress = Progress()
    seen: list[SourceFile] = []
    for chunk in pg.chunks(files, progress, size):
        assert 1 <= len(chunk) <= size
        seen += chunk
        progress = pg.advance(progress, chunk)
    assert sorted(seen) == sorted(files)
    assert progress.count == len(files)
    assert pg.chunks(files, progress, size) == []


@settings(deadline=None)
@given(FILES, st.integers(1, 3), st.integers(0, 5))
def test_a_restart_goes_on_where_the_commit_was(files: list[SourceFile], size: int, done: int) -> None:
    chunks = pg.chunks(files, Progress(), size)
    progress = Progress()
    for chunk in chunks[:done]:
        progress = pg.advance(progress, chunk)
    assert pg.chunks(files, progress, size) == chunks[done:]


@settings(deadline=None)
@given(FILES, st.randoms())
def test_digest_is_of_the_set(files: list[SourceFile], random: object) -> None:
    shuffled = list(files)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert pg.digest_of(files) == pg.digest_of(shuffled)


def test_no_limit_is_one_commit() -> None:
    files = [SourceFile("a", 1, 1), SourceFile("b", 1, 1)]
    assert pg.chunks(files, Progress(), None) == [files]
    assert pg.chunks([], Progress(), None) == []


def test_a_rewritten_file_is_another_file() -> None:
    progress = pg.advance(Progress(), [SourceFile("a", 1, 1)])
    assert pg.chunks([SourceFile("a", 1, 2)], progress, None) == [[SourceFile("a", 1, 2)]]


def test_batches_differ() -> None:
    digests = {str(pg.batches_checkpoint(run, count)["digest"]) for run in ("u/1", "u/2") for count in (1, 2)}
    assert len(digests) == 4


def test_a_writer_that_is_applied_again_begins_a_run_of_its_own() -> None:
    """F97: the first run of the new HudiWriter was taken for that of the deleted one, and what it
    should have written for committed.
    """
    old = Job.from_json(JOB)
    new = Job.from_json({**JOB, "writer": {**JOB["writer"], "uid": "another"}})
    done = pg.of_checkpoint(pg.batches_checkpoint(old.run, 1))
    assert old.writer == new.writer
    assert done.run == Job.from_json({**JOB, "attempt": {"id": "default.w-2", "number": 2}}).run, (
        "the next attempt goes on"
    )
    assert done.run != new.run
    assert done.run != Job.from_json({**JOB, "run": 2}).run


def test_files_are_known_whatever_the_writer_has_read_since() -> None:
    """F103: a HudiWriter that had read files, then a query, then files again, committed all files
    once more.
    """
    files = pg.advance(Progress(), [SourceFile("a", 1, 1)])
    manifest = pg.manifest_path("w", files.digest)
    words = [files.checkpoint(manifest=manifest), pg.batches_checkpoint("u/1", 1)]
    names = [f"2026010100000000{n}_2026010100000001{n}.commit" for n in range(2)]

    def table(count: int, *, archived: int = 0) -> Any:
        timeline = tl.parse(names[archived:count])
        found = [
            (instant, CommitInfo({"hudioperator.writer": "w", "hudioperator.progress": json.dumps(word)}, 1))
            for instant, word in zip(tl.parse(names).completed, words, strict=True)
        ]
        return SimpleNamespace(
            timeline=lambda: timeline,
            commits=lambda instants: (next(pair for pair in found if pair[0] == i) for i in instants),
            has_archive=lambda: archived > 0,
            archived_commits=lambda: iter(found[:archived]),
            storage=SimpleNamespace(read=lambda path: json.dumps({"files": [["a", 1, 1]]}) if path == manifest else ""),
        )

    assert pg.read(table(2), "w", of_files=True)[0].files == files.files
    assert pg.read(table(2, archived=1), "w", of_files=True)[0].files == files.files
    assert pg.read(table(2), "w")[0].run == "u/1"
    assert pg.read(table(2), "another", of_files=True)[0] == Progress()


def test_progress_that_a_savepoint_would_bring_back_is_kept() -> None:
    """Each writer's newest checkpoint at each savepoint, whoever has written since.

    Without one in the active timeline, the archive's.
    """
    names = [
        "20260101000000002_20260101000000003.commit",
        "20260101000000004_20260101000000005.commit",
        "20260101000000004_20260101000000006.savepoint",
    ]
    timeline = tl.parse([*names, "20260101000000007_20260101000000008.commit"])
    words = {
        "20260101000000002": ("w", "boundary"),
        "20260101000000004": ("other", "others"),
        "20260101000000007": ("w", "newer"),
    }

    def info(writer: str, digest: str) -> CommitInfo:
        return CommitInfo(
            {
                "hudioperator.writer": writer,
                "hudioperator.progress": json.dumps({"digest": digest, "count": 1, "manifest": "m"}),
            },
            1,
        )

    archived = tl.Instant("20260101000000000", "commit", tl.State.COMPLETED, "20260101000000001")
    table: Any = SimpleNamespace(
        timeline=lambda: timeline,
        commits=lambda instants: ((i, info(*words[i.requested])) for i in instants if i.action == "commit"),
        has_archive=lambda: True,
        archived_commits=lambda: iter([(archived, info("old", "archived"))]),
    )
    assert pg.kept_by_savepoints(table, "w") == {"boundary"}
    assert pg.kept_by_savepoints(table, "old") == {"archived"}
    assert pg.kept_by_savepoints(table, "new") == frozenset()
