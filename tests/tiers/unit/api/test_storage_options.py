"""Which options of a store may name another one (F657)."""

from __future__ import annotations

import pytest

from hudi_operator.api.storage_options import elsewhere

PATH, OURS = "s3a://lake/flights", "https://s3.example.com"
NAMED = {"fs.s3a.endpoint": OURS}


@pytest.mark.parametrize(
    "options",
    [
        NAMED,
        {"fs.s3a.endpoint": f"{OURS}/"},
        {**NAMED, "fs.s3a.path.style.access": "true", "fs.s3a.endpoint.region": "cn-north-1"},
        {**NAMED, "fs.s3a.connection.maximum": "64", "fs.s3a.retry.limit": "3", "fs.s3a.fast.upload.buffer": "disk"},
    ],
)
def test_what_only_says_how_a_store_is_asked(options: dict[str, str]) -> None:
    assert elsewhere(options, PATH, [OURS]) == ""


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "fs.s3a.endpoint"),
        ({"fs.s3a.endpoint": "http://minio.other.svc"}, "fs.s3a.endpoint"),
        ({"FS.s3a.endpoint": OURS}, "FS.s3a.endpoint"),
        ({**NAMED, "fs.s3a.bucket.lake.endpoint": "http://minio.other.svc"}, "fs.s3a.bucket.lake.endpoint"),
        ({**NAMED, "fs.s3a.proxy.host": "proxy"}, "fs.s3a.proxy.host"),
        ({**NAMED, "fs.s3a.bucket.lake.accesspoint.arn": "arn:x"}, "fs.s3a.bucket.lake.accesspoint.arn"),
        ({**NAMED, "fs.s3a.connection.ssl.enabled": "false"}, "fs.s3a.connection.ssl.enabled"),
        ({**NAMED, "fs.gs.storage.root.url": "http://other"}, "fs.gs.storage.root.url"),
        ({**NAMED, "fs.gs.proxy.address": "other"}, "fs.gs.proxy.address"),
        ({**NAMED, "fs.s3a.assumed.role.sts.endpoint": "other"}, "fs.s3a.assumed.role.sts.endpoint"),
    ],
)
def test_what_may_name_another_store(options: dict[str, str], named: str) -> None:
    found = elsewhere(options, PATH, [OURS])
    assert found.startswith(f"spec.storage.options['{named}']: ")
    assert f"(config.storeEndpoints: {OURS})" in found
    assert elsewhere(options, PATH, ["*"]) == ""


def test_the_clouds_own_store() -> None:
    assert elsewhere({}, PATH, ["cloud"]) == ""
    assert elsewhere({"fs.s3a.endpoint.region": "eu-central-1"}, PATH, ["cloud"]) == ""
    for region in ("cn-north-1", "us-gov-west-1", " US-ISO-EAST-1"):
        assert "another cloud" in elsewhere({"fs.s3a.endpoint.region": region}, PATH, ["cloud"])
    assert "is not allowed" in elsewhere(NAMED, PATH, ["cloud"])
    assert "is not allowed" in elsewhere({}, PATH, [])


def test_http_needs_no_certificate() -> None:
    options = {"fs.s3a.endpoint": "http://minio:9000", "fs.s3a.connection.ssl.enabled": "false"}
    assert elsewhere(options, PATH, ["http://minio:9000"]) == ""


def test_a_path_of_hdfs_names_its_store() -> None:
    assert elsewhere({}, "hdfs://nn/t", [OURS]) == ""
    assert elsewhere({}, "gs://lake/t", [OURS]) == ""
    assert "may name another store" in elsewhere({"fs.gs.storage.root.url": "http://x"}, "gs://lake/t", [OURS])
