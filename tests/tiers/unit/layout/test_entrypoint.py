"""The image's entry point: what runs for each role, and that no shell runs before it (F131)."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hudi_runtime.process import class_archive
from tests.support import ROOT

FILE = ROOT / "spark-images" / "entrypoint.py"
SPARK = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_EXECUTOR_POD_NAME": "w-1-exec-1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_HOME": "/spark",
    "SPARK_CONF_DIR": "/etc/hudi/spark",
}


@pytest.fixture(scope="module")
def entrypoint() -> ModuleType:
    spec = importlib.util.spec_from_file_location("entrypoint", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_roles_are_modules_of_the_runtime(entrypoint: ModuleType) -> None:
    for role in ("writer", "agent", "audit"):
        assert entrypoint.command([role, "x y"], {}) == ["python3", "-m", f"hudi_runtime.{role}", "x y"]
        assert (ROOT / "spark-images" / "hudi_runtime" / role / "__main__.py").exists()
    assert entrypoint.command(["sleep", "60"], {}) == ["sleep", "60"]


def test_an_executor_gets_its_options_as_they_are(entrypoint: ModuleType, tmp_path: Path) -> None:
    """Options with blanks and `$` are one argument each, up to the first number that is missing."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    java.chmod(0o755)
    options = [f"-Da{number}=$(id) `x` ${{HOME}} '{number}" for number in range(12)]
    given = {f"SPARK_JAVA_OPT_{number}": option for number, option in enumerate(options)}
    given |= {"SPARK_JAVA_OPT_13": "-Dnever", "JAVA_HOME": str(tmp_path), **SPARK}
    done = subprocess.run(
        [sys.executable, "-I", str(FILE), "executor"], env=given, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found[:12] == options
    assert found[12:15] == [entrypoint.MASTER, "-Xms512m", "-Xmx512m"]
    assert found[15:17] == ["-cp", "/etc/hudi/spark:/spark/jars/*"]
    assert found[17:20] == [entrypoint.BACKEND, "--driver-url", SPARK["SPARK_DRIVER_URL"]]
    assert found[-2:] == ["--podName", "w-1-exec-1"]


def test_an_executor_maps_the_class_archive_of_its_image(
    entrypoint: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive's class path stands first, and the user's options come after its own."""
    monkeypatch.setattr(class_archive, "FOLDER", tmp_path)
    given = {**SPARK, "JAVA_HOME": "/java", "SPARK_CLASSPATH": "/user", "SPARK_JAVA_OPT_0": "-Dx=y"}
    assert class_archive.of_image(tmp_path) == ([], "")
    assert not any("SharedArchiveFile" in part for part in entrypoint.executor(given))
    (tmp_path / "classes.jsa").touch()
    (tmp_path / "class-path").write_text("/jars/a.jar:/jars/b.jar\n")
    options, first = class_archive.of_image(tmp_path)
    assert options[-1] == f"-XX:SharedArchiveFile={tmp_path}/classes.jsa"
    assert first == "/jars/a.jar:/jars/b.jar"
    found = entrypoint.executor(given)
    assert found[1:5] == [*options, "-Dx=y"]
    assert found[found.index("-cp") + 1] == "/jars/a.jar:/jars/b.jar:/user:/etc/hudi/spark:/spark/jars/*"


def test_no_shell_reads_the_environment_first(tmp_path: Path) -> None:
    """With a shell as entry point the file that BASH_ENV names would run."""
    ran = tmp_path / "ran"
    code = tmp_path / "code.sh"
    code.write_text(f"touch {ran}\n")
    environ = {**os.environ, "BASH_ENV": str(code), "ENV": str(code), "BASH_FUNC_exec%%": f"() {{ touch {ran}; }}"}
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", (ROOT / "spark-images" / "Dockerfile").read_text(), re.MULTILINE)
    assert json.loads(entry) == ["tini", "--", "python3", "-I", "/opt/hudi/entrypoint.py"]
    subprocess.run([sys.executable, "-I", str(FILE), "true"], env=environ, check=True)
    assert not ran.exists()
    subprocess.run(["bash", "-c", "true"], env=environ, check=True)
    assert ran.exists(), "a shell does"


def test_a_user_that_the_image_does_not_know_gets_a_name(
    entrypoint: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one Hadoop cannot log in (F339); whether programs find it, `test_two_releases` shows
    with the image.
    """
    accounts = tmp_path / "passwd"
    monkeypatch.setattr(entrypoint, "ACCOUNTS", str(accounts))
    assert entrypoint.named(os.getuid(), os.getgid()) == {}
    assert not accounts.exists()
    variables = entrypoint.named(1_000_660_000, 0)
    assert variables["LD_PRELOAD"] == "libnss_wrapper.so"
    assert variables["NSS_WRAPPER_PASSWD"] == str(accounts)
    *known, added = accounts.read_text().splitlines()
    assert known == Path("/etc/passwd").read_text().splitlines()
    assert added.split(":")[:4] == ["spark", "x", "1000660000", "0"]
    assert added.split(":")[5] == "/tmp"
    assert " libnss-wrapper " in (ROOT / "spark-images" / "Dockerfile").read_text()


def test_without_a_role_the_roles_are_told() -> None:
    done = subprocess.run([sys.executable, "-I", str(FILE)], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (2, "usage: writer | agent | executor | audit PATH | COMMAND...")
