"""The operator's planners and the agent's own code in one world in memory: the one reads what the
other has written, and nothing is typed in between.

These parts are in memory here: API server, etcd, kubelet, table and Hudi (the fakes of
`tests/tiers/unit/runtime`). Every value passes through JSON on its way. With real processes, etcd
and storage: `tests/tiers/component/operator/test_together.py`; on real pods:
`tests/tiers/e2e/test_requests.py`. Here nothing is lost or late on its way, nobody lacks a right,
and one step follows the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from hudi_runtime.process.etcd import Entry, encode
from hudi_runtime.settle.settle import Records
from tests.support.world.simulated_world import Process, World

JsonDict = dict[str, Any]
PREFIX = "/hudi/tables/T/"
Serve = Callable[[Process, dict[str, JsonDict]], None]


class Keys(MutableMapping[str, JsonDict]):
    """The world's keys of the table as a mapping; a value that is put goes through JSON."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __getitem__(self, key: str) -> JsonDict:
        return self._world.kv[key].value

    def __setitem__(self, key: str, value: JsonDict) -> None:
        self._world.put(key, json.loads(encode(value)))

    def __delitem__(self, key: str) -> None:
        del self._world.kv[key]
        self._world.revision += 1

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._world.kv))

    def __len__(self) -> int:
        return len(self._world.kv)


class Etcd:
    """The runtime's face of etcd (`hudi_runtime.process.etcd.Etcd`) on the same keys."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.keys = Keys(world)

    def get(self, key: str) -> Entry | None:
        return self._entry(key) if key in self._world.kv else None

    def range(self, prefix: str) -> list[Entry]:
        return [self._entry(key) for key in sorted(self._world.kv) if key.startswith(prefix)]

    def ranges(self, *prefixes: str) -> list[list[Entry]]:
        return [self.range(prefix) for prefix in prefixes]

    def _entry(self, key: str) -> Entry:
        return Entry(PREFIX + key, json.loads(json.dumps(self._world.kv[key].value)), self._world.kv[key].mod)

    def put(self, key: str, value: Mapping[str, Any]) -> int:
        self.keys[key] = dict(value)
        return self._world.mod(key)

    def cas(self, key: str, value: Mapping[str, Any], revision: int) -> int | None:
        return self.put(key, value) if self._world.mod(key) == revision else None

    def delete(self, key: str, revision: int) -> bool:
        if self._world.mod(key) != revision:
            return False
        self._world.drop(key)
        return True

    def records(self) -> Records:
        """As the agent reads them at the beginning of a pass."""
        return Records.from_entries(self.range(""), prefix=PREFIX)


class Meeting(World):
    """The simulated world, whose agents do by the runtime's code what `serve` says.

    Everything else of them is played as ever.
    """

    def __init__(self, serve: Serve | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.etcd = Etcd(self)
        self.serve = serve

    def _serve(self, process: Process) -> None:
        if self.serve is not None:
            self.serve(process, {id: json.loads(json.dumps(key.value)) for id, key in self.names("request").items()})

    def gate(self) -> JsonDict:
        return dict(json.loads(json.dumps(self.kv["gate"].value)))

    def assignment(self) -> JsonDict:
        """Assignment of the table, as the operator writes it for the agent."""
        return dict(json.loads(json.dumps(self.kv["assignment"].value)))
