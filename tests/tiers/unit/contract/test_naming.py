import re

import pytest

from hudi_contract import naming


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("s3a://lake/flights", "s3a://lake/flights"),
        ("S3://lake/flights/", "s3a://lake/flights"),
        ("s3n://lake//flights///x", "s3a://lake/flights/x"),
        ("s3a://Lake/Flights", "s3a://Lake/Flights"),
        (" s3a://lake/flights ", "s3a://lake/flights"),
        ("hdfs://nn:8020/a/b/", "hdfs://nn:8020/a/b"),
        ("ABFSS://c@acc.dfs.core.windows.net/t", "abfss://c@acc.dfs.core.windows.net/t"),
        ("/tmp//x/", "/tmp/x"),
    ],
)
def test_canonical_path(path: str, canonical: str) -> None:
    assert naming.canonical_path(path) == canonical
    assert naming.canonical_path(canonical) == canonical


def test_table_id_is_the_first_32_digits_of_sha256() -> None:
    """F275: 128 bits, so that no tenant finds a path with the id of somebody else's table."""
    # printf 's3a://lake/flights' | sha256sum
    assert naming.table_id("s3://lake/flights/") == naming.table_id("s3a://lake/flights")
    assert naming.table_id("s3a://lake/flights") == "f36cb7a236448a3c222773f785e13669"
    assert naming.table_id("s3a://lake/flights") != naming.table_id("s3a://lake/Flights")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("s3a://lake/t1", "s3a://lake/t1/sub", True),
        ("s3a://lake/t1/sub/deep", "s3://lake/t1/", True),
        ("s3a://lake/t1", "s3a://lake/t1", True),
        ("s3a://lake/t1", "s3a://lake/t10", False),
        ("s3a://lake/t1", "s3a://lake/T1", False),
        ("s3a://lake/t1", "gs://lake/t1", False),
        ("s3a://lake/t1", "s3a://pond/t1", False),
        ("hdfs://NN/t1", "hdfs://nn:8020/t1", True),
        ("hdfs://nn./t1", "hdfs://nn/t1/sub", True),
        ("hdfs://nn:9000/t1", "hdfs://nn/t1", False),
        ("hdfs://nn:80200/t1", "hdfs://nn/t1", False),
        ("abfs://c@acc.dfs.core.windows.net/t", "abfss://c@ACC.dfs.core.windows.net:443/t", True),
        ("s3a://lake", "s3a://lake/t1", True),
    ],
)
def test_places_that_overlap(one: str, other: str, *, expected: bool) -> None:
    assert naming.overlaps(one, other) is expected
    assert naming.overlaps(other, one) is expected


def test_names_fit_into_63_characters_and_differ_by_uid() -> None:
    name = naming.driver_pod_name("a" * 60, "01234567-89ab", 1234)
    assert len(name + "-exec-9999999") <= 68
    assert len(name) <= 63
    assert naming.driver_pod_name("w", "01234567-x", 1) != naming.driver_pod_name("w", "11234567-x", 1)
    assert naming.driver_pod_name("ends-", "01234567", 1) == "ends-01234567-1"


def test_attempts_split_at_the_first_dot() -> None:
    attempt = naming.attempt_id("lake", "writer.v1-01234567-3")
    assert naming.split_attempt(attempt) == ("lake", "writer.v1-01234567-3")
    assert naming.driver_number("writer.v1-01234567-3") == 3
    assert naming.driver_number("odd") is None


def test_agents_are_shared_by_equal_access_in_one_namespace_only() -> None:
    def name(**changes: object) -> str:
        access: dict[str, object] = {
            "namespace": "lake",
            "service_account": "sa",
            "secret_refs": [{"name": "b", "as": "S3"}, {"name": "a", "as": "Env", "prefix": "APP_"}],
            "storage_options": {"x": "1"},
            "image": "i",
        }
        return naming.agent_name(**{**access, **changes})  # type: ignore[arg-type]

    assert name() == name(secret_refs=[{"name": "a", "as": "Env", "prefix": "APP_"}, {"name": "b", "as": "S3"}])
    others = [
        name(namespace="other"),
        name(service_account=""),
        name(storage_options={}),
        name(image="j"),
        name(secret_refs=[]),
        name(pull_secrets=["a"]),
        name(callback_secret="a"),
        name(own={}),
        name(shard=1),
        name(shard=2),
    ]
    assert name(shard=0) == name()
    assert len({name(), *others}) == 11
    assert name(pull_secrets=["a", "b"]) == name(pull_secrets=["b", "a"])
    assert len(naming.agent_pod_name(name(), 12345)) <= 63


def test_names_of_agents_have_128_bits() -> None:
    """F207: of 40 bits another access of the same name is found by trying.

    Its table was then served with the credentials of somebody else's.
    """
    name = naming.agent_name(namespace="lake", service_account="", secret_refs=[], storage_options={}, image="i")
    assert re.fullmatch("hudi-agent-[0-9a-f]{32}", name)
    assert naming.is_agent_pod(naming.agent_pod_name(name, 12))
    for other in (name, f"{name[:-1]}-1", "hudi-agent-x-1", naming.driver_pod_name(name, "0123456789", 1)):
        assert not naming.is_agent_pod(other)


def test_label_values_are_bounded() -> None:
    assert naming.label_value("w") == "w"
    long = naming.label_value("w" * 100)
    assert re.fullmatch("w{30}-[0-9a-f]{32}", long), "F275: 128 bits, as the id of a table"
    assert len(long) <= 63
    assert long != naming.label_value("w" * 99)
