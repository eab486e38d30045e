"""A writer that reads other HudiTables of the namespace, and runs by the clock: through the real
API server, down to what its pod is told.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from hudi_contract import naming
from tests.support.harness.operator_world import World
from tests.support.harness.servers import wait_for

LONG = 180.0
"""Seconds; a bound for a machine with much else to do, nothing is measured."""


def status(world: World, name: str) -> dict[str, Any]:
    return dict((world.get("hudiwriters", name) or {}).get("status") or {})


def waits(world: World, name: str, reason: str) -> None:
    """Waits until the writer says that it waits for this."""
    wait_for(
        reason, lambda: (world.condition("hudiwriters", name, "Admitted") or {}).get("reason") == reason, seconds=LONG
    )


def job(world: World, pod: dict[str, Any]) -> dict[str, Any]:
    """What the driver of this pod is told to do."""
    config_map = world.get("configmaps", pod["metadata"]["name"]) or {}
    return dict(json.loads(config_map["data"]["job.json"]))


def created(world: World, table_id: str, agent: dict[str, Any]) -> None:
    """The agent has looked at another one of its tables: it is an incarnation of its own there."""
    world.report_timeline(table_id, world.register(table_id, agent, role="agent"))


def test_a_chained_writer_waits_for_its_sources_and_is_told_their_paths(world: World) -> None:
    world.start_operator()
    table_id, agent, _ = world.running_table()
    world.writer(
        "chain",
        source={
            "hudi": {
                "tableRef": {"name": "bronze"},
                "maxCommitsPerBatch": 3,
                "order": "Fenced",
                "ifPositionLost": "Snapshot",
            }
        },
    )
    views = [
        {"name": "b", "hudi": {"tableRef": {"name": "bronze"}}},
        {"name": "own", "hudi": {"tableRef": {"name": "flights"}}},
    ]
    world.writer("query", source={"sql": {"query": "SELECT * FROM b", "views": views}})
    for name in ("chain", "query"):
        waits(world, name, "SourceNotFound")
    queues = [status(world, name)["queue"] for name in ("chain", "query")]
    assert sorted(queue["position"] for queue in queues) == [1, 2]
    assert {queue["blockedBy"] for queue in queues} == {"table bronze"}
    source_id = world.table("bronze")
    for name in ("chain", "query"):
        waits(world, name, "SourceNotReady")
    assert world.pods("driver") == []
    created(world, source_id, agent)
    path = f"s3a://lake/{world.namespace}/bronze"
    told = job(world, world.pod("driver", writer="chain", seconds=LONG))
    wanted = {
        "path": path,
        "startFrom": "Earliest",
        "order": "Fenced",
        "maxCommitsPerBatch": 3,
        "ifPositionLost": "Snapshot",
        "deletes": "Ignore",
    }
    assert told["source"] == {"hudi": wanted}
    assert naming.table_id(told["table"]["path"]) == table_id, "written is the writer's own table"
    told = job(world, world.pod("driver", writer="query", seconds=LONG))
    wanted_views = [
        {"name": "b", "hudi": {"path": path}},
        {"name": "own", "hudi": {"path": f"s3a://lake/{world.namespace}/flights"}},
    ]
    assert told["source"] == {"sql": {"query": "SELECT * FROM b", "views": wanted_views}}
    for name in ("chain", "query"):
        assert not status(world, name).get("queue"), "who runs does not queue"

    security = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "secretRef": {"name": "kafka-reader"}}
    topics = {
        "bootstrapServers": ["kafka:9093"],
        "topics": ["orders"],
        "value": {"format": "Json", "schema": "id INT"},
        "security": security,
    }
    world.writer("stream", source={"kafka": topics}, streaming={"intervalSeconds": 5})
    pod = world.pod("driver", writer="stream", seconds=LONG)
    told = job(world, pod)
    assert (told["streaming"], told["source"]["kafka"]["security"]["folder"]) == (
        {"intervalSeconds": 5},
        "/etc/hudi/kafka",
    )
    assert [v["secret"]["secretName"] for v in pod["spec"]["volumes"] if v["name"] == "kafka"] == ["kafka-reader"]


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_a_chained_writer_runs_by_the_clock(world: World) -> None:
    """A tick that comes while the source is missing starts its run when the source is there.

    A run takes up the number of its tick.
    """
    world.start_operator()
    _, agent, _ = world.running_table()
    world.writer("chain", source={"hudi": {"tableRef": {"name": "bronze"}}}, schedule={"cron": "* * * * *"})
    first = wait_for(
        "the first tick is announced", lambda: status(world, "chain").get("nextScheduleTime"), seconds=LONG
    )
    waits(world, "chain", "SourceNotFound")
    source_id = world.table("bronze")
    waits(world, "chain", "SourceNotReady")
    created(world, source_id, agent)
    pod = world.pod("driver", writer="chain", seconds=LONG)
    told = job(world, pod)
    assert told["source"]["hudi"]["path"] == f"s3a://lake/{world.namespace}/bronze"
    assert (told["run"], told["attempt"]["number"]) == (1, 1)
    found = status(world, "chain")
    assert first <= found["lastScheduleTime"] <= datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert found["nextScheduleTime"] > found["lastScheduleTime"]
