"""Reads, live, which of the Secrets and ServiceAccounts that specs name may be used.

They decide about new pods only: fencing and settling do not wait for the right to read them (F403,
F432).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from hudi_operator.api import references
from hudi_operator.api.references import Consent, Named
from hudi_operator.api.spec import TableSpec
from hudi_operator.control.applied_objects import AppliedObjects
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.objects import Objects
from hudi_operator.model.ports import Fatal, KubernetesPort

AT_ONCE = 4
"""Objects that one look asks for at the same time. The looks at all tables share the requests that
the operator sends at once: those of one table must not fill the queue for them (F629).
"""


async def read_consents(
    namespace: str,
    namespace_uid: str,
    spec: TableSpec | None,
    objects: Objects,
    *,
    ask: KubernetesPort,
    config: OperatorConfig,
    applied: AppliedObjects,
) -> tuple[Mapping[Named, Consent], bool]:
    """Consents of the named Secrets and ServiceAccounts.

    The second value: whether Secrets can be read at all.
    """
    if spec is None:
        return {}, True
    writers = [writer.spec for writer in objects.writer_specs if writer.spec is not None]
    named = sorted(
        {
            reference.object
            for reference in (*references.of_table(spec), *(r for w in writers for r in references.of_writer(w)))
            if config.consent.by_kind[reference.object.kind] != "Off"
        }
    )
    permits = asyncio.Semaphore(AT_ONCE)

    async def one(name: Named) -> Consent | None:
        async with permits:
            return await _consent(ask, namespace, name)

    found = await asyncio.gather(*map(one, named))
    consents = {name: consent for name, consent in zip(named, found, strict=True) if consent is not None}
    if any(name.kind == references.SECRET for name in named):
        readable = all(name in consents for name in named if name.kind == references.SECRET)
    else:
        readable = await _may_read_secrets(ask, namespace, namespace_uid, config, applied)
    return {name: said for name, said in consents.items() if readable or name.kind != references.SECRET}, readable


async def _consent(ask: KubernetesPort, namespace: str, name: Named) -> Consent | None:
    """Consent of one object; None when the operator may not read it."""
    try:
        return Consent.read(await ask.annotations(name.kind, namespace, name.name))
    except Fatal:
        return None


async def _may_read_secrets(
    ask: KubernetesPort, namespace: str, namespace_uid: str, config: OperatorConfig, applied: AppliedObjects
) -> bool:
    """Whether the operator has the right where no Secret is asked for consent.

    The keys of attempts are read, too, and the credentials that a broker gave. An answer of some
    minutes ago is good enough for these.
    """
    binding = config.consent_binding
    if not binding.given or applied.may_read_secrets(namespace, namespace_uid=namespace_uid):
        return True
    if await _consent(ask, namespace, Named(references.SECRET, binding.role)) is None:
        return False
    applied.reads_secrets(namespace, namespace_uid=namespace_uid)
    return True
