"""Why a table cannot continue until a person changes something.

The reasons of condition Stalled.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_contract import naming
from hudi_contract.words import AgentError, GateState
from hudi_operator.api import (
    bootstrap,
    callback,
    catalog,
    metadata_table,
    options,
    paths,
    services,
    storage_options,
)
from hudi_operator.api.spec import TableSpec
from hudi_operator.model.config import OperatorConfig
from hudi_operator.plan.core import launch, trial
from hudi_operator.plan.core.checks import Chain
from hudi_operator.plan.core.view import View
from hudi_operator.plan.gate import adoption, gate, taking_over, trust, turns

RETRIED = frozenset({"StorageUnreachable", "Infrastructure", "TableNotFound"})
"""Errors of the agent that may resolve themselves."""


@dataclass(frozen=True)
class Stall:
    """Reason (CamelCase) and message of a table that is stuck."""

    reason: str
    message: str


def path_problem(
    spelled: str, namespace: str, config: OperatorConfig, *, field: str = "spec.path", pattern: bool = False
) -> str:
    """Why objects of this namespace may not use this path; empty when they may.

    ``field`` is the field with the path; ``pattern``: it may be a glob pattern.
    """
    found = paths.problem(spelled, config.allowed_schemes, field=field, pattern=pattern)
    prefixes = config.path_prefixes.get(namespace, config.path_prefixes.get("*"))
    if found or prefixes is None or "*" in prefixes:
        return found
    path, allowed = naming.canonical_path(spelled), [naming.canonical_path(p) for p in prefixes]
    if any(path == p or path.startswith(p + "/") for p in allowed):
        return ""
    rule = f"not below a prefix that namespace {namespace} may use: {', '.join(prefixes) or '(none)'}"
    return f"{field}: {rule} (the chart's config.pathPrefixes)"


def unusable(view: View) -> Stall | None:
    """Why nothing may be created for the table; None: the object and its path are valid."""
    return UNUSABLE(view)


def static_stall(table: TableSpec, config: OperatorConfig) -> Stall | None:
    """Errors of the object alone; None: it is valid."""
    return OBJECT(_Object(table, config))


def table_stall(view: View) -> Stall | None:
    """Why the table is stuck; None when it is not."""
    return STALLED(view)


# ---- the object alone


@dataclass(frozen=True)
class _Object:
    table: TableSpec
    config: OperatorConfig


def _stall(reason: str, message: str) -> Stall | None:
    return Stall(reason, message) if message else None


def _path_is_not_allowed(o: _Object) -> Stall | None:
    return _stall("PathNotAllowed", path_problem(o.table.path, o.table.ref.namespace, o.config))


def _lock_is_wrong(o: _Object) -> Stall | None:
    return _stall("InvalidSpec", o.table.lock.problem())


def _services_are_wrong(o: _Object) -> Stall | None:
    partitioned = bool(o.table.partition_fields)
    clustering = services.clustering_problem(
        o.table.services, mode=o.table.concurrency_mode, index=o.table.index_type, partitioned=partitioned
    )
    return _stall(
        "InvalidSpec",
        services.problem(o.table.services)
        or clustering
        or services.layout_problem(o.table.service_sections.clustering)
        or services.ttl_problem(o.table.services, mode=o.table.concurrency_mode, partitioned=partitioned),
    )


def _metadata_table_is_wrong(o: _Object) -> Stall | None:
    return _stall("InvalidSpec", metadata_table.problem(o.table.metadata_table))


def _bootstrap_is_wrong(o: _Object) -> Stall | None:
    wanted = o.table.bootstrap
    if wanted is None:
        return None
    found = bootstrap.problem(wanted, table_path=o.table.path, policy=o.table.adoption.policy)
    return _stall(
        "InvalidSpec",
        found or path_problem(wanted.path, o.table.ref.namespace, o.config, field="spec.bootstrap.source.path"),
    )


def _callback_is_wrong(o: _Object) -> Stall | None:
    return _stall("InvalidSpec", callback.problem(o.table.callback))


def _catalog_is_wrong(o: _Object) -> Stall | None:
    return _stall("InvalidSpec", catalog.problem(o.table.catalog, o.table.path))


def _option_is_not_allowed(o: _Object) -> Stall | None:
    return _stall("OptionNotAllowed", options.table_problem(o.table, o.config.option_patterns))


def _store_is_another(o: _Object) -> Stall | None:
    """Of a path that other namespaces may use, too: whoever reaches it at the store has it."""
    allowed, agent = o.config.store_endpoints, o.table.agent
    if storage_options.ANY in allowed or not trial.shared(o.table, o.config):
        return None
    spec = agent.pod.pod_template.get("spec") if agent is not None else None
    if isinstance(spec, dict) and spec.get("dnsConfig"):
        return Stall(
            "OptionNotAllowed",
            "spec.agent.podTemplate.spec.dnsConfig: names of stores are not for a HudiTable to resolve inside a prefix "
            "that several namespaces may use (config.storeEndpoints)",
        )
    found = storage_options.elsewhere(o.table.storage.options, o.table.canonical_path, allowed)
    return _stall("OptionNotAllowed", found)


OBJECT: Chain[_Object, Stall] = Chain(
    _path_is_not_allowed,
    _store_is_another,
    _lock_is_wrong,
    _services_are_wrong,
    _bootstrap_is_wrong,
    _callback_is_wrong,
    _catalog_is_wrong,
    _metadata_table_is_wrong,
    _option_is_not_allowed,
)
"""Checks of a HudiTable that depend on nothing else."""


# ---- the object and its place


def _spec_is_unreadable(view: View) -> Stall | None:
    return _stall("InvalidSpec", view.unreadable)


def _object_is_wrong(view: View) -> Stall | None:
    return static_stall(view.table, view.config)


def _path_overlaps(view: View) -> Stall | None:
    if not view.observed.overlapping:
        return None
    # The other table's name is shown only within its own namespace.
    mine = [key for key in view.observed.overlapping if key.startswith(f"{view.table.ref.namespace}/")]
    others = ", ".join(mine) or "another HudiTable"
    message = (
        f"spec.path {view.table.path}: overlaps with {others}; tables must not be nested, and the first one keeps "
        "the path"
    )
    return Stall("OverlappingPath", message)


def _image_is_not_allowed(view: View) -> Stall | None:
    return _stall(launch.IMAGE_NOT_ALLOWED, launch.image_problem(view))


def _reference_is_not_allowed(view: View) -> Stall | None:
    return _stall(launch.REFERENCE_NOT_ALLOWED, launch.table_problem(view))


def _mode_is_not_possible(view: View) -> Stall | None:
    return _stall(launch.FENCING_MODE_NOT_POSSIBLE, launch.mode_problem(view))


UNUSABLE: Chain[View, Stall] = Chain(
    _spec_is_unreadable,
    _object_is_wrong,
    _image_is_not_allowed,
    _reference_is_not_allowed,
    _mode_is_not_possible,
    _path_overlaps,
)


# ---- the table


def _path_is_taken(view: View) -> Stall | None:
    """The other table's namespace is not shown.

    A user who can create a HudiTable must not learn about other namespaces.
    """
    taken = gate.owned_by_other(view) or turns.waits(view)
    shared = "another HudiTable has this path; the first one that reaches the table keeps it"
    return Stall("DuplicatePath", taking_over.problem(view) or shared) if taken else None


def _protocol_is_too_new(view: View) -> Stall | None:
    return _stall("ProtocolTooNew", gate.too_new(view))


def _etcd_is_not_trusted(view: View) -> Stall | None:
    """No gate is created in such an etcd; an existing gate is frozen and has the reason."""
    return None if view.gate.state is not None else _stall("Frozen", trust.freeze_reason(view))


def _gate_is_frozen(view: View) -> Stall | None:
    if not gate.is_mine(view) or view.gate.state is not GateState.FROZEN:
        return None
    other = gate.report_error(view)[0] in gate.OTHER_AUTHORITY
    return Stall(AgentError.OTHER_LOCK_AUTHORITY if other else "Frozen", frozen_message(view))


def _marker_names_another_lock(view: View) -> Stall | None:
    code, message = gate.report_error(view)
    return (
        Stall(AgentError.OTHER_LOCK_AUTHORITY, message or "the table's marker names another lock authority")
        if code in gate.OTHER_AUTHORITY
        else None
    )


def _adoption_waits_for_a_person(view: View) -> Stall | None:
    return (
        _stall(AgentError.PENDING_INSTANTS, adoption.problem(view))
        if gate.report_error(view)[0] == AgentError.PENDING_INSTANTS
        else None
    )


def _agent_reports_an_error(view: View) -> Stall | None:
    """Pending instants that a person named are being settled: they are no longer an error."""
    code, message = gate.report_error(view)
    return (
        Stall(code, message or code) if code and code != AgentError.PENDING_INSTANTS and code not in RETRIED else None
    )


STALLED: Chain[View, Stall] = Chain(
    _path_is_taken,
    UNUSABLE,
    _protocol_is_too_new,
    _etcd_is_not_trusted,
    _gate_is_frozen,
    _marker_names_another_lock,
    _adoption_waits_for_a_person,
    _agent_reports_an_error,
)
"""Why a table cannot continue until a person changes something, the deepest cause first."""


def frozen_message(view: View) -> str:
    """Why the gate is frozen, and what a person can do about it."""
    reason = view.gate.reason or "frozen"
    return (
        f"{reason}; no writer may write. When the lock state is known to be correct, annotate the HudiTable with "
        f"{trust.UNFREEZE_ANNOTATION}={trust.gate_word(view)}"
    )
