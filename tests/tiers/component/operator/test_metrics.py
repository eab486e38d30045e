"""A scrape of a real operator, before and after a restart."""

from __future__ import annotations

import subprocess
import time

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from hudi_operator.metrics import catalog
from tests.support.harness.operator_world import Operator, World
from tests.support.harness.servers import wait_for


class Scrape:
    """The samples of one exposition."""

    def __init__(self, operator: Operator) -> None:
        status, self.text = operator.get("/metrics")
        assert status == 200
        self.samples: list[Sample] = [
            sample for family in text_string_to_metric_families(self.text) for sample in family.samples
        ]

    def value(self, name: str, **labels: str) -> float | None:
        """The one sample with these labels."""
        found = [s.value for s in self.samples if s.name == name and labels.items() <= s.labels.items()]
        assert len(found) <= 1, (name, labels, found)
        return found[0] if found else None


def test_a_scrape_has_what_is_asked_also_after_a_restart(world: World) -> None:
    first = world.start_operator()
    table_id, _, _ = world.running_table()
    pod, inc = world.running_writer(table_id)
    where = {"namespace": world.namespace, "table": "flights"}
    name = pod["metadata"]["name"]
    world.etcd.put(
        world.key(table_id, f"report/attempt/{world.namespace}.{name}"),
        {"attempt": f"{world.namespace}.{name}", "inc": inc, "atMs": 1, "stage": "Writing", "waiting": 7},
    )
    world.lock(table_id, inc, pod)
    time.sleep(0.3)
    world.etcd.delete(world.key(table_id, "lock"))

    def shows(operator: Operator) -> Scrape | None:
        scrape = Scrape(operator)
        told = (
            scrape.value("hudi_operator_writer_backlog", **where, writer="load"),
            scrape.value("hudi_operator_table_condition", **where, condition="Ready"),
        )
        return scrape if told == (7, 1) else None

    def lock_seen() -> Scrape | None:
        scrape = Scrape(first)
        return scrape if scrape.value("hudi_operator_lock_hold_seconds_count", **where) else None

    wait_for("backlog and Ready", lambda: shows(first))
    scrape = wait_for("the lock's hold", lock_seen)
    held = scrape.value("hudi_operator_lock_hold_seconds_sum", **where)
    assert held is not None
    assert 0.2 < held < 10
    assert scrape.value("hudi_operator_lock_wait_seconds_count", **where) == 1
    declared = {series for metric in catalog.every() for series in metric.series}
    unknown = {s.name for s in scrape.samples if s.name.startswith("hudi_") and not s.name.endswith("_created")}
    assert unknown <= declared
    assert (scrape.value("hudi_operator_etcd_database_bytes") or 0) > 10_000
    in_use, total = (scrape.value(f"hudi_operator_etcd_database_{part}bytes") or 0 for part in ("in_use_", ""))
    assert 0 < in_use <= total
    assert (scrape.value("hudi_operator_etcd_database_quota_bytes") or 0) > total
    for certificate in ("etcd-client", "etcd-authority", "gateway-authority", "etcd-server"):
        ends = scrape.value("hudi_operator_certificate_expiration_timestamp_seconds", certificate=certificate)
        assert ends is not None, certificate
        assert ends > time.time(), certificate
    assert (scrape.value("hudi_operator_api_requests_total", verb="GET", code="200") or 0) > 5
    assert (scrape.value("hudi_operator_api_wait_seconds_count") or 0) > 5
    assert (scrape.value("hudi_operator_event_loop_lag_seconds_count") or 0) > 0
    checked = subprocess.run(["promtool", "check", "metrics"], input=scrape.text, capture_output=True, text=True)
    complaints = [line for line in (checked.stdout + checked.stderr).splitlines() if "hudi_" in line]
    assert not complaints, complaints

    first.kill()
    second = world.start_operator()
    again = wait_for("the same series without a change", lambda: shows(second))
    assert again.value("hudi_operator_writers", **where, state="Running") == 1
    assert again.value("hudi_operator_commits_total", **where) == 0
