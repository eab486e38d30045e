"""Why a table cannot go on until a person changes something: the reasons of condition Stalled."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hudi_contract import naming
from hudi_contract.words import AgentError, GateState
from hudi_operator.api import bootstrap, options, services
from hudi_operator.api.spec import TableSpec
from hudi_operator.model.config import OperatorConfig
from hudi_operator.plan.core.view import View
from hudi_operator.plan.gate import adoption, gate

_WITH_AUTHORITY = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]+/+[^/]")
_RETRIED = frozenset({"StorageUnreachable", "Infrastructure", "TableNotFound"})
"""Errors of the agent that may go away by themselves."""


@dataclass(frozen=True)
class Stall:
    """Reason (CamelCase) and message of a table that is stuck."""

    reason: str
    message: str


def path_problem(spelled: str, namespace: str, config: OperatorConfig, *, field: str = "spec.path") -> str:
    """Why objects of this namespace may not use this path; empty when they may. ``field`` is where it was found."""
    path, scheme = naming.canonical_path(spelled), naming.path_scheme(spelled)
    if scheme not in config.allowed_schemes:
        return f"{field}: scheme {scheme or '(none)'} is not allowed; allowed: {', '.join(config.allowed_schemes)}"
    if not _WITH_AUTHORITY.match(spelled.strip()):
        return f"{field}: must be scheme://bucket-or-host/path"
    authority, _, rest = path.partition("://")[2].partition("/")
    if any(part in (".", "..") for part in rest.split("/")) or "%" in path or "?" in path or "#" in path:
        return f"{field}: '.', '..', '%', '?' and '#' are not allowed"
    if ("@" in authority and not scheme.startswith("abfs")) or (":" in authority and scheme != "hdfs"):
        return f"{field}: credentials in the path are not allowed"
    prefixes = config.path_prefixes.get(namespace)
    if prefixes is None:
        return ""
    allowed = [naming.canonical_path(p) for p in prefixes]
    if any(path == p or path.startswith(p + "/") for p in allowed):
        return ""
    return f"{field}: not below a prefix that namespace {namespace} may use: {', '.join(prefixes) or '(none)'}"


def unusable(view: View) -> Stall | None:
    """Why nothing may be made for the table; None: nothing is wrong with the object, nor with its place."""
    if view.unreadable:
        return Stall("InvalidSpec", view.unreadable)
    return static_stall(view.table, view.config) or _place(view)


def _place(view: View) -> Stall | None:
    if not view.observed.overlapping:
        return None
    # The other table is named to its own namespace only.
    mine = [key for key in view.observed.overlapping if key.startswith(f"{view.table.ref.namespace}/")]
    others = ", ".join(mine) or "another HudiTable"
    message = f"spec.path {view.table.path}: overlaps with {others}; a table may lie neither in another one's folder nor around it, the first one keeps it"
    return Stall("OverlappingPath", message)


def static_stall(table: TableSpec, config: OperatorConfig) -> Stall | None:
    """What the object alone says; None: nothing is wrong with it."""
    problem = path_problem(table.path, table.ref.namespace, config)
    if problem:
        return Stall("PathNotAllowed", problem)
    if table.lock.problem():
        return Stall("InvalidSpec", table.lock.problem())
    problem = _service_problem(table) or _bootstrap_problem(table, config)
    if problem:
        return Stall("InvalidSpec", problem)
    problem = options.table_problem(table, config.option_patterns)
    return Stall("OptionNotAllowed", problem) if problem else None


def _bootstrap_problem(table: TableSpec, config: OperatorConfig) -> str:
    if table.bootstrap is None:
        return ""
    found = bootstrap.problem(table.bootstrap, table_path=table.path, policy=table.adoption.policy)
    return found or path_problem(table.bootstrap.path, table.ref.namespace, config, field="spec.bootstrap.source.path")


def _service_problem(table: TableSpec) -> str:
    partitioned = bool(table.partition_fields)
    clustering = services.clustering_problem(table.services, mode=table.concurrency_mode, index=table.index_type, partitioned=partitioned)
    metadata = table.metadata_table.problem if table.metadata_table is not None else ""
    return metadata or services.problem(table.services) or clustering or services.ttl_problem(table.services, partitioned=partitioned)


def table_stall(view: View) -> Stall | None:
    """Why the table is stuck; None when it is not."""
    if gate.owned_by_other(view):
        # The other table's namespace is not named: whoever can create a HudiTable must not learn of other namespaces.
        return Stall("DuplicatePath", "another HudiTable has this path; the first one keeps it")
    found = unusable(view)
    if found is not None:
        return found
    if gate.too_new(view):
        return Stall("ProtocolTooNew", gate.too_new(view))
    if gate.freeze_reason(view) and view.gate.state is None:
        return Stall("Frozen", gate.freeze_reason(view))
    if gate.is_mine(view) and view.gate.state is GateState.FROZEN:
        other = gate.report_error(view)[0] in gate.OTHER_AUTHORITY
        return Stall(AgentError.OTHER_LOCK_AUTHORITY if other else "Frozen", gate.frozen_message(view))
    code, message = gate.report_error(view)
    if code in gate.OTHER_AUTHORITY:
        return Stall(AgentError.OTHER_LOCK_AUTHORITY, message or "the table's marker names another lock authority")
    if code == AgentError.PENDING_INSTANTS:
        waiting = adoption.problem(view)
        return Stall(code, waiting) if waiting else None
    if code and code not in _RETRIED:
        return Stall(code, message or code)
    return None
