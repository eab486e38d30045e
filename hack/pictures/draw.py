#!/usr/bin/env python3
"""Draws docs/design/*.svg from the YAML files beside them. See README.md."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
SOURCES = tuple(ROOT / "docs/design" / f"{name}.yaml" for name in ("architecture", "life-of-an-instant"))

# Colours by class: light, dark.
FILLS = {
    "page": ("#ffffff", "#0d1117"),
    "people": ("#f3f4f6", "#21262d"),
    "kubernetes": ("#e3edfd", "#152a4a"),
    "operator": ("#e6e4fb", "#2a2550"),
    "etcd": ("#fdefd3", "#44320d"),
    "pod": ("#ddf4e4", "#123722"),
    "agent": ("#d9f2f2", "#0f3638"),
    "store": ("#fbe3e6", "#451d24"),
    "room": ("#ffffff", "#161b22"),
    "band": ("#f6f8fa", "#161b22"),
    "locked": ("#fdf3dc", "#2e240d"),
    "failed": ("#fdecee", "#34161b"),
}
INK = {
    "text": ("#1f2328", "#e6edf3"),
    "soft": ("#57606a", "#9da7b3"),
    "line": ("#57606a", "#8b949e"),
    "edge": ("#8c959f", "#6e7681"),
}
SANS = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SIZES = {"title": 15.0, "head": 13.5, "text": 12.0, "mono": 11.0}
WIDTH_OF_A_LETTER = {"title": 0.62, "head": 0.62, "text": 0.56, "mono": 0.603}
"""In em, the average width of English text in DejaVu, the widest of the fonts above."""


class Wrong(Exception):
    """A picture in which texts overlap or do not fit."""


def width(text: str, style: str) -> float:
    """Width of a line in pixels; an upper estimate."""
    return len(text) * SIZES[style] * WIDTH_OF_A_LETTER[style]


@dataclass
class Canvas:
    """Collects shapes, and the rectangles occupied by texts."""

    wide: float
    high: float = 0.0
    shapes: list[str] = field(default_factory=list)
    texts: list[tuple[float, float, float, float, str]] = field(default_factory=list)

    def box(self, x: float, y: float, w: float, h: float, fill: str, *, frame: str = "edge", radius: int = 8) -> None:
        self.shapes.append(
            f'<rect class="f-{fill} {frame}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{radius}"/>'
        )

    def text(
        self, x: float, y: float, text: str, style: str, *, anchor: str = "start", soft: bool = False, under: str = ""
    ) -> None:
        """One line on baseline `y`.

        `under`: fill of a rectangle that hides shapes below the text.
        """
        w, size = width(text, style), SIZES[style]
        left = x - {"start": 0, "middle": w / 2, "end": w}[anchor]
        area = (left, y - size * 0.8, left + w, y + size * 0.25)
        if left < 4 or left + w > self.wide - 4:
            raise Wrong(f"{text!r} leaves the picture")
        for other in self.texts:
            if area[0] < other[2] and other[0] < area[2] and area[1] < other[3] and other[1] < area[3]:
                raise Wrong(f"{text!r} lies over {other[4]!r}")
        self.texts.append((*area, text))
        if under:
            self.shapes.append(
                f'<rect class="f-{under}" x="{left - 3:g}" y="{area[1]:g}" width="{w + 6:g}" height="{size * 1.1:g}"/>'
            )
        shade = " soft" if soft else ""
        self.shapes.append(
            f'<text class="{style}{shade}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'
        )

    def line(self, points: list[list[float]], *, both: bool = False, dashed: bool = False) -> None:
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        ends = 'marker-end="url(#tip)"' + (' marker-start="url(#tail)"' if both else "")
        self.shapes.append(f'<polyline class="line{" dashed" if dashed else ""}" points="{path}" {ends}/>')

    def svg(self, title: str) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.wide:g} {self.high:g}" width="{self.wide:g}" '
            f'height="{self.high:g}" role="img">\n'
            f"<title>{escape(title)}</title>\n<style>\n{style_sheet()}</style>\n"
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto">'
            '<path class="tip" d="M0,0 L8,4 L0,8 z"/></marker>'
            '<marker id="tail" viewBox="0 0 8 8" refX="0.5" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path class="tip" d="M8,0 L0,4 L8,8 z"/></marker></defs>\n'
            f'<rect class="f-page" width="{self.wide:g}" height="{self.high:g}" rx="10"/>\n'
        )
        return head + "\n".join(self.shapes) + "\n</svg>\n"


def style_sheet() -> str:
    """Both color schemes: the dark one when the reader's browser requests it."""

    def colours(which: int) -> str:
        rules = [f".f-{name} {{ fill: {pair[which]}; }}" for name, pair in FILLS.items()]
        rules += [
            f"text {{ fill: {INK['text'][which]}; }} text.soft {{ fill: {INK['soft'][which]}; }}",
            f".line {{ stroke: {INK['line'][which]}; }} .tip {{ fill: {INK['line'][which]}; }}",
            f".edge, .dash, .lane {{ stroke: {INK['edge'][which]}; }}",
        ]
        return "\n".join(rules)

    fonts = "\n".join(
        (
            f".{name} {{ font-family: {MONO if name == 'mono' else SANS}; font-size: "
            f"{size:g}px;{' font-weight: 600;' if name in ('title', 'head') else ''} }}"
        )
        for name, size in SIZES.items()
    )
    shapes = (
        ".line { fill: none; stroke-width: 1.5; } .dashed, .dash { stroke-dasharray: 5 4; } .lane { stroke-width: "
        "1; stroke-dasharray: 2 4; }"
    )
    return f"{fonts}\n{shapes}\n{colours(0)}\n@media (prefers-color-scheme: dark) {{\n{colours(1)}\n}}\n"


def lines_in(canvas: Canvas, box: dict[str, Any]) -> None:
    """Title and lines of a box, from its upper edge down."""
    x, y, w, h = box["at"]
    middle = box.get("align") == "middle"
    at, anchor = (x + w / 2, "middle") if middle else (x + 10, "start")
    down = y + 6.0
    rows = [("head", str(box["title"]))] if box.get("title") else []
    rows += [("mono", one) for one in box.get("names", [])] + [("text", one) for one in box.get("lines", [])]
    for style, text in rows:
        down += SIZES[style] + 4
        if width(text, style) > w - (4 if middle else 14) or down > y + h - 4:
            raise Wrong(f"{text!r} does not fit into {box.get('title')!r}")
        canvas.text(at, down, text, style, anchor=anchor, soft=style == "text" and bool(box.get("title")))


def draw_map(source: dict[str, Any]) -> str:
    """Boxes and arrows at given places."""
    canvas = Canvas(float(source["width"]), float(source["height"]))
    canvas.text(20, 30, source["title"], "title")
    for box in source["boxes"]:
        x, y, w, h = box["at"]
        canvas.box(x, y, w, h, box["fill"], frame="dash" if box.get("dashed") else "edge")
        lines_in(canvas, box)
    for arrow in source["arrows"]:
        canvas.line(arrow["points"], both=bool(arrow.get("both")))
        x, y = arrow["label"]
        for row, text in enumerate(arrow["says"]):
            canvas.text(
                x,
                y + row * 15,
                text,
                "text",
                anchor=arrow.get("anchor", "start"),
                under="page" if not arrow.get("inside") else "",
            )
    return canvas.svg(source["title"])


def draw_sequence(source: dict[str, Any]) -> str:
    """Lanes from left to right, steps from top to bottom, in bands."""
    lanes = source["lanes"]
    canvas = Canvas(float(source["width"]))
    gap = (canvas.wide - 40) / len(lanes)
    centre = {lane["id"]: 20 + gap * (number + 0.5) for number, lane in enumerate(lanes)}
    canvas.text(20, 30, source["title"], "title")
    y, number = 108.0, 0
    body = Canvas(canvas.wide)
    for band in source["bands"]:
        high = 34 + sum(44 + (14 if step.get("names") else 0) for step in band["steps"])
        canvas.box(10, y, canvas.wide - 20, high, band["fill"], frame="none")
        body.text(22, y + 20, band["title"], "head")
        at = y + 34
        for step in band["steps"]:
            number += 1
            _step(body, step, number, at, centre, band["fill"])
            at += 44 + (14 if step.get("names") else 0)
        y += high + 8
    canvas.high = y + 4
    for lane in lanes:
        x = centre[lane["id"]]
        canvas.shapes.append(f'<line class="lane" x1="{x:g}" y1="92" x2="{x:g}" y2="{canvas.high - 10:g}"/>')
        canvas.box(x - gap / 2 + 5, 46, gap - 10, 46, lane["fill"])
        canvas.text(x, 65, lane["title"], "head", anchor="middle")
        canvas.text(x, 82, lane["says"], "text", anchor="middle", soft=True)
    canvas.shapes += body.shapes
    return canvas.svg(source["title"])


def _step(body: Canvas, step: dict[str, Any], number: int, y: float, centre: dict[str, float], fill: str) -> None:
    """One arrow: the action above it, the names of written keys and files below it."""
    begin, end = centre[step["from"]], centre[step["to"]]
    names = "   ".join(step.get("names", []))
    middle, text = (begin + end) / 2, f"{number}  {step['says']}"
    for row, style, baseline in ((text, "text", y + 14), (names, "mono", y + 39)):
        if row:
            half = width(row, style) / 2
            body.text(
                min(max(middle, 18 + half), body.wide - 18 - half),
                baseline,
                row,
                style,
                anchor="middle",
                soft=style == "mono",
                under=fill,
            )
    if begin == end:
        body.shapes.append(f'<circle class="tip" cx="{begin:g}" cy="{y + 24:g}" r="4"/>')
    else:
        body.line([[begin, y + 24], [end - (2 if end > begin else -2), y + 24]])


def draw(path: Path) -> str:
    """SVG of one source."""
    source = yaml.safe_load(path.read_text(encoding="utf-8"))
    return draw_map(source) if "boxes" in source else draw_sequence(source)


def main(arguments: list[str]) -> int:
    stale = []
    for path in SOURCES:
        target, svg = path.with_suffix(".svg"), draw(path)
        if arguments == ["--check"]:
            stale += [target] if not target.exists() or target.read_text(encoding="utf-8") != svg else []
        else:
            target.write_text(svg, encoding="utf-8")
    for target in stale:
        print(f"{target.relative_to(ROOT)} is not what its YAML file says: run hack/pictures/draw.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
