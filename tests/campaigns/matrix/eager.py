"""Eager cleaning with several writers: they would roll each other back.

Hudi accepts it silently; it is refused by the operator, by the runtime, and at the storage.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from hudi_operator.api import options
from hudi_operator.api.spec import TableSpec, WriterSpec
from tests.campaigns.matrix.setup import LIMIT, Setup
from tests.campaigns.matrix.workload import OLD, Batch, batch
from tests.support.harness.local import REFUSED_WRITES

POLICY = "hoodie.clean.failed.writes.policy"
ALONE = {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}
"""Option that makes Hudi clean eagerly: with optimistic control it takes the policy for lazy."""


def asked(setup: Setup) -> dict[str, str]:
    """Options of a writer that wants what the test is about."""
    test = setup.cell.test
    more = {"hoodie.clean.async.enabled": "true"} if test.async_clean else {}
    return {POLICY: "EAGER", "hoodie.metadata.enable": str(test.metadata).lower(), **more}


def refusals(wanted: dict[str, str]) -> list[str]:
    """Messages with which the operator refuses these options for a table and for a writer."""
    metadata = {"namespace": "default", "name": "eager", "uid": "u"}
    table = {
        "metadata": metadata,
        "spec": {"path": "s3a://lake/eager", "recordKeyFields": ["id"], "hudiOptions": wanted},
    }
    writer = {"metadata": metadata, "spec": {"tableRef": {"name": "eager"}, "hudiOptions": wanted}}
    return [options.table_problem(TableSpec.from_object(table)), options.writer_problem(WriterSpec.from_object(writer))]


def refused(setup: Setup) -> dict[str, Any]:
    """One writer is in its write; others ask for eager cleaning, in every way that there is.

    Nothing happens to it.
    """
    policy = {POLICY: "EAGER"}
    for said in refusals(policy):
        assert said.startswith(f"spec.hudiOptions['{POLICY}'] = 'EAGER': owned by the operator"), said
    for said in refusals(asked(setup)):
        assert said.startswith("spec.hudiOptions["), said
    place = "b" if setup.cell.writers == "disjoint" else "a"
    batches = [
        batch(range(10), "a", "seed", 1),
        batch(range(10), "a", "living", 2, gate=f"{setup.gates}living"),
        batch(range(5), "a", "last", 3),
    ]
    living = setup.writer("w1", batches)
    setup.reached("living", living)
    pending = setup.writing()
    theirs = batch(range(20, 30) if place == "b" else range(10), place, "eager", 9)
    messages = [_by_option(setup, theirs), _by_application(setup, theirs)]
    assert pending in setup.table.pending(), "the living writer's instant stays"
    assert pending in setup.table.heartbeats()
    setup.open("living")
    told = setup.ended(living)
    assert (told["commits"], told["conflicts"]) == (3, 0), told
    assert not setup.instant(pending).pending, "what was inflight is committed, under its own instant"
    setup.quiet()
    expected = [(number, "a", "last" if number < 5 else "living", 3 if number < 5 else 2) for number in range(10)]
    setup.audited(expected, schema=OLD, without=REFUSED_WRITES)
    return {"told": f"refused: {messages[0]}; at the storage: {messages[1]}", "counts": {"commits": 3, "conflicts": 0}}


def _by_option(setup: Setup, theirs: Batch) -> str:
    """A job that an older operator has let through."""
    writer = setup.table.writer("w2", python={"batches": [theirs]}, options=asked(setup))
    assert writer.wait(LIMIT) == 10, writer.log()[-4000:]
    told = writer.termination()
    assert told["class"] == "OptionNotAllowed", told
    assert f"option {POLICY} is owned by the operator" in told["message"], told
    return str(told["message"])


def _by_application(setup: Setup, theirs: Batch) -> str:
    """A program that writes with its own options."""
    result, code = setup.folder / "eager.json", setup.folder / "code"
    code.mkdir()
    main = Path(__file__).with_name("eager_app.py")
    shutil.copy(main, code)
    arguments = [str(result), json.dumps(asked(setup) | ALONE), json.dumps(theirs["rows"])]
    writer = setup.table.writer("w3", application={"mainFile": str(code / main.name), "arguments": arguments})
    assert writer.wait(LIMIT) == 0, writer.log()[-4000:]
    found = json.loads(result.read_text())
    assert found["failed"], "an eager write went through"
    assert "[HUDIOP-" in found["message"], found
    return str(found["message"])
