"""What krew gets of the plugin. `component/crds/test_kubectl.py` has krew itself install it."""

from __future__ import annotations

import hashlib
import io
import tarfile

import yaml
from hack.release import krew

from tests.support import ROOT


def test_the_manifest_has_the_sum_of_the_archive() -> None:
    packed = krew.archive(b"the plugin")
    told = yaml.safe_load(krew.manifest(packed, "https://example.com/a.tar.gz", "0.1.0"))
    (platform,) = told["spec"]["platforms"]
    assert platform["sha256"] == hashlib.sha256(packed).hexdigest()
    assert platform["uri"] == "https://example.com/a.tar.gz"
    assert told["spec"]["version"] == "v0.1.0"
    assert len(told["spec"]["shortDescription"]) <= 50
    assert all(len(line) <= 80 for line in told["spec"]["description"].splitlines())
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert tar.getnames() == ["LICENSE", "NOTICE", platform["bin"]]
        assert tar.getmember(platform["bin"]).mode == 0o755
        assert (tar.extractfile("LICENSE") or io.BytesIO()).read() == (ROOT / "LICENSE").read_bytes()


def test_the_same_plugin_gives_the_same_archive() -> None:
    assert krew.archive(b"the plugin") == krew.archive(b"the plugin")
    assert krew.archive(b"the plugin") != krew.archive(b"another")


def test_the_archive_is_found_by_https() -> None:
    assert krew.main(["out", "http://example.com"]) == 2
    assert krew.main(["out"]) == 2
