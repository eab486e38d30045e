"""ServiceAccounts, Secrets and images that a HudiTable or a HudiWriter names, and who may use them.

The owner of a Secret or a ServiceAccount says in an annotation which HudiTables of its namespace
may use it. The verb ``use``, which admission requires of the user who applies an object, is not
enough: a GitOps tool has every verb, regardless of the author of the objects that it applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hudi_contract import naming
from hudi_operator.api import pod_template
from hudi_operator.api.pod_settings import PodSettings
from hudi_operator.api.spec import PullSecret, TableSpec, WriterSpec

ANNOTATION = f"{naming.GROUP}/allowed-tables"
"""Names of HudiTables, separated by commas, or ``*``."""
SECRET, ACCOUNT = "Secret", "ServiceAccount"
RESERVED = "hudi-operator-"
"""Prefix of the names of the operator's own Secrets; those of one attempt have a suffix instead.

No table may name either.
"""


_CALLBACK = "spec.commitCallback.secretRef"
"""The agent serves a table without this Secret, and mounts only its keys for callbacks."""
OWN_SUFFIXES = (naming.SPARK_KEY_SUFFIX, naming.STORAGE_KEY_SUFFIX)


class Named(NamedTuple):
    """One Secret or ServiceAccount of the namespace."""

    kind: str
    name: str


@dataclass(frozen=True)
class Reference:
    """``field`` of a spec names ``object``."""

    field: str
    object: Named
    optional: bool = False
    """Whether pods start without it."""


@dataclass(frozen=True)
class Consent:
    """Answer of the API server about a named object.

    ``tables``: names in its annotation; None when it has none.
    """

    exists: bool
    tables: tuple[str, ...] | None = None

    @classmethod
    def read(cls, annotations: Mapping[str, str] | None) -> Consent:
        """``annotations`` None: there is no such object."""
        if annotations is None:
            return cls(exists=False)
        said = annotations.get(ANNOTATION)
        return cls(True, None if said is None else tuple(name.strip() for name in said.split(",") if name.strip()))

    def allows(self, table: str) -> bool:
        """True when the annotation names the table."""
        return self.tables is not None and ("*" in self.tables or table in self.tables)


def of_table(table: TableSpec) -> tuple[Reference, ...]:
    """Every Secret and ServiceAccount that a HudiTable names."""
    storage = table.storage
    found = [Reference("spec.storage.secretRefs", Named(SECRET, ref.name)) for ref in storage.secret_refs]
    if storage.service_account_name:
        found.append(Reference("spec.storage.serviceAccountName", Named(ACCOUNT, storage.service_account_name)))
    if table.callback is not None and table.callback.secret:
        found.append(Reference(_CALLBACK, Named(SECRET, table.callback.secret), optional=True))
    found.extend(_pulled_with(table.image_pull_secrets))
    found.extend(each for where, settings in templated(table) for each in _of_template(where, settings))
    return tuple(found)


def of_writer(writer: WriterSpec) -> tuple[Reference, ...]:
    """Every Secret and ServiceAccount that a HudiWriter names."""
    found = list(_pulled_with(writer.image_pull_secrets))
    if writer.kafka is not None and writer.kafka.security.secret:
        found.append(Reference("spec.source.kafka.security.secretRef", Named(SECRET, writer.kafka.security.secret)))
    registry = writer.kafka.value.registry if writer.kafka is not None else None
    if registry is not None and registry.secret:
        found.append(Reference("spec.source.kafka.value.registry.secretRef", Named(SECRET, registry.secret)))
    if writer.jdbc is not None:
        found.append(Reference("spec.source.jdbc.secretRef", Named(SECRET, writer.jdbc.secret)))
    if writer.service_account_name:
        found.append(Reference("spec.serviceAccountName", Named(ACCOUNT, writer.service_account_name)))
    found.extend(each for where, settings in templated(writer) for each in _of_template(where, settings))
    return tuple(found)


def templated(spec: TableSpec | WriterSpec) -> tuple[tuple[str, PodSettings], ...]:
    """Settings of all pods of a spec that may have a podTemplate, by field."""
    if isinstance(spec, WriterSpec):
        return ("spec.driver", spec.driver), ("spec.executors", spec.executors)
    if spec.agent is None:
        return ()
    return ("spec.agent", spec.agent.pod), ("spec.agent.executors", spec.agent.executors)


def _of_template(where: str, settings: PodSettings) -> Iterator[Reference]:
    for use in pod_template.uses(settings.pod_template):
        if use.kind == SECRET:
            yield Reference(f"{where}.podTemplate.{use.field}", Named(SECRET, use.name), optional=use.optional)


def _pulled_with(secrets: Sequence[PullSecret]) -> Iterator[Reference]:
    return (Reference("spec.imagePullSecrets", Named(SECRET, secret.name)) for secret in secrets)


def problem(
    references: Sequence[Reference], consents: Mapping[Named, Consent], table: TableSpec, required: Mapping[str, str]
) -> str:
    """Why pods with these references may not start (field, value, rule); empty when they may.

    ``required``: by kind, ``Required``, ``Optional`` (an object without annotation may be used) or
    ``Off``.
    """
    for field, named, optional in ((r.field, r.object, r.optional) for r in references):
        if named.kind == SECRET and (named.name.startswith(RESERVED) or named.name.endswith(OWN_SUFFIXES)):
            rule = f"names that begin with {RESERVED} or end with {' or '.join(OWN_SUFFIXES)}"
            return f"{field}: Secret {named.name}: {rule} are reserved for Secrets of the operator"
        rule = required.get(named.kind, "Off")
        consent = consents.get(named)
        if rule == "Off" or (consent is not None and consent.allows(table.ref.name)):
            continue
        if consent is None:
            return f"{field}: it is not known yet whether {named.kind} {named.name} allows this HudiTable"
        if not consent.exists:
            if optional and (rule != "Required" or field == _CALLBACK):
                continue
            why = ", so its owner has not allowed this HudiTable, and a kubelet mounts it as soon as it does"
            return f"{field}: {named.kind} {named.name} does not exist{why if optional else ''}"
        if consent.tables is None and rule == "Optional":
            continue
        said = f"allows only {', '.join(consent.tables) or 'none'}" if consent.tables is not None else "allows no table"
        return (
            f"{field}: {named.kind} {named.name} {said}: its owner allows this one with: kubectl annotate "
            f"{named.kind.lower()} {named.name} -n {table.ref.namespace} --overwrite "
            f"{ANNOTATION}={','.join([*(consent.tables or ()), table.ref.name])}"
        )
    return ""


def image_problem(image: str, own: str, allowed: Sequence[str]) -> str:
    """Why a HudiTable or a HudiWriter may not name this image; empty when it may, or names none.

    ``own``: the operator's Spark image. A final ``*`` of an allowed one stands for anything.
    """
    if not image or image == own or any(_matches(image, pattern) for pattern in allowed):
        return ""
    return f"spec.image: {image} is none of the allowed images: {', '.join([own, *allowed])}"


def template_image_problem(spec: TableSpec | WriterSpec, own: str, allowed: Sequence[str]) -> str:
    """Why the containers of podTemplates may not have their images; empty when they may."""
    for where, settings in templated(spec):
        for name, image in pod_template.images(settings.pod_template).items():
            if found := image_problem(image, own, allowed):
                return f"{where}.podTemplate.spec.containers[{name}]: {found.removeprefix('spec.image: ')}"
    return ""


def _matches(image: str, pattern: str) -> bool:
    return image.startswith(pattern[:-1]) if pattern.endswith("*") else image == pattern
