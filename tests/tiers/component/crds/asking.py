"""Objects put to an API server as `kubectl create --dry-run=server` and the first `kubectl apply`
put them, without a process for each: the tests of this folder send hundreds of objects.

`kubectl` itself is asked by the tests that show what a user sees, and wherever an object is there.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from kubernetes import client, config
from urllib3 import HTTPHeaderDict

JsonDict = dict[str, Any]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@functools.cache
def _connection(kubeconfig: Path) -> client.ApiClient:
    return config.new_client_from_config(str(kubeconfig))


@functools.cache
def _kinds(kubeconfig: Path, api_version: str) -> dict[str, tuple[str, bool]]:
    """Name of the resource of each kind, and whether it lies in a namespace."""
    code, found = _request(kubeconfig, "GET", _group(api_version), [])
    assert code == 200, found
    return {r["kind"]: (r["name"], r["namespaced"]) for r in found["resources"] if "/" not in r["name"]}


def _group(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _request(
    kubeconfig: Path, method: str, path: str, headers: list[tuple[str, str]], body: JsonDict | None = None
) -> tuple[int, JsonDict]:
    connection = _connection(kubeconfig)
    authorized = connection.configuration.auth_settings().values()
    answer = connection.rest_client.pool_manager.request(
        method,
        connection.configuration.host + path,
        headers=HTTPHeaderDict(
            [("Content-Type", "application/json"), *((way["key"], way["value"]) for way in authorized), *headers]
        ),
        body=json.dumps(body).encode() if body is not None else None,
        timeout=60,
    )
    return answer.status, json.loads(answer.data)


def may(kubeconfig: Path, user: str, namespace: str, rule: JsonDict) -> bool:
    """Whether the authorizer lets a user do what a rule of a Role says (its first of each)."""
    asked = {
        "namespace": namespace,
        "verb": rule["verbs"][0],
        "group": rule["apiGroups"][0],
        "resource": rule["resources"][0],
        "name": next(iter(rule.get("resourceNames", [])), ""),
    }
    version = "authorization.k8s.io/v1"
    spec = {"user": user, "resourceAttributes": asked}
    review = {"apiVersion": version, "kind": "SubjectAccessReview", "spec": spec}
    code, found = _request(kubeconfig, "POST", f"{_group(version)}/subjectaccessreviews", [], review)
    assert code == 201, found
    return bool(found["status"]["allowed"])


def create(
    kubeconfig: Path, obj: JsonDict, *, user: str = "", groups: tuple[str, ...] = (), validate: str = "Strict"
) -> tuple[int, str]:
    """The answer to a create that leaves nothing behind: HTTP's status, and kubectl's words.

    ``validate`` is what kubectl's ``--validate`` is: Strict, Warn or Ignore.
    """
    code, found = _post(kubeconfig, obj, f"dryRun=All&fieldValidation={validate}", user, groups)
    if code < 300:
        return code, f"{obj['kind'].lower()}/{found['metadata']['name']} created (server dry run)\n"
    return code, f"Error from server ({found.get('reason')}): {found['message']}"


def made(kubeconfig: Path, obj: JsonDict, *, user: str = "", groups: tuple[str, ...] = ()) -> bool:
    """Create an object as `kubectl apply` does, with the annotation for the next `kubectl apply`;
    whether it was created.
    """
    try:
        namespaced = _kinds(kubeconfig, obj["apiVersion"])[obj["kind"]][1]
    except (AssertionError, KeyError):  # not served yet: kubectl says so
        return False
    meta = {"annotations": {}, **({"namespace": "default"} if namespaced else {}), **obj["metadata"]}
    last = json.dumps({**obj, "metadata": meta}, separators=(",", ":"), sort_keys=True) + "\n"
    meta = {**meta, "annotations": {**meta["annotations"], LAST_APPLIED: last}}
    options = "fieldManager=kubectl-client-side-apply&fieldValidation=Strict"
    return _post(kubeconfig, {**obj, "metadata": meta}, options, user, groups)[0] == 201


def _post(kubeconfig: Path, obj: JsonDict, options: str, user: str, groups: tuple[str, ...]) -> tuple[int, JsonDict]:
    plural, namespaced = _kinds(kubeconfig, obj["apiVersion"])[obj["kind"]]
    where = f"/namespaces/{obj['metadata'].get('namespace', 'default')}" if namespaced else ""
    headers = [("Impersonate-User", user)] if user else []
    headers += [("Impersonate-Group", group) for group in groups]
    return _request(kubeconfig, "POST", f"{_group(obj['apiVersion'])}{where}/{plural}?{options}", headers, obj)
