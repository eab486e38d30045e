"""JVMs of tests use the class archive: it is of a class path that must stand first, and
whole, in theirs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.harness import class_archive
from tests.support.harness.local import JAVA_OPTIONS, SHORT_LIVED, World
from tests.support.harness.local_kubelet import Kubelet

WANTED = ":".join(class_archive.CLASS_PATH)


def options() -> str:
    """Those of the harness: without an archive that was made after this process had begun."""
    assert JAVA_OPTIONS in (SHORT_LIVED, f"{SHORT_LIVED} {class_archive.java_options()}")
    return JAVA_OPTIONS


def settings(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / "spark-defaults.conf").read_text().splitlines() if "=" in line)


def test_a_process_of_the_hudi_tier_begins_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    monkeypatch.setattr(type(world.etcd), "environment", {})
    world._environment(tmp_path / "pod", name="pod", spark={"spark.app.name": "x"}, hudi={}, job={}, image="")
    found = settings(tmp_path / "pod")
    assert found["spark.driver.extraClassPath"].startswith(WANTED + ":")
    assert options() in found["spark.driver.extraJavaOptions"]
    assert json.loads((tmp_path / "pod" / "job.json").read_text()) == {}


def test_a_pod_of_the_local_kubelet_begins_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "etc/hudi/spark"
    folder.mkdir(parents=True)
    (folder / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions=-Dx=y\n")
    Kubelet._class_path(tmp_path)
    found = settings(folder)
    assert found["spark.driver.extraClassPath"].startswith(WANTED + ":")
    assert found["spark.driver.extraJavaOptions"].startswith("-Dx=y ")
    assert options() in found["spark.driver.extraJavaOptions"]
