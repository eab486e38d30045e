"""Whether the table's pods follow changes of their credentials (F151)."""

from __future__ import annotations

from hudi_operator.model.conditions import Condition, condition
from hudi_operator.plan.core.view import View


def renewed(view: View) -> Condition:
    """Condition CredentialsRenewed.

    False while a Secret is used as environment variables: a process keeps those of its start.
    """
    fixed = [ref.name for ref in view.table.storage.secret_refs if ref.as_kind == "Env"]
    said = (
        f"storage.secretRefs as Env: {', '.join(fixed)}: a change of the Secret reaches only pods that start "
        "after it; S3 and Files follow changes"
    )
    return condition(
        "CredentialsRenewed", not fixed, "InEnvironment" if fixed else "FilesOrIdentity", said if fixed else ""
    )
