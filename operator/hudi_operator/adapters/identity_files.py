"""An identity as files, for libraries that read nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hudi_operator.adapters.authority import KeyPair


class IdentityFiles:
    """Bundle, certificate and key as files that only this process can read, while they are used."""

    def __init__(self, bundle: bytes, pair: KeyPair) -> None:
        self._content = (bundle, pair.certificate, pair.key)
        self._folder = tempfile.TemporaryDirectory(prefix="etcd-identity-")

    def __enter__(self) -> Sequence[str]:
        names = []
        for number, content in enumerate(self._content):
            path = Path(self._folder.name) / str(number)
            path.touch(mode=0o600)
            path.write_bytes(content)
            names.append(str(path))
        return names

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()
