"""The objects of one look, as the API server stores them and as types.

Each is parsed once, at its first use.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from hudi_contract.defaults import under
from hudi_operator.api.bounds import check_size
from hudi_operator.api.defaults import WHERE, Defaults
from hudi_operator.api.defaults import read as read_defaults
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
    defaults: JsonDict | None = None
    """The ConfigMap with the namespace's defaults for HudiWriters; None: there is none."""
    defaults_unread: str = ""
    """Why that ConfigMap could not be read; empty: it could."""
    given: Defaults | None = None
    """Defaults that were read already (`plan.forecast`); None: they are read here."""

    @cached_property
    def table_spec(self) -> ReadTable:
        """The table as far as it can be read."""
        return ReadTable(*read_table(self.table)) if self.table is not None else ReadTable(None, "")

    @cached_property
    def writer_specs(self) -> tuple[ReadWriter, ...]:
        """The writers, in the same order."""
        given = self.given if self.given is not None else _read_defaults(self.defaults, self.defaults_unread)
        return tuple(_read_writer(obj, given) for obj in self.writers)


def _read_defaults(obj: JsonDict | None, unread: str) -> Defaults:
    """Even if they are invalid, writers are followed and stopped, without them."""
    if unread:
        return Defaults(problem=f"{WHERE}: cannot be read: {unread}")
    try:
        return read_defaults(obj)
    except Exception as error:
        return Defaults(problem=f"{WHERE}: {why_unread(error)}")


def _read_writer(obj: JsonDict, given: Defaults) -> ReadWriter:
    try:
        return ReadWriter(obj, writer_under(obj, given), "")
    except Exception as error:
        return ReadWriter(obj, None, why_unread(error))


def writer_under(obj: JsonDict, given: Defaults) -> WriterSpec:
    """A HudiWriter with the defaults of its namespace under its own fields.

    Without them where they cannot be used: its attempts go on, and none starts
    (``defaults_problem``). Raises SpecError for what is wrong with the HudiWriter itself.
    """
    own, problem = obj.get("spec"), given.problem
    if given.fields and isinstance(own, dict):
        check_size(own)
        try:
            spec, fields = under(own, given.fields)
            found = WriterSpec.from_object({**obj, "spec": spec})
        except Exception as error:
            problem = f"{WHERE}: together with this HudiWriter: {why_unread(error)}"
        else:
            return replace(found, from_defaults=fields)
    return replace(WriterSpec.from_object(obj), defaults_problem=problem)


def read_whole(obj: JsonDict) -> ReadTable:
    """Read a HudiTable other than the one of the look.

    One that is not fully readable is not used at all.
    """
    try:
        return ReadTable(TableSpec.from_object(obj), "")
    except Exception as error:
        return ReadTable(None, why_unread(error))
