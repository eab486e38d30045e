"""Writers that replace partitions: what is refused although the API server has stored it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.world.simulated_world import World, finished, ready_world

FILES = {"format": "csv", "paths": ["s3a://landing/x/"]}
KAFKA = {"bootstrapServers": ["k:9092"], "topics": ["t"], "value": {"format": "Binary"}}
NON_BLOCKING = {
    "type": "MergeOnRead",
    "index": {"type": "Bucket", "buckets": 4},
    "orderingFields": ["ts"],
    "concurrency": {"mode": "NonBlocking"},
}


def stalled(world: World, **spec: Any) -> str:
    world.make_writer("nightly", **{"operation": "InsertOverwrite", **spec})
    world.run(lambda w: w.is_true(w.writers["nightly"], "Stalled"))
    found = world.condition(world.writers["nightly"], "Stalled")
    assert found["reason"] == "InvalidSpec"
    return str(found["message"])


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"source": {"hudi": {"path": "s3a://lake/b"}}}, "spec.operation: InsertOverwrite cannot be combined with s"),
        (
            {"source": {"kafka": KAFKA}},
            "InsertOverwrite cannot be combined with source.kafka: a batch has only what is",
        ),
        ({"source": {"files": FILES}, "streaming": {}}, "InsertOverwrite cannot be combined with streaming: a later"),
        (
            {"source": {"files": {**FILES, "maxFilesPerCommit": 2}}},
            "InsertOverwrite cannot be combined with source.files.maxFilesPerCommit: a later batch of the run",
        ),
        (
            {"source": {"files": FILES}, "overwrite": {"scope": "Table"}, "partitions": ["a"]},
            "spec.overwrite.scope: Table cannot be combined with partitions: every partition is replaced",
        ),
    ],
)
def test_what_makes_no_sense_together(spec: dict[str, Any], said: str) -> None:
    assert said in stalled(ready_world(partitionFields=["p"]), **spec)


def test_what_is_deleted_is_named() -> None:
    assert stalled(ready_world(partitionFields=["p"]), operation="DeletePartition", source=None) == (
        "spec.operation: DeletePartition needs partitions: those that are deleted"
    )


def test_nothing_is_replaced_in_the_mode_without_conflicts() -> None:
    """F423."""
    said = stalled(ready_world(**NON_BLOCKING), source={"files": FILES})
    assert said.startswith("spec.operation: InsertOverwrite contradicts concurrency.mode NonBlocking of HudiTable flig")


def test_in_another_mode_it_runs() -> None:
    world = ready_world(partitionFields=["p"])
    world.make_writer("nightly", operation="InsertOverwrite", source={"files": FILES}, partitions=["a"])
    world.run(finished("nightly"))
    assert world.is_true(world.writers["nightly"], "Succeeded")
