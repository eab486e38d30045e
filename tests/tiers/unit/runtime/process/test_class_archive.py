"""The class archive of the image: what a driver's JVM is started with."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from hudi_runtime.process import class_archive, spark


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


def test_a_jvm_that_does_not_use_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM itself prints nothing."""
    monkeypatch.setattr(class_archive, "_PROCESSES", tmp_path)
    (tmp_path / "7").mkdir()
    maps = tmp_path / "7" / "maps"
    archive = tmp_path / "classes.jsa"
    jdk = "7f00-7f01 r--p 00000000 fe:00 1    /usr/lib/jvm/lib/server/classes.jsa\n"
    maps.write_text(jdk)
    assert class_archive.unused(7, tmp_path) == "", "without an archive none is missed"
    archive.touch()
    assert str(archive) in class_archive.unused(7, tmp_path)
    maps.write_text(jdk + f"800000000-8049a8000 rw-p 00001000 fe:00 2    {archive}\n")
    assert class_archive.unused(7, tmp_path) == ""
    assert class_archive.unused(8, tmp_path) == "", "the process has ended"


def test_a_process_reports_it_in_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """This process has not mapped the archive, as a JVM that starts without it."""
    archive = tmp_path / "classes.jsa"
    monkeypatch.setattr(class_archive, "ARCHIVE", str(archive))
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=SimpleNamespace(pid=os.getpid())))
    spark._report_unused_archive()
    assert capsys.readouterr().err == ""
    archive.touch()
    spark._report_unused_archive()
    assert f"the class archive {archive} does not fit" in capsys.readouterr().err
    monkeypatch.setattr(SparkContext, "_gateway", None)
    spark._report_unused_archive()
    assert capsys.readouterr().err == "", "a session without a JVM of its own"
