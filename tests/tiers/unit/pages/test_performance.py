"""docs/results/performance.md: a goal is met only by what was measured."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.campaigns.bench.performance import GOALS, MET, MISSED, NOT_MEASURED, SMALLER, Results, page
from tests.support.evidence import faults

JsonDict = dict[str, Any]
RUN: JsonDict = {"commit": "0" * 10, "at": "2026-01-01T00:00Z", "machine": "2 processors"}
BURST: JsonDict = {
    **RUN,
    "scenario": "burst",
    "side": "ours",
    "turn": 1,
    "complete": True,
    "jobs": 50,
    "perMinute": 1200.0,
    "feedSeconds": 1.0,
    "createToPodSeconds": {"p50": 1.0, "p95": 2.0, "max": 2.5},
    "cpuSecondsEach": 0.02,
    "peakMiB": 100,
    "requests": {"writesEach": 5.5, "readsEach": 3.0},
    "windowSeconds": 10.0,
    "othersCpuSeconds": 0.5,
    "stolenSeconds": 0.0,
}
CRASH: JsonDict = {
    **RUN,
    "scenario": "crash",
    "side": "ours",
    "turn": 1,
    "jobs": 50,
    "driversAtTheKill": 15,
    "ofThemNotInStatus": 1,
    "recoverySeconds": 2.0,
    "driversOfAJob": {"1": 50},
    "saysFailedThoughItsDriverEndedWell": 0,
    "states": {"ended": 50},
}
LAUNCH: JsonDict = {
    **RUN,
    "writers": 300,
    "tables": 300,
    "loadBefore": 0.1,
    "launch": {"perMinute": 1000},
    "toRunning": {"cpuSecondsEach": 0.03, "writesEach": 8.0, "readsEach": 5.0},
    "rest": {"seconds": 60.0, "cpuSeconds": 0.6, "reads": 60.0, "memoryMiB": 100},
    "endToStatusSeconds": {"p50": 0.1, "max": 0.2},
}
SPENT = {"python": 0.2, "jvm": 0.8}
TURN: JsonDict = {"side": "ours", "loadBefore": 0.1, "seconds": [0.9, 0.9, 0.9], "processorSeconds": SPENT}
COUNTED = {"store": {"PUT": 3.0}, "etcd": {"Txn": 5.0}, "spark": {"JobStart": 4.0}}
COMMITS: JsonDict = {
    **RUN,
    "warmUp": 20,
    "counted": {"ours": COUNTED, "stock": COUNTED},
    "turns": [TURN, {**TURN, "side": "stock", "seconds": [1.8, 1.8, 1.8]}],
}
LOOK: JsonDict = {"writers": 10, "cpuMillis": 10.0, "millis": 20.0, "requests": 9.0}
LOOKS: JsonDict = {**RUN, "looks": 60, "runs": [LOOK, {**LOOK, "writers": 10_000, "cpuMillis": 11.0}]}
NONE = Results([], [], {})
WHOLE = Results([BURST, CRASH], [{**LAUNCH, "writers": 50, "launch": {"perMinute": 1100}}, LAUNCH], COMMITS)


def verdicts(results: Results) -> dict[str, str]:
    """By the quantity, the last cell of each row."""
    rows = [goal.row(results) for goal in GOALS]
    return {row.split(" | ")[1]: row.rsplit("|", 2)[1].strip() for row in rows}


def test_what_was_not_measured_meets_nothing() -> None:
    assert set(verdicts(NONE).values()) == {NOT_MEASURED}
    assert faults(page(NONE)) == []


def test_each_verdict_follows_from_its_number() -> None:
    found = verdicts(WHOLE)
    assert found["launches a minute, 50 writers at once"] == MET
    assert found["API writes for a launch"] == MISSED
    assert found["operator killed when 30 % of the drivers are there"] == MET
    assert found["the same with more writers, the largest number against the fastest"] == MET
    assert found["operator with 1,000 running writers, at rest"] == SMALLER
    assert found["end of a pod until status says so"] == SMALLER
    assert found["a commit of ten rows, one writer, on S3: median"] == MET
    assert found["the same, beside stock Hudi with our options and ZooKeeper"] == MET


def test_what_is_worse_is_missed() -> None:
    slow = {**BURST, "perMinute": 999.0, "cpuSecondsEach": 0.031}
    doubled = {**CRASH, "driversOfAJob": {"1": 49, "2": 1}}
    busy = {**LAUNCH, "launch": {"perMinute": 800}, "rest": {**LAUNCH["rest"], "cpuSeconds": 6.0}}
    late = {**COMMITS, "turns": [{**TURN, "seconds": [1.1, 1.1, 1.1]}, {**TURN, "side": "stock"}]}
    found = verdicts(Results([slow, doubled], [{**LAUNCH, "writers": 50, "launch": {"perMinute": 1100}}, busy], late))
    assert [quantity for quantity, verdict in found.items() if verdict == MISSED] == [
        "launches a minute, 50 writers at once",
        "the same with more writers, the largest number against the fastest",
        "processor time of the operator for a launch",
        "API writes for a launch",
        "operator killed when 30 % of the drivers are there",
        "a commit of ten rows, one writer, on S3: median",
        "the same, beside stock Hudi with our options and ZooKeeper",
        "operator with 1,000 running writers, at rest",
    ]


def test_a_look_is_flat_where_both_its_costs_are() -> None:
    quantity = "cost of one look, 10 to 10,000 writers in the namespace"

    def verdict(**last: Any) -> str:
        runs = [LOOK, {**LOOKS["runs"][1], **last}]
        return verdicts(dataclasses.replace(NONE, looks={**LOOKS, "runs": runs}))[quantity]

    assert verdict() == MET
    assert verdict(writers=1000) == SMALLER
    assert verdict(cpuMillis=12.5) == verdict(millis=25.0) == verdict(writers=1000, millis=25.0) == MISSED
    assert verdict(cpuMillis=8.0) == MISSED, "it fell by more than a fifth: what grows with them is not seen"
    text = page(dataclasses.replace(NONE, looks=LOOKS))
    assert "| 10000 | 11.0 | 20.0 | 9 |" in text
    assert faults(text) == []


def test_a_burst_beside_other_work_is_left_out_and_said_to_be() -> None:
    noisy = dataclasses.replace(NONE, bursts=[{**BURST, "othersCpuSeconds": 9.0}])
    assert verdicts(noisy)["launches a minute, 50 writers at once"] == NOT_MEASURED
    assert "Left out: 1 (the machine had other work" in page(noisy)


def test_the_page_stands_on_its_runs() -> None:
    text = page(WHOLE)
    assert "| hudi-operator | 1 | 1200 |" in text
    assert "| 300 | 300 | 1000 | 0.030 | 8.0 | 5.0 | 1.0 | 100 | 1.0 | 0.10 s | 0.20 s | 0.1 |" in text
    assert "| hudi-operator | 1 | 0.90 (0.90–0.90) |" in text
