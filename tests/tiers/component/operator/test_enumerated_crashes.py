"""A slice of the enumerated crashes (all of them: ``make crashes``): the operator dies, or loses
answers, at writes that matter.

The agent is played here: its part, on a real table, is in the campaign.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.campaigns.crashes.api_proxy import LoopThread
from tests.campaigns.crashes.campaign import DISTURBING
from tests.campaigns.crashes.faults import Fault, Target
from tests.campaigns.crashes.interruptions import INTERRUPTIONS
from tests.campaigns.crashes.nursery import Nursery
from tests.campaigns.crashes.run import Outcome, Parts, Reference, Run
from tests.support.harness.servers import Cluster, Etcd

SCENARIO = "fails and is settled"
INC, POD = "inc-load-1", "load-U-1"
CASES = [
    (Target(f"etcd admit admit/NS.{POD}"), Fault.LOST),
    (Target(f"create pods/{POD}"), Fault.KILLED_BEFORE),
    (Target("status hudiwriters/load Starting [1:Infrastructure 2:open]"), Fault.KILLED_AFTER),
    (Target(f"etcd fence fence/{INC} PodTerminated proofs=0"), Fault.KILLED_AFTER),
    (Target(f"etcd settle-update settle/{INC} Draining proofs=1"), Fault.KILLED_AFTER),
    (Target(f"etcd unlock lock {INC}"), Fault.LATE),
    (Target(f"etcd settled settle/{INC} proofs=1"), Fault.CONFLICT),
]


@pytest.fixture
def parts(cluster: Cluster, etcd: Etcd) -> Iterator[Parts]:
    loop, nursery = LoopThread(), Nursery()
    yield Parts(cluster, cluster.kubeconfig.parent, etcd, loop, nursery)  # type: ignore[arg-type]
    nursery.close()
    loop.close()


def _outcome(run: Run, reference: Reference | None) -> Outcome:
    try:
        return run.execute(reference)
    finally:
        run.close()


def _play(parts: Parts, place: Path, cases: dict[str, dict[str, Any]]) -> dict[str, Outcome]:
    """The reference, then all cases side by side; each must end as the reference did."""
    seen = _outcome(Run(parts, place / "reference", SCENARIO), None)
    assert not seen.deviations
    reference = Reference(seen.state, seen.counts)
    runs = [Run(parts, place / str(number), SCENARIO, **case) for number, case in enumerate(cases.values())]
    with ThreadPoolExecutor(len(runs)) as side_by_side:
        outcomes = dict(zip(cases, side_by_side.map(lambda run: _outcome(run, reference), runs), strict=True))
    for name, outcome in outcomes.items():
        print(f"{outcome.seconds:.1f} s, {outcome.restarts} restarts: {name}, effects: {outcome.effects}")
        assert not outcome.deviations, name
    return outcomes


def test_whatever_becomes_of_a_write_the_end_is_the_same(parts: Parts, tmp_path: Path) -> None:
    outcomes = _play(
        parts, tmp_path, {f"{fault}: {target}": {"target": target, "fault": fault} for target, fault in CASES}
    )
    for name, outcome in outcomes.items():
        assert outcome.hit, f"{name} was not written: {[str(w) for w in outcome.writes]}"


@pytest.mark.extra
def test_whatever_is_seen_late_or_never_the_end_is_the_same(parts: Parts, tmp_path: Path) -> None:
    """Frozen watches, dropped events, stale lists; a second operator beside the first; servers
    that are away.
    """
    outcomes = _play(
        parts, tmp_path, {name: {"interruption": name} for name in INTERRUPTIONS if name not in DISTURBING}
    )
    for name, outcome in outcomes.items():
        assert outcome.hit, f"{name} had no effect: {outcome.effects}"
