"""Pictures of the dashboards: drawn from answers of a real Prometheus, for the dashboards that the
chart has.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hack.dashboards import draw

from tests.campaigns.alerts import panels
from tests.support import ROOT

NAMES = panels.names()


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_is_drawn_from_its_answers(name: str) -> None:
    assert panels.file(name).read_text() == panels.picture(name), "python -m tests.campaigns.alerts.panels --draw"
    assert f"](dashboard-{name}.svg)" in (ROOT / "docs/operate/watching.md").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_every_query_of_the_dashboard_has_an_answer(name: str) -> None:
    """Those of today's dashboard: a new panel needs a new recording."""
    stored = panels.kept(name)["panels"]
    wanted = {
        str(panel["id"]): {target["refId"] for target in panel["targets"]}
        for panel in panels.dashboard(name)["panels"]
        if panel.get("targets")
    }
    assert {panel: set(answers) for panel, answers in stored.items()} == wanted, (
        "python -m tests.campaigns.alerts.panels"
    )
    assert panels.empty(name) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_has_every_panel_and_nothing_outside(name: str) -> None:
    root = ElementTree.fromstring(panels.file(name).read_text())
    wide, high = float(root.attrib["width"]), float(root.attrib["height"])
    texts = [
        (float(one.attrib["x"]), float(one.attrib["y"]), one.text or "")
        for one in root.iter()
        if one.tag.endswith("text")
    ]
    said = {text for _, _, text in texts}
    for panel in panels.dashboard(name)["panels"]:
        shown = panel["title"] in said or any(
            text.endswith("…") and panel["title"].startswith(text[:-1]) for text in said
        )
        assert shown, panel["title"]
    assert [text for x, y, text in texts if not (0 <= x <= wide and 0 <= y <= high)] == []
    numbers = re.findall(r'points="([^"]*)"', panels.file(name).read_text())
    assert numbers, "no line was drawn"
    assert "nan" not in " ".join(numbers)


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.0, "s", "0 s"),
        (0.0123, "s", "12.3 ms"),
        (90.0, "s", "90 s"),
        (7200.0, "s", "2 h"),
        (3.5 * 86400, "s", "3.5 d"),
        (0.25, "percentunit", "25 %"),
        (1536.0, "bytes", "1.5 KiB"),
        (12.0, "cps", "12/s"),
        (1200.0, "short", "1.2K"),
        (float("nan"), "short", "–"),
    ],
)
def test_values_have_their_unit(value: float, unit: str, said: str) -> None:
    assert draw.number(value, unit) == said


def test_what_has_no_data_says_so() -> None:
    place = {"gridPos": {"x": 0, "y": 0, "w": 8, "h": 8}}
    field: dict[str, Any] = {"fieldConfig": {"defaults": {}}, "targets": [{"refId": "A"}]}
    for kind in ("stat", "timeseries"):
        board = {"title": "t", "panels": [{**place, **field, "id": 1, "type": kind, "title": "p"}]}
        assert "no data" in draw.picture(board, {"1": {"A": []}}, (0.0, 1.0))
    with pytest.raises(ValueError, match="nobody draws piechart"):
        draw.picture({"title": "t", "panels": [{**place, "id": 1, "type": "piechart", "title": "p"}]}, {}, (0.0, 1.0))
