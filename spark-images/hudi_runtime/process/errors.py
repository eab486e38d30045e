"""Classification of failures, their exit codes, and redaction of secrets.

The order of the rules matters: a code of the Java module (`[HUDIOP-…]`, protocol.json) is more
precise than a Java class name, and a class deep in the cause chain is more precise than the
exception of Spark or Hudi that wraps it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hudi_contract import secret_names
from hudi_contract.environment import S3_CREDENTIALS, S3_KEYS
from hudi_contract.outcomes import EXIT_CODES, ErrorCode, FailureClass
from hudi_contract.secret_names import is_secret


class RuntimeFailure(Exception):
    """A failure whose class is already known.

    User code need not raise it; uncaught in user code, it ends the attempt with that class.
    """

    def __init__(self, failure: FailureClass, message: str) -> None:
        super().__init__(message)
        self.failure = failure
        """The class; status and the termination message contain its value
        (docs/design/contracts.md, section 5).
        """


class UserCodeError(RuntimeFailure):
    """An error in user code or user input (module, function, SQL, source)."""

    def __init__(self, message: str) -> None:
        super().__init__(FailureClass.USER_ERROR, message)


class PositionLost(RuntimeFailure):
    """Data after the position is gone from the source (archived, cleaned, undone by a restore).

    A read from here would miss rows.

    The message contains the source, the position and the missing data. Retrying does not help:
    start over, or begin with `ReadSnapshot.snapshot`.
    """

    def __init__(self, message: str) -> None:
        super().__init__(FailureClass.POSITION_LOST, message)


class OptionNotAllowed(RuntimeFailure):
    """A writer sets an option that belongs to the operator."""

    def __init__(self, key: str) -> None:
        super().__init__(FailureClass.OPTION_NOT_ALLOWED, f"[{ErrorCode.OPTION}] option {key} is owned by the operator")


class OutcomeUnknown(Exception):
    """It is not yet known whether a publication or a deletion happened.

    Check again later, never assume.
    """


@dataclass(frozen=True)
class JavaCause:
    """One throwable of a Java cause chain."""

    type: str
    message: str


@dataclass(frozen=True)
class Failure:
    """A classified failure: its class and one redacted line for people."""

    kind: FailureClass
    message: str

    @property
    def exit_code(self) -> int:
        """Exit code of the process (contracts, section 5)."""
        return EXIT_CODES[self.kind]


_CODES: Mapping[str, FailureClass] = {
    ErrorCode.FENCED: FailureClass.FENCED,
    ErrorCode.ETCD_SILENT: FailureClass.HEARTBEAT_LOST,
    ErrorCode.ETCD_SET_BACK: FailureClass.HEARTBEAT_LOST,
    ErrorCode.CLOCK_BEHIND: FailureClass.CLOCK_SKEW,
    ErrorCode.CLOCK_AHEAD: FailureClass.CLOCK_SKEW,
    ErrorCode.CLOCK_NOT_PAST: FailureClass.CLOCK_SKEW,
    ErrorCode.OPTION: FailureClass.OPTION_NOT_ALLOWED,
    ErrorCode.LOCK_TIMEOUT: FailureClass.LOCK_TIMEOUT,
    ErrorCode.NOT_OWNER: FailureClass.USER_ERROR,
    ErrorCode.NO_GUARD: FailureClass.USER_ERROR,
    ErrorCode.STATEMENT: FailureClass.USER_ERROR,
    ErrorCode.SCHEMA_MOVED: FailureClass.WRITE_CONFLICT,
    ErrorCode.HUDI_VERSION: FailureClass.HUDI_VERSION_MISMATCH,
    ErrorCode.SNAPSHOT_MOVED: FailureClass.WRITE_CONFLICT,
    ErrorCode.PARTITION: FailureClass.PARTITION_NOT_DECLARED,
    ErrorCode.BAD_RECORD: FailureClass.BAD_DATA,
    ErrorCode.BAD_DATA: FailureClass.BAD_DATA,
}
_LARGEST_FILE = 1 << 20
"""Bytes of the largest file of a Secret: a Secret cannot have more."""
_SETTING = re.compile(r"""\s*["']?([\w.-]+)["']?\s*[=:]\s*["']?(.*?)["']?\s*,?\s*$""")
"""A line of a file of properties, of INI or of YAML."""
_SHORTEST = 6
"""Characters of the shortest secret: anything shorter would blank out ordinary words."""
CUT = "…"
"""Stands at the end of a value that is too long for a message."""
_GATEWAY = re.compile(r"^Py4J(Network)?Error$|^Connection(Refused|Reset)Error$")
_CODE = re.compile(r"\[(HUDIOP-[A-Z-]+)\]")

_TYPES: Sequence[tuple[re.Pattern[str], FailureClass]] = (
    (
        re.compile(
            r"HoodieWriteConflictException$|HoodieEarlyConflictDetectionException$|"
            r"HoodieSchemaEvolutionConflictException$|HoodieDeletePartitionPendingTableServiceException$"
        ),
        FailureClass.WRITE_CONFLICT,
    ),
    (re.compile(r"HoodieLockException$"), FailureClass.LOCK_TIMEOUT),
    (
        re.compile(
            r"UnknownHostException$|ConnectException$|ConnectTimeoutException$|NoRouteToHostException$|"
            r"SocketTimeoutException$"
            r"|nio\.file\.AccessDeniedException$|\.s3a\.[A-Za-z]*Exception$|^com\.amazonaws\.|UnknownStoreException$|"
            r"NoAuthWithAWSException$"
            r"|^com\.google\.cloud\.hadoop\."  # wrapped by the gs connector in its own IOException
        ),
        FailureClass.STORAGE_UNREACHABLE,
    ),
    (
        re.compile(
            r"SchemaCompatibilityException$|SchemaBackwardsCompatibilityException$|IncompatibleSchemaException$|"
            r"MissingSchemaFieldException$"
            r"|HoodieNullSchemaTypeException$|HoodieSchemaException$"
        ),
        FailureClass.SCHEMA_MISMATCH,
    ),
    (
        re.compile(
            r"AnalysisException$|ParseException$|PythonException$|HoodieKeyException$|HoodieKeyGeneratorException$|"
            r"SparkRuntimeException$|SparkArithmeticException$"
        ),
        FailureClass.USER_ERROR,
    ),
)
_HEARTBEAT = re.compile(r"Heartbeat for instant .* has expired")
_BAD_DATA = re.compile(
    r"Malformed records are detected|Partition path .* does not belong to base-path|^path must be absolute$"
)
"""Messages of Spark's readers, and of Hudi when the partition path of a row leads out
of the table.
"""
_CONFLICT = re.compile(r"Cannot resolve conflicts for overlapping writes")
_EARLY = re.compile(
    r"Write conflict: instant (\d+) stops, because (\d+), which began earlier, is changing the same file group: (\S+)"
)
"""Message of EarlyConflictDetection.java in a task; Spark passes it on as a cause, or in the text
of its own error.
"""

_SERVICE = re.compile(r"Instant\(s\) of offending pending table service action: \[(\d+)")
"""Message of Hudi when partitions are to be deleted that a pending table service rewrites."""

_CLEANED = re.compile(r"FileNotFoundException.*/\.?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-\d+)?_")
"""A data file of a Hudi table that is gone: it begins with the id of its file group."""

_EXECUTOR_LOST = re.compile(r"ExecutorLostFailure \(executor \S+ exited")
"""A task was lost with its executor, more often than Spark repeats it: a node that is gone, or too
little memory.
"""


def classify_causes(causes: Sequence[JavaCause]) -> FailureClass:
    """Class of a Java failure, from its cause chain (outermost first)."""
    for cause in causes:
        for code in _CODE.findall(cause.message):
            return _CODES.get(code, FailureClass.INFRASTRUCTURE)
    for cause in causes:
        if _CONFLICT.search(cause.message) or _EARLY.search(cause.message):
            return FailureClass.WRITE_CONFLICT
        if _HEARTBEAT.search(cause.message):
            return FailureClass.HEARTBEAT_LOST
        if _BAD_DATA.search(cause.message):
            return FailureClass.BAD_DATA
    for pattern, kind in _TYPES:
        if any(pattern.search(cause.type) for cause in causes):
            return kind
    return FailureClass.INFRASTRUCTURE


def has_code(causes: Sequence[JavaCause], code: str) -> bool:
    """Whether the Java module raised `code` anywhere in the chain."""
    return any(f"[{code}]" in cause.message for cause in causes)


def early_conflict(causes: Sequence[JavaCause]) -> tuple[str, str, str] | None:
    """Own instant, other instant and file group of a write that stopped at a marker.

    The marker is that of another write; else None.
    """
    found = next((match for cause in causes if (match := _EARLY.search(cause.message))), None)
    return None if found is None else (found[1], found[2], found[3])


def pending_service(causes: Sequence[JavaCause]) -> str:
    """The pending table service that keeps partitions from being deleted (F486); empty: none."""
    return next((match[1] for cause in causes if (match := _SERVICE.search(cause.message))), "")


def concerns_schema(causes: Sequence[JavaCause]) -> bool:
    """Whether the conflict is about columns, not file groups."""
    return has_code(causes, ErrorCode.SCHEMA_MOVED) or any(
        "Schema" in cause.type.rsplit(".", 1)[-1] for cause in causes
    )


def java_causes(error: BaseException) -> list[JavaCause]:
    """Cause chain of a py4j error, outermost first.

    Empty for a Python error or when the JVM is gone.
    """
    throwable = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    causes: list[JavaCause] = []
    try:
        while throwable is not None and len(causes) < 20:
            kind = str(throwable.getClass().getName())
            causes.append(JavaCause(kind, _told(kind, str(throwable.getMessage() or ""))))
            throwable = throwable.getCause()
    except Exception as gone:  # the gateway may die during the calls
        causes.append(JavaCause("py4j", type(gone).__name__))
    return causes


_ANALYSIS = re.compile(r"(?:Analysis|Parse)Exception$")


def _told(kind: str, message: str) -> str:
    """The message of a throwable, without the plan that Spark's analysis prints behind it.

    A plan has the texts of the checks of `table.values`, with their codes: a query of the user that
    names no column would be bad data (F476).
    """
    return message.strip().partition(";\n")[0] if _ANALYSIS.search(kind) else message.strip()


def classify(error: BaseException, *, secrets: Iterable[str] = ()) -> Failure:
    """Class and redacted one-line message of any exception."""
    if isinstance(error, RuntimeFailure):
        return Failure(error.failure, first_line(str(error), secrets=secrets))
    causes = java_causes(error)
    if not causes:
        return Failure(FailureClass.INFRASTRUCTURE, first_line(f"{type(error).__name__}: {error}", secrets=secrets))
    return Failure(classify_causes(causes), first_line(describe_causes(causes), secrets=secrets))


def user_error(error: BaseException, where: str) -> BaseException:
    """The exception to raise when user code raised.

    A user error, unless the session, the store, the JVM or executors failed, or another writer or a
    clean came first (F488), also with a file that was listed before it (F494).
    """
    if isinstance(error, RuntimeFailure):
        return error
    causes = java_causes(error)
    if not causes:
        return (
            error
            if _GATEWAY.search(type(error).__name__)
            else UserCodeError(f"{where}: {type(error).__name__}: {error}")
        )
    kind = classify_causes(causes)
    kept = {
        FailureClass.FENCED,
        FailureClass.HEARTBEAT_LOST,
        FailureClass.CLOCK_SKEW,
        FailureClass.STORAGE_UNREACHABLE,
        FailureClass.LOCK_TIMEOUT,
        FailureClass.WRITE_CONFLICT,
        FailureClass.SCHEMA_MISMATCH,
        FailureClass.BAD_DATA,
    }
    if kind not in kept:
        told = [f"{cause.type}: {cause.message}" for cause in causes]
        cleaned, lost = (any(text.search(each) for each in told) for text in (_CLEANED, _EXECUTOR_LOST))
        kind = FailureClass.INFRASTRUCTURE if cleaned or lost else FailureClass.USER_ERROR
    return RuntimeFailure(kind, f"{where}: {describe_causes(causes)}")


def describe_causes(causes: Sequence[JavaCause]) -> str:
    """One line: the most specific cause, with its simple class name.

    That is the one with a code, else the root.
    """
    coded = [cause for cause in causes if _CODE.search(cause.message)]
    chosen = coded[0] if coded else next((c for c in causes if _CONFLICT.search(c.message)), causes[-1])
    code = _CODE.search(chosen.message)
    text = chosen.message[code.start() :] if code else chosen.message
    return text if code else f"{chosen.type.rsplit('.', 1)[-1]}: {text}"


_REDACTIONS: Sequence[tuple[re.Pattern[str], str]] = (
    *secret_names.WRITTEN,
    # Not secret, but different in each answer: equal failures must give equal messages.
    (re.compile(r";? ?(S3 Extended )?Request ID: [^;)]*|; Proxy: [^;)]*"), ""),
)


def environment_secrets(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Values of variables whose names suggest a secret, and all that comes from Secrets.

    For mounted Secrets these are the current contents of their files. A message must
    contain none of it: not the whole, not one of its lines, and no value inside it whose name
    suggests a secret (F134, F192).
    """
    found = os.environ if environ is None else environ
    prefixes = tuple(filter(None, found.get(secret_names.PREFIXES, "").split(",")))
    secrets: dict[str, None] = {}
    for name, value in found.items():
        own = name.startswith("HUDI_OPERATOR_")  # names and places of files, and no secret
        if not own and ((prefixes and name.startswith(prefixes)) or is_secret(name)):
            secrets.update(dict.fromkeys(_parts(value)))
    for key in (*s3_keys(found).values(), *_mounted(found.get(secret_names.FOLDERS, ""))):
        secrets.update(dict.fromkeys(_parts(key)))
    return tuple(secrets)


def _mounted(folders: str) -> Iterator[str]:
    """Texts of the files of mounted Secrets, without files that are not readable as text."""
    for folder in filter(None, folders.split(",")):
        with contextlib.suppress(OSError):
            for file in sorted(Path(folder).iterdir()):
                with contextlib.suppress(OSError, UnicodeDecodeError):
                    if file.is_file() and file.stat().st_size <= _LARGEST_FILE:
                        yield file.read_text(encoding="utf-8").strip()


def s3_keys(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """S3 keys by the name of their file, from the mounted Secret; none without one."""
    found = os.environ if environ is None else environ
    folder = Path(found.get(S3_CREDENTIALS, ""))
    keys: dict[str, str] = {}
    for name in S3_KEYS:
        with contextlib.suppress(OSError):
            keys[name] = (folder / name).read_text().strip()
    return {name: value for name, value in keys.items() if value} if found.get(S3_CREDENTIALS) else {}


def _parts(value: str) -> Iterator[str]:
    """The value, its lines, and what a line or JSON has under names that suggest a secret."""
    lines = value.splitlines()
    settings = (match for line in lines if (match := _SETTING.match(line)) and is_secret(match[1]))
    parts = (value, *(line.strip() for line in lines), *(match[2] for match in settings))
    yield from (part for part in parts if len(part) >= _SHORTEST)
    if not value.lstrip().startswith(("{", "[")):
        return
    try:
        waiting: list[tuple[str, object]] = [("", json.loads(value))]
    except ValueError:
        return
    while waiting:
        name, found = waiting.pop()
        if isinstance(found, dict):
            waiting.extend((str(key), each) for key, each in found.items())
        elif isinstance(found, list):
            waiting.extend((name, each) for each in found)
        elif isinstance(found, str) and is_secret(name):
            yield from (part for part in (found, *found.splitlines()) if len(part) >= _SHORTEST)


def redact(text: str, *, secrets: Iterable[str] = ()) -> str:
    """`text` without known secret values and without text that looks like a secret.

    A value that was cut may end within a secret (F493).
    """
    known = sorted(secrets, key=len, reverse=True)
    for secret in known:
        text = text.replace(secret, "<redacted>")
    text = CUT.join(_without_beginnings(part, known) for part in text.split(CUT)) if CUT in text else text
    for pattern, replacement in _REDACTIONS:
        text = pattern.sub(replacement, text)
    return text


def _without_beginnings(text: str, secrets: Sequence[str]) -> str:
    """A part of a text before a cut, without the beginning of a secret at its end."""
    for secret in secrets:
        for length in range(min(len(secret) - 1, len(text)), _SHORTEST - 1, -1):
            if text.endswith(secret[:length]):
                return f"{text[:-length]}<redacted>"
    return text


MESSAGE_LIMIT = 500
"""Characters of a message in a record of etcd."""


def record_message(told: str | BaseException) -> str:
    """A message for a record of etcd: its first line, without secrets of the environment.

    For an exception, the message of its classification, or its own text if that is empty. At most
    `MESSAGE_LIMIT` characters.
    """
    secrets = environment_secrets()
    text = told if isinstance(told, str) else classify(told, secrets=secrets).message or str(told)
    return first_line(text, limit=MESSAGE_LIMIT, secrets=secrets)


def first_line(text: str, *, limit: int = 1000, secrets: Iterable[str] = ()) -> str:
    """First non-empty line, redacted and truncated to `limit` characters."""
    redacted = redact(text, secrets=secrets)
    line = next((part.strip() for part in redacted.splitlines() if part.strip()), "")
    return line[:limit]
