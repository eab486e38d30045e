"""The kubectl plugin as a wheel, for those who install it with pip or pipx instead of krew.

    python -m hack.release.wheel DIR

Writes `kubectl_hudi-VERSION-py3-none-any.whl` to DIR. It has what the one file of
hack/build/kubectl-hudi has, and a script `kubectl-hudi`. The operator and the runtime are images:
what they import has to be there in the versions of their locks, which a wheel cannot pin by hash.
The same sources and version give the same bytes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from hack.release import version
from hack.release.krew import BUILD, PACKED, PLUGIN, ROOT
from packaging.version import Version

EPOCH = "1735689600"
"""The time of every file, as SOURCE_DATE_EPOCH in hack/env.sh."""
PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "{version}"
description = "kubectl plugin for tables and writers of hudi-operator"
requires-python = ">=3.9"
license = "Apache-2.0"
license-files = {files}
classifiers = ["Environment :: Console", "Programming Language :: Python :: 3"]

[project.scripts]
{name} = "hudi_kubectl.__main__:main"

[tool.hatch.build.targets.wheel]
packages = {packages}
"""


def name(of: str) -> str:
    """The file of a version, as PEP 440 spells it: `0.1.0-rc.1` is `0.1.0rc1`.

    Raises InvalidVersion for a pre-release that PEP 440 does not know.
    """
    return f"{PLUGIN.replace('-', '_')}-{Version(of)}-py3-none-any.whl"


def build(out: Path, of: str) -> Path:
    """Write the wheel to a folder. InvalidVersion."""
    made = out / name(of)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        subprocess.run([str(BUILD), folder], check=True, stdout=subprocess.DEVNULL)
        with zipfile.ZipFile(place / PLUGIN) as packed:
            packed.extractall(place, [one for one in packed.namelist() if "/" in one])
        packages = sorted(one.name for one in place.iterdir() if one.is_dir())
        for one in PACKED:
            shutil.copy(ROOT / one, place / one)
        project = PROJECT.format(name=PLUGIN, version=of, files=_list(PACKED), packages=_list(packages))
        (place / "pyproject.toml").write_text(project, encoding="utf-8")
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out.resolve())]
        env = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
        subprocess.run(command, cwd=place, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return made


def _list(names: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{one}"' for one in names) + "]"


def main(arguments: Sequence[str]) -> int:
    """Write the wheel; the exit code."""
    if len(arguments) != 1:
        print("usage: python -m hack.release.wheel DIR", file=sys.stderr)
        return 2
    print(build(Path(arguments[0]), version.read()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
