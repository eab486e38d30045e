"""What a run is judged by, on runs made by hand: each count is there when what it counts is, and
else zero.
"""

from __future__ import annotations

import json
import random
from typing import Any

from hudi_runtime.audit import Check, Outcome
from tests.campaigns.history import run
from tests.campaigns.history.run import AUDITED, CELLS, check
from tests.campaigns.history.workload import ACCOUNTS, LISTS, Commit, Found, judge, met, parse_notes, seed, steps
from tests.support.harness.etcd_server import Key

Notes = list[dict[str, Any]]
ROWS = {number: v for number, _, v, _ in seed(1)}
FIRST = Commit("1", "1", ROWS)


def note(mark: str, reads: dict[int, str], writes: dict[int, str]) -> dict[str, Any]:
    return {"mark": mark, "step": mark, "read": reads, "write": writes}


def judged(notes: Notes, commits: list[Commit], **more: Any) -> Found:
    state = {number: (number, p, v) for number, p, v, _ in seed(1)}
    for commit in commits:
        state.update(
            {number: (number, state[number][1] if number in state else "u", v) for number, v in commit.rows.items()}
        )
    return judge(notes, [FIRST, *commits], [*state.values(), *more.get("rows", [])], 1)


def test_nothing_happened() -> None:
    found = judged([], [])
    assert (found.commits, found.not_serializable, found.of_pairs, found.of_keys) == (1, [], 1, 1)


def test_a_lost_append() -> None:
    notes = [note("a", {1: "seed"}, {1: "seed a"}), note("b", {1: "seed"}, {1: "seed b"})]
    found = judged(notes, [Commit("2", "2", {1: "seed a"}), Commit("3", "3", {1: "seed b"})])
    assert (found.lost, found.anomalies) == (1, {"G-single": 1})
    assert found.broken == ["G-single: 1", "lost: 1"]
    notes[1] = note("b", {1: "seed a"}, {1: "seed a b"})
    assert judged(notes, [Commit("2", "2", {1: "seed a"}), Commit("3", "3", {1: "seed a b"})]).not_serializable == []


def test_a_try_that_was_refused_has_written_nothing() -> None:
    notes = [
        note("a", {1: "seed"}, {1: "seed a"}),
        note("b.1", {1: "seed"}, {1: "seed b.1"}),
        note("b.2", {1: "seed a"}, {1: "seed a b.2"}),
    ]
    found = judged(notes, [Commit("2", "2", {1: "seed a"}), Commit("3", "3", {1: "seed a b.2"})])
    assert found.not_serializable == []
    notes[2] = note("b.2", {1: "seed b.1"}, {1: "seed b.1 b.2"})
    assert "G1a" in judged(notes, [Commit("2", "2", {1: "seed a"}), Commit("3", "3", {1: "seed b.1 b.2"})]).anomalies


def test_write_skew_is_counted_and_allowed() -> None:
    notes = [note("a", {1: "seed", 3: "seed"}, {1: "seed a"}), note("b", {1: "seed", 3: "seed"}, {3: "seed b"})]
    found = judged(notes, [Commit("2", "2", {1: "seed a"}), Commit("3", "3", {3: "seed b"})])
    assert (found.broken, found.not_serializable) == ([], ["G2: 1"])


def test_money_that_was_lost() -> None:
    commits = [Commit("2", "2", {11: "90 a", 12: "110 a"}), Commit("3", "3", {11: "95 b", 13: "105 b"})]
    assert judged([], commits).wrong_totals == 1
    everything = dict.fromkeys(ACCOUNTS, f"{100} seed")
    torn = [note("c", everything | {11: "90 a"}, {11: "89 c", 12: "101 c"})]
    assert judged(torn, [Commit("2", "2", {11: "89 c", 12: "111 c"})]).wrong_totals == 1, (
        "what a committed transfer has read"
    )
    assert judged(torn, []).wrong_totals == 0, "it has not committed"


def test_overdrawn() -> None:
    commits = [Commit("2", "2", {101: "-10 a"}), Commit("3", "3", {201: "-10 b"})]
    assert judged([], commits[:1]).overdrawn == 0
    assert judged([], commits).not_serializable == ["overdrawn: 1"]


def test_keys_that_are_there_twice() -> None:
    found = judged([], [], rows=[(301, "u", "a"), (301, "u", "b"), (401, "n1", "a"), (401, "n1", "b")])
    assert (found.twice_existing, found.twice_new) == (1, 1)
    assert found.broken == []


def test_steps_meet() -> None:
    """Writers of one chance take the same kinds of steps on the same records, and withdraw from
    different sides.
    """
    one, other = steps(0, 2, random.Random(5)), steps(1, 2, random.Random(5))
    assert [(s["kind"], s["read"]) for s in one] == [(s["kind"], s["read"]) for s in other]
    assert [s["write"] for s in one if s["kind"] == "append"] != [s["write"] for s in other if s["kind"] == "append"]
    assert {s["write"] for s in one if s["kind"] == "append"} <= set(LISTS)
    assert len({s["name"] for s in [*one, *other]}) == len(one) + len(other)


def test_a_torn_note_is_left_out() -> None:
    text = json.dumps(note("a", {1: "seed"}, {})) + "\n" + '{"mark": "b", "re'
    (found,) = parse_notes(text)
    assert found["read"] == {1: "seed"}


NOON = 1767268800.0
"""2026-01-01, 12:00 UTC."""


def at(second: float, mark: str) -> dict[str, Any]:
    return {"mark": mark, "read": {}, "write": {}, "at": NOON + second}


def commit(milliseconds: int, mark: str) -> Commit:
    return Commit("1", f"202601011200{milliseconds:05}", {1: mark})


def test_two_transactions_meet_when_one_reads_before_the_other_one_is_committed() -> None:
    first, second = at(1, "w0.0.1.1"), at(2, "w1.0.1.1")
    commits = [commit(2500, "w0.0.1.1"), commit(4000, "w1.0.1.1")]
    assert met([first, second], commits) == 1, "the second has read before the first was committed"
    assert met([first, at(2.6, "w1.0.1.1")], commits) == 0, "one after the other"
    assert met([first, second], commits[:1]) == 0, "the second was refused, and is no transaction"
    assert met([first, at(2, "w0.1.1.1")], [*commits, commit(4000, "w0.1.1.1")]) == 0, "of one writer"
    third = [at(3, "w2.0.1.1"), commit(5000, "w2.0.1.1")]
    assert met([first, second, third[0]], [*commits, third[1]]) == 2
    unknown = {name: value for name, value in second.items() if name != "at"}
    assert met([first, unknown], commits) == 0, "a note of before its time was kept"


def test_a_run_in_which_nobody_met_is_not_ok_and_neither_is_an_audit_that_cannot_tell() -> None:
    violated, unknown = {"audit files: two": "violated"}, {"audit late: none": "unknown"}
    assert run.judged([], {}, 2) == ("ok", "nothing that was promised not to be")
    assert run.judged([], {}, 0) == ("thin", "no two transactions have met")
    assert run.judged([], unknown, 2) == ("unknown", "audit late: none")
    assert run.judged([], violated | unknown, 2) == ("broken", "audit files: two")
    assert run.judged(["lost: 1"], unknown, 0) == ("broken", "lost: 1")


def test_each_check_of_the_audit_must_be_made_and_ok() -> None:
    good = [Check(name, Outcome.OK, "said") for name in AUDITED]
    assert run.not_ok([*good, Check("rows", Outcome.VIOLATED, "of lost updates")]) == {}
    assert run.not_ok(good[1:]) == {f"audit {AUDITED[0]}: not made": "missing"}
    for outcome in (Outcome.VIOLATED, Outcome.UNKNOWN, Outcome.NOT_ASKED):
        bad = [Check(AUDITED[0], outcome, "said"), *good[1:]]
        assert run.not_ok(bad) == {f"audit {AUDITED[0]}: said": outcome.value}


def test_the_victim_is_killed_in_a_write_of_its_own() -> None:
    records = [Key("/hudi/tables/t/instant/1", {"inc": "a"}, 1), Key("/hudi/tables/t/instant/2", {"inc": "b"}, 2)]
    assert run.own_instants(records, "b") == {"2"}
    assert run.own_instants(records, "c") == set()


def test_what_each_cell_promises() -> None:
    lost = Found(2, {"G-single": 1}, [], 1, 0, 0, 1, 0, 0, 1)
    skew = Found(2, {"G2": 1}, [], 0, 0, 1, 1, 0, 0, 1)
    twice = Found(2, {}, [], 0, 0, 0, 1, 0, 1, 1)
    told = {cell.name: tuple(bool(check(cell, found)) for found in (lost, skew, twice)) for cell in CELLS}
    assert told["cow/Optimistic/Simple/update"] == (True, False, True)
    assert told["cow/Optimistic/Simple/serializable"] == (True, True, True)
    assert told["mor/NonBlocking/Bucket/update"] == (True, True, True)
    assert told["cow/Optimistic/Simple/unseen"] == (False, False, False)
