"""F47: whose wall clock is wrong is not for the operator's own clock to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness.operator_world import SUCCEEDED, World
from tests.support.harness.other_clock import VARIABLE, library
from tests.support.harness.servers import wait_for


@pytest.mark.parametrize(("seconds", "word"), [(-60, "behind"), pytest.param(60, "ahead of", marks=pytest.mark.extra)])
def test_nobody_is_fenced_for_the_operators_clock(world: World, tmp_path: Path, seconds: int, word: str) -> None:
    world.forks = None  # the library is loaded when a program starts
    operator = world.start_operator(LD_PRELOAD=str(library(tmp_path / "clock")), **{VARIABLE: str(seconds)})
    table_id, _, _ = world.running_table()
    pod, inc = world.running_writer(table_id)

    def told() -> str:
        found = world.condition("huditables", "flights", "ClocksAgree") or {}
        return str(found.get("message")) if found.get("status") == "False" else ""

    assert (
        wait_for("the operator's word about its clock", told)
        == f"the operator's clock is more than 5 s {word} the API server's"
    )
    assert operator.metric("hudi_operator_api_clock_offset_seconds") == pytest.approx(-seconds, abs=2)
    world.revoke(inc)
    world.etcd.delete(world.key(table_id, f"writer/{inc}"))
    world.end_pod(pod, exit_code=0, message=SUCCEEDED)
    condition = wait_for(
        "Finished", lambda: (c := world.condition("hudiwriters", "load", "Finished")) and c["status"] == "True" and c
    )
    assert condition["reason"] == "Succeeded"
    assert operator.metric("hudi_operator_fences_total") == 0


def test_a_host_ahead_of_everybody_is_fenced_and_costs_no_retry(world: World) -> None:
    world.start_operator()
    table_id, _, _ = world.running_table()
    world.writer("load", retryPolicy={"limit": 0, "backoffSeconds": 1})
    pod = world.pod("driver", writer="load")
    world.run_pod(pod)
    inc = world.register(table_id, pod, clock_seconds=60)
    assert world.phase(table_id, inc, "Fenced", "Terminating", "Draining")["reason"] == "ClockSkew"
    world.end_pod(pod, exit_code=15)
    again = world.pod("driver", number=2, writer="load", seconds=40)
    world.run_pod(again)
    world.register(table_id, again)
    (first, _) = sorted(
        (world.get("hudiwriters", "load") or {})["status"]["attempts"], key=lambda entry: entry["number"]
    )
    assert first["class"] == "ClockSkew"
