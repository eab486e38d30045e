"""Objects of one look: each is parsed once, whoever asks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.plan.core.view import build_view
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_world import CONFIG, World


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each object was parsed, by name."""
    counts: Counter[str] = Counter()

    def counted(kind: type[TableSpec] | type[WriterSpec]) -> None:
        parse = kind.from_object

        def from_object(obj: dict[str, Any]) -> Any:
            counts[obj["metadata"]["name"]] += 1
            return parse(obj)

        monkeypatch.setattr(kind, "from_object", staticmethod(from_object))

    counted(TableSpec)
    counted(WriterSpec)
    return counts


def test_a_look_parses_each_object_once(parsed: Counter[str]) -> None:
    world = World()
    world.make_table()
    world.make_writer("one")
    world.make_writer("reads-another", source={"hudi": {"tableRef": {"name": "bronze"}}})
    world.sources = {
        "bronze": {"metadata": {"name": "bronze", "namespace": "lake"}, "spec": {"path": "s3a://lake/bronze"}}
    }
    observed = world.observe()
    table = str((observed.table or {})["metadata"]["name"])
    parsed.clear()
    plan_table(observed, CONFIG)
    assert (parsed[table], parsed["one"], parsed["reads-another"]) == (1, 1, 1)
    assert parsed["bronze"] <= 1


def test_a_view_is_built_of_what_was_parsed(parsed: Counter[str]) -> None:
    world = World()
    world.make_table()
    world.make_writer("one")
    observed = world.observe()
    (spec, error), (writer,) = observed.objects.table_spec, observed.objects.writer_specs
    parsed.clear()
    view = build_view(observed, CONFIG)
    assert (view.table is spec, error) == (True, "")
    assert view.writers[0].spec is writer.spec
    assert not parsed, "nothing is parsed again"
