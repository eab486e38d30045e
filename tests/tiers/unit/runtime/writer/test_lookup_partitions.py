"""Which values of a partition column its folder gives back beyond doubt (F67)."""

from __future__ import annotations

import datetime

import pytest

from hudi_runtime.writer import lookup_partitions


@pytest.mark.parametrize("value", ["a", "A-1", "2024-01-01", "1.5", "_x", 5, -5, True, datetime.date(2024, 2, 29)])
def test_plain_values(value: object) -> None:
    assert lookup_partitions.plain(value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        " ",
        "a b",
        "a.",
        ".a",
        "..",
        "a/b",
        "p=a",
        "50%",
        "a%20b",
        "\u00fc",
        "a\n",
        "__HIVE_DEFAULT_PARTITION__",
        1.5,
    ],
)
def test_values_for_which_the_whole_table_is_read(value: object) -> None:
    assert not lookup_partitions.plain(value)


def test_dates_of_another_calendar_are_not_relied_on() -> None:
    assert not lookup_partitions.plain(datetime.date(1582, 10, 4))


@pytest.mark.parametrize(
    "found", [[("a",), (None,)], [("a",), ("a b",)], [(str(n),) for n in range(lookup_partitions.MOST_PARTITIONS + 1)]]
)
def test_one_value_in_doubt_means_the_whole_table(found: list[tuple[object, ...]]) -> None:
    assert lookup_partitions.condition(["p"], found) is None
