"""The loop around ``plan``: reads and writes Secrets, restarts members, sets up users and roles.

A member of etcd is restarted when it started before the bundle of trusted authorities changed.
Every write carries the resourceVersion that was read, so that two of these processes, or a person,
never overwrite each other. A step that fails is tried again in the next turn.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hudi_contract import naming
from hudi_operator import etcd_auth
from hudi_operator.adapters import authority
from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.authority import BadCertificate, KeyPair, Request
from hudi_operator.adapters.identity_files import IdentityFiles
from hudi_operator.adapters.kubernetes import FIELD_MANAGER, RESOURCES, ApiError, ApiServer
from hudi_operator.adapters.kubernetes import translate as translate_api
from hudi_operator.etcd_certificates import plan as planning
from hudi_operator.etcd_certificates.plan import BUNDLE, CERTIFICATE, KEY, Settings, Stored
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Conflict, Fatal, Retryable

JsonDict = dict[str, Any]
LOG = logging.getLogger("hudi_operator.etcd_certificates")

TURN_SECONDS = 30.0
SOON_SECONDS = 2.0
AUTH_SECONDS = 600.0
"""Users and roles are looked at again: an etcd that was restored from an old copy may lack some."""
_AUTH_WAIT_SECONDS = 5.0
LABEL_RELEASE = "hudioperator.io/etcd"
"""Label of the Secrets: the name of the etcd that they belong to. Not one that a tool for GitOps
puts on what it manages itself: it would remove them as superfluous.
"""
COMPONENT = "etcd-identity"
ANNOTATIONS = (planning.SIGNING_SINCE, planning.TRUSTED_SINCE, planning.ROTATE, planning.ROTATED)


@dataclass(frozen=True)
class Options:
    """Options with which the chart starts this process."""

    settings: Settings
    endpoints: tuple[str, ...]
    prefix: str = "/hudi"
    issues: bool = True
    """False: cert-manager or a person makes the certificates."""
    root_secret: str = ""
    """Secret with the identity of etcd's user root; empty: the one that is issued here."""


@dataclass
class Keeper:
    """The loop. ``turn`` is one round; it returns the seconds until the next one."""

    api: ApiServer
    options: Options
    problem: str = "starting"
    """Why etcd's identities are not as they must be; empty when they are."""
    _asked: bool = field(default=False, repr=False)
    _auth_due: float = 0.0

    async def turn(self, now: datetime) -> float:
        """Read the Secrets, and make the due changes.

        Raises Retryable or Fatal; nothing is half done.
        """
        options, settings = self.options, self.options.settings
        if options.issues:
            soon = await self._certificates(now)
        else:
            soon = False
        root = await self._secret(options.root_secret or settings.secret("root"))
        if root is None:
            self.problem = f"Secret {options.root_secret or settings.secret('root')} does not exist yet"
            return SOON_SECONDS
        loop = asyncio.get_running_loop()
        if loop.time() >= self._auth_due:
            problem = await asyncio.to_thread(self._set_up_users, _data(root))
            if problem:
                self.problem = f"users and roles of etcd: {problem}"
                return SOON_SECONDS
            self._auth_due = loop.time() + AUTH_SECONDS
        self.problem = ""
        return SOON_SECONDS if soon else TURN_SECONDS

    # ---- certificates

    async def _certificates(self, now: datetime) -> bool:
        """One step; returns whether the next one should follow soon."""
        settings = self.options.settings
        objects = {identity: await self._secret(settings.secret(identity)) for identity in ("ca", *planning.USERS)}
        found = {identity: _stored(obj) for identity, obj in objects.items() if obj is not None}
        accepted = self._asked and await self._members_accept(found.get("ca"), now)
        try:
            wanted = planning.plan(settings, found, now, members_accept_next=accepted)
        except BadCertificate as error:
            raise Fatal(
                f"Secret {settings.namespace}/{settings.secret('ca')}: {error}. Restore it. A new authority is "
                "created only if this Secret does not exist"
            ) from error
        self._asked = wanted.ask_members
        changed = False
        # The authority comes first, so that every signed certificate can always be verified.
        for identity, stored in wanted.secrets.items():
            if found.get(identity) != stored:
                await self._write(settings.secret(identity), objects[identity], stored)
                changed = True
                LOG.info("Secret %s: %s", settings.secret(identity), self._what(found.get(identity), stored))
        if wanted.note:
            LOG.info("authority of etcd: %s", wanted.note)
        restarted = await self._restart_one(planning.trusted_since(wanted.secrets["ca"]))
        return changed or restarted or wanted.ask_members

    def _what(self, before: Stored | None, after: Stored) -> str:
        if before is not None and before.data.get(CERTIFICATE) == after.data[CERTIFICATE]:
            return "bundle of trusted authorities"
        _, end = authority.validity(after.data[CERTIFICATE])
        return f"certificate of {authority.common_name(after.data[CERTIFICATE])} until {end.isoformat()}"

    async def _members_accept(self, ca: Stored | None, now: datetime) -> bool:
        """Whether every member accepts the next authority's certificates: a request to each."""
        following = planning.next_authority(ca) if ca is not None else None
        if ca is None or following is None:
            return False
        pair = authority.issue(following, Request(planning.USERS["root"], 300), now=now)
        answers = await asyncio.gather(
            *(asyncio.to_thread(accepts, endpoint, ca.data[BUNDLE], pair) for endpoint in self.options.endpoints)
        )
        for endpoint, problem in zip(self.options.endpoints, answers, strict=True):
            if problem:
                LOG.info("%s does not accept the next authority yet: %s", endpoint, problem)
        return not any(answers)

    async def _restart_one(self, since: datetime | None) -> bool:
        """Restart one member that started before the bundle changed, while all others are ready."""
        settings = self.options.settings
        if since is None:
            return False
        names = [f"{settings.name}-{number}" for number in range(settings.members)]
        pods = [await self._get("Pod", name) for name in names]
        old = [pod for pod in pods if pod is not None and _started(pod) < since]
        if not old:
            return any(pod is None for pod in pods)
        if any(pod is None or not _ready(pod) for pod in pods if pod is not old[0]):
            return True
        meta = old[0]["metadata"]
        if not meta.get("deletionTimestamp"):
            LOG.info("restarting %s, which does not know the present authorities", meta["name"])
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": meta["uid"]}}
            await self._request("DELETE", RESOURCES["Pod"].path(settings.namespace, meta["name"]), body=body)
        return True

    # ---- users

    def _set_up_users(self, root: Mapping[str, bytes]) -> str:
        """Why etcd's users and roles could not be set up; empty when they are."""
        missing = [name for name in (BUNDLE, CERTIFICATE, KEY) if name not in root]
        if missing:
            return f"the Secret of root has no {', '.join(missing)}"
        pair = KeyPair(root[CERTIFICATE], root[KEY])
        with IdentityFiles(root[BUNDLE], pair) as names:
            config = EtcdConfig(self.options.endpoints, self.options.prefix, *names)
            return etcd_auth.run(config, wait_seconds=_AUTH_WAIT_SECONDS)

    # ---- API server

    async def _secret(self, name: str) -> JsonDict | None:
        return await self._get("Secret", name)

    async def _get(self, kind: str, name: str) -> JsonDict | None:
        try:
            return await self.api.request("GET", RESOURCES[kind].path(self.options.settings.namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise translate_api(error, f"read {kind} {name}", writes=False) from error

    async def _write(self, name: str, before: JsonDict | None, stored: Stored) -> None:
        settings = self.options.settings
        path = RESOURCES["Secret"].path(settings.namespace)
        data = {key: base64.b64encode(value).decode() for key, value in stored.data.items()}
        if before is None:
            labels = {**naming.common_labels(COMPONENT), LABEL_RELEASE: settings.name}
            metadata = {
                "name": name,
                "namespace": settings.namespace,
                "labels": labels,
                "annotations": dict(stored.annotations),
            }
            manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls"}
            await self._request("POST", path, body={**manifest, "data": data})
            return
        annotations = {**(before["metadata"].get("annotations") or {}), **stored.annotations}
        body = {**before, "metadata": {**before["metadata"], "annotations": annotations}, "data": data}
        await self._request("PUT", RESOURCES["Secret"].path(settings.namespace, name), body=body)

    async def _request(self, method: str, path: str, *, body: JsonDict) -> None:
        query = {"fieldManager": FIELD_MANAGER} if method != "DELETE" else {}
        try:
            await self.api.request(method, path, body=body, query=query)
        except ApiError as error:
            if error.status in (404, 409):
                raise Conflict(f"{method} {path}: {error}") from error
            raise translate_api(error, f"{method} {path}") from error


def accepts(endpoint: str, bundle: bytes, pair: KeyPair) -> str:
    """Why a member of etcd does not accept a certificate; empty when it does.

    A request is sent: a server may refuse a certificate only after the client's side of the
    handshake is done.
    """
    with IdentityFiles(bundle, pair) as names:
        connection = rpc.Connection(EtcdConfig((endpoint,), "/hudi", *names))
        try:
            connection.call_now(rpc.cluster, "MemberList", rpc.messages.MemberListRequest(), writes=False)
        except (Retryable, Fatal) as error:
            return str(error)
        finally:
            connection.close()
    return ""


def _data(secret: JsonDict) -> dict[str, bytes]:
    return {name: base64.b64decode(value) for name, value in (secret.get("data") or {}).items()}


def _stored(secret: JsonDict) -> Stored:
    annotations = secret["metadata"].get("annotations") or {}
    return Stored(_data(secret), {name: annotations[name] for name in ANNOTATIONS if name in annotations})


def _started(pod: JsonDict) -> datetime:
    return datetime.strptime(pod["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _ready(pod: JsonDict) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return not pod["metadata"].get("deletionTimestamp") and any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )


def options_from(environment: Mapping[str, str] = os.environ) -> Options:
    """Options from the environment, by the names that the chart sets.

    Raises ValueError that names the variable.
    """
    variable = "HUDI_OPERATOR_ETCD_"

    def text(name: str, default: str | None = None) -> str:
        value = environment.get(f"{variable}{name}", default)
        if value is None:
            raise ValueError(f"{variable}{name} is not set")
        return value

    def whole(name: str, default: int) -> int:
        value = text(name, str(default))
        if not value.isdigit() or int(value) < 1:
            raise ValueError(f"{variable}{name}: expected a whole number from 1, found {value!r}")
        return int(value)

    settings = Settings(
        name=text("NAME"),
        namespace=text("NAMESPACE"),
        members=whole("MEMBERS", 1),
        gateway=text("GATEWAY"),
        authority_seconds=whole("AUTHORITY_SECONDS", Settings.authority_seconds),
        server_seconds=whole("SERVER_SECONDS", Settings.server_seconds),
        client_seconds=whole("CLIENT_SECONDS", Settings.client_seconds),
        trust_seconds=whole("TRUST_SECONDS", Settings.trust_seconds),
    )
    return Options(
        settings,
        tuple(text("ENDPOINTS").split(",")),
        text("PREFIX"),
        issues=text("ISSUES", "true") == "true",
        root_secret=text("ROOT_SECRET", ""),
    )
