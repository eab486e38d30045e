"""What of the configuration counts without a restart."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pytest

from hudi_operator.model.config import RELOADED, OperatorConfig, reloaded
from tests.support import ROOT

NOW = OperatorConfig.from_dict({})
OTHER = OperatorConfig.from_dict(
    {
        "etcd": {"prefix": "/other"},
        "podEtcd": {"caFile": "/x"},
        "sparkImage": "x",
        "imagePullPolicy": "Always",
        "allowedSchemes": ["gs"],
        "pathPrefixes": {"a": ["s3a://b/"]},
        "storeEndpoints": ["cloud"],
        "allowedImages": ["x"],
        "consent": {"secrets": "Required"},
        "consentBinding": {"role": "r", "serviceAccount": "s", "namespace": "n"},
        "options": {"allow": ["x"]},
        "agent": {"maxTables": 3},
        "watchNamespaces": ["a"],
        "driverRole": "x",
        "leaderElection": {"leaseName": "x"},
        "metricsPort": 1,
        "probePort": 2,
        "metrics": {"tokenFile": "/x"},
        "networkPolicies": {"enabled": True},
        "credentialsBroker": {"url": "https://b", "storeEndpoint": "https://s"},
        "driverAnnotations": {"a": "b"},
        "agentAnnotations": {"a": "b"},
        "tmpSizeLimit": "1Gi",
        "userIds": "Platform",
        "mavenMirror": "https://mirror.example/maven2",
    }
)


@pytest.mark.parametrize("name", [field.name for field in fields(OperatorConfig)])
def test_a_setting_counts_at_once_or_needs_a_restart(name: str) -> None:
    other = replace(NOW, **{name: getattr(OTHER, name)})
    assert other != NOW, "each setting has another value here"
    found, waiting = reloaded(NOW, other)
    assert (found == other, bool(waiting)) == ((True, False) if name in RELOADED else (False, True))


def test_the_rest_of_a_file_counts_also_beside_what_needs_a_restart() -> None:
    found, waiting = reloaded(NOW, OTHER)
    assert found.allowed_schemes == ("gs",)
    assert found.etcd == NOW.etcd
    assert set(waiting) >= {"etcd", "podEtcd", "sparkImage", "watchNamespaces", "leaderElection", "credentialsBroker"}


def test_the_chart_restarts_for_the_rest_alone() -> None:
    """A setting that the chart leaves out of the hash and the operator does not read again would
    count for nobody.
    """
    text = (ROOT / "charts/hudi-operator/templates/_names.tpl").read_text()
    omitted = re.search(r"omit \(index \$config\.data \"config\.yaml\" \| fromYaml\) (.*) \| toJson", text)
    assert omitted is not None
    assert {word.strip('"') for word in omitted[1].split()} == set(RELOADED.values())
