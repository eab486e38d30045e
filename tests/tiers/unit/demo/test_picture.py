"""The demo's picture: what is drawn at a place has happened when the ruler says."""

from __future__ import annotations

import itertools
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from demo import picture
from demo.picture import Bar

SVG = "{http://www.w3.org/2000/svg}"
ROWS = ["load #1", "encrypt #1", "agent & <co>", "lock"]
BEGIN = 1_760_000_000.0
BARS = [
    Bar("load #1", BEGIN + 60, BEGIN + 120, "commit"),
    Bar("load #1", BEGIN + 120, BEGIN + 180, "commit"),
    Bar("encrypt #1", BEGIN + 60, BEGIN + 180, "refused"),
    Bar("encrypt #1", BEGIN + 180, BEGIN + 300, "commit"),
    Bar("agent & <co>", BEGIN + 180, BEGIN + 240, "rollback"),
    Bar("lock", BEGIN, BEGIN + 0.02, "lock"),
    Bar("lock", BEGIN + 300, BEGIN + 360, "lock"),
]


def drawn(bars: list[Bar] = BARS, rows: list[str] = ROWS) -> ET.Element:
    return ET.fromstring(picture.svg(bars, rows, "A title & more"))


def of_class(root: ET.Element, tag: str, name: str) -> list[ET.Element]:
    return [one for one in root.iter(SVG + tag) if one.get("class") == name]


def number(element: ET.Element, name: str) -> float:
    return float(element.attrib[name])


def ticks(root: ET.Element) -> dict[int, float]:
    """Where the ruler has a second."""
    words = of_class(root, "text", "tick")
    lines = of_class(root, "line", "tick")
    assert [number(one, "x") for one in words] == [number(one, "x1") for one in lines]
    assert all(one.get("text-anchor") == "middle" for one in words)
    return {int((one.text or "").removesuffix(" s")): number(one, "x") for one in words}


def bars_of(root: ET.Element) -> list[ET.Element]:
    return [one for one in root.iter(SVG + "rect") if one.get("class") in picture.WORDS]


def test_a_bar_is_between_its_seconds_on_the_ruler() -> None:
    root = drawn()
    at = ticks(root)
    assert list(at) == [0, 60, 120, 180, 240, 300, 360]
    found = bars_of(root)
    assert len(found) == len(BARS)
    expected = sorted(BARS, key=lambda bar: (ROWS.index(bar.row), bar.start))
    for element, bar in zip(found, expected, strict=True):
        assert number(element, "x") == at[round(bar.start - BEGIN)]
        if bar.end - bar.start > 1:
            end = number(element, "x") + number(element, "width")
            assert end == pytest.approx(at[round(bar.end - BEGIN)], abs=0.02)
        assert element.get("class") == bar.kind


def test_a_row_is_at_one_height_beside_its_name() -> None:
    root = drawn()
    names = {one.text or "": one for one in of_class(root, "text", "row")}
    assert list(names) == ROWS
    heights = [number(one, "y") for one in names.values()]
    assert [b - a for a, b in itertools.pairwise(heights)] == [picture.HIGH] * 3
    elements = iter(bars_of(root))
    for name in ROWS:
        for _ in [bar for bar in BARS if bar.row == name]:
            element = next(elements)
            middle = number(element, "y") + number(element, "height") / 2
            assert abs(middle - (number(names[name], "y") - 4)) <= 0.5
    assert all(one.get("text-anchor") == "end" for one in names.values())


def test_the_end_of_a_bar_is_marked_where_it_is() -> None:
    root = drawn()
    at = ticks(root)
    marks = [one.attrib["transform"] for one in of_class(root, "path", "end")]
    places = [tuple(map(float, one.removeprefix("translate(")[:-1].split())) for one in marks]
    rows = [place for place in places if place[1] < picture.TOP + picture.HIGH * len(ROWS)]
    assert [x for x, _ in rows] == [at[180], at[240]]


def test_everything_is_within_the_picture_and_named_in_the_legend() -> None:
    root = drawn()
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for element in root.iter(SVG + "rect"):
        if element.get("x"):
            assert number(element, "x") >= 0
            assert number(element, "x") + number(element, "width") <= width
            assert number(element, "y") + number(element, "height") <= height
    legend = [one.text for one in of_class(root, "text", "legend")]
    assert legend == [picture.WORDS[kind] for kind in ("commit", "refused", "rollback", "lock")]


@pytest.mark.parametrize("kinds", [list(picture.WORDS), ["lock"]])
def test_a_legend_that_is_too_long_goes_on_below(kinds: list[str]) -> None:
    root = drawn([Bar("a", BEGIN + n, BEGIN + n + 1, kind) for n, kind in enumerate(kinds)], ["a"])
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    words = of_class(root, "text", "legend")
    assert len(words) == len(kinds)
    assert all(number(one, "x") + 7 * len(one.text or "") <= width and number(one, "y") < height for one in words)


def test_what_is_pointed_at_says_what_it_is() -> None:
    root = drawn()
    said = [one.findtext(SVG + "title") for one in bars_of(root)]
    assert said[0] == "instant until its commit, 60.0 to 120.0 s"
    assert said[2] == "refused: conflict, 60.0 to 180.0 s"


def test_no_bars_no_failure() -> None:
    assert bars_of(drawn([])) == []
    assert [line.plain for line in picture.draw([], ROWS)] == ["(nothing was recorded)"]


def test_the_text_has_the_same_axis() -> None:
    *rows, marks, numbers, _ = [line.plain for line in picture.draw(BARS, ROWS)]
    columns = [n for n, sign in enumerate(marks) if sign == "┬"]
    # The last number would be wider than the picture.
    assert [numbers[n:].split()[0] for n in columns[:-1]] == ["0", "60", "120", "180", "240", "300"]
    load, encrypt, agent, lock = rows
    assert load.index("█") == encrypt.index("▒") == columns[1]
    assert load.index("▌") == columns[2]
    assert lock.index("▄") == columns[0]
    # The mark stays where the next bar begins.
    assert encrypt.index("✗") == columns[3]
    assert agent.index("↺") == columns[4]
    assert encrypt.index("█") == columns[3] + 1
    assert all(line[picture.LABEL] in "│└" for line in (*rows, marks))


@pytest.mark.parametrize("seconds", [0.1, 0.9, 1, 7, 59.9, 600, 86_400])
def test_the_ruler_has_a_few_seconds_of_any_picture(seconds: float) -> None:
    on = picture.axis([Bar("a", BEGIN, BEGIN + seconds, "commit")], 80)
    assert 1 <= len(on.ticks()) <= 11
    assert on.at(BEGIN + on.ticks()[-1]) <= 80
    assert on.column(BEGIN + seconds) <= 79


def test_both_files_are_written(tmp_path: Path) -> None:
    lines = picture.save(BARS, ROWS, str(tmp_path / "timeline"), "A title")
    assert (tmp_path / "timeline.txt").read_text().splitlines() == [line.plain.rstrip() for line in lines]
    ET.fromstring((tmp_path / "timeline.svg").read_text())
