"""An error of a JVM, as py4j raises it."""

from __future__ import annotations


class Thrown(Exception):
    """It is the throwable as well."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.java_exception = self
        self.name, self.message = name, message

    def getClass(self) -> Thrown:
        return self

    def getName(self) -> str:
        return self.name

    def getMessage(self) -> str:
        return self.message

    def getCause(self) -> None:
        return None


MOVED = Thrown(
    "org.apache.hudi.exception.HoodieWriteConflictException",
    "[HUDIOP-SNAPSHOT-MOVED] clean 17 was begun since the timeline of s3a://lake/t was read; read the table again",
)
"""Error that a read beside a clean raises (`Relations.java`)."""
