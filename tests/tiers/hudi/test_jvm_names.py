"""Names of the JVM's classes are looked up once, and found all the same (no invariant: cost)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.java_gateway import java_import
from py4j.protocol import REFLECTION_COMMAND_NAME, Py4JError

from hudi_runtime.process import jvm_names
from tests.support.harness.local import CLASS_PATH


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    """A JVM without Spark; PySpark's own is another one."""
    from pyspark.java_gateway import launch_gateway

    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-class-path {CLASS_PATH} pyspark-shell"
    launch: Any = launch_gateway
    gateway = launch()
    try:
        jvm_names.keep(gateway.jvm)
        yield gateway.jvm
    finally:
        del os.environ["PYSPARK_SUBMIT_ARGS"]
        gateway.shutdown()
        process: subprocess.Popen[bytes] = gateway.proc
        process.stdin.close()  # type: ignore[union-attr]
        process.wait(30)


def looked_up(jvm: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names for which the JVM is asked from now on."""
    client, asked = jvm._gateway_client, []
    send = client.send_command

    def command(text: str, *more: Any, **named: Any) -> Any:
        if text.startswith(REFLECTION_COMMAND_NAME):
            asked.append(text.split("\n")[2])
        return send(text, *more, **named)

    monkeypatch.setattr(client, "send_command", command)
    return asked


def test_a_class_is_looked_up_once(jvm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jvm.java.util.ArrayList().size() == 0
    asked = looked_up(jvm, monkeypatch)
    again = jvm.java.util.ArrayList()
    again.add("row")
    assert (list(again), asked) == (["row"], [])
    # another class of the same package is one question, not three
    assert (jvm.java.util.HashMap().size(), asked) == (0, ["java.util.HashMap"])


def test_a_static_method_and_a_nested_class_are_found(jvm: Any) -> None:
    for _ in range(2):
        assert jvm.java.lang.Thread.State.valueOf("NEW").name() == "NEW"
        assert jvm.java.lang.Math.max(1, 2) == 2


def test_a_class_that_comes_later_is_found(jvm: Any) -> None:
    # a package for py4j, as is every name that it does not know
    with pytest.raises((Py4JError, TypeError)):
        jvm.LinkedList()
    java_import(jvm, "java.util.LinkedList")
    assert jvm.LinkedList().size() == 0
