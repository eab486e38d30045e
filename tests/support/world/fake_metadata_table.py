"""A table, a session and an etcd for changes of the metadata table, in one fake.

It lacks abilities of the real parts: content (partitions are names), a lock that somebody else has,
a lost answer, a compare that fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.api.metadata_table import MetadataTable as Wanted
from hudi_operator.plan.requests import metadata_table
from hudi_runtime.agent.metadata_table import MetadataTable
from hudi_runtime.process.etcd import Entry
from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl
from tests.support.world.agent_contexts import NOTHING, context, look

T1, T2 = "20260101000000001", "20260101000000002"
ME, OTHER = "agent-me", "agent-other"
ON = metadata_table.request(Wanted(indexes=(), rebuild="1")).to_json()


@dataclass
class Fake:
    """Table, session and etcd in one."""

    names: list[str] = field(default_factory=lambda: [f"{T1}_{T2}.commit"])
    parts: tuple[set[str], set[str]] = field(default_factory=lambda: ({"files", "column_stats"}, set()))
    kv: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    error: Exception | None = None
    leaves: tuple[set[str], set[str]] | None = None
    gate: str = "closed"
    inc: str = ME

    @property
    def etcd(self) -> Fake:
        return self

    def get(self, key: str) -> Entry | None:
        return Entry(key, self.kv[key], 1) if key in self.kv else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        self.kv[key] = dict(value)

    def timeline(self) -> tl.Timeline:
        return tl.parse(self.names)

    def write_config(self, _name: str, options: dict[str, str]) -> dict[str, str]:
        return options

    @contextmanager
    def locked(self, _config: object) -> Iterator[None]:
        self.log.append("lock")
        yield
        self.log.append("unlock")

    def delete_metadata_table(self) -> None:
        self.log.append("delete")
        self.parts = (set(), set())

    def make_metadata_table(self, config: dict[str, str]) -> None:
        self.log.append(f"make {config['hoodie.metadata.enable']}")
        if self.error is not None:
            raise self.error
        self.parts = self.leaves or ({"files"}, set())

    def metadata_partitions(self) -> tuple[set[str], set[str]]:
        return self.parts

    @property
    def done(self) -> dict[str, Any]:
        return self.kv.get("done/metadata", {})


def serve(
    fake: Fake, request: dict[str, Any] | None = None, records: Records | None = None, *, known: str | None = None
) -> dict[str, Any]:
    asked = request or ON
    table: Any = fake
    keeper = MetadataTable(
        context(table, table, gate=lambda: fake.gate), known=str(asked["nonce"]) if known is None else known
    )
    keeper.consider(look({"metadata": asked}, records or NOTHING))
    return fake.done
