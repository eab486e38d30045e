"""The workload's own arithmetic: what must be in the table is computed from the batches, never read
from the table.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from demo import cluster

from hudi_operator.api import services
from hudi_operator.api.spec import TableSpec
from tests.campaigns.chaos import __main__ as command
from tests.campaigns.chaos import campaign, page, workload
from tests.support.cluster import space


def test_every_attempt_and_the_judge_draw_the_same_batch() -> None:
    assert workload.rows(7, 1, 3) == workload.rows(7, 1, 3)
    assert workload.rows(7, 1, 3) != workload.rows(8, 1, 3)
    assert len({key for key, *_ in workload.rows(7, 1, 3)}) == workload.ROWS


def test_writers_share_keys_and_insert_the_same_new_ones() -> None:
    keys = [{key for batch in range(20) for key, *_ in workload.rows(7, writer, batch)} for writer in range(3)]
    assert all(len(one & other) > 50 for one in keys for other in keys)
    assert max(keys[0]) >= workload.START, "keys come into reach that were not there in the first batch"


def test_of_each_key_the_row_with_the_largest_ts_is_due_whatever_the_order() -> None:
    committed = [(writer, batch) for writer in range(3) for batch in range(10)]
    due = workload.expected(7, committed)
    assert due.equals(workload.expected(7, reversed(committed)))
    assert due["id"].is_unique
    last = max(
        (row for writer, batch in committed for row in workload.rows(7, writer, batch) if row[0] == due["id"][0]),
        key=lambda row: row[3],
    )
    assert tuple(due.iloc[0]) == last


def test_a_batch_that_is_not_committed_is_not_due() -> None:
    some = workload.expected(7, [(0, 0)])
    assert set(some["value"]) == {"0.0"}
    assert len(some) == workload.ROWS


def test_a_batch_that_is_missing_before_a_later_one_is_a_gap() -> None:
    assert workload.gaps([(0, 0), (0, 1), (1, 0), (1, 0)]) == []
    assert workload.gaps([(0, 0), (0, 3), (1, 1)]) == ["0.1", "0.2", "1.0"]


def test_no_two_batches_have_the_same_ts() -> None:
    stamps = [workload.rows(7, writer, batch)[0][3] for writer in range(5) for batch in range(30)]
    assert len(set(stamps)) == len(stamps)


def test_a_schedule_comes_from_its_seed_and_meets_everything() -> None:
    drawn = workload.schedule(7, 3 * 3600, 4)
    assert drawn == workload.schedule(7, 3 * 3600, 4)
    assert {target for _, _, target, _, _ in drawn} == set(workload.TARGETS)
    assert {how for _, how, *_ in drawn} == {"kill", "freeze"}
    between = [later[0] - one[0] for one, later in itertools.pairwise(drawn)]
    assert min(between) >= 9.9
    assert max(between) <= 30.1


def test_the_page_counts_faults_that_hit_and_shows_what_is_broken() -> None:
    one = {
        "cell": "mor-default",
        "seconds": 1200.0,
        "seed": 5,
        "commit": "abc",
        "at": "2026-01-01T00:00Z",
        "verdict": "broken",
        "bad": {"rows": "81 keys twice"},
        "gaps": ["0.1"],
        "batches": {"w0": 3},
        "lost": ["1.4 (attempt 2)"],
        "settled": 1,
        "keys": 9,
        "faults": [{"how": "kill", "target": "w1", "hit": True}, {"how": "kill", "target": "s3", "hit": False}],
    }
    text = page.page([one])
    assert "1 kill driver |" in text
    assert "**broken**: rows: 81 keys twice; gaps: 0.1; lost: 1.4 (attempt 2)" in text
    assert "| w0 3 | - | - | - | - | 1 | 9 |" in text, "an earlier run, of which less is known"
    newer = {**one, "acknowledged": 7, "archived": 4, "clusterings": 2}
    assert "| w0 3 | 7 | - | 4 | 2 | 1 | 9 |" in page.page([newer])
    assert "1 runs: 1 broken; 0.3 hours of faults." in text
    assert "Not run." in page.page([])


def run_of(number: int, **more: Any) -> dict[str, Any]:
    """A run in which nothing was wrong, of a harness that kept no run that hung."""
    one = {"cell": "cow-default", "seconds": 1200.0, "seed": number, "commit": "abc", "at": f"2026-01-0{number}T00:00Z"}
    return one | {"verdict": "ok", "bad": {}, "gaps": [], "batches": {}, "settled": 1, "keys": 9, "faults": []} | more


def answer(text: str, begin: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {begin}")]
    return line.partition(" | ")[2]


def test_each_question_has_the_runs_that_it_was_asked_in() -> None:
    """Those of another question say nothing about it."""
    told = {"acknowledged": 3, "archived": 2, "lost": []}
    found = [
        run_of(1),
        run_of(2, history=[]),
        run_of(3, history=["G0: a"], verdict="broken", **told),
        run_of(4, **told),
    ]
    text = page.page(found)
    assert answer(text, "Rows lost") == "4 | 0 of 4: less than 53 % |"
    assert answer(text, "Histories") == "2 | 1 of 2: less than 97 % |"
    assert answer(text, "Acknowledged") == "2 | 0 of 2: less than 78 % |"
    assert answer(text, "Any of these, in a run with archival") == "2 | 1 of 2: less than 97 % |"
    assert answer(text, "Any of these, in a run with completed") == "0 | 0 of 0: nothing is known |"
    assert answer(text, page.HANGS) == "0 | 0 of 0: nothing is known |"
    assert "did not record runs that hung; their number is unknown" in text
    assert "4 runs: 3 ok, 1 broken; " in text


class Hanging:
    """In the place of a namespace: its table never gets ready."""

    namespace = "chaos-1"

    def __init__(self) -> None:
        self.logs = SimpleNamespace(start=lambda: None, stop=lambda: None)

    def table(self, name: str, **_: object) -> None:
        pass

    def wait(self, resource: str, condition: str, *, seconds: float) -> None:
        space.Space.wait(self, resource, condition, seconds=seconds)  # type: ignore[arg-type]


def chaos(monkeypatch: pytest.MonkeyPatch, commands: list[tuple[str, ...]]) -> campaign.Chaos:
    def kubectl(*arguments: str, **_: object) -> str:
        commands.append(arguments)
        if arguments[0] == "wait":
            raise cluster.KubectlFailed("kubectl wait: error: timed out waiting for the condition on huditables/t")
        return ""

    monkeypatch.setattr(cluster, "kubectl", kubectl)
    monkeypatch.setattr(campaign, "kubectl", kubectl)
    monkeypatch.setattr(campaign, "make_space", lambda *_: Hanging())
    made = campaign.Chaos.__new__(campaign.Chaos)
    made.commit = "abc"
    made.lake = made.watch = made.screen = None  # type: ignore[assignment]
    return made


def test_a_run_in_which_the_product_hangs_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """And its namespace stays."""
    commands: list[tuple[str, ...]] = []
    found = chaos(monkeypatch, commands).run("cow-default", 5, 60)
    assert (found["verdict"], found["stuck"]) == ("stuck", "waited 300 s for huditable/t to be Ready")
    assert not [one for one in commands if one[0] == "delete"]
    text = page.page([run_of(1), run_of(2, stuck=""), found])
    assert "| **stuck**: waited 300 s for huditable/t to be Ready |" in text
    assert answer(text, page.HANGS) == "2 | 1 of 2: less than 97 % |", "the first one is of a harness that kept none"
    assert answer(text, "Rows lost") == "2 | 0 of 2: less than 78 % |", "of a run that hung it was not asked"
    assert re.search(r"Runs that hang are kept since `abc`.* \(2026-01-02\)", text)
    assert "3 runs: 2 ok, 1 stuck; 0.7 hours" in text


def test_an_error_of_the_harness_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    made = chaos(monkeypatch, [])

    def refused(*_: str, **__: object) -> str:
        raise cluster.KubectlFailed("kubectl wait: no connection")

    monkeypatch.setattr(cluster, "kubectl", refused)
    with pytest.raises(cluster.KubectlFailed):
        made.run("cow-default", 5, 60)


def test_what_hangs_is_written_down_and_ends_the_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writers of such a run may go on: another one beside them shows nothing."""
    begun: list[str] = []

    class Stuck:
        def __enter__(self) -> Stuck:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def run(self, cell: str, seed: int, seconds: float) -> dict[str, Any]:
            begun.append(cell)
            found = {"verdict": "stuck", "stuck": "waited 300 s for nothing pending", "faults": []}
            return found | {"cell": cell, "seed": seed, "seconds": seconds, "commit": "abc", "at": "2026-01-01T00:00Z"}

    monkeypatch.setattr(command, "Chaos", Stuck)
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "PAGE", tmp_path / "chaos.md")
    monkeypatch.setattr("sys.argv", ["chaos", "cow-default", "mor-default", "--seed", "7"])
    assert command.main() == 1
    assert begun == ["cow-default"]
    assert json.loads((tmp_path / "cow-default-7.json").read_text())["stuck"] == "waited 300 s for nothing pending"
    assert "waited 300 s for nothing pending" in (tmp_path / "chaos.md").read_text()
    assert command.main() == 1
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["cow-default-7-again-1.json", "cow-default-7.json"]


LOG = """2026-01-01T00:00:00Z stdout F CHAOS-NOTE {note}
2026-01-01T00:00:01Z stdout F something else
2026-01-01T00:00:02Z stdout F CHAOS-NOTE {{"writer": 0, "ba"""
A, B = (str(key) for key in workload.LISTS[:2])


def note(writer: int, batch: int, read: dict[str, list[str]], *, attempt: int = 1, number: int = 1) -> str:
    mark = f"{writer}.{batch}.{attempt}.{number}"
    said = {"writer": writer, "batch": batch, "attempt": attempt, "try": number, "mark": mark, "read": read}
    return LOG.format(note=json.dumps(said))


def test_lists_of_the_last_tries_are_due() -> None:
    noted = workload.notes(
        [note(0, 3, {A: [], B: []}), note(1, 3, {A: [], B: []}), note(1, 3, {A: ["0.3.1.1"], B: []}, attempt=2)]
    )
    assert len(noted) == 3, "the line that was cut off is no note"
    due = workload.expected(7, [(0, 3), (1, 3)], noted)
    assert due.values.tolist() == [[workload.LISTS[0], "lists", "0.3.1.1 1.3.2.1", 2]]
    assert workload.history([(0, 3), (1, 3)], noted) == []


def test_a_lost_update_is_found() -> None:
    noted = workload.notes([note(0, 3, {A: [], B: []}), note(1, 3, {A: [], B: []})])
    assert [one.partition(":")[0] for one in workload.history([(0, 3), (1, 3)], noted)] == ["G-single"]


def test_a_commit_that_nobody_noted_and_a_read_of_what_was_not_committed_are_found() -> None:
    assert workload.history([(0, 3)], []) == ["broken: 0.3 is committed, and no pod has noted it"]
    noted = workload.notes([note(0, 3, {A: [], B: []}), note(1, 3, {A: ["0.3.1.1"], B: []})])
    assert any(one.startswith("G1a") for one in workload.history([(1, 3)], noted))


def test_each_second_batch_of_the_first_writers_appends() -> None:
    assert [batch for batch in range(8) if workload.is_append(1, batch)] == [1, 3, 5, 7]
    assert not workload.is_append(2, 3)


def test_what_was_acknowledged_is_in_a_commit_of_that_attempt_or_an_earlier_one() -> None:
    """A later attempt that writes the batch again has made up for a loss."""
    committed = [(0, 0, 1), (0, 1, 2), (3, 0, 1), (3, 0, 2)]
    assert workload.lost([(0, 0, 1), (0, 0, 3), (0, 1, 2), (3, 0, 2)], committed) == []
    assert workload.lost([(0, 1, 1), (0, 2, 2)], committed) == ["0.1 (attempt 1)", "0.2 (attempt 2)"]


class Frames:
    """In the place of Spark: rows are all that there is of a frame."""

    def createDataFrame(self, rows: list[tuple[object, ...]], schema: str) -> list[tuple[object, ...]]:
        return rows


def test_a_batch_is_acknowledged_when_the_next_one_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    given = SimpleNamespace(
        arguments={"seed": "7", "writer": "2", "batches": "3", "pause": "0"}, job=SimpleNamespace(number=4)
    )
    source = workload._code["batches"](Frames(), given)  # type: ignore[operator]
    next(source)
    assert workload.acknowledgements([capsys.readouterr().out]) == set(), "it is not committed yet"
    next(source)
    assert workload.acknowledgements([capsys.readouterr().out]) == {(2, 0, 4)}
    cut = f"2026-01-01T00:00:02Z stdout F {workload.ACK}" + '{"writer": 0, "ba'
    assert workload.acknowledgements([cut]) == set()


@pytest.mark.parametrize("cell", [f"{kind}-{index}" for kind in workload.TYPES for index in workload.INDEXES])
def test_each_table_may_be_as_it_is(cell: str) -> None:
    spec = {"path": "s3a://lake/t", "recordKeyFields": ["id"], "partitionFields": ["part"], **workload.table(cell)}
    metadata = {"namespace": "n", "name": "t", "uid": "u", "generation": 1, "resourceVersion": "1"}
    table = TableSpec.from_object({"kind": "HudiTable", "metadata": metadata, "spec": spec})
    on = {service.kind for service in table.services}
    assert on == {"clean", "archive"} | ({"compaction"} if "mor" in cell else set()) | (
        {"clustering"} if "default" in cell else set()
    )
    assert not services.problem(table.services)
    assert not services.clustering_problem(
        table.services, mode=table.concurrency_mode, index=table.index_type, partitioned=True
    )
