"""Jars, Python packages and files that user code brings along (`deps` of a HudiWriter).

They are fetched once, before the SparkContext is made: the driver loads them and serves them to its
executors, so all processes of an attempt have the same bytes. The Java side is
`io.hudioperator.programs`.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hudi_contract.job import Dependencies
from hudi_runtime.process.errors import UserCodeError, user_error

LOCAL = "local://"
_WHEEL, _PURE = ".whl", "Root-Is-Purelib: true"


@dataclass(frozen=True)
class Brought:
    """What a driver loads: `deps` of its HudiWriter, and the jar of its main class."""

    deps: Dependencies = field(default_factory=Dependencies)
    jar: str = ""
    """Of a main class; empty: the program is Python."""

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to load."""
        return not self.jar and self.deps == Dependencies()


@dataclass(frozen=True)
class Loaded:
    """Files of this pod."""

    settings: dict[str, str]
    """Settings of the SparkContext that is made next."""
    py_files: tuple[str, ...]
    """Files for `SparkContext.addPyFile`."""


def load(jvm: Any, brought: Brought) -> Loaded:
    """Fetch everything, and make the jars loadable by this thread's counterpart in the JVM.

    Raises UserCodeError with the field's value and the rule, and RuntimeFailure when the store does
    not answer.
    """
    folder, deps = Path(tempfile.mkdtemp(prefix="hudi-deps-")), brought.deps
    programs = jvm.io.hudioperator.programs
    named = [*filter(None, [brought.jar]), *deps.jars]
    _require_distinct([*named, *deps.files, *deps.py_files])
    jars = [_fetched(programs, one, folder) for one in named]
    if deps.packages:
        jars += _packages(programs, deps, folder)
        named += [f"spec.deps.packages: {Path(jar).name}" for jar in jars[len(named) :]]
    for name, jar in zip(named, jars, strict=True):
        _asked(name, programs.Artifacts.requireJar, jar)
    files = [_fetched(programs, one, folder) for one in deps.files]
    py_files = tuple(_importable(one, _fetched(programs, one, folder), folder) for one in deps.py_files)
    if brought.jar:
        programs.ProgramLoader.install(jars)
    elif jars:
        programs.ProgramLoader.add(jars)
    settings = {"spark.jars": ",".join(jars), "spark.files": ",".join(files)}
    return Loaded({name: value for name, value in settings.items() if value}, py_files)


def _require_distinct(named: Sequence[str]) -> None:
    """Executors get each file by its own name."""
    seen: dict[str, str] = {}
    for one in named:
        other = seen.setdefault(one.rpartition("/")[2], one)
        if other != one:
            raise UserCodeError(f"deps: {one} has the file name of {other}: executors get files by their names")


def _fetched(programs: Any, named: str, folder: Path) -> str:
    """The file in this pod."""
    if named.startswith(LOCAL):
        path = named.removeprefix(LOCAL)
        if not Path(path).is_file():
            raise UserCodeError(f"{named}: the image has no such file")
        return path
    return str(_asked(named, programs.Artifacts.fetch, named, str(folder)))


def _packages(programs: Any, deps: Dependencies, folder: Path) -> list[str]:
    wanted, excludes = ",".join(deps.packages), list(deps.exclude_packages)
    resolve = programs.Artifacts.packages
    return [
        str(jar)
        for jar in _asked("spec.deps.packages", resolve, wanted, excludes, deps.mirror, str(folder / "packages"))
    ]


def _asked(where: str, method: Any, *given: object) -> Any:
    try:
        return method(*given)
    except Exception as error:
        raise user_error(error, where) from error


def _importable(named: str, path: str, folder: Path) -> str:
    """The file as Spark takes it: wheels are zip files, which it knows by their ending."""
    if not path.endswith(_WHEEL):
        return path
    try:
        with zipfile.ZipFile(path) as wheel:
            (told,) = [name for name in wheel.namelist() if name.endswith(".dist-info/WHEEL")]
            pure = _PURE in wheel.read(told).decode("utf-8", "replace").splitlines()
    except (zipfile.BadZipFile, ValueError) as error:
        raise UserCodeError(f"{named}: is no wheel: {error}") from error
    if not pure:
        raise UserCodeError(f"{named}: a wheel with compiled code is not installed here: put it into an image")
    return str(shutil.copy(path, folder / f"{Path(path).stem}.zip"))
