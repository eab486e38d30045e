"""What a failed listing of the store means: an empty answer always means empty, never that nobody
could look (I4, I11).
"""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import Table
from hudi_runtime.table.storage import Missing, Storage


class JavaError:
    """A Java exception of some class, as py4j hands it over."""

    _target_id, _gateway_client = "o1", None

    def __init__(self, name: str) -> None:
        self._name = name

    def getClass(self) -> Any:
        return type("Class", (), {"getName": lambda _: self._name})()


class Failing(Storage):
    """A store whose listings fail."""

    def __init__(self, name: str) -> None:
        error = Py4JJavaError("listing failed", JavaError(name))

        def fail(_path: object) -> None:
            raise error

        self._fs = type("FileSystem", (), {"listStatus": staticmethod(fail), "open": staticmethod(fail)})()

    def path(self, relative: str) -> Any:
        return relative


@pytest.mark.parametrize("name", ["java.io.FileNotFoundException", "java.nio.file.NoSuchFileException"])
def test_a_folder_that_is_not_there(name: str) -> None:
    with pytest.raises(Missing):
        Failing(name).names("x")


@pytest.mark.parametrize(
    "name",
    ["java.io.IOException", "java.nio.file.AccessDeniedException", "org.apache.hadoop.fs.s3a.AWSClientIOException"],
)
def test_only_a_definite_answer_says_missing(name: str) -> None:
    for look in (lambda s: s.names("x"), lambda s: s.read("x")):
        with pytest.raises(Py4JJavaError) as caught:
            look(Failing(name))
        assert not isinstance(caught.value, Missing)
    table: Any = object.__new__(Table)
    table.storage = Failing(name)
    with pytest.raises(Py4JJavaError):
        table.metadata_timeline()
    table.storage = Failing("java.io.FileNotFoundException")
    assert table.metadata_timeline() == tl.Timeline()
