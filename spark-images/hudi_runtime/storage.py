"""Table storage through Hadoop's FileSystem, so that every scheme that Spark can reach works and the storage wrapper stays in the path.

Every failed listing raises: an empty answer always means "empty", never "could not look" (I4, I11).
"""

from __future__ import annotations

import re
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

#: How FileStatus and its subclasses print themselves.
_STATUS = re.compile(r"^\w+\{path=(.*?); isDirectory=(?:true|false);")


class Missing(Exception):
    """The file or folder does not exist (a definite answer of the store)."""


def _is_missing(error: Py4JJavaError) -> bool:
    name = str(error.java_exception.getClass().getName())
    return name in {"java.io.FileNotFoundException", "java.nio.file.NoSuchFileException"}


class Storage:
    """The files of one table. Paths are relative to the base path; `settings` make an own client with other Hadoop options (a probe)."""

    def __init__(self, spark: SparkSession, base_path: str, *, settings: dict[str, str] | None = None) -> None:
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm
        self.base_path = base_path.rstrip("/")
        configuration: Any = context._jsc.hadoopConfiguration()
        path = self._path("")
        if settings is None:
            self._fs: Any = path.getFileSystem(configuration)
        else:
            private = self._jvm.org.apache.hadoop.conf.Configuration(configuration)
            for key, value in settings.items():
                private.set(key, value)
            self._fs = self._jvm.org.apache.hadoop.fs.FileSystem.newInstance(path.toUri(), private)

    def close(self) -> None:
        """Close an own client made with `settings`; never call it on the shared one."""
        self._fs.close()

    def _path(self, relative: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.base_path}/{relative}" if relative else self.base_path)

    def exists(self, relative: str) -> bool:
        """Whether the file or folder exists."""
        return bool(self._fs.exists(self._path(relative)))

    def names(self, relative: str) -> list[str]:
        """Names in one folder. Raises Missing when there is no such folder."""
        try:
            statuses = self._fs.listStatus(self._path(relative))
        except Py4JJavaError as error:
            if _is_missing(error):
                raise Missing(relative) from error
            raise
        return [path.rsplit("/", 1)[-1] for path in self._paths(statuses)]

    def glob(self, pattern: str) -> list[str]:
        """Full paths that match a Hadoop glob below the base path; the part before the first wildcard must be free of glob characters."""
        statuses = self._fs.globStatus(self._path(pattern))
        return [] if statuses is None else self._paths(statuses)

    def _paths(self, statuses: Any) -> list[str]:
        # One call for the whole array: an element costs three round trips to the JVM otherwise.
        text = str(self._jvm.scala.Predef.genericWrapArray(statuses).mkString("\n"))
        paths = [match[1] for line in text.split("\n") if (match := _STATUS.match(line))]
        if len(paths) == len(statuses):
            return paths
        return [str(status.getPath().toString()) for status in statuses]

    def read(self, relative: str) -> str:
        """Content of a text file. Raises Missing."""
        try:
            stream = self._fs.open(self._path(relative))
        except Py4JJavaError as error:
            if _is_missing(error):
                raise Missing(relative) from error
            raise
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, relative: str, text: str) -> None:
        """Create or replace a text file."""
        stream = self._fs.create(self._path(relative), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Delete one file (or a folder, `recursive`), named by a relative or a full path. False when it was not there."""
        full = path if "://" in path or path.startswith(("/", "file:")) else f"{self.base_path}/{path}"
        return bool(self._fs.delete(self._jvm.org.apache.hadoop.fs.Path(full), recursive))
