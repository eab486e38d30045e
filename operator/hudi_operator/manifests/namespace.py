"""Objects that the operator keeps in each namespace with tables.

How pods trust the gateway before etcd, service accounts, the drivers' rights, and who reaches which
pod.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hudi_contract import naming
from hudi_operator.manifests.spark_conf import AGENT_SERVICE_ACCOUNT, DRIVER_SERVICE_ACCOUNT
from hudi_operator.model.config import ConsentBindingConfig, NetworkPolicyConfig, OperatorConfig

JsonDict = dict[str, Any]

ETCD_CONFIG_MAP = "hudi-operator-etcd"
"""Holds the certificate authority of the gateway, which is no secret."""
ETCD_AUDIENCE = "hudi-operator-etcd"
"""Audience of the tokens that pods show to the gateway; no other server accepts them."""


def namespace_objects(
    namespace: str,
    config: OperatorConfig,
    etcd_authority: str,
    service_accounts: Iterable[str] = (),
) -> list[JsonDict]:
    """ConfigMap, ServiceAccounts, RoleBindings and NetworkPolicies of one namespace.

    ``etcd_authority`` is the content of ``podEtcd.caFile``; no ConfigMap is made when it is empty
    (etcd without TLS, tests only). ``service_accounts``: accounts that tables name for
    their drivers; they need the same rights.
    """
    objects: list[JsonDict] = []
    if etcd_authority:
        objects.append(authority_config_map(namespace, etcd_authority))
    objects.extend(_service_account(namespace, name) for name in (DRIVER_SERVICE_ACCOUNT, AGENT_SERVICE_ACCOUNT))
    objects.append(_role_binding(namespace, DRIVER_SERVICE_ACCOUNT, DRIVER_SERVICE_ACCOUNT, config.driver_role))
    # One binding per account: tables of one namespace must not remove each other's accounts from a
    # shared binding.
    objects.extend(
        _role_binding(namespace, _binding_name(name), name, config.driver_role)
        for name in sorted(set(service_accounts) - {DRIVER_SERVICE_ACCOUNT, AGENT_SERVICE_ACCOUNT, ""})
    )
    if config.consent_binding.given:
        objects.append(consent_binding(namespace, config.consent_binding))
    if config.network_policies.enabled:
        objects.extend(
            _network_policy(namespace, role, peers, config.network_policies) for role, peers in _REACHED_BY.items()
        )
    return objects


_REACHED_BY = {
    naming.ROLE_DRIVER: (naming.ROLE_EXECUTOR,),
    naming.ROLE_EXECUTOR: (naming.ROLE_DRIVER, naming.ROLE_AGENT, naming.ROLE_EXECUTOR),
    naming.ROLE_AGENT: (naming.ROLE_EXECUTOR,),
}
"""Roles that open connections to each role, for Spark's RPC and its shuffle. No others need to."""


def _network_policy(namespace: str, role: str, peers: tuple[str, ...], config: NetworkPolicyConfig) -> JsonDict:
    """Reached by ``peers`` of the same namespace only.

    Connections of the pod's own node, such as the kubelet's, are always let in by Kubernetes.
    """
    spec: JsonDict = {
        "podSelector": _of((role,)),
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": _of(peers)}]}],
    }
    if config.egress:
        spec["policyTypes"] = ["Ingress", "Egress"]
        spec["egress"] = [{"to": [{"podSelector": _of(tuple(_REACHED_BY))}]}, *config.egress]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(namespace, f"hudi-{role}"),
        "spec": spec,
    }


def _of(roles: tuple[str, ...]) -> JsonDict:
    """Selects pods by labels that all pods of the operator carry, executors by Spark's template."""
    return {
        "matchLabels": {**naming.MANAGED},
        "matchExpressions": [{"key": naming.LABEL_COMPONENT, "operator": "In", "values": list(roles)}],
    }


def _metadata(namespace: str, name: str) -> JsonDict:
    return {"name": name, "namespace": namespace, "labels": naming.common_labels("namespace")}


def authority_config_map(namespace: str, authority: str) -> JsonDict:
    """Authority of the gateway before etcd, for pods of the namespace; running pods reread it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(namespace, ETCD_CONFIG_MAP),
        "data": {"ca.crt": authority},
    }


def _service_account(namespace: str, name: str) -> JsonDict:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(namespace, name),
        # Only drivers and agents with executors use the API server; their pods request the token.
        "automountServiceAccountToken": False,
    }


def consent_binding(namespace: str, config: ConsentBindingConfig) -> JsonDict:
    """The operator's own right to read Secrets of a namespace with tables."""
    return _role_binding(namespace, config.role, config.service_account, config.role, of=config.namespace)


def _role_binding(namespace: str, name: str, service_account: str, role: str, *, of: str = "") -> JsonDict:
    """``of``: the account's namespace; empty: the binding's own."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(namespace, name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": service_account, "namespace": of or namespace}],
    }


def bound_account(binding: JsonDict, role: str) -> str:
    """The account to which a table's own RoleBinding gives the role of drivers.

    Empty: the object is not one that the operator makes for accounts of tables, or somebody has
    changed it.
    """
    meta, subjects = binding["metadata"], binding.get("subjects") or [{}]
    account = str(subjects[0].get("name") or "")
    made = _role_binding(meta["namespace"], _binding_name(account), account, role)
    same = all(binding.get(part) == made[part] for part in ("roleRef", "subjects"))
    own = naming.MANAGED.items() <= (meta.get("labels") or {}).items()
    return account if same and own and meta["name"] == made["metadata"]["name"] else ""


def _binding_name(account: str) -> str:
    return f"{DRIVER_SERVICE_ACCOUNT}-{account}"
