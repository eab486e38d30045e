"""job.json across the halves: as the operator writes it, as the runtime reads it."""

from __future__ import annotations

import json

from hudi_operator.api.spec import TableSpec as OperatorTable
from hudi_operator.api.spec import WriterSpec
from hudi_operator.manifests import configmaps
from hudi_runtime.job.job import Job


def parsed(table: OperatorTable, of: WriterSpec) -> Job:
    """job.json as the operator writes it, as the runtime reads it."""
    return Job.from_json(json.loads(json.dumps(configmaps.job(table, of, 2, run=5).to_json())))
