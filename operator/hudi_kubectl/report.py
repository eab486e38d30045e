"""A bundle for support: the API's data on a table and its writers, without secrets."""

from __future__ import annotations

import io
import json
import re
import tarfile
from typing import Any

from hudi_contract.secret_names import REDACTED, WRITTEN, is_secret

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_IN_TEXT = (
    *WRITTEN,
    (re.compile(r"(?i)(session[-_.]?key[\w.-]*[\"']?\s*[=:]\s*[\"']?|bearer\s+)[^\s\"',;]+"), rf"\1{REDACTED}"),
)


def redacted(value: Any, name: str = "") -> Any:
    """The same object without what may be secret: values by their names, and in texts."""
    if isinstance(value, dict):
        if is_secret(str(value.get("name", ""))) and "value" in value:
            value = {**value, "value": REDACTED}
        return {k: redacted(v, k) for k, v in value.items() if k not in (_LAST_APPLIED, "managedFields")}
    if isinstance(value, list):
        return [redacted(one, name) for one in value]
    if isinstance(value, str):
        return REDACTED if is_secret(name) and not name.endswith(("Ref", "Refs")) else text(value)
    return value


def text(said: str) -> str:
    """A text without what looks like a secret."""
    for pattern, instead in _IN_TEXT:
        said = pattern.sub(instead, said)
    return said


def bundle(files: dict[str, Any], made: float) -> bytes:
    """A tar.gz of files: objects as JSON, texts as they are; both redacted."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in sorted(files.items()):
            written = text(content) if isinstance(content, str) else json.dumps(redacted(content), indent=1) + "\n"
            data = written.encode()
            entry = tarfile.TarInfo(f"hudi-report/{name}")
            entry.size, entry.mtime = len(data), int(made)
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()
