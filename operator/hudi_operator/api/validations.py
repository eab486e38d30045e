"""Conditions on a batch before it is written: ``spec.validations`` of a HudiWriter."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_contract import job
from hudi_operator.api.fields import number, text, texts

MOST_ROWS = 1_000_000_000_000


@dataclass(frozen=True)
class Validation:
    """One of: a query and what it must return, a number of rows, columns without null."""

    name: str = text(required=True, at_least=1, at_most=63, matches="^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")
    sql: str = text(at_least=1, at_most=65536)
    """A SELECT over the views ``batch`` and ``table``."""
    expect: str = text(choices=("Empty",))
    """``Empty``: the query returns no row."""
    equals: str | None = text(unset=None, at_most=1024)
    """The one value that the query returns, as text."""
    min_rows: int | None = number(unset=None, at_least=1, at_most=MOST_ROWS, form="int64")
    max_rows: int | None = number(unset=None, at_least=1, at_most=MOST_ROWS, form="int64")
    not_null: tuple[str, ...] = texts(
        at_least=1, at_most=32, length=(1, 255), matches=r"^[^\x00-\x20\x7f,:`]+$", distinct=True
    )

    def problem(self) -> str:
        """Why this is no validation; empty when it is one."""
        limits = [limit for limit in (self.min_rows, self.max_rows) if limit is not None]
        if [bool(self.sql), bool(limits), bool(self.not_null)].count(True) != 1:
            return ": needs one of sql, minRows and maxRows, and notNull"
        if [bool(self.expect), self.equals is not None].count(True) != bool(self.sql):
            return ": sql needs one of expect and equals, the others have neither"
        if limits != sorted(limits):
            return f".minRows: {self.min_rows} is more than maxRows {self.max_rows}"
        return ""

    @property
    def of_job(self) -> job.Validation:
        """The validation in ``job.json``."""
        return job.Validation(
            name=self.name,
            sql=self.sql,
            equals=self.equals,
            min_rows=self.min_rows,
            max_rows=self.max_rows,
            not_null=self.not_null,
        )
