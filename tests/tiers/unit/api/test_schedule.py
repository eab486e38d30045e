"""Cron expressions where there is no cronsim: what is refused there, it refuses, too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_operator.api import schedule
from hudi_operator.api.schedule import Schedule

NUMBER = st.integers(0, 70).map(str)
ITEM = st.one_of(
    st.sampled_from(["*", "MON", "JAN", "L", "1#2", "?"]),
    NUMBER,
    st.tuples(NUMBER, NUMBER).map("-".join),
    st.tuples(st.sampled_from(["*", "1-20"]), st.integers(1, 70).map(str)).map("/".join),
)
FIELD = st.lists(ITEM, min_size=1, max_size=3).map(",".join)
CRON = st.lists(FIELD, min_size=5, max_size=5).map(" ".join)


@given(CRON)
def test_what_is_refused_by_its_numbers_is_no_schedule(cron: str) -> None:
    if schedule.wrong_number(cron):
        assert Schedule(cron).problem("spec.schedule"), cron


@pytest.mark.parametrize(
    ("cron", "told"),
    [
        ("61 * * * *", "bad minute: 61 is not within 0-59"),
        ("0 24 * * *", "bad hour: 24 is not within 0-23"),
        ("0 0 0 * *", "bad day of month: 0 is not within 1-31"),
        ("0 0 1 1,13 *", "bad month: 13 is not within 1-12"),
        ("0 0 * * 8", "bad day of week: 8 is not within 0-7"),
        ("30-10 * * * *", "bad minute: 30-10 is not within 0-59"),
        ("*/2 1-5 L JAN MON#2", ""),
        ("0 3 30 2 *", ""),
    ],
)
def test_numbers_are_judged_without_cronsim(cron: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "TELLS_TICKS", False)
    found = Schedule(cron).problem("spec.schedule")
    assert found == (f"spec.schedule.cron {cron!r}: {told}" if told else "")


def test_a_zone_is_judged_where_there_are_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Schedule("0 3 * * *", "Europe/Nowhere")
    assert "not a time zone of the IANA database" in here.problem("spec.schedule")
    monkeypatch.setattr(schedule, "_zone", lambda name: None)
    assert here.problem("spec.schedule") == ""
