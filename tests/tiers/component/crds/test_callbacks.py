"""HudiTable: a receiver of commits, as `kubectl apply` takes or refuses it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import Cluster, table

FORM = "it must be https://HOST[:PORT][/PATH][?QUERY] without credentials, fragment and white space"
NEVER = "nothing is sent to loopback, link-local and metadata addresses"
PLAIN = "http is for Services of the cluster"


def to(url: str, **more: Any) -> dict[str, Any]:
    return {"commitCallback": {"url": url, **more}}


REFUSED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("no-url", {"commitCallback": {}}, ("spec.commitCallback.url", "Required value")),
    ("scheme", to("ftp://example.com/x"), ("spec.commitCallback.url", "url is 'ftp://example.com/x'", FORM)),
    ("space", to("https://example.com/a b"), (FORM,)),
    ("header", to("https://example.com/a\r\nX-Evil: 1"), (FORM,)),
    ("fragment", to("https://example.com/#x"), (FORM,)),
    ("backslash", to("https://example.com\\@127.0.0.1/"), (FORM,)),
    ("no-host", to("https:///path"), (FORM,)),
    ("port", to("https://example.com:0/"), ("its port must be between 1 and 65535",)),
    ("large-port", to("https://example.com:65536/"), ("its port must be between 1 and 65535",)),
    ("plain", to("http://example.com/hook"), ("spec.commitCallback.url", "url is 'http://example.com/hook'", PLAIN)),
    ("plain-outside", to("http://a.b.svc.example.com/"), (PLAIN,)),
    ("plain-address", to("http://10.0.0.1/"), (PLAIN,)),
    ("loopback", to("https://127.0.0.1/"), ("url is 'https://127.0.0.1/'", NEVER)),
    ("localhost", to("https://LocalHost:8443/x"), (NEVER,)),
    ("below-localhost", to("https://a.localhost/"), (NEVER,)),
    ("metadata", to("https://169.254.169.254/latest/meta-data/"), (NEVER,)),
    ("metadata-name", to("https://metadata.google.internal/"), (NEVER,)),
    ("loopback-6", to("https://[::1]/"), (NEVER,)),
    ("any", to("https://0.0.0.0/"), (NEVER,)),
    ("link-local-6", to("https://[fe80::1]/"), (NEVER,)),
    ("mapped", to("https://[::ffff:169.254.169.254]/"), (NEVER,)),
    ("long", to(f"https://example.com/{'x' * 1024}"), ("spec.commitCallback.url", "1024")),
    (
        "secret",
        to("https://example.com/", secretRef={"name": "A/b"}),
        ("spec.commitCallback.secretRef.name", "'A/b' is not the name of a Secret"),
    ),
    ("no-secret", to("https://example.com/", secretRef={}), ("spec.commitCallback.secretRef.name", "Required value")),
    (
        "no-time",
        to("https://example.com/", timeoutSeconds=0),
        ("spec.commitCallback.timeoutSeconds", "greater than or equal to 1"),
    ),
    (
        "much-time",
        to("https://example.com/", timeoutSeconds=61),
        ("spec.commitCallback.timeoutSeconds", "less than or equal to 60"),
    ),
]


@pytest.mark.parametrize(("spec", "words"), [pytest.param(spec, words, id=name) for name, spec, words in REFUSED])
def test_a_refusal_names_field_value_and_rule(
    light_cluster: Cluster, spec: dict[str, Any], words: tuple[str, ...]
) -> None:
    message = light_cluster.refused(table("default", name="refused", **spec))
    for word in words:
        assert word in message


def test_a_refusal_does_not_repeat_a_password(light_cluster: Cluster) -> None:
    url = "https://someone:passw0rd@example.com/"
    done = light_cluster.run(
        "create",
        "--dry-run=server",
        "--validate=false",
        "-f",
        "-",
        stdin=_yaml(table("default", name="refused", **to(url))),
    )
    assert done.returncode != 0
    assert FORM in done.stdout
    assert "url is '(contains @ or white space)'" in done.stdout


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com:8443/hooks/a-b_c~d?x=1&y=%20",
        "https://203.0.113.7/",
        "https://[2001:db8::7]:8443/",
        "http://commits.lake.svc:8080/hudi",
        "http://commits.lake.svc.cluster.local",
        "https://svc.example.com/",
        "https://metadata-of-tables.example.com/",
    ],
)
def test_what_is_accepted(light_cluster: Cluster, url: str) -> None:
    light_cluster.kubectl(
        "create",
        "--dry-run=server",
        "-f",
        "-",
        stdin=_yaml(table("default", **to(url, secretRef={"name": "receiver"}))),
    )


def test_defaults(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(table(namespace, name="told", **to("https://example.com/")))
    wanted = {"url": "https://example.com/", "timeoutSeconds": 10, "tableServices": False}
    assert light_cluster.get("huditable", "told", "-n", namespace)["spec"]["commitCallback"] == wanted


def _yaml(found: dict[str, Any]) -> str:
    return str(quick_yaml.dump(found))
