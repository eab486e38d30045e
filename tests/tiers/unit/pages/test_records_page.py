"""docs/design/records.md is what the contract says now."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_contract.shape import Record
from tests.campaigns.pages import records


def test_the_page_is_current() -> None:
    assert records.PAGE.read_text(encoding="utf-8") == records.page(), "run python -m tests.campaigns.pages.records"


def test_every_record_and_field_is_on_it() -> None:
    text = records.page()
    for _, module in records.SECTIONS:
        for class_ in records.classes(module, Record):
            assert f"### {class_.__name__}\n" in text
            assert all(f"* `{one.name}`: " in text for one in records.fields_of(class_))


def test_a_field_that_is_added_shows() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Wider(records.table_keys.Clock):
        """With one more."""

        zone: str = ""

    assert "`zone`: text" in records._field(records.fields_of(Wider)[-1], "")
