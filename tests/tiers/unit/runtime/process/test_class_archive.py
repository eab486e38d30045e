"""The class archive of the image: what a driver's JVM is started with."""

from __future__ import annotations

from pathlib import Path

from hudi_runtime.process import class_archive


def test_without_an_archive_nothing_is_set(tmp_path: Path) -> None:
    """Elsewhere than in the image, or in an image of others."""
    environ: dict[str, str] = {}
    (tmp_path / "class-path").write_text("/jars/a.jar\n")
    assert class_archive.settings(environ, tmp_path) == {}
    assert environ == {}
    assert class_archive.of_image(tmp_path) == ([], "")


def test_the_archives_class_path_stands_first(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    (tmp_path / "classes.jsa").touch()
    (tmp_path / "class-path").write_text("/jars/a.jar:/jars/b.jar\n")
    assert class_archive.settings(environ, tmp_path) == {"spark.driver.extraClassPath": "/jars/a.jar:/jars/b.jar"}
    assert environ["SPARK_SUBMIT_OPTS"].endswith(f"-XX:SharedArchiveFile={tmp_path}/classes.jsa")
