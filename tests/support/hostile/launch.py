"""Checks that the operator makes before it starts a pod, without a cluster."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from hudi_operator.api import options
from hudi_operator.api.references import Consent, Named
from hudi_operator.api.spec import SpecError, TableSpec, WriterSpec
from hudi_operator.model.config import ConsentConfig, CredentialsBrokerConfig, OperatorConfig
from hudi_operator.plan.core import launch
from hudi_operator.plan.gate.stalled import static_stall
from hudi_operator.plan.writers import event_log, overlaps, replacing, schedules, source_tables
from tests.support.hostile.vocabulary import ENDPOINT, MIRROR, NAMESPACE, OF_OTHERS, PREFIX

JsonDict = dict[str, Any]

ALLOWED_IMAGES = ("x:1", "registry.example.com/*", "registry/*")
"""Allowed images of the tests' clusters: those of examples, of the grammar, and of other tests."""
CONFIG = OperatorConfig(
    allowed_schemes=("s3a", "gs", "hdfs", "abfss"),
    path_prefixes={NAMESPACE: (PREFIX,)},
    allowed_images=ALLOWED_IMAGES,
    consent=ConsentConfig("Required", "Required"),
    credentials_broker=CredentialsBrokerConfig(url="https://broker", store_endpoint=ENDPOINT),
    maven_mirror=MIRROR,
)
SOURCE = "airports"
"""A HudiTable of the namespace that a writer may read."""


def made(kind: str, name: str, spec: JsonDict) -> JsonDict:
    """An object of the namespace."""
    return {"kind": kind, "metadata": {"namespace": NAMESPACE, "name": name, "uid": f"{name}-uid"}, "spec": spec}


class _Consents(dict[Named, Consent]):
    """Every Secret and account there is allows the table, except those of others."""

    def get(self, key: Named, default: Any = None) -> Any:
        return Consent(exists=True, tables=("theirs",) if key.name == OF_OTHERS else ("flights",))


@cache
def _source() -> TableSpec:
    spec: JsonDict = {"path": f"{PREFIX}/{SOURCE}", "recordKeyFields": ["id"], "storage": {"secretRefs": []}}
    return TableSpec.from_object(made("HudiTable", SOURCE, spec))


def _view(table: TableSpec) -> Any:
    found = {"status": {"timeline": {"instants": 1}}}
    observed = SimpleNamespace(
        source_specs={SOURCE: SimpleNamespace(spec=_source(), error="")},
        source_tables={SOURCE: found},
        tables_at_event_logs={},
        consents=_Consents(),
        secrets_unreadable=False,
    )
    return SimpleNamespace(table=table, config=CONFIG, observed=observed)


def refusal(table: JsonDict, writer: JsonDict) -> str:
    """Why the operator starts no attempt of this writer; empty when it does.

    Checks of the planner (plan/core/launch.py, plan/gate/stalled.py, plan/writers/admission.py).
    """
    try:
        target, spec = TableSpec.from_object(table), WriterSpec.from_object(writer)
    except SpecError as error:
        return str(error)
    stall = static_stall(target, CONFIG)
    if stall is not None:
        return stall.message
    view = _view(target)
    return (
        launch.may_not_start(view, spec)
        or schedules.problem(spec)
        or launch.source_problem(spec)
        or options.writer_problem(spec, CONFIG.option_patterns)
        or event_log.problem(view, spec)
        or source_tables.problem(view, spec)
        or overlaps.problem(view, spec)
        or replacing.problem(view, spec)
        or (waits.message if (waits := source_tables.waits_for(view, spec)) is not None else "")
    )


def launched(table: JsonDict, writer: JsonDict) -> tuple[TableSpec, WriterSpec]:
    """The specs of which pods are made: the table as the writer runs it, and the writer with its
    sources. Only for objects that are not refused.
    """
    target, spec = TableSpec.from_object(table), WriterSpec.from_object(writer)
    resolved = source_tables.resolved(_view(target), spec)
    assert resolved is not None
    return target.as_run_by(spec), resolved
