"""The timeline as a text picture: the instants of each writer over time,
conflict, kill, rollback.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
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


@dataclass(frozen=True)
class Bar:
    """One instant (or hold of the lock) of one row, in Unix seconds."""

    row: str
    start: float
    end: float
    kind: str


def cells(bars: list[Bar], begin: float, end: float, width: int) -> list[tuple[str, str]]:
    """One row as (character, style) cells. The left half block separates consecutive bars."""
    row = [(" ", "")] * width
    scale = width / max(end - begin, 1e-9)
    for bar in sorted(bars, key=lambda bar: bar.start):
        first = min(width - 1, max(0, int((bar.start - begin) * scale)))
        last = min(width - 1, max(first, int((bar.end - begin) * scale)))
        style = STYLES[bar.kind]
        for column in range(first, last + 1):
            row[column] = (FILL[bar.kind], style)
        if bar.kind == "commit" and last > first:
            row[last] = ("▌", style)
        if bar.kind in END:
            row[last] = (END[bar.kind], f"bold {style}")
    return row


def ruler(begin: float, end: float, width: int) -> tuple[str, str]:
    """Two lines: marks and seconds."""
    span = max(end - begin, 1.0)
    step = next((s for s in (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600) if span / s <= 10), 1200)
    marks, numbers = ["─"] * width, [" "] * width
    seconds = 0
    while seconds <= span:
        column = min(width - 1, int(seconds * width / span))
        marks[column] = "┬"
        text = f"{seconds} s" if seconds == 0 else str(seconds)
        if column + len(text) <= width:
            numbers[column : column + len(text)] = text
        seconds += step
    return "".join(marks), "".join(numbers)


def draw(bars: list[Bar], rows: list[str]) -> list[Text]:
    """The picture, at most 100 columns wide; ``rows`` gives the order from top to bottom."""
    if not bars:
        return [Text("(nothing was recorded)")]
    begin, end = min(bar.start for bar in bars), max(bar.end for bar in bars)
    width = WIDTH - LABEL - 1
    marks, numbers = ruler(begin, end, width)
    lines = []
    for name in rows:
        line = Text(f"{name:>{LABEL - 1}.{LABEL - 1}} ", style="bold")
        line.append("│", style="dim")
        for character, style in cells([bar for bar in bars if bar.row == name], begin, end, width):
            line.append(character, style=style or None)
        lines.append(line)
    lines.append(Text(" " * LABEL + "└" + marks, style="dim"))
    lines.append(Text(" " * (LABEL + 1) + numbers, style="dim"))
    lines.append(Text(LEGEND, style="dim"))
    return lines


def save(lines: list[Text], path_without_suffix: str, title: str) -> None:
    """Write the picture as text and as SVG."""
    with open(path_without_suffix + ".txt", "w", encoding="utf-8") as out:
        out.write("\n".join(line.plain.rstrip() for line in lines) + "\n")
    with open("/dev/null", "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH + 2, file=nowhere, force_terminal=True)
        for line in lines:
            console.print(line)
        console.save_svg(path_without_suffix + ".svg", title=title)
