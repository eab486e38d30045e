"""``spec.storage.options``: Hadoop's file system options that a table may set.

The CRD has the same rules; they are asked again at launch (F132).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

FIELD = "spec.storage.options"
NAME = "[A-Za-z0-9_][A-Za-z0-9_.-]*"
NAME_LIMIT = 256
CREDENTIAL = r"(secret|passw|token|access\.key|account\.key|private\.key|\.sas)"
OWNED = (
    r"^(spark\.hadoop\.)?(hudi\.operator\.|fs\.(.*\.)?impl(\..*)?$"
    r"|fs\.(.*\.)?(custom\.signers|keyprovider|shellkeyprovider)(\..*)?$|fs\.defaultfs$|fs\.default\.name$)"
)
"""Classes that would replace the storage wrapper or see its requests, and commands that a provider
of keys runs.
"""
REFERENCE = "${"
"""Hadoop and Spark replace `${env.NAME}` and `${other.option}` in a value."""


def problem(options: Mapping[str, str]) -> str:
    """Why one of these options may not be set (field and rule, no value); empty when all may."""
    for name in sorted(options):
        shown, flat = f"{FIELD}[{name[:NAME_LIMIT]!r}]", name.lower()
        if len(name) > NAME_LIMIT or not re.fullmatch(NAME, name):
            return f"{shown}: not an option name: at most {NAME_LIMIT} letters, digits and any of _ . -"
        if re.search(CREDENTIAL, flat):
            return f"{shown}: names a credential: put it into a Secret and name that in storage.secretRefs"
        if re.search(OWNED, flat):
            return f"{shown}: is set by the operator: its storage wrapper guards the timeline"
        if not flat.startswith("fs."):
            return f"{shown}: must begin with fs."
        if REFERENCE in options[name]:
            return f"{shown}: the value contains {REFERENCE}, which Hadoop replaces by variables and other settings"
    return ""
