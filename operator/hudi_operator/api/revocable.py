"""Rules for tables with `fencing.mode: Credentials`.

Their writers must reach the store with the credentials of their attempt alone, and it must be the
store whose refusals the operator can see. The CRD has the first rules too; they are checked again
at launch.
"""

from __future__ import annotations

import re

from hudi_contract.words import FencingMode
from hudi_operator.api.spec import TableSpec, WriterSpec

FIELD = "spec.fencing.mode: Credentials"
OTHER_ACCESS = r"fs\.s3a\.(bucket\.|assumed\.|security\.|delegation\.|.*credential|.*provider)"
"""Options that would give S3A other credentials, or other settings for one bucket."""


def account_problem(table: TableSpec, writer: WriterSpec) -> str:
    """Why a writer of this table may not name its own account; empty: it may, or names none."""
    if table.fencing.mode != FencingMode.CREDENTIALS or not writer.service_account_name:
        return ""
    return (
        f"spec.serviceAccountName: {writer.service_account_name} would give the writer an access that cannot be "
        f"revoked: HudiTable {table.ref.name} has {FIELD}"
    )


def problem(table: TableSpec, store_endpoint: str) -> str:
    """Why no pod of this table may start; empty when one may.

    ``store_endpoint``: the store of the operator's broker; empty when there is no broker.
    """
    if table.fencing.mode != FencingMode.CREDENTIALS:
        return ""
    storage = table.storage
    if not store_endpoint:
        return f"{FIELD}: the operator has no broker of storage credentials (credentialsBroker.url)"
    if not table.canonical_path.startswith("s3a://"):
        return f"{FIELD}: spec.path must begin with s3a://"
    if storage.service_account_name:
        return f"{FIELD}: spec.storage.serviceAccountName would give writers an access that cannot be revoked"
    if [ref.as_kind for ref in storage.secret_refs] != ["S3"]:
        return f"{FIELD}: spec.storage.secretRefs must be one Secret as S3, which only the agent uses"
    if other := sorted(name for name in storage.options if re.match(OTHER_ACCESS, name, re.IGNORECASE)):
        return f"{FIELD}: spec.storage.options: {other[0]} would give writers an access that cannot be revoked"
    said = storage.options.get("fs.s3a.endpoint", "")
    if said.rstrip("/") != store_endpoint.rstrip("/"):
        return (
            f"{FIELD}: spec.storage.options[fs.s3a.endpoint] {said or 'is unset and'} must be {store_endpoint}, the "
            "store of the operator's broker"
        )
    return ""
