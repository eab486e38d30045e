"""A round that breaks an invariant, and one in which the product hangs, are kept and counted."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.campaigns.kills import rounds, table
from tests.campaigns.kills.rounds import Broken, Round, Rounds

KILL = {"instant": "1", "outcome": "RolledBack", "commitsOfOthers": 1}


def campaign(monkeypatch: pytest.MonkeyPatch, ends: Exception | str) -> Rounds:
    """Its rounds make one kill, and end so: by an error, or by what was found of the rows."""

    def run(self: Round, kills: int) -> str:
        self.done.append(KILL)
        self.loads.append(1.0)
        if isinstance(ends, Exception):
            raise ends
        return ends

    monkeypatch.setattr(Round, "run", run)
    monkeypatch.setattr(rounds, "make_space", lambda *_: SimpleNamespace(namespace="kills"))
    monkeypatch.setattr(rounds, "kubectl", lambda *_: "")
    made = Rounds.__new__(Rounds)
    made.commit = "abc"
    made.lake = made.watch = made.screen = made.proxy = None  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(
    ("ends", "rows", "stuck"),
    [
        (
            AssertionError("waited 240 s for victim-3 to be settled"),
            "not looked at",
            "waited 240 s for victim-3 to be settled",
        ),
        (Broken("1 is RolledBack, expected Completed", {}), "1 is RolledBack, expected Completed", ""),
        ("VIOLATED rows", "VIOLATED rows", ""),
    ],
)
def test_a_round_that_is_not_ok_is_kept_whole(
    ends: Exception | str, rows: str, stuck: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what its kills have shown until then, and what a campaign needs to go on."""
    with pytest.raises(Broken) as raised:
        campaign(monkeypatch, ends).run("writing", 3, random.Random(1))
    found = raised.value.round
    assert (found["rows"], found["stuck"], found["kills"], found["load"]) == (rows, stuck, [KILL], [1.0])
    assert (found["kind"], found["commit"]) == ("writing", "abc")
    assert found["at"]


def test_a_good_round(monkeypatch: pytest.MonkeyPatch) -> None:
    found = campaign(monkeypatch, "ok").run("writing", 3, random.Random(1))
    assert (found["rows"], found["stuck"], found["kills"]) == ("ok", "", [KILL])


def one(number: int, **more: Any) -> dict[str, Any]:
    return {
        "commit": "abc",
        "at": f"2030-01-0{number}T00:00Z",
        "seed": number,
        "rows": "ok",
        "kills": [KILL] * 3,
    } | more


def test_a_round_that_hung_is_on_the_page_and_its_kills_are_in_no_bound_of_rows() -> None:
    hung = one(3, rows="not looked at", stuck="waited 240 s for victim-3 to be settled")
    text = table.page({"writing": [one(1), one(2, stuck=""), hung]}, {})
    assert "9 kills, rounds: 3" in text
    assert "Kills after which rows were lost, doubled or phantom: 0 of 6: less than 39 %." in text
    assert "Rounds that hung: 1 of 2: less than 97 %." in text, "the first is of a harness that kept none"
    assert "* **stuck**, seed 3: waited 240 s for victim-3 to be settled" in text
    assert "none. Audit: ok after each round that came to its end." in text
    assert "Rounds that hang are kept since `abc`" in text
    assert "(2030-01-02); how many there were before is not known" in text
    assert "did not record rounds that hung; their number is unknown" in table.page({"writing": [one(1)]}, {})


def test_a_round_that_hung_before_its_first_kill() -> None:
    text = table.page({"writing": [one(1, kills=[], rows="not looked at", stuck="waited 300 s")]}, {})
    assert "Rounds that hung: 1 of 1: all of them." in text
    assert "lost, doubled or phantom: 0 of" not in text
