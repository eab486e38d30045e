"""The versions of other people's programs that a result depends on."""

from __future__ import annotations

import platform
import subprocess
from functools import lru_cache
from importlib.metadata import version

from tests.support import CACHE
from tests.support.harness.class_archive import BUNDLE


@lru_cache
def versions() -> dict[str, str]:
    """Versions of software that a result depends on."""
    said = subprocess.run([CACHE / "bin" / "etcd", "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "hudi": BUNDLE.removesuffix(".jar").rsplit("-", 1)[-1],
        "spark": version("pyspark"),
        "hudi-rs": version("hudi"),
        "etcd": said.split()[2],
        "zookeeper": "as in pyspark",
        "python": platform.python_version(),
    }
