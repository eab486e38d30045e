"""Checker for Adya's phenomena in a history of list-append transactions.

Pure: no I/O.

A version of a key is the list that a transaction left there; the elements of a key are unique, so a
list that was read names its writer: the one that appended its last element. The order of a key's
versions is not guessed: the history has it, as the table's commits have it.

    ww   installed the next version of a key
    wr   read a version of it
    rw   read the version before it

    G0          cycle of ww
    G1a         a version of a transaction that did not commit was read
    G1b         a version was read that its writer has replaced itself
    G1c         cycle of ww and wr
    G-single    cycle with one rw: read skew, lost update
    G-SI        cycle with several rw, no two of them in a row: two snapshots in opposite orders
    G2          cycle with two rw in a row: write skew; snapshot isolation allows it
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

Key = str
Version = tuple[str, ...]


@dataclass(frozen=True)
class Transaction:
    """Reads and writes of one transaction.

    `reads`: the lists that it read; `writes`: the lists that it left, in order, the last one stays.

    One that did not commit has installed nothing, whatever it wrote.
    """

    name: str
    reads: Mapping[Key, Version] = field(default_factory=dict)
    writes: Mapping[Key, Sequence[Version]] = field(default_factory=dict)
    committed: bool = True


@dataclass(frozen=True)
class History:
    """Transactions, and for each key the names of those that installed its versions, in order."""

    transactions: Sequence[Transaction]
    order: Mapping[Key, Sequence[str]]


class Edge(NamedTuple):
    """`target` comes after `source`."""

    source: str
    target: str
    kind: str
    key: Key


class Anomaly(NamedTuple):
    """`kind` as in the module's text; `told`: the cycle or the read, for people."""

    kind: str
    told: str


class Broken(ValueError):
    """The history cannot be one: an order that names nobody, an element that two
    transactions have appended.
    """


FORBIDDEN = ("G0", "G1a", "G1b", "G1c", "G-single", "G-SI")
"""Phenomena that snapshot isolation excludes."""
KINDS = (*FORBIDDEN, "G2")


def writers(history: History) -> dict[tuple[Key, str], tuple[Transaction, int]]:
    """Transaction that appended each element to a key, and the number of its version that ends with
    it.

    Raises Broken.
    """
    found: dict[tuple[Key, str], tuple[Transaction, int]] = {}
    for transaction in history.transactions:
        for key, versions in transaction.writes.items():
            for number, version in enumerate(versions):
                if not version:
                    raise Broken(f"{transaction.name} leaves an empty list at {key}")
                element = version[-1]
                if (key, element) in found:
                    raise Broken(
                        f"{element} was appended to {key} by {found[key, element][0].name} and by {transaction.name}"
                    )
                found[key, element] = (transaction, number)
    return found


def edges(history: History) -> list[Edge]:
    """The dependencies of committed transactions on each other. Raises Broken."""
    known = {transaction.name: transaction for transaction in history.transactions}
    by_element = writers(history)
    place: dict[Key, dict[str, int]] = {}
    found: list[Edge] = []
    for key, names in history.order.items():
        for name in names:
            if name not in known or not known[name].committed or key not in known[name].writes:
                raise Broken(f"{name} has installed no version of {key}")
        if len(set(names)) != len(names):
            raise Broken(f"the order of {key} names somebody twice")
        place[key] = {name: number for number, name in enumerate(names)}
        found += [Edge(one, other, "ww", key) for one, other in pairwise(names)]
    for reader in history.transactions:
        for key, version in reader.reads.items() if reader.committed else ():
            names = history.order.get(key, ())
            at = -1
            if version:
                writer = by_element.get((key, version[-1]))
                if writer is None or writer[0].name not in place.get(key, {}):
                    continue  # aborted or unknown: a separate kind of read
                at = place[key][writer[0].name]
                found.append(Edge(writer[0].name, reader.name, "wr", key))
            if at + 1 < len(names):
                found.append(Edge(reader.name, names[at + 1], "rw", key))
    return [edge for edge in found if edge.source != edge.target]


def anomalies(history: History) -> list[Anomaly]:
    """Every phenomenon that the history shows, each cycle once. Raises Broken."""
    graph = edges(history)
    return [*_reads(history), *_cycles(graph)]


def _reads(history: History) -> Iterable[Anomaly]:
    by_element = writers(history)
    for reader in history.transactions:
        for key, version in reader.reads.items() if reader.committed else ():
            for number, element in enumerate(version):
                writer = by_element.get((key, element))
                if writer is None:
                    yield Anomaly("G1a", f"{reader.name} read {element} at {key}, which nobody has written")
                elif writer[0] is not reader and not writer[0].committed:
                    yield Anomaly(
                        "G1a", f"{reader.name} read {element} at {key}, of {writer[0].name}, which has not committed"
                    )
                elif (
                    number + 1 == len(version)
                    and writer[0] is not reader
                    and writer[1] + 1 < len(writer[0].writes[key])
                ):
                    yield Anomaly(
                        "G1b", f"{reader.name} read {element} at {key}, which {writer[0].name} has replaced itself"
                    )


def _cycles(graph: Sequence[Edge]) -> Iterable[Anomaly]:
    seen: set[frozenset[str]] = set()
    for edge in graph:
        cycle = _through(edge, graph)
        if cycle is None:
            continue
        nodes = frozenset(one.source for one in cycle)
        if nodes not in seen:
            seen.add(nodes)
            yield Anomaly(
                kind_of(cycle),
                " ".join(f"{one.source} -{one.kind} {one.key}->" for one in cycle) + f" {cycle[0].source}",
            )


def _through(first: Edge, graph: Sequence[Edge]) -> list[Edge] | None:
    """The worst cycle through an edge, of the kinds from G0 on; None when there is none.

    Each kind of cycle is looked for by itself.
    """
    if first.kind == "ww":
        return _back(first, [e for e in graph if e.kind == "ww"])
    if first.kind == "wr":
        return _back(first, [e for e in graph if e.kind != "rw"])
    plain = [e for e in graph if e.kind != "rw"]
    return _back(first, plain) or _back(first, graph, apart=True) or _back(first, graph)


def _back(first: Edge, graph: Sequence[Edge], *, apart: bool = False) -> list[Edge] | None:
    """A shortest way from the end of an edge to its beginning, with the edge before it.

    `apart`: no two rw in a row, the first edge is one.
    """
    after: dict[str, list[Edge]] = {}
    for edge in graph:
        after.setdefault(edge.source, []).append(edge)
    start = (first.target, first.kind == "rw")
    came: dict[tuple[str, bool], tuple[tuple[str, bool], Edge]] = {}
    waiting, seen = deque([start]), {start}
    while waiting:
        state = waiting.popleft()
        for edge in after.get(state[0], ()):
            rw = edge.kind == "rw"
            if apart and rw and (state[1] or edge.target == first.source):
                continue
            following = (edge.target, rw if apart else first.kind == "rw")
            if following in seen:
                continue
            seen.add(following)
            came[following] = (state, edge)
            if edge.target == first.source:
                return [first, *_way(came, following, start)]
            waiting.append(following)
    return None


def _way(
    came: Mapping[tuple[str, bool], tuple[tuple[str, bool], Edge]], end: tuple[str, bool], start: tuple[str, bool]
) -> list[Edge]:
    way: list[Edge] = []
    while end != start:
        end, edge = came[end]
        way.append(edge)
    return way[::-1]


def kind_of(cycle: Sequence[Edge]) -> str:
    """The phenomenon that a cycle is."""
    kinds = [edge.kind for edge in cycle]
    if kinds.count("rw") == 0:
        return "G1c" if "wr" in kinds else "G0"
    if kinds.count("rw") == 1:
        return "G-single"
    in_a_row = any(one == other == "rw" for one, other in zip(kinds, [*kinds[1:], kinds[0]], strict=True))
    return "G2" if in_a_row else "G-SI"
