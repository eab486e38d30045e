"""Files of a source: one call of the JVM for each folder, however many files it has."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.process.errors import UserCodeError
from hudi_runtime.read import files
from hudi_runtime.read.manifests import SourceFile

LAKE = "s3a://lake"


class Store:
    """Folders and files by path; a status is the path. Every call is noted."""

    def __init__(self, *paths: str) -> None:
        self.files = {f"{LAKE}/{path}": number for number, path in enumerate(paths, start=1)}
        self.calls: list[str] = []

    @property
    def spark(self) -> Any:
        listings = SimpleNamespace(ofDatedStatuses=self._dated)
        fs = SimpleNamespace(Path=self._path)
        jvm = SimpleNamespace(
            io=SimpleNamespace(hudioperator=SimpleNamespace(Listings=listings)),
            org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=fs))),
        )
        jsc = SimpleNamespace(hadoopConfiguration=lambda: None)
        return SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm, _jsc=jsc))

    def _path(self, text: str) -> Any:
        system = SimpleNamespace(globStatus=self._glob, listStatus=self._list)
        return SimpleNamespace(text=text, getFileSystem=lambda _: system)

    def _below(self, folder: str) -> list[str]:
        return sorted(
            {
                f"{folder}/{file[len(folder) + 1 :].partition('/')[0]}"
                for file in self.files
                if file.startswith(f"{folder}/")
            }
        )

    def _glob(self, path: Any) -> list[str] | None:
        self.calls.append(f"glob {path.text}")
        return [path.text] if path.text in self.files or self._below(path.text) else None

    def _list(self, path: Any) -> list[str]:
        self.calls.append(f"list {path.text}")
        return self._below(path.text)

    def _dated(self, statuses: list[str]) -> str:
        return json.dumps([[path, path not in self.files, len(path), self.files.get(path, 0)] for path in statuses])


def test_a_folder_is_one_call() -> None:
    names = [f"in/day={day}/{number:03}.csv" for day in (1, 2) for number in range(500)]
    store = Store(*names, "in/_temporary/x.csv", "in/day=1/_SUCCESS", "in/day=1/late.csv._COPYING_", "elsewhere/x.csv")
    found = files.listed(store.spark, [f"{LAKE}/in"])
    assert found == [SourceFile(f"{LAKE}/{name}", len(f"{LAKE}/{name}"), at) for at, name in enumerate(names, start=1)]
    assert store.calls == [f"glob {LAKE}/in", *(f"list {LAKE}/in{folder}" for folder in ("", "/day=1", "/day=2"))]


def test_what_is_not_there() -> None:
    store = Store("in/a.csv")
    assert files.listed(store.spark, [f"{LAKE}/out"], wait=True) == []
    with pytest.raises(UserCodeError, match="source path s3a://lake/out matches nothing"):
        files.listed(store.spark, [f"{LAKE}/out"])
    assert [file.path for file in files.listed(store.spark, [f"{LAKE}/in/a.csv"])] == [f"{LAKE}/in/a.csv"]


def test_a_file_that_is_never_read_is_refused_by_name() -> None:
    store = Store("in/_x.csv")
    with pytest.raises(UserCodeError, match=r"begins with _ or \. is never read"):
        files.listed(store.spark, [f"{LAKE}/in/_x.csv"])
