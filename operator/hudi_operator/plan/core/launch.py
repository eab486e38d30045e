"""May a pod of this table start now? Asked again at each launch, whatever admission has allowed.

An object may be older than a rule, and the owner of a Secret may withdraw it.
"""

from __future__ import annotations

from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_operator.api import jdbc, kafka, references, revocable
from hudi_operator.api.spec import WriterSpec
from hudi_operator.plan.core.view import View

REFERENCE_NOT_ALLOWED = "ReferenceNotAllowed"
IMAGE_NOT_ALLOWED = "ImageNotAllowed"
FENCING_MODE_NOT_POSSIBLE = "FencingModeNotPossible"
INVALID_DEFAULTS = "InvalidDefaults"


STARTS_SECONDS = 5.0
"""Time until a pod that was created must be seen."""


def next_look(view: View, attempt: str) -> float:
    """Seconds until the next look at an attempt that has no pod.

    One that is refused is not looked at before it is tried again: a full quota refuses many (F245).
    """
    refused = view.observed.refusals.get(attempt)
    return STARTS_SECONDS if refused is None else min(max(refused.seconds, 1.0), LONGEST_PAUSE_SECONDS)


def source_problem(writer: WriterSpec) -> str:
    """Why the writer cannot read its topics or its database (field, value, rule); empty: it can."""
    return kafka.problem(writer.kafka) or jdbc.problem(
        writer.jdbc,
        operation=writer.operation,
        duplicates=writer.duplicates,
        streaming=writer.streaming_seconds is not None,
    )


def image_problem(view: View) -> str:
    """Why no pod may start with the table's images; empty when it may."""
    own, allowed = view.config.spark_image, view.config.allowed_images
    return references.image_problem(view.table.image, own, allowed) or references.template_image_problem(
        view.table, own, allowed
    )


def rights_problem(view: View) -> str:
    """Why pods of the table wait until the operator may read Secrets; empty: they need not."""
    if not view.observed.secrets_unreadable:
        return ""
    role, where = view.config.consent_binding.role, view.table.ref.namespace
    if not role:
        return f"the operator may not read Secrets of namespace {where}: its RoleBinding of the chart is missing there"
    return f"the operator may not read Secrets of namespace {where} until its RoleBinding {role} takes effect there"


def table_problem(view: View) -> str:
    """Why no pod may start with what the HudiTable names.

    Empty when it may, or nobody knows yet.
    """
    if view.observed.secrets_unreadable:
        return ""
    return references.problem(
        references.of_table(view.table), view.observed.consents, view.table, view.config.consent.by_kind
    )


def mode_problem(view: View) -> str:
    """Why no pod may start in the table's fencing mode; empty when one may."""
    broker = view.config.credentials_broker
    return revocable.problem(view.table, broker.store_endpoint if broker.given else "")


def problem(view: View) -> str:
    """Why no pod of the table may start; empty when one may."""
    return image_problem(view) or rights_problem(view) or table_problem(view) or mode_problem(view)


def writer_image_problem(view: View, writer: WriterSpec) -> str:
    """Why no driver may start with the HudiWriter's own images; empty when it may, or has none."""
    own, allowed = view.config.spark_image, view.config.allowed_images
    return references.image_problem(writer.image, own, allowed) or references.template_image_problem(
        writer, own, allowed
    )


def writer_account_problem(view: View, writer: WriterSpec) -> str:
    """Why no driver may start with the HudiWriter's own account; empty when it may, or has none."""
    return revocable.account_problem(view.table, writer)


def may_not_start(view: View, writer: WriterSpec) -> str:
    """Why no driver of a HudiWriter may start; empty when one may."""
    return (
        problem(view)
        or writer.defaults_problem
        or writer_image_problem(view, writer)
        or writer_account_problem(view, writer)
        or writer_problem(view, writer)
    )


def writer_problem(view: View, writer: WriterSpec) -> str:
    """Why no driver may start with what the HudiWriter names.

    Empty when it may, or nobody knows yet.
    """
    if view.observed.secrets_unreadable:
        return ""
    return references.problem(
        references.of_writer(writer), view.observed.consents, view.table, view.config.consent.by_kind
    )
