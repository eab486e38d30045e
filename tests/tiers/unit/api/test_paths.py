"""Paths of tables, datasets and sources name one bucket or host and nothing outside the folder that
they spell: at admission (the CRDs' rules) and at launch (F130).
"""

from __future__ import annotations

import re

import pytest

from hudi_operator.api import paths

SCHEMES = ("s3a", "hdfs", "gs", "abfs", "abfss")
TABLES = [
    "s3a://lake/t",
    "s3://lake/a/b",
    "hdfs://nn:8020/t",
    "gs://lake/day=1/t",
    "abfss://container@account.dfs.core.windows.net/t",
]
PATTERNS = [
    "s3a://landing",
    "s3a://landing/",
    "abfss://c@a.dfs.core.windows.net/",
    "s3a://landing/2013/*.csv",
    "s3a://landing/{a,b}/x?.csv",
    "gs://landing/[0-9]x.csv",
    r"s3a://landing/x\[1\].csv",
    "s3a://landing/at=2024-01-01 00%3A00".replace(" ", "T"),
]
NEVER = [
    "file:///etc/hudi/etcd/tls.key",
    "local:///etc/hudi/etcd/tls.key",
    "/etc/hudi/etcd/tls.key",
    "http://169.254.169.254/latest/meta-data",
    "jar:file:///x!/y",
    "s3a:///t",
    "s3a://lake/../other",
    "s3a://lake/t/..",
    "s3a://lake/./t",
    "s3a://key:secret@lake/t",
    "s3a://key@lake/t",
    "abfs://c@a.dfs.core.windows.net/t/../u",
    "abfs://c@a.dfs.core.windows.net/./u",
    "abfs://user:secret@a.dfs.core.windows.net/t",
    "abfs://c@a.dfs.core.windows.net/t\nu",
    "abfs://c@a.dfs.core.windows.net/t@u",
    "s3a://lake/t\nx",
    "s3a://{lake,other}/t",
    "s3a://lake/a b",
    "S3A://lake/t",
    "S3://lake/t",
    "s3n://lake/t",
    "ABFS://c@a.dfs.core.windows.net/t",
]
NO_TABLE = [
    "s3a://lake",
    "s3a://lake/",
    "abfs://c@a.dfs.core.windows.net",
    "s3a://lake/%2e%2e/t",
    "s3a://lake//t",
    "s3a://lake/a//b",
    "s3a://lake/team/flifile:///etc/hudi/etcd/tls.keyghts",
    "abfs://c@a.dfs.core.windows.net/a//b",
    "abfs://c@a.dfs.core.windows.net/%2e%2e/u",
    "abfss://c@a.dfs.core.windows.net/t?sig=x",
    "s3a://lake/t#x",
    "s3a://lake/*",
]
NO_PATTERN = [
    "s3a://lake/team/{x,..}/t",
    "s3a://lake/team/{x,../../other}/t",
    "s3a://lake/team/{..,x}",
    "s3a://lake/team/{x,.}/t",
    r"s3a://lake/.\./t",
    "s3a://lake/x\\",
    "s3a://lake/\x7f",
    "\x85s3a://lake/x",
    "s3a://lake/x\u2028",
]


@pytest.mark.parametrize("path", TABLES)
def test_a_table_may_be_there(path: str) -> None:
    assert paths.problem(path, SCHEMES, field="spec.path") == ""
    assert paths.problem(path, SCHEMES, field="spec.path", pattern=True) == ""


@pytest.mark.parametrize("path", PATTERNS)
def test_files_may_be_named_by_patterns(path: str) -> None:
    assert paths.problem(path, SCHEMES, field="f", pattern=True) == ""


@pytest.mark.parametrize("path", NEVER)
@pytest.mark.parametrize("pattern", [False, True])
def test_nothing_outside_a_bucket_can_be_named(path: str, pattern: bool) -> None:
    said = paths.problem(path, SCHEMES, field="spec.source.files.paths[0]", pattern=pattern)
    assert said.startswith("spec.source.files.paths[0]: ")
    assert "secret" not in said


@pytest.mark.parametrize("path", NO_TABLE)
def test_a_table_has_a_plain_path(path: str) -> None:
    assert paths.problem(path, SCHEMES, field="f")


@pytest.mark.parametrize("path", NO_PATTERN)
def test_a_pattern_does_not_lead_out_of_its_folder(path: str) -> None:
    assert paths.problem(path, SCHEMES, field="f", pattern=True)


def test_a_scheme_that_is_not_allowed_is_named_with_those_that_are() -> None:
    said = paths.problem("file:///etc/passwd", ("s3a", "gs"), field="spec.path")
    assert said == "spec.path: scheme file is not allowed; allowed: s3a, gs"
    assert re.match(r"spec\.path: scheme \(none\)", paths.problem("x", ("s3a",), field="spec.path"))
