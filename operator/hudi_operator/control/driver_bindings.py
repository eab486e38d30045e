"""RoleBindings by which accounts of tables start executors: they go when nothing uses the account.

A binding is made before the first pod under its account. Whether an account is still used is read
live at the moment of the deletion: another HudiTable of the namespace, or a HudiWriter of one,
names it, or a driver or an agent under it has not ended. A binding is made and deleted under one
lock, and what is known to be there is forgotten before anybody is asked: a HudiTable that was not
there then makes its binding again, after the deletion.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from hudi_contract import naming
from hudi_operator.control.applied_objects import AppliedObjects
from hudi_operator.control.queue import Key
from hudi_operator.control.repeated import Repeated
from hudi_operator.manifests.namespace import bound_account
from hudi_operator.model import containers
from hudi_operator.model.objects import Objects, read_whole, table_name_of
from hudi_operator.model.ports import Fatal, KubernetesPort
from hudi_operator.plan.core.ownership import has_role

JsonDict = dict[str, Any]
LOG = logging.getLogger("hudi_operator.control")
_REMEMBERED = 4096
_MADE_HERE = ",".join(f"{name}={value}" for name, value in naming.MANAGED.items())


class DriverBindings:
    """The bindings of each namespace; belongs to one event loop."""

    def __init__(
        self,
        kubernetes: KubernetesPort,
        *,
        applied: AppliedObjects,
        check_leader: Callable[[], None],
        logged: Repeated,
    ) -> None:
        """``applied``: what this process knows to be there. ``check_leader`` raises LeaseLost."""
        self._kubernetes = kubernetes
        self._applied = applied
        self._check_leader = check_leader
        self._logged = logged
        self._locks = WeakValueDictionary[str, asyncio.Lock]()
        self._looked: set[Key] = set()
        """Names without a HudiTable for which this was done since one of that name was deleted."""

    async def apply(self, manifest: JsonDict) -> None:
        """Apply an object; a RoleBinding when none of its namespace is being deleted.

        Raises the exceptions of the port.
        """
        if manifest["kind"] != "RoleBinding":
            await self._kubernetes.apply(manifest)
            return
        async with self._lock(manifest["metadata"]["namespace"]):
            await self._kubernetes.apply(manifest)

    def _lock(self, namespace: str) -> asyncio.Lock:
        return self._locks.setdefault(namespace, asyncio.Lock())

    async def delete_unused(self, key: Key, role: str, *, going: str) -> bool:
        """Delete those of a table's namespace that bind an account to ``role`` for nothing.

        Whether there was one. ``going``: uid of the HudiTable that goes next, which counts no more;
        empty: none. Raises Retryable. Objects that the operator may not read or delete stay.
        """
        if going:
            self._looked.discard(key)
        elif key in self._looked:
            return False
        try:
            deleted = await self._delete_unused(key[0], role, going)
        except Fatal as error:
            # Rights of an earlier chart: a person deletes them. A HudiTable goes all the same.
            if self._logged.due((key, "RoleBinding")):
                LOG.warning("%s: RoleBindings of accounts stay: %s", "/".join(key), error)
            return False
        if not going:
            if len(self._looked) >= _REMEMBERED:
                self._looked.clear()
            self._looked.add(key)
        if deleted:
            LOG.info("%s: nothing uses RoleBindings %s: deleted", "/".join(key), ", ".join(deleted))
        return bool(deleted)

    async def _delete_unused(self, namespace: str, role: str, going: str) -> list[str]:
        # Most often there is nothing to do: that keeps nobody waiting, and nothing is forgotten.
        if not await self._unused(namespace, role, going):
            return []
        async with self._lock(namespace):
            self._applied.forget(namespace)
            unused = await self._unused(namespace, role, going)
            for name, uid in unused:
                self._check_leader()
                await self._kubernetes.delete("RoleBinding", namespace, name, uid=uid)
        return [name for name, _ in unused]

    async def _unused(self, namespace: str, role: str, going: str) -> list[tuple[str, str]]:
        """Name and uid of each binding of an account that nothing uses."""
        found = await self._kubernetes.list_objects("RoleBinding", namespace, labels=_MADE_HERE)
        bound = {account: one["metadata"] for one in found if (account := bound_account(one, role))}
        used = await self._used(namespace, going) if bound else None
        free = sorted(bound.keys() - used) if used is not None else []
        return [(bound[account]["name"], bound[account]["uid"]) for account in free]

    async def _used(self, namespace: str, going: str) -> set[str] | None:
        """Accounts that are in use. None: unknown, and nothing is deleted (I11)."""
        listed = await self._kubernetes.list_objects(naming.TABLE_KIND, namespace)
        tables = [read_whole(one).spec for one in listed if one["metadata"].get("uid") != going]
        accounts = {spec.ref.name: spec.storage.service_account_name for spec in tables if spec is not None}
        found = await self._kubernetes.list_objects(naming.WRITER_KIND, namespace)
        # A HudiWriter without a HudiTable runs once there is one, which makes the binding again.
        writers = [
            one.spec
            for one in Objects(None, tuple(obj for obj in found if table_name_of(obj) in accounts)).writer_specs
        ]
        if None in tables or None in writers:
            return None
        pods = await self._kubernetes.pods(namespace, labels=_MADE_HERE)
        return {
            *accounts.values(),
            *(spec.service_account_name for spec in writers if spec is not None),
            *(pod.service_account for pod in pods if has_role(pod) and not containers.ended(pod)),
        }
