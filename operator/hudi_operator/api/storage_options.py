"""``spec.storage.options``: Hadoop's file system options that a table may set.

The CRD has the same rules; they are asked again at launch (F132).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

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


ANY, CLOUD = "*", "cloud"
"""Words of the chart's `config.storeEndpoints`: any store; the cloud's own, without an endpoint."""
_ENDPOINT, _REGION, _TLS = "fs.s3a.endpoint", "fs.s3a.endpoint.region", "fs.s3a.connection.ssl.enabled"
_PARTITIONS = ("cn-", "us-gov-", "us-iso", "eu-iso")
"""Regions of clouds of their own, in which a bucket has the name of another one's."""
_HARMLESS = re.compile(
    r"fs\.s3a\.(path\.style\.access|endpoint\.region|attempts\.maximum|paging\.maximum|max\.total\.tasks|block\.size"
    r"|readahead\.range|(connection|retry|threads|multipart|fast\.upload|socket|directory\.marker|vectored)\.[a-z0-9.]+)"
    r"|fs\.gs\.(block\.size|(http\.(max\.retry|connect-timeout|read-timeout))|(inputstream|outputstream|performance|batch)\.[a-z0-9.]+)"
)
"""Options that change how a store is asked, and not which one."""


def elsewhere(options: Mapping[str, str], path: str, allowed: Sequence[str]) -> str:
    """Why a table with these options may not have a path that other namespaces may use, too (F657).

    The same path at another store is another place: a HudiTable that reaches it there has shown
    nothing. ``path`` is the canonical one; ``allowed`` are the endpoints of stores, or `ANY`.
    Empty: it may.
    """
    if ANY in allowed:
        return ""
    rule = f"inside a prefix that several namespaces may use (config.storeEndpoints: {', '.join(allowed) or 'none'})"
    # By their exact names: Hadoop reads no other spelling, and one that is not read says nothing.
    endpoint = options.get(_ENDPOINT, "").strip().rstrip("/")
    plain = {_ENDPOINT} | ({_TLS} if endpoint.startswith("http://") else set())
    for name in sorted(options.keys() - plain):
        if name == _TLS or not _HARMLESS.fullmatch(name):
            return f"{FIELD}[{name[:NAME_LIMIT]!r}]: may name another store; it is not for a table {rule}"
    if not path.startswith("s3a://"):
        return ""
    if (endpoint or CLOUD) not in {one.rstrip("/") for one in allowed}:
        said = endpoint or "without it, the store of the cloud"
        return f"{FIELD}[{_ENDPOINT!r}]: {said} is not allowed {rule}"
    if not endpoint and options.get(_REGION, "").strip().lower().startswith(_PARTITIONS):
        return f"{FIELD}[{_REGION!r}]: is of another cloud, whose buckets have the same names; not {rule}"
    return ""


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
