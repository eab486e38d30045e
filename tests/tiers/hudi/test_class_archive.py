"""JVMs use the class archive. One that cannot starts without it and prints nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from hudi_runtime.process.class_archive import is_mapped
from tests.support.harness import class_archive
from tests.support.harness.local import AGENT, Process, World

WAITS = """
public class Waits {
    public static void main(String[] arguments) throws java.io.IOException {
        System.out.println("ready");
        System.in.read();
    }
}
"""


def jvms(process: Process) -> list[int]:
    """Children of a process of the runtime whose program is a JVM."""
    children = " ".join(path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/children")).split()
    return [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "java"]


def test_the_jvm_of_an_agent_uses_it(world: World, agent: Process) -> None:
    table = world.table("classes")
    world.create(table, agent=AGENT, process=agent)
    archive = class_archive.archive()
    assert archive.exists(), "make it: python -m tests.support.harness.class_archive"
    (pid,) = jvms(agent)
    assert is_mapped(pid, archive)


def maps_it(folder: Path, class_path: Sequence[str]) -> tuple[bool, str]:
    """Whether a JVM with this class path maps the archive, and the first line of its output."""
    source = folder / "Waits.java"
    source.write_text(WAITS)
    command = ["java", *class_archive.java_options().split(), "-cp", ":".join(class_path), str(source)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as jvm:
        assert jvm.stdin is not None
        assert jvm.stdout is not None
        first = jvm.stdout.readline().decode()
        found = is_mapped(jvm.pid, class_archive.archive())
        jvm.stdin.close()
        jvm.wait(60)
    return found, first


@pytest.mark.parametrize(
    ("class_path", "used"),
    [(class_archive.CLASS_PATH, True), (class_archive.CLASS_PATH[1:], False), (class_archive.CLASS_PATH[::-1], False)],
    ids=["whole", "without its first jar", "in another order"],
)
def test_another_class_path_is_found_out(class_path: Sequence[str], used: bool, tmp_path: Path) -> None:
    """Without this, the test above would pass whatever the JVM does."""
    assert maps_it(tmp_path, class_path) == (used, "ready\n")
