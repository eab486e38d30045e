"""The API server through kubernetes.aio.

Live reads, writes with preconditions, every call with a deadline.

Objects are plain JSON: the generated client's models do not know our kinds, and
reject unknown fields.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
from kubernetes.aio import client, config

from hudi_contract import environment, naming
from hudi_operator.adapters.kubernetes_facts import node_facts, pod_facts
from hudi_operator.model.facts import NodeFacts, PodFacts
from hudi_operator.model.objects import table_name_of
from hudi_operator.model.ports import Conflict, Fatal, OutcomeUnknown, Refused, Retryable

JsonDict = dict[str, Any]
LOG = logging.getLogger(__name__)

FIELD_MANAGER = "hudi-operator"
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TIMEOUT_SECONDS = 15.0
EVENT_SECONDS = 3.0
"""Time-out of an event. Events are for people: settling does not wait long for them."""
DRY_RUN_SECONDS = 5.0
"""Time-out of a dry run: its answer is for people, too."""
_NO_DRY_RUN = "does not support dry run"
"""Part of the API server's message about a webhook with side effects."""
_PARALLEL_REQUESTS = 32
PAGE = 50
"""Objects of one answer to a list. Listed objects are made by tenants, and each may be as large as
the API server stores it, about 1.5 MiB (F209).
"""
_PROMPT_SECONDS = 1.0
"""An answer that took longer is too inexact for the comparison of clocks."""
_SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True)
class Resource:
    """API resource of one kind."""

    api: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str, name: str | None = None) -> str:
        """URL path of one object, or of the collection (None).

        An empty namespace means all namespaces. Raises Fatal for a name that is none.
        """
        scope = f"/namespaces/{_segment(namespace)}" if self.namespaced and namespace else ""
        return f"{self.api}{scope}/{self.plural}" + (f"/{_segment(name)}" if name is not None else "")


def _segment(name: str) -> str:
    """A name as one segment of a path, whatever it contains."""
    if name in ("", ".", ".."):
        raise Fatal(f"{name!r} is no name of an object")
    return quote(name, safe="")


RESOURCES = {
    "Pod": Resource("/api/v1", "pods"),
    "ConfigMap": Resource("/api/v1", "configmaps"),
    "Secret": Resource("/api/v1", "secrets"),
    "ServiceAccount": Resource("/api/v1", "serviceaccounts"),
    "Namespace": Resource("/api/v1", "namespaces", namespaced=False),
    "Node": Resource("/api/v1", "nodes", namespaced=False),
    "RoleBinding": Resource("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "NetworkPolicy": Resource("/apis/networking.k8s.io/v1", "networkpolicies"),
    "Lease": Resource("/apis/coordination.k8s.io/v1", "leases"),
    "Event": Resource("/apis/events.k8s.io/v1", "events"),
    naming.TABLE_KIND: Resource(f"/apis/{naming.API_VERSION}", "huditables"),
    naming.WRITER_KIND: Resource(f"/apis/{naming.API_VERSION}", "hudiwriters"),
}


class ApiError(Exception):
    """An answer with an error status; it does not leave the adapters."""

    def __init__(self, status: int, message: str, *, retry_after: float | None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


async def load_configuration(context: str = "") -> client.Configuration:
    """Credentials of the pod's service account, else of KUBECONFIG. Raises Fatal."""
    configuration = client.Configuration()
    try:
        if _SERVICE_ACCOUNT_NAMESPACE.exists():
            config.load_incluster_config(client_configuration=configuration)
        else:
            await config.load_kube_config(client_configuration=configuration, context=context or None)
    except config.ConfigException as error:
        raise Fatal(f"no credentials for the API server: {error}") from error
    configuration.connection_pool_maxsize = _PARALLEL_REQUESTS
    return configuration


def own_namespace(default: str = "default") -> str:
    """Namespace of this pod (POD_NAMESPACE, or the service account's).

    ``default`` outside a cluster.
    """
    if os.environ.get(environment.POD_NAMESPACE):
        return os.environ[environment.POD_NAMESPACE]
    try:
        return _SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="utf-8").strip()
    except OSError:
        return default


class ApiServer:
    """Requests to the API server; an instance belongs to one event loop."""

    def __init__(
        self,
        configuration: client.Configuration,
        *,
        timeout: float = TIMEOUT_SECONDS,
        waited: Callable[[float], None] = lambda seconds: None,
        requested: Callable[[str, int, float], None] = lambda verb, status, seconds: None,
    ) -> None:
        """``timeout``: deadline of each request in seconds.

        ``waited``: told of each request how long it was held back, in seconds. ``requested``: told
        its verb, the status of the answer (0: none) and its duration.
        """
        self._client = client.ApiClient(configuration)
        self._waited, self._requested = waited, requested
        self._timeout = timeout
        self._permits = asyncio.Semaphore(_PARALLEL_REQUESTS)
        self.clock_offset_ms: int | None = None
        """Offset of the API server's wall clock from this process's, from its last prompt answer;
        None: there was none yet.
        """
        self.compared_at = 0.0
        """Time at which that answer arrived (`time.monotonic`)."""

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: float | None = None,
    ) -> JsonDict:
        """One request.

        Raises ApiError for an error status, Retryable or OutcomeUnknown when there is no answer.
        """
        headers = {"Accept": accept, "Content-Type": content_type}
        arguments = await self._client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        limit = aiohttp.ClientTimeout(total=timeout or self._timeout)
        asked = began = time.monotonic()
        status = 0
        try:
            async with self._permits:
                began = time.monotonic()
                sent = time.time()
                response = await self._client.call_api(*arguments, _request_timeout=limit)
                self._compare_clocks(response.getheader("Date"), sent, time.time())
                raw = await response.read()
                status = int(response.status)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            kind = Retryable if method == "GET" else OutcomeUnknown
            raise kind(f"API server: {method} {path}: {type(error).__name__}: {error}") from error
        finally:
            self._waited(began - asked)
            self._requested(method, status, time.monotonic() - began)
        if response.status >= 400:
            raise ApiError(response.status, _message(raw), retry_after=_seconds(response.getheader("Retry-After")))
        answer = json.loads(raw) if raw else {}
        return answer if isinstance(answer, dict) else {}

    def _compare_clocks(self, date: str | None, sent: float, received: float) -> None:
        # A date has whole seconds: between the two moments measured here, the server's clock was
        # between the date and one second later.
        if date and 0 <= received - sent < _PROMPT_SECONDS:
            with suppress(ValueError, TypeError):
                self.clock_offset_ms = round(
                    1000 * (parsedate_to_datetime(date).timestamp() + 0.5 - (sent + received) / 2)
                )
                self.compared_at = time.monotonic()


def _message(raw: bytes) -> str:
    try:
        return str(json.loads(raw).get("message", ""))
    except (ValueError, AttributeError):
        return raw[:200].decode(errors="replace")


def _seconds(value: str | None) -> float | None:
    """Retry-After in seconds; None when absent or a date."""
    return float(value) if value and value.isdigit() else None


def translate(error: ApiError, what: str, *, writes: bool = True) -> Exception:
    """The exception of :mod:`hudi_operator.model.ports` for an error status."""
    message = f"{what}: {error} ({error.status})"
    if writes and (reason := _refusal(error)):
        return Refused(message, reason=reason)
    if error.status == 409:
        return Conflict(message)
    if error.status in (401, 408, 410, 429):
        return Retryable(message, delay=error.retry_after)
    if error.status == 403 and "being terminated" in str(error):
        return Retryable(message, delay=10.0)
    if error.status >= 500:
        return (
            OutcomeUnknown(message, delay=error.retry_after) if writes else Retryable(message, delay=error.retry_after)
        )
    if writes and error.status in (400, 403, 413, 422):
        return Refused(message, reason="Forbidden" if error.status == 403 else "Invalid")
    return Fatal(message)


_REFUSALS = (
    ("exceeded quota", "QuotaExceeded"),
    ("failed quota", "QuotaExceeded"),
    ("status unknown for quota", "QuotaExceeded"),
    ("violates PodSecurity", "PodSecurity"),
    ("ValidatingAdmissionPolicy", "AdmissionPolicy"),
    ("admission webhook", "AdmissionWebhook"),
    ("failed calling webhook", "AdmissionWebhook"),
    ("usage per Container", "LimitRange"),
    ("usage per Pod", "LimitRange"),
)
"""Messages of the API server's admission. A webhook chooses its status itself, and one that does
not answer is an error 500: in each case the object was definitely not made.
"""


def _refusal(error: ApiError) -> str:
    """The reason of a refusal by admission; empty for every other answer."""
    return next((reason for words, reason in _REFUSALS if words in str(error)), "")


class KubernetesStore:
    """Implements :class:`hudi_operator.model.ports.KubernetesPort`."""

    def __init__(self, api: ApiServer, *, instance: str) -> None:
        """``instance`` names this replica in events."""
        self._api = api
        self._instance = instance
        self._selectable = True

    # ---- reads

    def clock_offset_ms(self, since: float = 0.0) -> int | None:
        """Milliseconds by which the API server's wall clock is ahead of this process's.

        The value is exact to about a second. None: no answer since then (`time.monotonic`) was
        prompt enough to tell.
        """
        return self._api.clock_offset_ms if self._api.compared_at >= since else None

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        """A linearizable read of one object."""
        try:
            return await self._api.request("GET", RESOURCES[kind].path(namespace, name))
        except ApiError as error:
            if error.status == 404 and "could not find the requested resource" not in str(error):
                return None
            raise translate(error, f"read {kind} {namespace}/{name}", writes=False) from error

    async def annotations(self, kind: str, namespace: str, name: str) -> Mapping[str, str] | None:
        """Annotations of one object; None when it does not exist."""
        found = await self._metadata(kind, namespace, name)
        return None if found is None else dict(found.get("annotations") or {})

    async def owners(self, kind: str, namespace: str, name: str) -> tuple[str, ...] | None:
        """Uids of an object's owners; None when it does not exist."""
        found = await self._metadata(kind, namespace, name)
        return None if found is None else tuple(owner["uid"] for owner in found.get("ownerReferences") or ())

    async def _metadata(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        """The API server is asked for the metadata alone: a Secret's values never come here."""
        try:
            found = await self._api.request("GET", RESOURCES[kind].path(namespace, name), accept=METADATA_ONLY)
        except ApiError as error:
            if error.status == 404:
                return None
            raise translate(error, f"read the metadata of {kind} {namespace}/{name}", writes=False) from error
        return found.get("metadata") or {}

    async def list_objects(self, kind: str, namespace: str, *, labels: str = "", fields: str = "") -> list[JsonDict]:
        """Every object, page by page.

        A list without resourceVersion is a quorum read of etcd, not a read from a cache (I11).
        """
        query = {key: value for key, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}
        return [{**item, "kind": item.get("kind", kind)} async for item in self._listed(kind, namespace, query)]

    async def writers(self, namespace: str, table: str) -> list[JsonDict]:
        """HudiWriters of one table: the API server is asked for no others.

        One that cannot select by the CRD's field (Kubernetes 1.30, an older CRD) is asked for all.
        """
        fields = f"spec.tableRef.name={table}" if self._selectable else ""
        try:
            found = await self.list_objects(naming.WRITER_KIND, namespace, fields=fields)
        except Fatal as error:
            answer = error.__cause__
            if not (fields and isinstance(answer, ApiError) and answer.status == 400):
                raise
            LOG.warning("each look lists the HudiWriters of a whole namespace: %s", error)
            self._selectable = False
            found = await self.list_objects(naming.WRITER_KIND, namespace)
        return [writer for writer in found if table_name_of(writer) == table]

    async def list_metadata(self, kind: str, namespace: str, *, labels: str) -> list[JsonDict]:
        """Metadata of objects by label selector: their content never comes here."""
        query = {"labelSelector": labels}
        return [item["metadata"] async for item in self._listed(kind, namespace, query, accept=METADATA_LIST)]

    async def _listed(
        self, kind: str, namespace: str, selectors: Mapping[str, str], *, accept: str = "application/json"
    ) -> AsyncIterator[JsonDict]:
        """Objects as they come; no more than one answer is kept here."""
        query = {"limit": str(PAGE), **selectors}
        while True:
            try:
                page = await self._api.request("GET", RESOURCES[kind].path(namespace), query=query, accept=accept)
            except ApiError as error:
                raise translate(error, f"list {kind} in {namespace or 'all namespaces'}", writes=False) from error
            for item in page.get("items") or ():
                yield item
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return
            query["continue"] = token

    async def pods(self, namespace: str, *, labels: str) -> list[PodFacts]:
        """Pods by label selector."""
        return [pod_facts(item) async for item in self._listed("Pod", namespace, {"labelSelector": labels})]

    async def pod(self, namespace: str, name: str) -> PodFacts | None:
        """One pod; None when it does not exist."""
        found = await self.get("Pod", namespace, name)
        return None if found is None else pod_facts(found)

    async def nodes(self, names: Sequence[str]) -> Mapping[str, NodeFacts]:
        """Named nodes that exist."""
        found = await asyncio.gather(*(self.get("Node", "", name) for name in sorted(set(names))))
        return {node["metadata"]["name"]: node_facts(node) for node in found if node is not None}

    # ---- writes

    async def create(self, manifest: JsonDict, *, timeout: float | None = None) -> str:
        """Create; returns its uid, empty when an object of that name exists.

        ``timeout``: seconds, when the usual ones are too many.
        """
        kind, meta = manifest["kind"], manifest["metadata"]
        try:
            path, query = RESOURCES[kind].path(meta.get("namespace", "")), {"fieldManager": FIELD_MANAGER}
            made = await self._api.request("POST", path, body=manifest, query=query, timeout=timeout)
        except ApiError as error:
            if error.status == 409 and not _refusal(error):
                return ""
            raise translate(error, f"create {kind} {_name(meta)}") from error
        return str(made["metadata"]["uid"])

    async def would_create(self, manifest: JsonDict) -> None:
        """Server-side dry run: admission says what it would say, and nothing is stored.

        Raises Refused; Fatal when a webhook cannot be asked without effects.
        """
        kind, meta = manifest["kind"], manifest["metadata"]
        path = RESOURCES[kind].path(meta.get("namespace", ""))
        query = {"fieldManager": FIELD_MANAGER, "dryRun": "All"}
        try:
            await self._api.request("POST", path, body=manifest, query=query, timeout=DRY_RUN_SECONDS)
        except ApiError as error:
            what = f"create {kind} {_name(meta)} (dry run)"
            if _NO_DRY_RUN in str(error):
                raise Fatal(f"{what}: {error}") from error
            if error.status != 409 or _refusal(error):
                raise translate(error, what) from error

    async def apply(self, manifest: JsonDict) -> None:
        """Server-side apply; the operator takes back its fields from other managers.

        An object with a differing immutable field is recreated.
        """
        try:
            await self._apply(manifest)
        except Fatal:
            found = await self.get(
                manifest["kind"], manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]
            )
            if not (manifest.get("immutable") and found is not None and found.get("immutable")):
                raise
            kind, meta = manifest["kind"], found["metadata"]
            namespace, name, uid = meta["namespace"], meta["name"], meta["uid"]
            await self.delete(kind, namespace, name, uid=uid)
            if naming.EVIDENCE_FINALIZER in (meta.get("finalizers") or ()):
                # A ConfigMap that is applied has no pod yet: nothing is compared with it.
                await self.patch_finalizers(kind, namespace, name, remove=naming.EVIDENCE_FINALIZER, uid=uid)
            await self._apply(manifest)

    async def _apply(self, manifest: JsonDict) -> None:
        kind, meta = manifest["kind"], manifest["metadata"]
        path = RESOURCES[kind].path(meta.get("namespace", ""), meta["name"])
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        try:
            await self._api.request(
                "PATCH", path, body=manifest, query=query, content_type="application/apply-patch+yaml"
            )
        except ApiError as error:
            raise translate(error, f"apply {kind} {_name(meta)}") from error

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str = "", grace_seconds: int | None = None
    ) -> None:
        """Delete with the uid as precondition.

        Another uid under that name means that the object is gone.
        """
        body: JsonDict = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            if grace_seconds <= 0:
                raise Fatal(
                    f"delete {kind} {namespace}/{name}: a grace period of 0 would delete by force, which proves nothing"
                )
            body["gracePeriodSeconds"] = grace_seconds
        try:
            await self._api.request("DELETE", RESOURCES[kind].path(namespace, name), body=body)
        except ApiError as error:
            if error.status == 404 or (error.status == 409 and "uid" in str(error).lower()):
                return
            raise translate(error, f"delete {kind} {namespace}/{name}") from error

    async def patch_finalizers(
        self, kind: str, namespace: str, name: str, *, add: str = "", remove: str = "", uid: str = ""
    ) -> None:
        """JSON patch that tests resourceVersion.

        Nothing is sent when the finalizers are already correct.
        """
        obj = await self.get(kind, namespace, name)
        if obj is None or (uid and obj["metadata"]["uid"] != uid):
            return
        meta = obj["metadata"]
        present = list(meta.get("finalizers") or ())
        wanted = [item for item in present if item != remove] + ([add] if add and add not in present else [])
        if wanted == present:
            return
        patch = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]},
            {"op": "add", "path": "/metadata/finalizers", "value": wanted},
        ]
        try:
            await self._api.request(
                "PATCH", RESOURCES[kind].path(namespace, name), body=patch, content_type="application/json-patch+json"
            )
        except ApiError as error:
            if error.status == 404:
                return
            if error.status == 422 and await self._changed(kind, namespace, name, meta["resourceVersion"]):
                raise Conflict(f"finalizers of {kind} {namespace}/{name}: changed meanwhile") from error
            raise translate(error, f"finalizers of {kind} {namespace}/{name}") from error

    async def _changed(self, kind: str, namespace: str, name: str, resource_version: str) -> bool:
        """Whether an object has changed.

        The answer to a JSON patch with a failed test (422) does not name the test as
        the reason (F49).
        """
        obj = await self.get(kind, namespace, name)
        return obj is None or obj["metadata"]["resourceVersion"] != resource_version

    async def replace_status(
        self, kind: str, namespace: str, name: str, *, resource_version: str, status: JsonDict
    ) -> None:
        """PUT to the status subresource.

        It ignores everything but status and resourceVersion.
        """
        body = {
            "apiVersion": naming.API_VERSION,
            "kind": kind,
            "metadata": {"namespace": namespace, "name": name, "resourceVersion": resource_version},
            "status": status,
        }
        try:
            await self._api.request(
                "PUT",
                f"{RESOURCES[kind].path(namespace, name)}/status",
                body=body,
                query={"fieldManager": FIELD_MANAGER},
            )
        except ApiError as error:
            if error.status == 404:
                return
            raise translate(error, f"status of {kind} {namespace}/{name}") from error

    async def event(self, *, regarding: JsonDict, type_: str, reason: str, message: str, key: str = "") -> None:
        """Emit an event named by (object, reason, ``key``).

        An event with that name is created only once.
        """
        digest = hashlib.sha256(f"{regarding.get('uid')}/{reason}/{key}".encode()).hexdigest()[:16]
        manifest = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": regarding["namespace"], "name": f"{regarding['name'][:200]}.{digest}"},
            "eventTime": datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": f"{naming.GROUP}/operator",
            "reportingInstance": self._instance[:128],
            "action": "Reconcile",
            "type": type_,
            "reason": re.sub(r"[^A-Za-z0-9]", "", reason)[:128] or "Unknown",
            "note": message[:1000],
            "regarding": regarding,
        }
        try:
            await self.create(manifest, timeout=EVENT_SECONDS)
        except (Retryable, Fatal) as error:
            LOG.info("event %s not emitted: %s", reason, error)


def _name(meta: JsonDict) -> str:
    return f"{meta.get('namespace', '')}/{meta.get('name', '')}".lstrip("/")
