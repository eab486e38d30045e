"""Table storage through Hadoop's FileSystem.

So every scheme that Spark supports works, and all access goes through the storage wrapper.

Every failed listing raises: an empty answer always means "empty", never "could not read" (I4, I11).
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from hudi_runtime.table.listings import of_statuses

_FOLDERS_AT_ONCE = 200
ABSENT = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException")
"""Exceptions that say of a file or folder that it does not exist."""


class Missing(Exception):
    """The file or folder does not exist (a definite answer of the store)."""


def _is_missing(error: Py4JJavaError) -> bool:
    name = str(error.java_exception.getClass().getName())
    return name in ABSENT


class Storage:
    """The files of one table.

    Paths are relative to the base path; `settings` create a separate client with other Hadoop
    options (a probe).
    """

    def __init__(self, spark: SparkSession, base_path: str, *, settings: dict[str, str] | None = None) -> None:
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm
        self._gateway: Any = context._gateway
        self.base_path = base_path.rstrip("/")
        configuration: Any = context._jsc.hadoopConfiguration()
        path = self.path("")
        if settings is None:
            self._fs: Any = path.getFileSystem(configuration)
        else:
            private = self._jvm.org.apache.hadoop.conf.Configuration(configuration)
            for key, value in settings.items():
                private.set(key, value)
            self._fs = self._jvm.org.apache.hadoop.fs.FileSystem.newInstance(path.toUri(), private)
        self._qualified = str(self._fs.makeQualified(path).toString())

    def close(self) -> None:
        """Close a separate client created with `settings`; never call it on the shared one."""
        self._fs.close()

    def path(self, relative: str) -> Any:
        """The Hadoop path of a relative path."""
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.base_path}/{relative}" if relative else self.base_path)

    def exists(self, relative: str) -> bool:
        """Whether the file or folder exists."""
        return bool(self._fs.exists(self.path(relative)))

    def names(self, relative: str) -> list[str]:
        """Names in one folder. Raises Missing when there is no such folder."""
        return list(self.sizes(relative))

    def sizes(self, relative: str) -> dict[str, int]:
        """Names in one folder, with their sizes in bytes (0 for a folder).

        Raises Missing when there is no such folder.
        """
        try:
            statuses = self._fs.listStatus(self.path(relative))
        except Py4JJavaError as error:
            if _is_missing(error):
                raise Missing(relative) from error
            raise
        return {path.rsplit("/", 1)[-1]: size for path, _, size in self._statuses(statuses)}

    def glob(self, pattern: str) -> list[str]:
        """Full paths that match a Hadoop glob below the base path.

        The part before the first wildcard must be free of glob characters.
        """
        statuses = self._fs.globStatus(self.path(pattern))
        return [] if statuses is None else self._paths(statuses)

    def walk(self) -> dict[str, int]:
        """Every file below the base path, by relative path, with its size in bytes.

        A folder that disappears meanwhile is left out.
        """
        files: dict[str, int] = {}
        folders = [self.base_path]
        while folders:
            batch, folders = folders[:_FOLDERS_AT_ONCE], folders[_FOLDERS_AT_ONCE:]
            for path, is_folder, size in self._list_all(batch):
                if is_folder:
                    folders.append(path)
                else:
                    files[self.relative(path)] = size
        return files

    def _list_all(self, folders: list[str]) -> list[tuple[str, bool, int]]:
        array = self._gateway.new_array(self._jvm.org.apache.hadoop.fs.Path, len(folders))
        for number, folder in enumerate(folders):
            array[number] = self._jvm.org.apache.hadoop.fs.Path(folder)
        try:
            return self._statuses(self._fs.listStatus(array))
        except Py4JJavaError as error:
            if not _is_missing(error):
                raise
        if len(folders) == 1:
            if folders[0] == self.base_path:
                raise Missing(self.base_path)
            return []
        return [status for folder in folders for status in self._list_all([folder])]

    def relative(self, path: str) -> str:
        """A full path relative to the base path.

        Raises ValueError when it is not below the base path.
        """
        for prefix in (f"{self._qualified}/", f"{self.base_path}/"):
            if path.startswith(prefix):
                return path[len(prefix) :]
        raise ValueError(f"{path} is not below {self.base_path}")

    def _paths(self, statuses: Any) -> list[str]:
        return [path for path, _, _ in self._statuses(statuses)]

    def _statuses(self, statuses: Any) -> list[tuple[str, bool, int]]:
        """Full path, whether it is a folder, and size in bytes of each.

        One call for all of them.
        """
        return of_statuses(self._jvm, statuses)

    def read(self, relative: str) -> str:
        """Content of a text file. Raises Missing."""
        try:
            stream = self._fs.open(self.path(relative))
        except Py4JJavaError as error:
            if _is_missing(error):
                raise Missing(relative) from error
            raise
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def modified_ms(self, relative: str) -> int:
        """Time of a file's last change by the store's clock, in Unix milliseconds.

        Raises Missing.
        """
        try:
            return int(self._fs.getFileStatus(self.path(relative)).getModificationTime())
        except Py4JJavaError as error:
            if _is_missing(error):
                raise Missing(relative) from error
            raise

    def write(self, relative: str, text: str) -> None:
        """Create or replace a text file."""
        stream = self._fs.create(self.path(relative), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete one file (or a folder, `recursive`), given by a relative or a full path.

        False when it did not exist.
        """
        full = path if "://" in path or path.startswith(("/", "file:")) else f"{self.base_path}/{path}"
        return bool(self._fs.delete(self._jvm.org.apache.hadoop.fs.Path(full), recursive))
