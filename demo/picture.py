"""The timeline as a picture of text and as SVG: the instants of each writer over time, conflict,
kill, rollback. Rows and ruler of a picture have one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from rich.text import Text

WIDTH = 100
LABEL = 20
STYLES = {
    "commit": "green",
    "refused": "yellow",
    "killed": "red",
    "failed": "red",
    "rollback": "magenta",
    "lock": "cyan",
    "pending": "white",
}
FILL = {"commit": "█", "refused": "▒", "killed": "▒", "failed": "▒", "rollback": "█", "lock": "▄", "pending": "░"}
END = {"refused": "✗", "killed": "☠", "failed": "!", "rollback": "↺"}
LEGEND = "█ instant until its commit  ▒✗ refused: conflict  ▒☠ writer killed  ▒! failed  ↺ rolled back  ▄ lock"
STEPS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400)

WORDS = {
    "commit": "instant until its commit",
    "refused": "refused: conflict",
    "killed": "writer killed",
    "failed": "failed",
    "rollback": "rolled back",
    "pending": "not ended",
    "lock": "lock",
}
"""Each kind of bar in words, in the order of the legend."""
COLOURS = {
    "commit": "#2f855a",
    "refused": "#b7791f",
    "killed": "#c53030",
    "failed": "#c53030",
    "rollback": "#805ad5",
    "pending": "#718096",
    "lock": "#2b6cb0",
}
HATCHED = ("refused", "killed", "failed", "pending")
"""Kinds that have left no commit."""
MARKS = {
    "refused": "M-4-4L4 4M-4 4L4-4",
    "killed": "M-5 0L0-5L5 0L0 5ZM-2.5-2.5L2.5 2.5M-2.5 2.5L2.5-2.5",
    "failed": "M0-5V1M0 4V5",
    "rollback": "M5 0H-4M0-4L-4 0L0 4",
}
"""The end of a bar as a path around its end: a font may lack such signs, or give them any width."""
LEFT, RIGHT, TOP, HIGH, TALL = 150, 20, 44, 26, 14
"""Sizes of the SVG: its margins, and the heights of a row and of a bar."""


@dataclass(frozen=True)
class Bar:
    """One instant (or hold of the lock) of one row, in Unix seconds."""

    row: str
    start: float
    end: float
    kind: str


@dataclass(frozen=True)
class Axis:
    """From ``begin`` to ``end`` (Unix seconds), on ``width`` columns or pixels from ``left`` on."""

    begin: float
    end: float
    width: float
    left: float = 0.0

    @property
    def seconds(self) -> float:
        return max(self.end - self.begin, 1.0)

    def at(self, moment: float) -> float:
        """Position of a moment; one outside the picture is at the nearer end."""
        part = (moment - self.begin) / self.seconds
        return self.left + self.width * min(1.0, max(0.0, part))

    def column(self, moment: float) -> int:
        """The column in which a moment lies."""
        return min(int(self.width) - 1, int(self.at(moment)))

    def ticks(self) -> list[int]:
        """Seconds after ``begin``, eleven at most."""
        step = next((one for one in STEPS if self.seconds / one <= 10), STEPS[-1] * 6)
        return list(range(0, int(self.seconds) + 1, step))


def axis(bars: Sequence[Bar], width: float, left: float = 0.0) -> Axis:
    """The one of all bars."""
    return Axis(min(bar.start for bar in bars), max(bar.end for bar in bars), width, left)


def cells(bars: Sequence[Bar], on: Axis) -> list[tuple[str, str]]:
    """One row as (character, style) cells. The left half block separates consecutive bars."""
    row = [(" ", "")] * int(on.width)
    places = [(bar, on.column(bar.start), on.column(bar.end)) for bar in sorted(bars, key=lambda bar: bar.start)]
    for bar, first, last in places:
        for column in range(first, last + 1):
            row[column] = (FILL[bar.kind], STYLES[bar.kind])
    for bar, first, last in places:  # the next bar may begin in the column where this one ends
        if bar.kind == "commit" and last > first:
            row[last] = ("▌", STYLES[bar.kind])
    for bar, _, last in places:
        if bar.kind in END:
            row[last] = (END[bar.kind], f"bold {STYLES[bar.kind]}")
    return row


def ruler(on: Axis) -> tuple[str, str]:
    """Two lines: marks and seconds."""
    width = int(on.width)
    marks, numbers = ["─"] * width, [" "] * width
    for seconds in on.ticks():
        column = on.column(on.begin + seconds)
        marks[column] = "┬"
        text = f"{seconds} s" if seconds == 0 else str(seconds)
        if column + len(text) <= width:
            numbers[column : column + len(text)] = text
    return "".join(marks), "".join(numbers)


def draw(bars: Sequence[Bar], rows: Sequence[str]) -> list[Text]:
    """The picture, at most 100 columns wide; ``rows`` gives the order from top to bottom."""
    if not bars:
        return [Text("(nothing was recorded)")]
    on = axis(bars, WIDTH - LABEL - 1)
    marks, numbers = ruler(on)
    lines = []
    for name in rows:
        line = Text(f"{name:>{LABEL - 1}.{LABEL - 1}} ", style="bold")
        line.append("│", style="dim")
        for character, style in cells([bar for bar in bars if bar.row == name], on):
            line.append(character, style=style or None)
        lines.append(line)
    lines.append(Text(" " * LABEL + "└" + marks, style="dim"))
    lines.append(Text(" " * (LABEL + 1) + numbers, style="dim"))
    lines.append(Text(LEGEND, style="dim"))
    return lines


def svg(bars: Sequence[Bar], rows: Sequence[str], title: str, width: int = 960) -> str:
    """The same as SVG. A bar begins and ends where the ruler has these seconds, and says so to a
    reader that points at it.
    """
    on = axis(bars, width - LEFT - RIGHT, LEFT) if bars else Axis(0, 1, width - LEFT - RIGHT, LEFT)
    bottom = TOP + HIGH * len(rows)
    kinds = [kind for kind in WORDS if any(bar.kind == kind for bar in bars)]
    legend = _legend(kinds, bottom + 48, width)
    height = bottom + 64 + 20 * (legend[1] - 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="12" fill="#1a202c">',
        "<defs>",
        *(
            f'<pattern id="{kind}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
            f'<rect width="6" height="6" fill="{COLOURS[kind]}" fill-opacity="0.2"/>'
            f'<rect width="2" height="6" fill="{COLOURS[kind]}"/></pattern>'
            for kind in HATCHED
        ),
        "</defs>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for n in range(0, len(rows), 2):
        parts.append(f'<rect x="0" y="{TOP + HIGH * n}" width="{width}" height="{HIGH}" fill="#f7fafc"/>')
    for seconds in on.ticks():
        x = _round(on.at(on.begin + seconds))
        parts.append(f'<line class="tick" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom + 5}" stroke="#cbd5e0"/>')
        words = f"{seconds} s" if seconds == 0 else str(seconds)
        parts.append(f'<text class="tick" x="{x}" y="{bottom + 19}" text-anchor="middle">{words}</text>')
    for n, name in enumerate(rows):
        y = TOP + HIGH * n + HIGH // 2
        parts.append(f'<text class="row" x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>')
        own = sorted((bar for bar in bars if bar.row == name), key=lambda bar: bar.start)
        parts += [_rect(bar, on, y) for bar in own]
        parts += [_mark(bar.kind, _round(on.at(bar.end)), y) for bar in own if bar.kind in MARKS]
    parts.append(f'<line x1="{LEFT}" x2="{width - RIGHT}" y1="{bottom}" y2="{bottom}" stroke="#4a5568"/>')
    return "\n".join([*parts, *legend[0], "</svg>"]) + "\n"


def _round(x: float) -> float:
    return round(x, 2)


def _fill(kind: str) -> str:
    return f"url(#{kind})" if kind in HATCHED else COLOURS[kind]


def _rect(bar: Bar, on: Axis, y: int) -> str:
    """A bar around ``y``. The white edge separates it from one that begins where it ends."""
    x = _round(on.at(bar.start))
    wide = _round(max(on.at(bar.end) - on.at(bar.start), 1.0))
    tall = TALL if bar.kind != "lock" else TALL // 2
    said = f"{WORDS[bar.kind]}, {bar.start - on.begin:.1f} to {bar.end - on.begin:.1f} s"
    edge = ' stroke="#ffffff" stroke-width="0.6"' if wide > 3 else ""
    return (
        f'<rect class="{bar.kind}" x="{x}" y="{y - tall // 2}" width="{wide}" height="{tall}" '
        f'fill="{_fill(bar.kind)}"{edge}><title>{escape(said)}</title></rect>'
    )


def _mark(kind: str, x: float, y: int) -> str:
    """The end of a bar: white below, so that it is seen on any colour."""
    path, at = MARKS[kind], f'transform="translate({x} {y})"'
    return (
        f'<path d="{path}" {at} fill="#ffffff" stroke="#ffffff" stroke-width="5" stroke-linecap="round"/>'
        f'<path class="end" d="{path}" {at} fill="none" stroke="{COLOURS[kind]}" stroke-width="2" '
        'stroke-linecap="round"/>'
    )


def _legend(kinds: Sequence[str], y: int, width: int) -> tuple[list[str], int]:
    """The kinds that the picture has, and the number of lines."""
    parts, x, lines = list[str](), LEFT, 1
    for kind in kinds:
        wide = 46 + 7 * len(WORDS[kind])
        if x + wide > width - RIGHT and x > LEFT:
            x, lines = LEFT, lines + 1
        at = y + 20 * (lines - 1)
        tall = TALL if kind != "lock" else TALL // 2
        parts.append(f'<rect x="{x}" y="{at - tall // 2}" width="18" height="{tall}" fill="{_fill(kind)}"/>')
        if kind in MARKS:
            parts.append(_mark(kind, x + 18, at))
        parts.append(f'<text class="legend" x="{x + 28}" y="{at + 4}">{WORDS[kind]}</text>')
        x += wide
    return parts, lines


def save(bars: Sequence[Bar], rows: Sequence[str], path_without_suffix: str, title: str) -> list[Text]:
    """Write the picture as text and as SVG; returns the lines of the text."""
    lines = draw(bars, rows)
    with open(path_without_suffix + ".txt", "w", encoding="utf-8") as out:
        out.write("\n".join(line.plain.rstrip() for line in lines) + "\n")
    with open(path_without_suffix + ".svg", "w", encoding="utf-8") as out:
        out.write(svg(bars, rows, title))
    return lines
