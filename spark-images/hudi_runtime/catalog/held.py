"""Limits of AWS Glue that a table exceeds, as messages."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from hudi_runtime.catalog.description import Description, Values

LONGEST_NAME, LONGEST_TYPE, LONGEST_PROPERTY, LONGEST_VALUE = 255, 131_072, 512_000, 1024
"""Glue's limits in characters: name and type of a column, a parameter, a value of a partition."""
_SHOWN = 80
_ONE_LINE = re.compile("[\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff\t]*")
"""Glue's own pattern of names, types and values."""


def problem(described: Description) -> str:
    """Column or property that Glue cannot hold: name, value and rule; empty: none."""
    columns = (*described.columns, *described.partition_columns)
    for column in columns:
        name = _shown(column.name)
        if not column.name or len(column.name) > LONGEST_NAME:
            return f"column {name} has {len(column.name)} characters: Glue holds 1 to {LONGEST_NAME}"
        if not _ONE_LINE.fullmatch(column.name):
            return f"column {name} has a control character: Glue holds none in a name"
        if len(column.type) > LONGEST_TYPE:
            return f"column {name} has a type of {len(column.type)} characters: Glue holds {LONGEST_TYPE}"
        if not _ONE_LINE.fullmatch(column.type):
            return f"column {name} has a control character in the name of a field: Glue holds none"
    for known, number in Counter(column.name.lower() for column in columns).items():
        if number > 1:
            return f"column {_shown(known)} occurs {number} times in lower case: names in Glue are case-insensitive"
    for entry in described.entries:
        for key, value in entry.properties.items():
            if len(value) > LONGEST_PROPERTY:
                return f"property {_shown(key)} has {len(value)} characters: Glue holds {LONGEST_PROPERTY}"
    return ""


def partitions(described: Description) -> tuple[Description, tuple[str, ...]]:
    """Without the partitions that Glue cannot hold, and the paths of all that are left out."""
    out = {path for values, path in described.written.items() if not _holds(values)}
    kept = {values: path for values, path in described.written.items() if path not in out}
    dropped = tuple(values for values in described.dropped if _holds(values))
    left_out = tuple(_shown(path)[1:-1] for path in sorted({*described.left_out, *out}))
    return replace(described, written=kept, dropped=dropped), left_out


def _holds(values: Values) -> bool:
    return all(0 < len(value) <= LONGEST_VALUE and _ONE_LINE.fullmatch(value) for value in values)


def _shown(text: str) -> str:
    return repr(text[:_SHOWN])
