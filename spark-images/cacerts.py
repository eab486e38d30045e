"""Java's store of certificate authorities without the time at which it was made.

Debian's ca-certificates-java writes it when it is installed (/etc/ssl/certs/java/cacerts), and each
entry has the time of that. So two builds of one image had different bytes. The content is kept:
aliases and certificates, sorted by alias.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from pathlib import Path

PASSWORD = "changeit"  # noqa: S105 - Java's own for this store, which holds no secret
_MAGIC, _VERSION, _TRUSTED = 0xFEEDFEED, 2, 2
_HEADER = struct.Struct(">III")
_DIGEST_BYTES = 20


class NotUnderstood(ValueError):
    """It is no Java key store of trusted certificates alone."""


def _digest(content: bytes) -> bytes:
    # JDK: sun.security.provider.JavaKeyStore.
    return hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content).digest()  # noqa: S324


class _Reader:
    def __init__(self, content: bytes, at: int) -> None:
        self._content, self.at = content, at

    def number(self, form: str) -> int:
        (found,) = struct.unpack_from(form, self._content, self.at)
        self.at += struct.calcsize(form)
        return int(found)

    def block(self, form: str) -> bytes:
        """Bytes after their length."""
        length = self.number(form)
        found = self._content[self.at : self.at + length]
        if len(found) != length:
            raise NotUnderstood("it ends early")
        self.at += length
        return found


def dateless(store: bytes) -> bytes:
    """The same authorities, sorted, each of them made in 1970; raises NotUnderstood."""
    content, digest = store[:-_DIGEST_BYTES], store[-_DIGEST_BYTES:]
    if len(content) < _HEADER.size or _digest(content) != digest:
        raise NotUnderstood("it is no Java key store with the usual password")
    magic, version, count = _HEADER.unpack_from(content)
    if (magic, version) != (_MAGIC, _VERSION):
        raise NotUnderstood(f"it is of version {version}")
    reader, entries = _Reader(content, _HEADER.size), list[tuple[bytes, bytes, bytes]]()
    for _ in range(count):
        if reader.number(">I") != _TRUSTED:
            raise NotUnderstood("it has keys")
        alias = reader.block(">H")
        reader.number(">Q")
        entries.append((alias, reader.block(">H"), reader.block(">I")))
    if reader.at != len(content):
        raise NotUnderstood("it goes on after its entries")
    made = _HEADER.pack(_MAGIC, _VERSION, count)
    for alias, kind, certificate in sorted(entries):
        made += struct.pack(">IH", _TRUSTED, len(alias)) + alias + struct.pack(">QH", 0, len(kind)) + kind
        made += struct.pack(">I", len(certificate)) + certificate
    return made + _digest(made)


def main(argv: list[str]) -> None:
    """Rewrite each file that is named."""
    for name in argv:
        Path(name).write_bytes(dateless(Path(name).read_bytes()))


if __name__ == "__main__":
    main(sys.argv[1:])
