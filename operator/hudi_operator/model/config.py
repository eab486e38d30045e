"""The operator's configuration file (docs/design/contracts.md §8) as a typed value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, cast

from hudi_operator.api.fields import SIZE
from hudi_operator.api.pod_template import OWN_ANNOTATIONS

JsonDict = dict[str, Any]
_T = TypeVar("_T")


LONGEST_SECONDS = 3600
"""Upper limit of a store's times to forget credentials and to end a request."""
KEPT = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""The cluster autoscaler keeps the node of such a pod: its written files would be lost."""
_ANNOTATION = r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
MIRROR = r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*/?"


class ConfigError(ValueError):
    """The configuration cannot be used; the message names the setting."""


@dataclass(frozen=True)
class EtcdConfig:
    """Connection of the operator itself; ``prefix`` is the ``P`` of docs/design/contracts.md §1.

    Empty file names: no TLS (tests).
    """

    endpoints: tuple[str, ...] = ("https://etcd:2379",)
    prefix: str = "/hudi"
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    allow_unauthenticated: bool = field(default=False, kw_only=True)
    """Serve tables although authentication is not enabled in etcd."""


@dataclass(frozen=True)
class PodEtcdConfig:
    """Connection of drivers and agents: the gateway before etcd, as seen from table namespaces.

    ``ca_file``: the authority of its certificates, copied into those namespaces. Pods show the
    token that the kubelet projects into them.
    """

    endpoints: tuple[str, ...] = ("https://etcd:2379",)
    ca_file: str = "/etc/hudi-operator/etcd/ca.crt"


@dataclass(frozen=True)
class AgentConfig:
    """Size of agent pods, and of what one agent serves.

    ``memory`` is the JVM's heap, ``resources`` are the container's, ``java_options`` the JVM's.
    ``max_tables``: limit on the tables of one agent; further tables with the same access to storage
    get another one.
    """

    memory: str = "512Mi"
    max_tables: int = 200
    java_options: tuple[str, ...] = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    resources: JsonDict = field(
        default_factory=lambda: {
            "requests": {"cpu": "100m", "memory": "768Mi"},
            "limits": {"memory": "1536Mi"},
        }
    )


@dataclass(frozen=True)
class ConsentConfig:
    """Whether Secrets and ServiceAccounts must say which tables may use them.

    They say it in the annotation ``hudioperator.io/allowed-tables``. ``Required``: one without the
    annotation is refused; ``Optional``: it may be used by any table; ``Off``: it is not read.
    """

    secrets: str = "Off"
    service_accounts: str = "Off"

    @property
    def by_kind(self) -> dict[str, str]:
        """The same by kind of object."""
        return {"Secret": self.secrets, "ServiceAccount": self.service_accounts}


@dataclass(frozen=True)
class ConsentBindingConfig:
    """Settings by which the operator gets the right to read Secrets if its own role lacks it.

    Empty ``role``: the operator's role has it, or it reads no Secrets.
    """

    role: str = ""
    """ClusterRole with that right, which the operator binds to itself in namespaces with tables."""
    service_account: str = ""
    """The operator's own."""
    namespace: str = ""
    """Namespace of that account."""

    @property
    def given(self) -> bool:
        """True when the operator binds the role."""
        return bool(self.role)


@dataclass(frozen=True)
class LeaderElectionConfig:
    """Leader election, seconds."""

    enabled: bool = True
    lease_name: str = "hudi-operator-leader"
    lease_duration_seconds: float = 10.0
    renew_deadline_seconds: float = 7.0
    retry_period_seconds: float = 2.0


@dataclass(frozen=True)
class MetricsConfig:
    """Access control of the metrics; empty file names: everybody who reaches the port.

    The files are read again when they change.
    """

    token_file: str = ""
    """A bearer token that requests must carry."""
    cert_file: str = ""
    key_file: str = ""
    client_ca_file: str = ""
    """With TLS: clients need a certificate of this authority."""


@dataclass(frozen=True)
class CredentialsBrokerConfig:
    """Broker that gives attempts their storage credentials, and the store that checks them.

    Empty ``url``: there is no broker, and ``fencing.mode: Credentials`` is refused.
    """

    url: str = ""
    token_file: str = ""
    """Bearer token for the broker, read for each request."""
    ca_file: str = ""
    """Authority of its certificate; empty: the system's."""
    store_endpoint: str = ""
    """The store of these credentials: what HudiTables have as ``fs.s3a.endpoint``."""
    store_ca_file: str = ""
    region: str = "us-east-1"
    identity_cache_seconds: int = 120
    """Seconds for which a server of the store may accept revoked credentials."""
    request_seconds: int = 200
    """Seconds for which the store may continue a request that it has begun."""

    @property
    def given(self) -> bool:
        """True when there is a broker."""
        return bool(self.url)


@dataclass(frozen=True)
class NetworkPolicyConfig:
    """NetworkPolicies of drivers, executors and agents, in each namespace with tables."""

    enabled: bool = False
    egress: tuple[JsonDict, ...] = ()
    """Egress rules, as Kubernetes has them, beside the traffic among these pods; empty: all."""


@dataclass(frozen=True)
class OperatorConfig:
    """All settings of an administrator."""

    etcd: EtcdConfig = EtcdConfig()
    pod_etcd: PodEtcdConfig = PodEtcdConfig()
    spark_image: str = "localhost/hudi-operator/spark:dev"
    image_pull_policy: str = "IfNotPresent"
    allowed_schemes: tuple[str, ...] = ("s3a", "hdfs", "gs")
    path_prefixes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Namespace to allowed path prefixes, ``*`` for those that are not listed; without ``*`` these
    may use any path. The prefix ``*`` allows any path.
    """
    store_endpoints: tuple[str, ...] = ("*",)
    """Stores of tables inside a prefix that several namespaces may use: endpoints of S3, ``cloud``
    for tables that name none, ``*`` for any.
    """
    allowed_images: tuple[str, ...] = ("*",)
    """Images that a HudiTable may name beside ``spark_image``; a final ``*`` matches anything."""
    maven_mirror: str = ""
    """Maven repository from which drivers get ``deps.packages``; empty: packages are refused."""
    consent: ConsentConfig = ConsentConfig()
    consent_binding: ConsentBindingConfig = ConsentBindingConfig()
    option_patterns: tuple[str, ...] = ()
    """``options.allow``: Hudi options that writers may set beside the shipped allow-list."""
    agent: AgentConfig = field(default_factory=AgentConfig)
    watch_namespaces: tuple[str, ...] = ()
    """Empty: all namespaces."""
    driver_role: str = "hudi-operator-driver"
    """ClusterRole with the rights of drivers and agents that have executors; its name is the
    release's.
    """
    leader_election: LeaderElectionConfig = LeaderElectionConfig()
    metrics_port: int = 9090
    probe_port: int = 8080
    metrics: MetricsConfig = MetricsConfig()
    network_policies: NetworkPolicyConfig = NetworkPolicyConfig()
    credentials_broker: CredentialsBrokerConfig = CredentialsBrokerConfig()
    driver_annotations: Mapping[str, str] = field(default_factory=lambda: dict(KEPT))
    """Annotations of new drivers and executors of writers; those of a podTemplate come first."""
    agent_annotations: Mapping[str, str] = field(default_factory=dict)
    """The same of agents and their executors."""
    tmp_size_limit: str = "64Gi"
    """Size of ``/tmp`` of drivers, executors and agents, where Spark spills and shuffles."""
    user_ids: str = "Image"
    """``Image``: pods run as the user that the image is made for. ``Platform``: they name no users
    and groups, which the platform's admission adds.
    """

    @classmethod
    def from_dict(cls, raw: object) -> OperatorConfig:
        """Parse the content of ``config.yaml``.

        Raises ConfigError for an unknown or unusable setting.
        """
        data = _mapping(raw, "config")
        _known(data, _TOP, "config")
        leader = _section(data, "leaderElection", LeaderElectionConfig)
        return cls(
            etcd=_etcd(data),
            pod_etcd=_pod_etcd(data),
            spark_image=_value(data, "sparkImage", str, cls.spark_image, "config"),
            image_pull_policy=_value(data, "imagePullPolicy", str, cls.image_pull_policy, "config"),
            allowed_schemes=_strings(data, "allowedSchemes", cls.allowed_schemes, "config"),
            allowed_images=_strings(data, "allowedImages", cls.allowed_images, "config"),
            maven_mirror=_check_mirror(_value(data, "mavenMirror", str, cls.maven_mirror, "config")),
            consent=_check_consent(ConsentConfig(**_section(data, "consent", ConsentConfig))),
            consent_binding=_check_consent_binding(
                ConsentBindingConfig(**_section(data, "consentBinding", ConsentBindingConfig))
            ),
            path_prefixes={
                ns: _strings({ns: items}, ns, (), "pathPrefixes")
                for ns, items in _mapping(data.get("pathPrefixes"), "pathPrefixes").items()
            },
            store_endpoints=_strings(data, "storeEndpoints", cls.store_endpoints, "config"),
            option_patterns=_strings(_mapping(data.get("options"), "options"), "allow", (), "options"),
            agent=_check_agent(AgentConfig(**_section(data, "agent", AgentConfig))),
            watch_namespaces=_strings(data, "watchNamespaces", (), "config"),
            driver_role=_value(data, "driverRole", str, cls.driver_role, "config"),
            leader_election=_check_leader(LeaderElectionConfig(**leader)),
            metrics_port=_value(data, "metricsPort", int, cls.metrics_port, "config"),
            probe_port=_value(data, "probePort", int, cls.probe_port, "config"),
            metrics=_check_metrics(MetricsConfig(**_section(data, "metrics", MetricsConfig))),
            network_policies=_network_policies(data),
            credentials_broker=_check_broker(
                CredentialsBrokerConfig(**_section(data, "credentialsBroker", CredentialsBrokerConfig))
            ),
            driver_annotations=_annotations(data, "driverAnnotations", KEPT),
            agent_annotations=_annotations(data, "agentAnnotations", {}),
            tmp_size_limit=_check_size(
                _value(data, "tmpSizeLimit", str, cls.tmp_size_limit, "config"), "config.tmpSizeLimit"
            ),
            user_ids=_check_user_ids(_value(data, "userIds", str, cls.user_ids, "config")),
        )


RELOADED: Mapping[str, str] = {
    "allowed_schemes": "allowedSchemes",
    "path_prefixes": "pathPrefixes",
    "store_endpoints": "storeEndpoints",
    "allowed_images": "allowedImages",
    "consent": "consent",
    "option_patterns": "options",
    "agent": "agent",
    "image_pull_policy": "imagePullPolicy",
    "network_policies": "networkPolicies",
    "driver_annotations": "driverAnnotations",
    "agent_annotations": "agentAnnotations",
    "tmp_size_limit": "tmpSizeLimit",
    "user_ids": "userIds",
}
"""Settings that count from the next look at each table, by field. Others need another process: what
is connected, served or watched with them was made at its start.
"""


def reloaded(now: OperatorConfig, read: OperatorConfig) -> tuple[OperatorConfig, tuple[str, ...]]:
    """The configuration in force when the file has become ``read``.

    And the settings that differ there and count only for another process.
    """
    changed = [f.name for f in fields(OperatorConfig) if getattr(now, f.name) != getattr(read, f.name)]
    taken = {name: getattr(read, name) for name in changed if name in RELOADED}
    return replace(now, **taken), tuple(_camel(name) for name in changed if name not in RELOADED)


_TOP = [
    "etcd",
    "podEtcd",
    "sparkImage",
    "imagePullPolicy",
    "allowedSchemes",
    "pathPrefixes",
    "storeEndpoints",
    "allowedImages",
    "mavenMirror",
    "consent",
    "consentBinding",
    "options",
    "agent",
    "watchNamespaces",
    "driverRole",
    "leaderElection",
    "metricsPort",
    "probePort",
    "metrics",
    "networkPolicies",
    "credentialsBroker",
    "driverAnnotations",
    "agentAnnotations",
    "tmpSizeLimit",
    "userIds",
]


def _mapping(raw: object, where: str) -> JsonDict:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{where}: expected a mapping, found {raw!r}")
    return {str(k): v for k, v in raw.items()}


def _known(data: JsonDict, names: list[str], where: str) -> None:
    unknown = sorted(set(data) - set(names))
    if unknown:
        raise ConfigError(f"{where}: unknown setting {', '.join(unknown)}; known: {', '.join(names)}")


def _value(data: JsonDict, key: str, kind: type[_T], default: _T, where: str) -> _T:
    value = data.get(key)
    if value is None:
        return default
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return cast(_T, float(value))
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ConfigError(f"{where}.{key}: expected {kind.__name__}, found {value!r}")
    return value


def _strings(data: JsonDict, key: str, default: tuple[str, ...], where: str) -> tuple[str, ...]:
    items = data.get(key)
    if items is None:
        return default
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ConfigError(f"{where}.{key}: expected a list of strings, found {items!r}")
    return tuple(items)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _section(data: JsonDict, key: str, kind: type[Any]) -> dict[str, Any]:
    """Keyword arguments of a dataclass from a section with camel-case names.

    They are typed by the dataclass's defaults.
    """
    raw, default = _mapping(data.get(key), key), kind()
    names = {_camel(f.name): f.name for f in fields(kind)}
    _known(raw, list(names), key)
    return {names[k]: _field(raw, k, getattr(default, names[k]), key) for k in raw}


def _field(raw: JsonDict, key: str, default: object, where: str) -> object:
    return (
        _strings(raw, key, default, where)
        if isinstance(default, tuple)
        else _value(raw, key, type(default), default, where)
    )


def _endpoints(data: JsonDict, default: tuple[str, ...], where: str) -> tuple[str, ...]:
    endpoints = _strings(data, "endpoints", default, where)
    if not endpoints or not all(e.startswith(("https://", "http://")) for e in endpoints):
        raise ConfigError(f"{where}.endpoints: expected at least one https://host:port, found {list(endpoints)!r}")
    return endpoints


def _etcd(data: JsonDict) -> EtcdConfig:
    raw, default = _mapping(data.get("etcd"), "etcd"), EtcdConfig()
    _known(raw, ["endpoints", "prefix", "caFile", "certFile", "keyFile", "allowUnauthenticated"], "etcd")
    prefix = _value(raw, "prefix", str, default.prefix, "etcd")
    if not prefix.startswith("/") or prefix.endswith("/") or "//" in prefix:
        raise ConfigError(f"etcd.prefix: must start with / and not end with one, found {prefix!r}")
    return EtcdConfig(
        endpoints=_endpoints(raw, default.endpoints, "etcd"),
        prefix=prefix,
        ca_file=_value(raw, "caFile", str, "", "etcd"),
        cert_file=_value(raw, "certFile", str, "", "etcd"),
        key_file=_value(raw, "keyFile", str, "", "etcd"),
        allow_unauthenticated=_value(raw, "allowUnauthenticated", bool, False, "etcd"),
    )


def _pod_etcd(data: JsonDict) -> PodEtcdConfig:
    raw, default = _mapping(data.get("podEtcd"), "podEtcd"), PodEtcdConfig()
    _known(raw, ["endpoints", "caFile"], "podEtcd")
    return PodEtcdConfig(
        endpoints=_endpoints(raw, default.endpoints, "podEtcd"),
        ca_file=_value(raw, "caFile", str, default.ca_file, "podEtcd"),
    )


def _check_agent(agent: AgentConfig) -> AgentConfig:
    _check_size(agent.memory, "agent.memory")
    if agent.max_tables < 1:
        raise ConfigError(f"agent.maxTables: must be 1 or more, found {agent.max_tables}")
    return agent


def _check_consent(consent: ConsentConfig) -> ConsentConfig:
    for kind, rule in consent.by_kind.items():
        if rule not in ("Required", "Optional", "Off"):
            raise ConfigError(f"consent: for {kind}: expected Required, Optional or Off, found {rule!r}")
    return consent


def _check_consent_binding(binding: ConsentBindingConfig) -> ConsentBindingConfig:
    if any((binding.role, binding.service_account, binding.namespace)) and not all(
        (binding.role, binding.service_account, binding.namespace)
    ):
        raise ConfigError("consentBinding: role, serviceAccount and namespace belong together")
    return binding


def _check_size(size: str, where: str) -> str:
    if not re.fullmatch(SIZE, size):
        raise ConfigError(f"{where}: expected a whole number and Mi or Gi, such as 512Mi, found {size!r}")
    return size


def _check_mirror(url: str) -> str:
    if url and not re.fullmatch(MIRROR, url):
        raise ConfigError(f"config.mavenMirror: expected an http or https URL without user or password, found {url!r}")
    return url


def _check_user_ids(user_ids: str) -> str:
    if user_ids not in ("Image", "Platform"):
        raise ConfigError(f"config.userIds: expected Image or Platform, found {user_ids!r}")
    return user_ids


def _annotations(data: JsonDict, key: str, default: Mapping[str, str]) -> Mapping[str, str]:
    """Annotations that pods get beside the operator's own, which are refused."""
    if data.get(key) is None:
        return dict(default)
    found = _mapping(data[key], f"config.{key}")
    for name, value in found.items():
        if not re.fullmatch(_ANNOTATION, name):
            raise ConfigError(f"config.{key}: {name!r} is not the name of an annotation")
        if re.fullmatch(OWN_ANNOTATIONS, name, re.DOTALL):
            raise ConfigError(
                f"config.{key}: {name}: annotations of hudioperator.io, seccomp and AppArmor are the operator's"
            )
        if not isinstance(value, str):
            raise ConfigError(f"config.{key}: {name}: expected a text in quotes, found {value!r}")
    return found


def _check_metrics(metrics: MetricsConfig) -> MetricsConfig:
    if bool(metrics.cert_file) != bool(metrics.key_file):
        raise ConfigError("metrics: certFile and keyFile belong together")
    if metrics.client_ca_file and not metrics.cert_file:
        raise ConfigError("metrics.clientCaFile: clients show certificates only with TLS (certFile, keyFile)")
    return metrics


def _check_broker(broker: CredentialsBrokerConfig) -> CredentialsBrokerConfig:
    if not broker.given:
        return broker
    for name, url in (("url", broker.url), ("storeEndpoint", broker.store_endpoint)):
        if not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._/-]*)?", url):
            raise ConfigError(f"credentialsBroker.{name}: expected https://host:port, found {url!r}")
    if not re.fullmatch(r"[a-z0-9-]+", broker.region):
        raise ConfigError(f"credentialsBroker.region: expected a name such as us-east-1, found {broker.region!r}")
    for name, seconds in (
        ("identityCacheSeconds", broker.identity_cache_seconds),
        ("requestSeconds", broker.request_seconds),
    ):
        if not 1 <= seconds <= LONGEST_SECONDS:
            raise ConfigError(f"credentialsBroker.{name}: must be 1 to {LONGEST_SECONDS}, found {seconds}")
    return broker


def _network_policies(data: JsonDict) -> NetworkPolicyConfig:
    raw = _mapping(data.get("networkPolicies"), "networkPolicies")
    _known(raw, ["enabled", "egress"], "networkPolicies")
    rules = raw.get("egress") or []
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise ConfigError(f"networkPolicies.egress: expected a list of rules, found {rules!r}")
    enabled = _value(raw, "enabled", bool, default=False, where="networkPolicies")
    return NetworkPolicyConfig(enabled=enabled, egress=tuple(rules))


def _check_leader(leader: LeaderElectionConfig) -> LeaderElectionConfig:
    if not leader.retry_period_seconds < leader.renew_deadline_seconds < leader.lease_duration_seconds:
        raise ConfigError("leaderElection: retryPeriodSeconds < renewDeadlineSeconds < leaseDurationSeconds must hold")
    return leader
