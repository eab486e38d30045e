"""HudiTables and HudiWriters by their names."""

from __future__ import annotations

from hudi_kubectl import why
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import TABLE, WRITER, JsonDict, Table, Writer, now, of_table

DRIVER = "hudioperator.io/writer"
"""Label of the pods of writers."""


_KINDS = {"huditable": TABLE, "ht": TABLE, "table": TABLE, "hudiwriter": WRITER, "hw": WRITER, "writer": WRITER}


def _kind(given: str) -> str | None:
    """Kind that a user's word names, as kubectl accepts it: singular, plural, or with its group."""
    return _KINDS.get(given.lower().split(".")[0].rstrip("s"))


def named(kubectl: Kubectl, given: str) -> Table | Writer:
    """A HudiWriter or HudiTable by its name, or as `kind/name`; a writer first."""
    kind, slash, name = given.rpartition("/")
    if slash and _kind(kind) is None:
        raise Failed(f"{given}: {kind} is none of huditable and hudiwriter")
    chosen = (_kind(kind),) if slash else (WRITER, TABLE)
    missing = ""
    for one in filter(None, chosen):
        try:
            raw = kubectl.get(one, name)
        except Failed as error:
            if "NotFound" not in str(error):
                raise
            missing = missing or str(error)
            continue
        return Table(raw) if one == TABLE else Writer(raw)
    raise Failed(missing if slash else f"there is neither a HudiWriter nor a HudiTable {name} here")


def table_of(kubectl: Kubectl, given: str) -> Table:
    """A HudiTable by its name, or that of a writer."""
    if "/" not in given:
        try:
            return Table(kubectl.get(TABLE, given))
        except Failed as error:
            if "NotFound" not in str(error):
                raise
    found = named(kubectl, given)
    return Table(kubectl.get(TABLE, found.table)) if isinstance(found, Writer) else found


def table_named(kubectl: Kubectl, given: str) -> Table:
    """A HudiTable by its own name alone: for what changes one."""
    kind, slash, name = given.rpartition("/")
    if slash and _kind(kind) != TABLE:
        raise Failed(f"{given}: this is asked of a HudiTable")
    return Table(kubectl.get(TABLE, name))


def writers_of(kubectl: Kubectl, thing: Table | Writer) -> list[Writer]:
    """A writer, or the writers of a table."""
    if isinstance(thing, Writer):
        return [thing]
    return of_table(map(Writer, kubectl.objects(WRITER)), thing)


def world(kubectl: Kubectl, *, everywhere: bool = False) -> why.World:
    """Tables, writers and their pods, at one moment."""
    tables = [Table(raw) for raw in kubectl.objects(TABLE, everywhere=everywhere)]
    writers = [Writer(raw) for raw in kubectl.objects(WRITER, everywhere=everywhere)]
    found = kubectl.optional("pods", everywhere=everywhere, selector=DRIVER) or []
    return why.World(tables, writers, {pod["metadata"]["name"]: pod for pod in found}, now())


def agent_pods(kubectl: Kubectl, table: Table) -> list[JsonDict]:
    """Pods of the agent that serves a table, the newest last; empty when there is none here."""
    agent = str(table.status.get("agent") or "")
    pods = kubectl.objects("pods", selector=f"hudioperator.io/agent={agent}") if agent else []
    return sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))
