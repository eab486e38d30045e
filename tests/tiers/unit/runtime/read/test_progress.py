"""Progress: each file once, whatever is interrupted where (I9)."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_runtime.job.job import Job
from hudi_runtime.read import progress as pg
from hudi_runtime.read import sources
from hudi_runtime.read.manifests import KnownFiles, Manifests, SourceFile, path_of
from hudi_runtime.read.progress import Progress, ProgressError
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import CommitInfo
from tests.support.world.fake_table import FakeStorage
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
    whole, one_by_one = KnownFiles().plus(files), KnownFiles()
    for file in shuffled:
        one_by_one = one_by_one.plus([file])
    assert one_by_one.digest == whole.digest
    assert sorted(one_by_one) == sorted(files)
    if files:
        assert KnownFiles().plus(files[1:]).digest != whole.digest


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
    storage: Any = FakeStorage()
    files = pg.advance(Progress(), [SourceFile("a", 1, 1)])
    known, manifest = Manifests(storage, "w").write(files.files)
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
            storage=storage,
        )

    assert pg.read(table(2), "w", of_files=True)[0].files == known
    assert pg.read(table(2, archived=1), "w", of_files=True)[0].files == known
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

    def info(writer: str, manifest: str) -> CommitInfo:
        return CommitInfo(
            {
                "hudioperator.writer": writer,
                "hudioperator.progress": json.dumps({"digest": "d", "count": 1, "manifest": manifest}),
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
    assert pg.at_savepoints(table, "w") == ["boundary"]
    assert pg.at_savepoints(table, "old") == ["archived"]
    assert pg.at_savepoints(table, "new") == []


# ---- manifests


def files_of(numbers: Iterable[int]) -> list[SourceFile]:
    return [SourceFile(f"s3a://lake/landing/{n:06d}.json", n, n) for n in numbers]


class Attempts:
    """Attempts of one writer, each of which knows what the last commit says, and nothing else."""

    def __init__(self) -> None:
        self.storage: Any = FakeStorage()
        self.committed: dict[str, object] = {}
        self.needed: list[str] = []
        self.listed = 0

    def begin(self) -> tuple[Manifests, Progress]:
        instant = tl.Instant("20260101000000000", "commit", tl.State.COMPLETED, "20260101000000001")
        done = pg._load(self.storage, "w", self.committed, instant) if self.committed else Progress()
        return Manifests(self.storage, "w", needed=self.needed), done

    def write(
        self, manifests: Manifests, done: Progress, files: Iterable[SourceFile]
    ) -> tuple[Progress, dict[str, object]]:
        """What is there before the commit, and what the commit would say."""
        after = pg.advance(done, list(files))
        known, path = manifests.write(after.files)
        self.listed += len(json.loads(self.storage.read(path))["files"])
        return replace(after, files=known), after.checkpoint(manifest=path)

    def commit(self, manifests: Manifests, done: Progress, files: Iterable[SourceFile]) -> Progress:
        after, self.committed = self.write(manifests, done, files)
        manifests.prune(done.files, after.files)
        return after


def test_a_commit_lists_its_own_files_and_now_and_then_those_of_others() -> None:
    """A manifest with the files of all commits in each of them grew with the square of these."""
    attempts, many = Attempts(), 1000
    manifests, done = attempts.begin()
    for n in range(many):
        done = attempts.commit(manifests, done, files_of([n]))
        assert len(attempts.storage.files) <= 2 * many.bit_length()
    assert attempts.listed <= many * many.bit_length()
    assert sorted(attempts.begin()[1].files) == files_of(range(many))
    assert len(attempts.begin()[1].files.parts) <= many.bit_length()


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["committed", "not committed", "no rows", "next attempt"])),
        max_size=30,
    )
)
def test_whatever_is_interrupted_where_each_committed_file_is_known(steps: list[tuple[int, str]]) -> None:
    attempts, expected, waiting, next_file = Attempts(), set[SourceFile](), set[SourceFile](), 0
    manifests, done = attempts.begin()
    for number, how in steps:
        chunk = files_of(range(next_file, next_file + number))
        next_file += number
        if how == "committed":
            done = attempts.commit(manifests, done, chunk)
            expected, waiting = expected | waiting | set(chunk), set()
        elif how == "no rows":  # known to this attempt alone, until it commits
            done = pg.advance(done, chunk)
            waiting |= set(chunk)
        else:
            if how == "not committed":  # its manifest is there, and an attempt begins that knows nothing of it
                attempts.write(manifests, done, chunk)
            (manifests, done), waiting = attempts.begin(), set()
        assert set(attempts.begin()[1].files) == expected


def test_files_that_had_no_rows_are_in_the_manifest_of_the_next_commit() -> None:
    attempts = Attempts()
    manifests, done = attempts.begin()
    done = attempts.commit(manifests, done, files_of(range(5)))
    done = attempts.commit(manifests, pg.advance(done, files_of([5])), files_of([6]))
    attempts.commit(manifests, done, files_of([7]))
    assert sorted(attempts.begin()[1].files) == files_of(range(8))


def test_a_process_that_goes_on_after_its_fence_takes_nothing_from_its_successor() -> None:
    attempts = Attempts()
    late, done = attempts.begin()
    done = attempts.commit(late, done, files_of([0]))
    after = attempts.commit(late, done, files_of([1]))
    manifests, theirs = attempts.begin()
    for n in range(2, 9):
        theirs = attempts.commit(manifests, theirs, files_of([n]))
        late.prune(done.files, after.files)
        attempts.write(late, after, files_of([2]))
        assert sorted(attempts.begin()[1].files) == files_of(range(n + 1))


def test_what_a_savepoint_would_bring_back_stays() -> None:
    attempts = Attempts()
    manifests, done = attempts.begin()
    for n in range(3):
        done = attempts.commit(manifests, done, files_of([n]))
    at_savepoint = attempts.committed
    attempts.needed = [str(at_savepoint["manifest"])]
    for n in range(3, 20):
        manifests, done = attempts.begin()
        attempts.commit(manifests, done, files_of([n]))
    attempts.committed = at_savepoint
    assert sorted(attempts.begin()[1].files) == files_of(range(3))


def test_a_manifest_that_is_gone_or_changed_is_an_error_and_no_empty_one() -> None:
    attempts = Attempts()
    manifests, done = attempts.begin()
    for n in range(3):
        done = attempts.commit(manifests, done, files_of([n]))
    paths = [path_of("w", name) for name in done.files.names]
    assert len(paths) == 2
    for path in paths:
        text = attempts.storage.texts[path]
        attempts.storage.files.discard(path)
        with pytest.raises(ProgressError, match=f"commit 20260101000000000: the manifest {path} is gone"):
            attempts.begin()
        attempts.storage.write(path, text.replace("landing", "other"))
        with pytest.raises(ProgressError, match="is not what was written"):
            attempts.begin()
        attempts.storage.write(path, text)
    assert len(attempts.begin()[1].files) == 3
    attempts.committed = {**attempts.committed, "digest": "0" * 32}
    with pytest.raises(ProgressError, match="do not have the digest"):
        attempts.begin()
    attempts.committed = {**attempts.committed, "manifest": "../../x/elsewhere.json"}
    with pytest.raises(ProgressError, match="'elsewhere' is no name of a manifest"):
        attempts.begin()


def test_manifests_are_looked_for_once_in_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a streaming run looks for files: no savepoint is taken meanwhile."""
    storage: Any = FakeStorage()
    looks = {"timeline": 0, "manifests": 0}

    def timeline() -> tl.Timeline:
        looks["timeline"] += 1
        return tl.Timeline()

    def names(folder: str) -> list[str]:
        looks["manifests"] += 1
        return FakeStorage.names(storage, folder)

    monkeypatch.setattr(storage, "names", names)
    monkeypatch.setattr(sources.files, "listed", lambda *_, **__: landed)
    monkeypatch.setattr(sources.files, "read", lambda _spark, _source, paths: paths)
    monkeypatch.setattr(sources.files, "is_empty", lambda *_: False)
    table: Any = type("Table", (), {"storage": storage, "timeline": staticmethod(timeline)})()
    job = Job.from_json(JOB | {"source": {"files": {"format": "csv", "paths": ["s3a://landing/"]}}})
    of_attempt, done, before, nothing = functools.cache(pg.manifests_of), Progress(), Progress(), None
    for number in range(1, 5):
        landed = files_of(range(number))
        for batch in sources.batches(nothing, job, table, nothing, done, manifests=of_attempt):  # type: ignore[arg-type]
            before, done = done, batch.done
    assert looks == {"timeline": 1, "manifests": 1}
    assert len(done.files) == 4
    needed = before.files.names | done.files.names
    assert {name.rpartition("/")[2] for name in storage.files} == {f"{name}.json" for name in needed}
