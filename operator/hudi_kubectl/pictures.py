"""The timeline of a table as text and as SVG: attempts and commits of each writer on one axis."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from xml.sax.saxutils import escape

from hudi_kubectl.objects import JsonDict, Table, Writer, when

FAILED = "failed"
ATTEMPT, COMMIT, SETTLED = "attempt", "commit", "settling"
WRITER, FOREIGN, SERVICES = "writer", "foreign", "services"
_AUTHORS = (WRITER, FOREIGN, SERVICES)
_MARKS = {ATTEMPT: "─", COMMIT: "█", SETTLED: "▒"}
_COLOURS = {ATTEMPT: "#9aa5b1", COMMIT: "#2f855a", SETTLED: "#c05621", FAILED: "#c53030"}
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400, 604_800)
_NO_XML = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DAY = 86_400


@dataclass(frozen=True)
class Bar:
    """From ``begin`` to ``end``; ``failed``: it ended badly, ``is_open``: it still goes on."""

    kind: str
    begin: datetime
    end: datetime
    text: str
    failed: bool = False
    is_open: bool = False


@dataclass(frozen=True)
class Row:
    """A writer, or the table itself.

    ``kind``: what its commits are of; ``of``: the name of a writer that is gone.
    """

    name: str
    bars: tuple[Bar, ...]
    kind: str = ""
    of: str = ""


def rows(table: Table, writers: Sequence[Writer], at: datetime, since: timedelta | None = None) -> list[Row]:
    """Rows made of the statuses: the last ten attempts of each writer, the last commits.

    The first rows are those of ``writers``. Others with commits follow: writers that are gone,
    writers that do not use the operator's lock, and table services.
    """
    begin = at - since if since is not None else None
    commits: dict[tuple[str, str], list[Bar | None]] = {}
    foreign = table.foreign()
    for one in table.commits():
        commits.setdefault(_author(one, foreign), []).append(_commit(one))
    found: list[tuple[str, str, str, list[Bar | None], bool]] = []
    for writer in writers:
        bars: list[Bar | None] = [_attempt(one, at) for one in writer.attempts()]
        bars += commits.pop((WRITER, f"{writer.namespace}/{writer.name}"), [])
        found.append((WRITER, writer.name, "", bars, True))  # also without a bar: a row for each writer, in their order
    for (kind, who), made in sorted(commits.items(), key=lambda each: (_AUTHORS.index(each[0][0]), each[0][1])):
        name = who.rpartition("/")[2]
        found.append((kind, f"{name} (gone)" if name else kind, name, made, False))
    settling = [_settling(one, at) for one in table.status.get("settling") or []]
    found.append((SETTLED, "settling", "", settling, False))
    shown = []
    for kind, name, of, bars, always in found:
        kept = [bar for bar in bars if bar is not None and (begin is None or bar.end >= begin)]
        if begin is not None:
            kept = [replace(bar, begin=max(bar.begin, begin)) for bar in kept]
        if kept or always:
            shown.append(Row(name, tuple(kept), kind, of))
    return shown


def _author(commit: JsonDict, foreign: Collection[str]) -> tuple[str, str]:
    """Kind of a commit's author, and its name, `NAMESPACE/NAME`, if it is a writer."""
    if commit.get("writer"):
        return WRITER, str(commit["writer"])
    return (FOREIGN, "") if commit.get("instant") in foreign else (SERVICES, "")


def has_failed(attempt: JsonDict) -> bool:
    """Whether an attempt has ended badly."""
    ended_well = ("Succeeded", "Cancelled", "EndedForChange")
    return bool(attempt.get("endTime")) and str(attempt.get("class") or "running") not in ended_well


def _attempt(one: JsonDict, at: datetime) -> Bar | None:
    begin = when(one.get("startTime"))
    if begin is None:
        return None
    end = when(one.get("endTime")) or at
    kind = str(one.get("class") or "running")
    return Bar(ATTEMPT, begin, end, f"attempt {one.get('number')}: {kind}", has_failed(one), not one.get("endTime"))


def _commit(one: JsonDict) -> Bar | None:
    begin, end = when(one.get("instant")), when(one.get("completionTime"))
    if begin is None or end is None:
        return None
    return Bar(COMMIT, begin, end, f"{one.get('action')} {one.get('instant')}: {one.get('records', '?')} records")


def _settling(one: JsonDict, at: datetime) -> Bar | None:
    begin = when(one.get("since"))
    said = f"{one.get('pod')}: {one.get('phase')}"
    return None if begin is None else Bar(SETTLED, begin, at, said, is_open=True)


def ends(shown: Sequence[Row], at: datetime) -> tuple[datetime, datetime] | None:
    """The time that the rows cover; None when there is nothing."""
    bars = [bar for row in shown for bar in row.bars]
    if not bars:
        return None
    begin, end = min(bar.begin for bar in bars), max(*(bar.end for bar in bars), at)
    return begin, max(end, begin + timedelta(seconds=1))


def text(shown: Sequence[Row], at: datetime, width: int) -> list[str]:
    """Lines of at most ``width`` columns. A commit is at least one column wide."""
    covered = ends(shown, at)
    if covered is None:
        return ["nothing has happened that the status still has"]
    begin, end = covered
    label = min(max(len("UTC"), *(len(row.name) for row in shown)), 24)
    columns = max(width - label - 2, 20)
    scale = (end - begin).total_seconds() / (columns - 1)

    def column(moment: datetime) -> int:
        return min(columns - 1, max(0, round((moment - begin).total_seconds() / scale)))

    lines = []
    for row in shown:
        cells = [" "] * columns
        for kind in (ATTEMPT, SETTLED, COMMIT):
            for bar in (one for one in row.bars if one.kind == kind):
                for n in range(column(bar.begin), column(bar.end) + 1):
                    cells[n] = _MARKS[kind]
        for bar in row.bars:
            if bar.failed:
                cells[column(bar.end)] = "x"
        lines.append(f"{row.name[:label]:<{label}}  {''.join(cells).rstrip()}")
    axis, times = [" "] * columns, [" "] * columns
    free = 0
    for moment in _ticks(begin, end, columns // 12):
        written = _written(moment, begin, end)
        n = column(moment)
        first = min(n, columns - len(written))  # the last one ends where the axis does
        if first >= free:
            axis[n] = "┬"
            times[first : first + len(written)] = list(written)
            free = first + len(written) + 2
    lines.append(f"{'':<{label}}  {''.join(c if c != ' ' else '─' for c in axis)}")
    lines.append(f"{'UTC':<{label}}  {''.join(times).rstrip()}")
    lines.append(f"{'':<{label}}  █ commit, from its first file to its last   ─ attempt   x failed   ▒ being settled")
    return lines


def _ticks(begin: datetime, end: datetime, most: int) -> list[datetime]:
    whole = (end - begin).total_seconds()
    step = next((s for s in _STEPS if whole / s <= max(most, 1)), _STEPS[-1])
    first = begin.timestamp() // step * step
    found = [datetime.fromtimestamp(first + n * step, tz=begin.tzinfo) for n in range(int(whole / step) + 3)]
    return [moment for moment in found if begin <= moment <= end]


def _written(moment: datetime, begin: datetime, end: datetime) -> str:
    """A time of the axis; with its day where the axis covers more than one."""
    return moment.strftime("%m-%d %H:%M" if (end - begin).total_seconds() > _DAY else "%H:%M:%S")


def _xml(text: str) -> str:
    """The text as XML may have it.

    A status has words of a driver; of most control characters XML knows no form (F543).
    """
    return escape(_NO_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text))


def svg(title: str, shown: Sequence[Row], at: datetime, width: int = 960) -> str:
    """The same as a picture; a bar's title describes it."""
    covered = ends(shown, at)
    # A time, which is written around its tick, has room at both ends.
    left, right, high, top = max(72, 8 + 7 * min(max([len(row.name) for row in shown] or [4]), 32)), 40, 26, 40
    begin, end = covered or (at, at + timedelta(seconds=1))
    scale = (width - left - right) / (end - begin).total_seconds()

    def x(moment: datetime) -> float:
        return round(left + (moment - begin).total_seconds() * scale, 1)

    bottom = top + high * len(shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 48}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{bottom + 48}" fill="#ffffff"/>',
        f'<text x="8" y="20" font-size="14">{_xml(title)}</text>',
    ]
    for moment in _ticks(begin, end, 8):
        written = _written(moment, begin, end)
        parts.append(f'<line x1="{x(moment)}" x2="{x(moment)}" y1="{top - 8}" y2="{bottom}" stroke="#e2e8f0"/>')
        parts.append(f'<text x="{x(moment)}" y="{bottom + 16}" text-anchor="middle" fill="#4a5568">{written}</text>')
    for n, row in enumerate(shown):
        y = top + high * n
        parts.append(f'<text x="8" y="{y + 14}">{_xml(row.name[:32])}</text>')
        for kind, dy, tall in ((ATTEMPT, 8, 3), (SETTLED, 3, 13), (COMMIT, 3, 13)):
            for bar in (one for one in row.bars if one.kind == kind):
                wide = max(x(bar.end) - x(bar.begin), 1.5)
                colour = _COLOURS[FAILED] if bar.failed else _COLOURS[kind]
                parts.append(
                    f'<rect x="{x(bar.begin)}" y="{y + dy}" width="{wide:.1f}" height="{tall}" fill="{colour}">'
                    f"<title>{_xml(bar.text)}</title></rect>"
                )
        for bar in row.bars:
            if bar.failed:
                parts.append(
                    f'<text x="{x(bar.end)}" y="{y + 14}" text-anchor="middle" fill="{_COLOURS[FAILED]}">✕'
                    f"<title>{_xml(bar.text)}</title></text>"
                )
    legend = ((COMMIT, "commit"), (ATTEMPT, "attempt"), (FAILED, "failed attempt"), (SETTLED, "being settled"))
    for n, (kind, words) in enumerate(legend):
        parts.append(f'<rect x="{left + 130 * n}" y="{bottom + 28}" width="12" height="12" fill="{_COLOURS[kind]}"/>')
        parts.append(f'<text x="{left + 130 * n + 18}" y="{bottom + 38}">{words}</text>')
    parts.append(f'<text x="8" y="{bottom + 16}" fill="#4a5568">UTC</text></svg>')
    return "\n".join(parts) + "\n"
