"""HudiTables and HudiWriters with large podTemplates."""

from __future__ import annotations

from typing import Any

from hudi_contract import naming

JsonDict = dict[str, Any]


def table(template: JsonDict | None = None, **spec: Any) -> JsonDict:
    agent = {} if template is None else {"agent": {"podTemplate": template}}
    return {
        "kind": naming.TABLE_KIND,
        "metadata": {"namespace": "ns", "name": "flights", "uid": "u"},
        "spec": {"path": "s3a://lake/flights", "recordKeyFields": ["id"], **agent, **spec},
    }


def writer(template: JsonDict) -> JsonDict:
    return {
        "metadata": {"namespace": "ns", "name": "load", "uid": "00000000-0000-0000-0000-000000000001"},
        "spec": {
            "tableRef": {"name": "flights"},
            "source": {"sql": {"query": "SELECT 1"}},
            "driver": {"podTemplate": template},
        },
    }


def wide(number: int) -> JsonDict:
    return {"spec": {"affinity": {"x": [[] for _ in range(number)]}}}


def env(secrets: int) -> list[JsonDict]:
    return [{"name": f"V{n}", "valueFrom": {"secretKeyRef": {"name": f"s{n}", "key": "k"}}} for n in range(secrets)]


def with_secrets(number: int) -> JsonDict:
    return {"spec": {"initContainers": [{"name": "x", "image": "i", "env": env(number)}]}}
