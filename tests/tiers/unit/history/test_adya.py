"""The checker finds each phenomenon in a history made by hand, and none where there is none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.campaigns.history.adya import Anomaly, Broken, History, Transaction, anomalies, edges

START = Transaction("start", writes={"x": [("x0",)], "y": [("y0",)]})


def t(name: str, reads: str = "", writes: str = "", *, committed: bool = True) -> Transaction:
    """`reads` and `writes`: `x=x0,a y=y0`; a key that is written twice has two entries."""
    seen = {
        key: tuple(filter(None, rest.split(","))) for key, _, rest in (part.partition("=") for part in reads.split())
    }
    left: dict[str, list[tuple[str, ...]]] = {}
    for part in writes.split():
        key, _, rest = part.partition("=")
        left.setdefault(key, []).append(tuple(rest.split(",")))
    return Transaction(name, seen, left, committed)


def kinds(*transactions: Transaction, **order: str) -> list[str]:
    full = {key: ["start", *names.split()] for key, names in ({"x": "", "y": ""} | order).items()}
    return sorted(found.kind for found in anomalies(History([START, *transactions], full)))


def test_one_after_another_shows_nothing() -> None:
    a = t("a", "x=x0 y=y0", "x=x0,a")
    b = t("b", "x=x0,a y=y0", "x=x0,a,b y=y0,b1")
    c = t("c", "x=x0,a,b y=y0,b1")
    assert kinds(a, b, c, x="a b", y="b") == []


def test_dirty_write() -> None:
    """Two transactions wrote two keys, in opposite orders."""
    a, b = t("a", writes="x=a1 y=a2"), t("b", writes="x=b1 y=b2")
    assert kinds(a, b, x="a b", y="b a") == ["G0"]
    assert kinds(a, b, x="a b", y="a b") == []


def test_aborted_read() -> None:
    gone = t("gone", "x=x0", "x=x0,g", committed=False)
    assert kinds(gone, t("b", "x=x0,g")) == ["G1a"]
    assert kinds(gone, t("b", "x=x0,g", "x=x0,g,b"), x="b") == ["G1a"]
    assert kinds(gone, t("b", "x=x0")) == []
    assert kinds(t("b", "x=x0,nobody")) == ["G1a"]


def test_what_an_aborted_one_read_does_not_matter() -> None:
    gone = t("gone", "x=x0", "x=x0,g", committed=False)
    assert kinds(gone, t("again", "x=x0,g", committed=False)) == []


def test_intermediate_read() -> None:
    a = t("a", "x=x0", "x=x0,a1 x=x0,a1,a2")
    assert kinds(a, t("b", "x=x0,a1"), x="a") == ["G1b"]
    assert kinds(a, t("b", "x=x0,a1,a2"), x="a") == []


def test_circular_information_flow() -> None:
    a, b = t("a", "y=y0,b", "x=x0,a"), t("b", "x=x0,a", "y=y0,b")
    assert kinds(a, b, x="a", y="b") == ["G1c"]


def test_a_lost_update() -> None:
    """Both read x0; the one that is first is not in the list of the other."""
    a, b = t("a", "x=x0", "x=x0,a"), t("b", "x=x0", "x=x0,b")
    assert kinds(a, b, x="a b") == ["G-single"]


def test_read_skew() -> None:
    """x before, y after another transaction that wrote both."""
    a = t("a", "x=x0 y=y0", "x=x0,a1 y=y0,a2")
    assert kinds(a, t("b", "x=x0 y=y0,a2"), x="a", y="a") == ["G-single"]


def test_a_read_before_the_first_version() -> None:
    a, b = t("a", "z=", "z=a"), t("b", "z=", "z=b")
    history = History([START, a, b], {"z": ["a", "b"]})
    assert [found.kind for found in anomalies(history)] == ["G-single"]


def test_write_skew_is_allowed_by_snapshot_isolation() -> None:
    a, b = t("a", "x=x0 y=y0", "x=x0,a"), t("b", "x=x0 y=y0", "y=y0,b")
    assert kinds(a, b, x="a", y="b") == ["G2"]


def test_two_readers_in_opposite_orders() -> None:
    """Long fork: each saw one of two independent writes; no single order of snapshots has both."""
    a, b = t("a", "x=x0", "x=x0,a"), t("b", "y=y0", "y=y0,b")
    assert kinds(a, b, t("c", "x=x0,a y=y0"), t("d", "x=x0 y=y0,b"), x="a", y="b") == ["G-SI"]


def test_a_cycle_tells_what_it_is_made_of() -> None:
    a, b = t("a", "x=x0", "x=x0,a"), t("b", "x=x0", "x=x0,b")
    found = anomalies(History([START, a, b], {"x": ["start", "a", "b"]}))
    assert found == [Anomaly("G-single", "b -rw x-> a -ww x-> b")]


@pytest.mark.parametrize(
    ("history", "told"),
    [
        (History([START], {"x": ["start", "nobody"]}), "nobody has installed"),
        (History([START, t("a", "", "x=x0,a", committed=False)], {"x": ["start", "a"]}), "a has installed"),
        (History([START], {"x": ["start", "start"]}), "twice"),
        (History([START, t("a", "", "x=e"), t("b", "", "x=e")], {}), "was appended to x by a and by b"),
    ],
)
def test_what_cannot_be_a_history(history: History, told: str) -> None:
    with pytest.raises(Broken, match=told):
        edges(history)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("xyz"), st.integers(0, 2)), max_size=12))
def test_snapshot_isolation_shows_nothing_but_write_skew(steps: list[tuple[str, str, int]]) -> None:
    """Transactions that read one snapshot, up to two commits old, and are refused when a key that
    they write has moved since then.
    """
    states: list[dict[str, tuple[str, ...]]] = [dict.fromkeys("xyz", ())]
    order: dict[str, list[str]] = {key: [] for key in "xyz"}
    done = []
    for number, (read, write, age) in enumerate(steps):
        name, snapshot = f"t{number}", states[max(0, len(states) - 1 - age)]
        left = (*snapshot[write], name)
        good = snapshot[write] == states[-1][write]
        done.append(Transaction(name, {read: snapshot[read], write: snapshot[write]}, {write: [left]}, committed=good))
        if good:
            states.append(states[-1] | {write: left})
            order[write].append(name)
    assert {found.kind for found in anomalies(History(done, order))} <= {"G2"}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 2)), min_size=2, max_size=8))
def test_without_that_check_every_lost_update_is_found(steps: list[tuple[str, int]]) -> None:
    states: list[dict[str, tuple[str, ...]]] = [dict.fromkeys("xy", ())]
    order: dict[str, list[str]] = {key: [] for key in "xy"}
    done, lost = [], False
    for number, (write, age) in enumerate(steps):
        name, snapshot = f"t{number}", states[max(0, len(states) - 1 - age)]
        lost = lost or snapshot[write] != states[-1][write]
        left = (*snapshot[write], name)
        done.append(Transaction(name, {write: snapshot[write]}, {write: [left]}))
        states.append(states[-1] | {write: left})
        order[write].append(name)
    assert ("G-single" in {found.kind for found in anomalies(History(done, order))}) is lost
