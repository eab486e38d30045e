"""A writer that reads another HudiTable of the namespace, and runs by the clock: through the real API server."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from operator_world import World, wait_for

from hudi_operator.model import naming


def test_a_chained_writer_waits_for_its_source_and_runs_by_the_clock(world: World) -> None:
    world.start_operator()
    table_id, _, inc = world.running_table()
    world.writer("chain", source={"hudi": {"tableRef": {"name": "bronze"}, "maxCommitsPerBatch": 3}}, schedule={"cron": "* * * * *"})
    first = wait_for("a first tick", lambda: ((world.get("hudiwriters", "chain") or {}).get("status") or {}).get("nextScheduleTime"))

    def waits(reason: str) -> bool:
        return (world.condition("hudiwriters", "chain", "Admitted") or {}).get("reason") == reason

    wait_for("Scheduled or waiting", lambda: waits("AwaitingSchedule") or waits("SourceNotFound"))
    wait_for("SourceNotFound", lambda: waits("SourceNotFound"), seconds=90)
    source_id = world.table("bronze")
    wait_for("SourceNotReady", lambda: waits("SourceNotReady"), seconds=40)
    assert world.pods("driver") == []
    world.report_timeline(source_id, inc)
    pod = world.pod("driver", writer="chain", seconds=60)
    config_map = world.get("configmaps", pod["metadata"]["name"]) or {}
    job = json.loads(config_map["data"]["job.json"])
    assert job["source"]["hudi"]["path"] == f"s3a://lake/{world.namespace}/bronze"
    assert (job["source"]["hudi"]["maxCommitsPerBatch"], job["run"]) == (3, 1)
    status = (world.get("hudiwriters", "chain") or {})["status"]
    assert first <= status["lastScheduleTime"] <= datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert status["nextScheduleTime"] > status["lastScheduleTime"]
    assert naming.table_id(job["table"]["path"]) == table_id
