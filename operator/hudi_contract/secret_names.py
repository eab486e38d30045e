"""Names behind which a secret is to be expected: of variables, options, keys of JSON.

One list for all outputs: the operator's messages, the runtime's, and Spark's own redaction. It errs
on the side of hiding.
"""

from __future__ import annotations

import re

PATTERN = (
    "(?i)secret|passw|pwd|token|credential|signature|private|api[._-]?key|access[._-]?key|account[._-]?key|"
    "(^|[._-])(key|sas|jwt|pem|json|dsn|auth|conn(ection)?[._-]?str(ing)?)([._-]|$)"
)
"""Pattern that Java's regular expressions also accept, for `spark.redaction.regex`."""
_NAME = re.compile(PATTERN)
_PLACE = re.compile(r"(?i)(file|path|dir|url|uri|host|endpoint|provider|alias)$")


REDACTED = "<redacted>"
WRITTEN: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [^-]+-----.*?(-----END [^-]+-----|$)", re.S), REDACTED),
    (re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{12,}\b"), REDACTED),
    (re.compile(r"(?<=://)[^/@\s:]+:[^/@\s]+(?=@)"), REDACTED),
    (
        re.compile(
            r"(?i)\b([\w.-]*(?:secret|password|passwd|token|credential|signature|access[._-]?key|account[._-]?key|"
            r"private[._-]?key|api[._-]?key|pwd|sas)[\w.-]*)"
            r"([\"']?\s*[=:]\s*)(?!//)(\"[^\"]*\"|'[^']*'|[^\s,;&)\]}]+)"
        ),
        rf"\1\2{REDACTED}",
    ),
    (re.compile(r"(?i)\b(Authorization\s*:\s*).*"), rf"\1{REDACTED}"),
)
"""Patterns of secrets in texts such as messages and logs, with their replacements."""
PREFIXES = "HUDI_OPERATOR_SECRET_PREFIXES"
"""Variable with the prefixes of variables that come from Secrets, separated by commas."""
FOLDERS = "HUDI_OPERATOR_SECRET_FOLDERS"
"""Variable with the folders where Secrets are mounted as files, separated by commas."""


def is_secret(name: str) -> bool:
    """Whether the value of a variable or option of this name is not to be shown.

    The place of a secret (`…_FILE`) is none.
    """
    return bool(_NAME.search(name)) and not _PLACE.search(name)
