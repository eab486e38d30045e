"""Objects that the watches have brought, by table, merged with the last live look at each table.

They answer one question: could a look at this table find something to do? Where a plan made of them
is empty, nothing is read from the API server. Any other plan leads to a live look (I11): an object
that is old or missing here is never acted upon. It can only let something wait until the next live
look.

A live look stores here the objects that it has read, and removes those that it has not found: an
object whose deletion event was lost stays until then.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from hudi_contract import naming
from hudi_operator.api import bounds
from hudi_operator.control.queue import Key
from hudi_operator.model.facts import Observed, PodFacts
from hudi_operator.model.objects import Objects, table_name_of

JsonDict = dict[str, Any]
T = TypeVar("T")
_TABLE, _AGENTS, _OTHERS, _DEFAULTS = "table", "agents", "others", "defaults"
GONE_SECONDS = 600.0
"""Seconds for which a deletion is remembered: longer than a look lasts, which may still bring the
object.
"""


@dataclass(frozen=True)
class _Noted(Generic[T]):
    value: T
    at: float
    groups: frozenset[Hashable]


class _Shelf(Generic[T]):
    """Objects of one kind by namespace and name, each in groups."""

    def __init__(self, uid: Callable[[T], str]) -> None:
        self._uid = uid
        self._noted: dict[Key, _Noted[T]] = {}
        self._members: defaultdict[Hashable, set[Key]] = defaultdict(set)
        self._gone: dict[tuple[Key, str], float] = {}

    def put(self, name: Key, value: T, groups: Iterable[Hashable], now: float) -> None:
        self._take(name)
        self._noted[name] = noted = _Noted(value, now, frozenset(groups))
        for group in noted.groups:
            self._members[group].add(name)

    def drop(self, name: Key, value: T, now: float) -> None:
        """Take this object out; another one of its name stays."""
        noted, uid = self._noted.get(name), self._uid(value)
        if noted is not None and self._uid(noted.value) == uid:
            self._take(name)
        # The oldest ones come first: no deletion costs more when there were many (F644).
        while self._gone and now - self._gone[oldest := next(iter(self._gone))] >= GONE_SECONDS:
            del self._gone[oldest]
        self._gone.pop((name, uid), None)
        self._gone[name, uid] = now

    def _take(self, name: Key) -> None:
        noted = self._noted.pop(name, None)
        for group in noted.groups if noted is not None else ():
            self._members[group].discard(name)
            if not self._members[group]:
                del self._members[group]

    def of(self, group: Hashable) -> list[T]:
        return [self._noted[name].value for name in sorted(self._members.get(group, ()))]

    def read(self, groups: Iterable[Hashable], found: Mapping[Key, tuple[T, Iterable[Hashable]]], began: float) -> None:
        """Store a live read of whole groups that began at ``began``; later events stand."""
        known = {name for group in groups for name in self._members.get(group, ())}
        for name in known - found.keys():
            if self._noted[name].at < began:
                self._take(name)
        for name, (value, its_groups) in found.items():
            noted = self._noted.get(name)
            gone = self._gone.get((name, self._uid(value)), float("-inf"))
            if gone < began and (noted is None or noted.at < began):
                self.put(name, value, its_groups, began)


class Memory:
    """HudiTables, HudiWriters and pods of all tables, and the defaults of their namespaces.

    It belongs to one event loop.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` orders events and looks."""
        self.clock = clock
        self._tables = _Shelf[JsonDict](_uid)
        self._writers = _Shelf[JsonDict](_uid)
        self._defaults = _Shelf[JsonDict](_uid)
        self._pods = _Shelf[PodFacts](lambda pod: pod.uid)
        self._looks: dict[Key, Observed] = {}

    # ---- events

    def table(self, obj: JsonDict, *, deleted: bool) -> None:
        """A HudiTable as an event brings it."""
        self._event(self._tables, _name(obj), obj, [(_TABLE, _name(obj))], deleted=deleted)

    def writer(self, obj: JsonDict, *, deleted: bool) -> None:
        """A HudiWriter as an event brings it."""
        self._event(self._writers, _name(obj), obj, [(_TABLE, _table_of(obj))], deleted=deleted)

    def defaults(self, obj: JsonDict, *, deleted: bool) -> None:
        """A ConfigMap with the defaults of its namespace as an event brings it."""
        self._event(self._defaults, _name(obj), obj, [_of_namespace(_name(obj)[0])], deleted=deleted)

    def pod(self, pod: PodFacts, *, deleted: bool) -> None:
        """A pod with the operator's labels as an event brings it."""
        self._event(self._pods, (pod.namespace, pod.name), pod, _groups(pod), deleted=deleted)

    def _event(self, shelf: _Shelf[T], name: Key, value: T, groups: Iterable[Hashable], *, deleted: bool) -> None:
        now = self.clock()
        if deleted:
            shelf.drop(name, value, now)
        else:
            shelf.put(name, value, groups, now)

    # ---- looks

    def learn(self, key: Key, observed: Observed, *, began: float, agent: str = "") -> None:
        """Keep what a live look has read. ``began``: when it began, on this object's clock.

        ``agent``: the agent whose pods were read; empty: pods of all agents of the namespace.
        """
        mine, table = (_TABLE, key), observed.table
        self._tables.read([mine], {key: (_slim(table), [mine])} if table is not None else {}, began)
        self._writers.read([mine], {_name(obj): (_slim(obj), [mine]) for obj in observed.writers}, began)
        given = observed.objects.defaults
        if not observed.objects.defaults_unread:
            there = _of_namespace(key[0])
            self._defaults.read([there], {_name(given): (_slim(given), [there])} if given is not None else {}, began)
        others = (_OTHERS, key)
        agents = (_AGENTS, key[0], agent) if agent else (_AGENTS, key[0])
        groups: list[Hashable] = [(_TABLE, key[0], naming.label_value(key[1])), agents, others]
        found = {
            (pod.namespace, pod.name): (pod, its if (its := _groups(pod)) and {*its} & {*groups} else [*its, others])
            for pod in observed.pods
        }
        self._pods.read(groups, found, began)
        self._looks[key] = replace(observed, pods=(), etcd=None)

    def has_table(self, key: Key) -> bool:
        """Whether a HudiTable is known: a look that found none has not been followed by one."""
        return bool(self._tables.of((_TABLE, key)))

    def agents(self, namespace: str) -> set[str]:
        """Names of the agents that have pods in a namespace."""
        return {pod.labels.get(naming.LABEL_AGENT, "") for pod in self._pods.of((_AGENTS, namespace))}

    def forget(self, key: Key) -> None:
        """Forget the last live look at a table at which none is made any more."""
        self._looks.pop(key, None)

    def recall(self, key: Key) -> Observed | None:
        """The last live look with the objects and pods that are known now, and without etcd's keys.

        None when there was none.
        """
        look = self._looks.get(key)
        if look is None:
            return None
        mine = (_TABLE, key)
        objects = Objects(
            next(iter(self._tables.of(mine)), None),
            tuple(self._writers.of(mine)),
            next(iter(self._defaults.of(_of_namespace(key[0]))), None),
            look.objects.defaults_unread,
        )
        groups = ((_TABLE, key[0], naming.label_value(key[1])), (_AGENTS, key[0]), (_OTHERS, key))
        pods = {pod.uid: pod for group in groups for pod in self._pods.of(group)}
        return replace(
            look,
            # Objects that are parsed already are not parsed again.
            objects=look.objects if _same(look.objects, objects) else objects,
            pods=tuple(sorted(pods.values(), key=lambda pod: (pod.name, pod.uid))),
        )


def _same(one: Objects, other: Objects) -> bool:
    return (
        one.table is other.table
        and _texts(one.defaults) == _texts(other.defaults)
        and len(one.writers) == len(other.writers)
        and all(a is b for a, b in zip(one.writers, other.writers, strict=True))
    )


def _name(obj: JsonDict) -> Key:
    return str(obj["metadata"]["namespace"]), str(obj["metadata"]["name"])


def _uid(obj: JsonDict) -> str:
    return str(obj["metadata"].get("uid") or "")


def _table_of(writer: JsonDict) -> Key:
    return str(writer["metadata"]["namespace"]), table_name_of(writer)


def _texts(defaults: JsonDict | None) -> JsonDict | None:
    """The data of the ConfigMap, for comparison: each look at a table brings another object."""
    return None if defaults is None else defaults.get("data") or {}


def _of_namespace(namespace: str) -> Hashable:
    return _DEFAULTS, namespace


def _groups(pod: PodFacts) -> list[Hashable]:
    """Pods of one table and agents of one namespace, as a look selects them."""
    found: list[Hashable] = []
    if pod.labels.get(naming.LABEL_TABLE):
        found.append((_TABLE, pod.namespace, pod.labels[naming.LABEL_TABLE]))
    if pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_AGENT:
        found.append((_AGENTS, pod.namespace))
        found.append((_AGENTS, pod.namespace, pod.labels.get(naming.LABEL_AGENT, "")))
    return found


def _slim(obj: JsonDict) -> JsonDict:
    """Without what only the API server needs, or is too large; the object itself is changed."""
    obj["metadata"].pop("managedFields", None)
    if "spec" in obj:
        obj["spec"] = bounds.kept(obj["spec"])
    return obj


def slim(obj: JsonDict) -> JsonDict:
    """The same of an object that is not ours to change."""
    return _slim({**obj, "metadata": dict(obj["metadata"])})
