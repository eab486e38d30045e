"""The objects of one look, as the API server stores them and as types.

Each is parsed once, at its first use.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.api.tolerant import read_table, why_unread

JsonDict = dict[str, Any]


def table_name_of(writer: JsonDict) -> str:
    """Name of the HudiTable that a HudiWriter references; empty when it names none."""
    return str(((writer.get("spec") or {}).get("tableRef") or {}).get("name") or "")


class ReadTable(NamedTuple):
    """A HudiTable as far as it can be read."""

    spec: TableSpec | None
    """None: the table cannot be identified. With an ``error`` it can only be used for fencing and
    settling (F69).
    """
    error: str
    """Field and reason of the unreadable part; empty when everything is readable."""


class ReadWriter(NamedTuple):
    """``spec`` is None when it is unreadable; ``error`` then has the reason."""

    obj: JsonDict
    spec: WriterSpec | None
    error: str


@dataclass(frozen=True)
class Objects:
    """A HudiTable and the HudiWriters that reference it, in name order.

    The table is None when it does not exist: its writers wait.
    """

    table: JsonDict | None
    writers: tuple[JsonDict, ...] = ()

    @cached_property
    def table_spec(self) -> ReadTable:
        """The table as far as it can be read."""
        return ReadTable(*read_table(self.table)) if self.table is not None else ReadTable(None, "")

    @cached_property
    def writer_specs(self) -> tuple[ReadWriter, ...]:
        """The writers, in the same order."""
        return tuple(_read_writer(obj) for obj in self.writers)


def _read_writer(obj: JsonDict) -> ReadWriter:
    try:
        return ReadWriter(obj, WriterSpec.from_object(obj), "")
    except Exception as error:
        return ReadWriter(obj, None, why_unread(error))


def read_whole(obj: JsonDict) -> ReadTable:
    """Read a HudiTable other than the one of the look.

    One that is not fully readable is not used at all.
    """
    try:
        return ReadTable(TableSpec.from_object(obj), "")
    except Exception as error:
        return ReadTable(None, why_unread(error))
