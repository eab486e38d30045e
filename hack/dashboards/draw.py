"""Draw a Grafana dashboard as SVG, from its JSON and the answers of a Prometheus to its queries.

It is a picture of what the panels show, not of Grafana: position, title, type, unit, legend and
thresholds are those of the dashboard. See README.md.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

JsonDict = dict[str, Any]
Series = JsonDict
"""An entry of Prometheus' answer: ``metric``, and ``values`` or ``value``."""

COLUMN, ROW, GAP = 52, 34, 6
"""Pixels of a column and of a row of Grafana's grid, and between two panels."""
INKS = ("#3274d9", "#e0752d", "#37872d", "#c4162a", "#8f3bb8", "#0a8f8f", "#b8860b", "#c2408e", "#5b6770", "#7a5230")
NAMED = {"green": "#37872d", "red": "#c4162a", "blue": "#3274d9", "text": "#464c54", "orange": "#e0752d"}
TEXT, SOFT, LINE, PANEL, PAGE = "#24292e", "#6b7178", "#d8dbdf", "#ffffff", "#f4f5f5"
LETTER = 6.1
"""Width of a letter of the small texts, in pixels."""


def number(value: float, unit: str) -> str:
    """A value in a unit of Grafana, short."""
    if math.isnan(value):
        return "–"
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    if unit == "s":
        for size, word in ((86400, "d"), (3600, "h"), (60, "min")):
            if abs(value) >= 2 * size:
                return f"{value / size:.3g} {word}"
        return f"{value:.3g} s" if abs(value) >= 1 or not value else f"{1000 * value:.3g} ms"
    step, words = (1024, ("B", "KiB", "MiB", "GiB")) if unit == "bytes" else (1000, ("", "K", "M", "G"))
    power = 0
    while abs(value) >= step and power < len(words) - 1:
        value, power = value / step, power + 1
    return f"{value:.3g}{' ' if unit == 'bytes' else ''}{words[power]}{'/s' if unit == 'cps' else ''}"


def legend(form: str, metric: Mapping[str, str]) -> str:
    """The name of a series, as Grafana makes it."""
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: metric.get(found[1], ""), form) if form else ""


def text(
    x: float, y: float, said: str, *, size: int = 11, ink: str = TEXT, anchor: str = "start", bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{ink}" text-anchor="{anchor}"{weight}'
    return f"<text {place}>{escape(said)}</text>"


def fitted(said: str, pixels: float) -> str:
    """A text that is cut to a width."""
    most = max(1, int(pixels / LETTER))
    return said if len(said) <= most else f"{said[: most - 1]}…"


def ink_of(value: float, defaults: JsonDict) -> str:
    """Colour of a value by its thresholds."""
    found = "text"
    for step in (defaults.get("thresholds") or {}).get("steps") or ():
        if step.get("value") is None or value >= step["value"]:
            found = step["color"]
    return NAMED.get(found, TEXT)


def _values(series: Series) -> list[tuple[float, float]]:
    return [(float(at), float(value)) for at, value in series.get("values") or [series["value"]]]


class Box:
    """The inside of a panel, in pixels."""

    def __init__(self, panel: JsonDict) -> None:
        place = panel["gridPos"]
        self.x, self.y = place["x"] * COLUMN + GAP, place["y"] * ROW + GAP
        self.w, self.h = place["w"] * COLUMN - GAP, place["h"] * ROW - GAP


def stat(box: Box, panel: JsonDict, answers: Mapping[str, list[Series]]) -> Iterable[str]:
    defaults = panel["fieldConfig"]["defaults"]
    found = [_values(one)[-1][1] for series in answers.values() for one in series]
    if not found:
        yield text(box.x + box.w / 2, box.y + box.h / 2 + 14, "no data", size=13, ink=SOFT, anchor="middle")
        return
    said = number(found[-1], str(defaults.get("unit", "short")))
    ink = ink_of(found[-1], defaults)
    yield text(box.x + box.w / 2, box.y + box.h / 2 + 22, said, size=30, ink=ink, anchor="middle", bold=True)


def table(box: Box, panel: JsonDict, answers: Mapping[str, list[Series]]) -> Iterable[str]:
    hidden = {
        name
        for one in panel.get("transformations") or ()
        for name, out in (one.get("options", {}).get("excludeByName") or {}).items()
        if out
    }
    rows = [
        {name: value for name, value in one["metric"].items() if name not in hidden}
        for series in answers.values()
        for one in series
    ]
    columns = sorted({name for row in rows for name in row})
    if not rows:
        said = str(panel["fieldConfig"]["defaults"].get("noValue", "no data"))
        yield text(box.x + 10, box.y + 46, said, ink=SOFT)
        return
    wide = (box.w - 20) / max(1, len(columns))
    room = int((box.h - 56) / 18)
    for index, column in enumerate(columns):
        yield text(box.x + 10 + index * wide, box.y + 42, column, ink=SOFT)
        for line, row in enumerate(rows[:room]):
            said = fitted(row.get(column, ""), wide - 6)
            yield text(box.x + 10 + index * wide, box.y + 62 + 18 * line, said)
    if len(rows) > room:
        yield text(box.x + box.w - 10, box.y + box.h - 8, f"and {len(rows) - room} more", ink=SOFT, anchor="end")


def _legend(box: Box, names: list[str], inks: list[str]) -> Iterable[str]:
    x, y = box.x + 10.0, box.y + box.h - 8.0
    for index, (name, ink) in enumerate(zip(names, inks, strict=True)):
        said = fitted(name, 150)
        wide = 18 + LETTER * len(said)
        if x + wide > box.x + box.w - 60 and index < len(names) - 1:
            yield text(x, y, f"and {len(names) - index} more", ink=SOFT)
            return
        yield f'<rect x="{x:.1f}" y="{y - 6:.1f}" width="10" height="3" fill="{ink}"/>'
        yield text(x + 14, y, said)
        x += wide + 8


def lines(box: Box, panel: JsonDict, answers: Mapping[str, list[Series]], span: tuple[float, float]) -> Iterable[str]:
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults.get("custom") or {}
    unit = str(defaults.get("unit", "short"))
    stacked = (custom.get("stacking") or {}).get("mode") == "normal"
    forms = {target["refId"]: target.get("legendFormat", "") for target in panel["targets"]}
    named = [(legend(forms[ref], one["metric"]), _values(one)) for ref, series in answers.items() for one in series]
    named = [(name, [pair for pair in values if not math.isnan(pair[1])]) for name, values in named]
    named = [(name, values) for name, values in named if values]
    left, right, top, bottom = box.x + 62, box.x + box.w - 10, box.y + 34, box.y + box.h - 38
    if not named:
        yield text(box.x + box.w / 2, box.y + box.h / 2, "no data", size=13, ink=SOFT, anchor="middle")
        return
    below: dict[float, float] = {}
    drawn: list[tuple[str, list[tuple[float, float, float]]]] = []
    for name, values in named:
        points = []
        for at, value in values:
            base = below.get(at, 0.0) if stacked else 0.0
            points.append((at, base, base + value))
            if stacked:
                below[at] = base + value
        drawn.append((name, points))
    most = max(high for _, points in drawn for _, _, high in points)
    least = min(0.0, *(high for _, points in drawn for _, _, high in points))
    reach = (most - least) or 1.0

    def x_of(at: float) -> float:
        return left + (right - left) * (at - span[0]) / (span[1] - span[0])

    def y_of(value: float) -> float:
        return bottom - (bottom - top) * (value - least) / (reach * 1.05)

    for part in (0.0, 0.5, 1.0):
        value = least + part * reach
        yield f'<line x1="{left}" x2="{right}" y1="{y_of(value):.1f}" y2="{y_of(value):.1f}" stroke="{LINE}"/>'
        yield text(left - 6, y_of(value) + 4, number(value, unit), ink=SOFT, anchor="end")
    marks = (0.0, 0.5, 1.0) if right - left > 220 else (0.0, 1.0) if right - left > 120 else (1.0,)
    for part in marks:
        at = span[0] + part * (span[1] - span[0])
        anchor = {0.0: "start", 0.5: "middle", 1.0: "end"}[part]
        yield text(x_of(at), bottom + 14, time.strftime("%H:%M:%S", time.gmtime(at)), ink=SOFT, anchor=anchor, size=10)
    inks = [INKS[index % len(INKS)] for index in range(len(drawn))]
    for (_, points), ink in zip(drawn, inks, strict=True):
        path = " ".join(f"{x_of(at):.1f},{y_of(high):.1f}" for at, _, high in points)
        if stacked:
            back = " ".join(f"{x_of(at):.1f},{y_of(low):.1f}" for at, low, _ in reversed(points))
            yield f'<polygon points="{path} {back}" fill="{ink}" fill-opacity="0.25"/>'
        if len(points) == 1:
            yield f'<circle cx="{x_of(points[0][0]):.1f}" cy="{y_of(points[0][2]):.1f}" r="2.5" fill="{ink}"/>'
        yield f'<polyline points="{path}" fill="none" stroke="{ink}" stroke-width="1.3"/>'
    yield from _legend(box, [name for name, _ in drawn], inks)


def states(box: Box, panel: JsonDict, answers: Mapping[str, list[Series]], span: tuple[float, float]) -> Iterable[str]:
    forms = {target["refId"]: target.get("legendFormat", "") for target in panel["targets"]}
    words = panel["fieldConfig"]["defaults"].get("mappings", [{}])[0].get("options", {})
    inks = {key: NAMED.get(told.get("color", "text"), TEXT) for key, told in words.items()}
    named = sorted(
        (legend(forms[ref], one["metric"]), _values(one)) for ref, series in answers.items() for one in series
    )
    left, right, top = box.x + 190, box.x + box.w - 10, box.y + 34
    high = (box.h - 60) / max(1, len(named))
    for index, (name, values) in enumerate(named):
        y = top + index * high
        yield text(left - 8, y + high / 2 + 4, fitted(name, 175), anchor="end", size=min(11, int(high)))
        for (at, value), (until, _) in zip(values, [*values[1:], (span[1], 0.0)], strict=True):
            x = left + (right - left) * (at - span[0]) / (span[1] - span[0])
            wide = (right - left) * (until - at) / (span[1] - span[0])
            shade = "1" if value else "0.25"
            ink = inks.get(f"{value:g}", TEXT)
            yield (
                f'<rect x="{x:.1f}" y="{y + 1:.1f}" width="{wide + 0.3:.1f}" height="{max(1, high - 2):.1f}" '
                f'fill="{ink}" fill-opacity="{shade}"/>'
            )
    x = box.x + 10
    for key, told in words.items():
        shade = "1" if key == "1" else "0.25"
        place = f'x="{x}" y="{box.y + box.h - 16}" width="10" height="8"'
        yield f'<rect {place} fill="{inks[key]}" fill-opacity="{shade}"/>'
        yield text(x + 14, box.y + box.h - 8, str(told.get("text", key)))
        x += 70


def picture(dashboard: JsonDict, answers: Mapping[str, Mapping[str, list[Series]]], span: tuple[float, float]) -> str:
    """SVG of a dashboard.

    ``answers``: by the panel's id and the query's refId. ``span``: Unix times of the left and the
    right edge.
    """
    panels = dashboard["panels"]
    high = max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in panels) * ROW + 2 * GAP + 34
    wide = 24 * COLUMN + 2 * GAP
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
        "font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif\">",
        f"<title>{escape(dashboard['title'])}</title>",
        f'<rect width="{wide}" height="{high}" fill="{PAGE}"/>',
        text(2 * GAP, 24, dashboard["title"], size=17, bold=True),
        '<g transform="translate(0 32)">',
    ]
    for panel in panels:
        box = Box(panel)
        if panel["type"] == "row":
            made.append(text(box.x + 4, box.y + 20, panel["title"], size=14, bold=True))
            continue
        made.append(
            f'<rect x="{box.x}" y="{box.y}" width="{box.w}" height="{box.h}" rx="3" fill="{PANEL}" stroke="{LINE}"/>'
        )
        made.append(text(box.x + 10, box.y + 20, fitted(panel["title"], 0.86 * (box.w - 14)), size=12, bold=True))
        told = answers.get(str(panel["id"]), {})
        if panel["type"] == "stat":
            made += stat(box, panel, told)
        elif panel["type"] == "table":
            made += table(box, panel, told)
        elif panel["type"] == "state-timeline":
            made += states(box, panel, told, span)
        elif panel["type"] == "timeseries":
            made += lines(box, panel, told, span)
        else:
            raise ValueError(f"panel {panel['title']}: nobody draws {panel['type']}")
    return "\n".join([*made, "</g>", "</svg>", ""])
