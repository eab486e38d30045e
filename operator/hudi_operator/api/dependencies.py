"""Programs of ``spec.application``, and what user code brings along in ``spec.deps``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hudi_operator.api.fields import record, text, texts
from hudi_operator.api.sources import ConfigMapKey

_PLACE = (
    r"(local://|(s3a?|gs)://[A-Za-z0-9._-]+|hdfs://[A-Za-z0-9._-]+(:[0-9]+)?|abfss?://[a-z0-9-]+@[A-Za-z0-9.-]+)"
    r"(/[A-Za-z0-9._=+~-]+)*/[A-Za-z0-9._=+~-]*[A-Za-z0-9_=+~-]"
)
"""A file of the image or of a store, without an empty part. The CRD has the same patterns."""
_JAR, _FILE = re.compile(rf"{_PLACE}[.]jar"), re.compile(_PLACE)
_PY_FILE = re.compile(rf"{_PLACE}([.]py|[.]zip|-none-any[.]whl)")
_UPWARDS = re.compile(r"/[.]{1,2}(/|\Z)")
LOCAL = "local://"
_CLASS = "^([A-Za-z_$][A-Za-z0-9_$]*[.])*[A-Za-z_$][A-Za-z0-9_$]*$"
_MODULE = "^([A-Za-z_][A-Za-z0-9_]*[.])*[A-Za-z_][A-Za-z0-9_]*$"
_PACKAGE = "^[A-Za-z0-9._-]+:[A-Za-z0-9._-]+:[A-Za-z0-9._+-]*[0-9][A-Za-z0-9._+-]*$"
_EXCLUDED = "^[A-Za-z0-9._-]+:[A-Za-z0-9._-]+$"
_PATH = (1, 1024)


@dataclass(frozen=True)
class Application:
    """A user's program.

    A Python file in the image or in a ConfigMap, a Python module, or a main class of the JVM
    (exactly one is set).
    """

    main_file: str = text(at_most=1024, matches=r"^local:///[^\x00-\x20]+[.]py$")
    config_map: ConfigMapKey | None = record(ConfigMapKey, at="configMapKeyRef", optional=True)
    """None when it is another one."""
    module: str = text(at_most=255, matches=_MODULE)
    main_class: str = text(at_most=255, matches=_CLASS)
    file: str = text(at_most=_PATH[1])
    """The jar of ``main_class``."""
    arguments: tuple[str, ...] = texts(at_most=64, length=(None, 4096))

    def problem(self) -> str:
        """Why this is no program; empty when it is one."""
        if "/../" in self.main_file:
            return f".mainFile: {self.main_file!r} must not contain '..'"
        given = [self.main_file, self.config_map is not None, self.module, self.main_class]
        if len([one for one in given if one]) != 1:
            return ": needs one of mainFile, configMapKeyRef, module and mainClass"
        if bool(self.main_class) != bool(self.file):
            return ".file: is needed with mainClass, and only there"
        if self.file and (found := _problem(self.file, _JAR, "a jar")):
            return f".file: {found}"
        return ""


@dataclass(frozen=True)
class Deps:
    """Files of the image (``local:///…``) or of a store, and Maven packages."""

    jars: tuple[str, ...] = texts(at_most=32, length=_PATH, distinct=True)
    files: tuple[str, ...] = texts(at_most=32, length=_PATH, distinct=True)
    py_files: tuple[str, ...] = texts(at_most=32, length=_PATH, distinct=True)
    packages: tuple[str, ...] = texts(at_most=32, length=(5, 255), matches=_PACKAGE, distinct=True)
    """``group:artifact:version``"""
    exclude_packages: tuple[str, ...] = texts(at_most=32, length=(3, 255), matches=_EXCLUDED, distinct=True)
    """``group:artifact``"""

    def problem(self) -> str:
        """Why these are no dependencies; empty when they are."""
        kinds: Sequence[tuple[str, tuple[str, ...], re.Pattern[str], str]] = (
            ("jars", self.jars, _JAR, "a jar"),
            ("files", self.files, _FILE, "a file"),
            ("pyFiles", self.py_files, _PY_FILE, "a Python file, a zip or a wheel without compiled code"),
        )
        for name, paths, pattern, what in kinds:
            for at, path in enumerate(paths):
                if found := _problem(path, pattern, what):
                    return f".{name}[{at}]: {found}"
        if self.exclude_packages and not self.packages:
            return ".excludePackages: needs packages"
        return ""


def stored(application: Application | None, deps: Deps | None) -> Iterator[tuple[str, str]]:
    """Field and path of each file that comes from a store."""
    named = [("spec.application.file", application.file)] if application is not None and application.file else []
    if deps is not None:
        for name, paths in (("jars", deps.jars), ("files", deps.files), ("pyFiles", deps.py_files)):
            named += [(f"spec.deps.{name}[{at}]", path) for at, path in enumerate(paths)]
    return ((field, path) for field, path in named if not path.startswith(LOCAL))


def same_name_problem(application: Application | None, deps: Deps | None) -> str:
    """Why executors would mix two files up, which they get by name; empty: they do not."""
    seen: dict[str, str] = {}
    files = [application.file] if application is not None and application.file else []
    for path in [*files, *((*deps.jars, *deps.files, *deps.py_files) if deps is not None else ())]:
        other = seen.setdefault(path.rpartition("/")[2], path)
        if other != path:
            return f"spec.deps: {path} has the file name of {other}: executors get files by their names"
    return ""


def _problem(path: str, pattern: re.Pattern[str], what: str) -> str:
    if not pattern.fullmatch(path) or _UPWARDS.search(path):
        return (
            f"{path[:80]!r} must be {what}: local:///PATH in the image, or SCHEME://BUCKET/PATH, of letters, digits "
            "and . _ = + ~ - /"
        )
    return ""
