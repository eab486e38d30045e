"""Rules for paths of tables, of datasets and of sources, the same for every author.

The CRDs have the same rules with a message for each. They are repeated at launch, because an object
may have been stored under another CRD. A path names one bucket or host of an allowed scheme, and
nothing outside the folder that it spells: local files, and with them the pod's credentials, cannot
be named at all (F130).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from hudi_contract import naming

_WITH_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._-]+(:[0-9]+)?/+[^/].*", re.DOTALL)
_AZURE = re.compile(r"abfss?://[a-z0-9-]+@[A-Za-z0-9.-]+/+[^/@][^@]*", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._-]+(:[0-9]+)?(/.*)?", re.DOTALL)
_CONTAINER = re.compile(r"abfss?://[a-z0-9-]+@[A-Za-z0-9.-]+(/[^@]*)?", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9._=+,~:/@-]*")
_PRINTABLE = re.compile(r"[^\x00-\x20\x7f]*")
_UPWARDS = re.compile(r"[/{,][.]{1,2}(?=[/},]|\Z)")
_ESCAPE = re.compile(r"\\(?![][{}*?,\\])")


def problem(spelled: str, schemes: Collection[str], *, field: str, pattern: bool = False) -> str:
    """Why this is no path of one of the schemes (field, value and rule); empty when it is.

    ``pattern``: it may be a glob pattern or a whole bucket, as the paths of files may. A message
    never repeats a path that may hold credentials.
    """
    path, scheme = spelled.strip(), naming.path_scheme(spelled)
    if scheme not in schemes:
        return f"{field}: scheme {scheme or '(none)'} is not allowed; allowed: {', '.join(schemes)}"
    if (written := path.partition("://")[0]) not in (scheme, "s3"):
        return f"{field}: scheme {written} must be written as {scheme}: Hadoop knows no other spelling"
    authority = path.partition("://")[2].partition("/")[0]
    if ("@" in path and not scheme.startswith("abfs")) or (":" in authority and scheme != "hdfs"):
        return f"{field}: credentials in the path are not allowed"
    if scheme.startswith("abfs"):
        if not (_CONTAINER if pattern else _AZURE).fullmatch(path):
            return f"{field}: must be abfs[s]://CONTAINER@ACCOUNT.HOST/DIRECTORY, without credentials"
    elif not (_BUCKET if pattern else _WITH_AUTHORITY).fullmatch(path):
        return f"{field}: {path!r} must be scheme://bucket-or-host/path"
    if _UPWARDS.search(path):
        return f"{field}: {path!r} must not contain '.' or '..' as a part of it"
    if path != spelled:
        return f"{field}: {spelled!r} must not begin or end with white space"
    return _pattern_problem(path, field) if pattern else _folder_problem(path, field)


def _pattern_problem(path: str, field: str) -> str:
    if not _PRINTABLE.fullmatch(path):
        return f"{field}: {path!r} must not contain white space or control characters"
    if _ESCAPE.search(path):
        return f"{field}: {path!r}: a backslash stands only before one of [ ] {{ }} * ? , and itself"
    return ""


def _folder_problem(path: str, field: str) -> str:
    if "//" in path.partition("://")[2]:
        return f"{field}: {path!r} must not contain '//' after the bucket or host"
    if not _PLAIN.fullmatch(path):
        return f"{field}: {path!r} has a character other than letters, digits and . _ = + , ~ - : /"
    return ""
