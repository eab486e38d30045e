from typing import Any

import pytest
import yaml

from hudi_operator.model.config import ConfigError, OperatorConfig

SAMPLE = """
etcd: {endpoints: ["https://etcd-0:2379", "https://etcd-1:2379"], prefix: /hudi, \
caFile: /c/ca.crt, certFile: /c/tls.crt, keyFile: /c/tls.key}
podEtcd: {endpoints: ["https://etcd:2379"], caFile: /c/gateway.crt}
sparkImage: localhost/hudi-operator/spark:dev
allowedSchemes: [s3a, gs]
pathPrefixes: {lake: ["s3a://lake/"]}
options: {allow: ["hoodie.x.*"]}
agent: {memory: 1Gi, resources: {limits: {memory: 2Gi}}}
watchNamespaces: [lake]
leaderElection: {enabled: false, leaseName: x, leaseDurationSeconds: 20, \
renewDeadlineSeconds: 15, retryPeriodSeconds: 1.5}
metricsPort: 1
probePort: 2
"""


def test_sample() -> None:
    found = OperatorConfig.from_dict(yaml.safe_load(SAMPLE))
    assert found.etcd.endpoints == ("https://etcd-0:2379", "https://etcd-1:2379")
    assert found.path_prefixes == {"lake": ("s3a://lake/",)}
    assert found.option_patterns == ("hoodie.x.*",)
    assert found.agent.memory == "1Gi"
    assert found.leader_election.retry_period_seconds == 1.5
    assert not found.leader_election.enabled


def test_nothing_means_defaults() -> None:
    assert OperatorConfig.from_dict(None) == OperatorConfig()
    assert OperatorConfig.from_dict({}).allowed_schemes == ("s3a", "hdfs", "gs")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ([], "config"),
        ({"etcdd": {}}, "etcdd"),
        ({"etcd": {"endpoint": "x"}}, "endpoint"),
        ({"etcd": {"endpoints": []}}, "etcd.endpoints"),
        ({"etcd": {"endpoints": ["etcd:2379"]}}, "etcd.endpoints"),
        ({"etcd": {"prefix": "hudi"}}, "etcd.prefix"),
        ({"etcd": {"prefix": "/hudi/"}}, "etcd.prefix"),
        ({"allowedSchemes": "s3a"}, "allowedSchemes"),
        ({"metricsPort": "80"}, "metricsPort"),
        ({"agent": {"memory": 5}}, "agent.memory"),
        (
            {"agent": {"memory": "512m"}},
            "agent.memory: expected a whole number and Mi or Gi, such as 512Mi, found '512m'",
        ),
        ({"metrics": {"certFile": "/x"}}, "metrics: certFile and keyFile"),
        ({"metrics": {"clientCaFile": "/x"}}, "metrics.clientCaFile"),
        ({"metrics": {"token": "secret"}}, "metrics: unknown setting token"),
        ({"networkPolicies": {"enabled": "yes"}}, "networkPolicies.enabled"),
        ({"networkPolicies": {"egress": ["x"]}}, "networkPolicies.egress"),
        ({"tmpSizeLimit": "64G"}, "config.tmpSizeLimit"),
        (
            {"driverAnnotations": {"hudioperator.io/hudi-defaults": "x"}},
            "config.driverAnnotations: hudioperator.io/hudi-defaults: annotations of hudioperator.io",
        ),
        (
            {"agentAnnotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}},
            "config.agentAnnotations: sec",
        ),
        (
            {"driverAnnotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": False}},
            "expected a text in quotes, found False",
        ),
        ({"driverAnnotations": {"a b": "c"}}, "config.driverAnnotations: 'a b' is not the name of an annotation"),
        ({"driverAnnotations": ["a"]}, "config.driverAnnotations: expected a mapping"),
        ({"userIds": "185"}, "config.userIds: expected Image or Platform, found '185'"),
        ({"consentBinding": {"role": "r", "namespace": "n"}}, "consentBinding: role, serviceAccount and namespace"),
        ({"leaderElection": {"renewDeadlineSeconds": 30}}, "leaderElection"),
        ({"leaderElection": {"leaseDuration": 30}}, "leaseDuration"),
    ],
)
def test_errors_name_the_setting(raw: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        OperatorConfig.from_dict(raw)
