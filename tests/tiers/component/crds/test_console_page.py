"""The console's page in Chromium, in front of a real API server: sign-in, the list of many tables,
a table's timeline, a writer; on a large and on a small screen. Pictures are left in build/console.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.harness import browser
from tests.support.harness.browser import Page
from tests.support.harness.console_process import Console, console
from tests.tiers.component.crds.cluster import Cluster, table, wait_until, writer

pytestmark = [pytest.mark.extra, pytest.mark.timeout(400)]
JsonDict = dict[str, Any]
PICTURES = ROOT / "build" / "console"
MANY = 60
"""More tables than the page shows at once."""


def at(ago: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))


def instant(ago: float) -> str:
    return time.strftime("%Y%m%d%H%M%S000", time.gmtime(time.time() - ago))


def condition(kind: str, status: str, reason: str, message: str = "") -> JsonDict:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at(30)}


def commit(space: str, who: str, begin: float, end: float, records: int, action: str = "deltacommit") -> JsonDict:
    found: JsonDict = {"instant": instant(begin), "completionTime": instant(end), "action": action, "records": records}
    return {**found, "writer": f"{space}/{who}", "attempt": f"{space}.{who}-1"} if who else found


def statuses(space: str) -> dict[tuple[str, str], JsonDict]:
    """A table in the middle of its work: three writers, a conflict, one that is dead."""
    ready = condition("Ready", "True", "Ready", "writers may write")
    proof = condition(
        "AwaitingProofOfDeath",
        "True",
        "ProofMissing",
        "pod encrypt-1: the kubelet of node-3 has not said that it has ended",
    )
    live = [
        {"number": 4, "pod": "live-4", "startTime": at(900), "readyTime": at(860), "records": 170_618, "executors": 2}
    ]
    backfill = [
        {
            "number": 1,
            "run": 1,
            "pod": "backfill-1",
            "startTime": at(1500),
            "readyTime": at(1460),
            "endTime": at(900),
            "class": "NodeLost",
            "message": "the node was lost",
            "exitCode": 137,
            "records": 3000,
        },
        {
            "number": 2,
            "run": 1,
            "pod": "backfill-2",
            "startTime": at(800),
            "readyTime": at(760),
            "records": 56_432,
            "instants": [instant(700)],
        },
    ]
    encrypt = [
        {
            "number": 1,
            "pod": "encrypt-1",
            "startTime": at(600),
            "readyTime": at(560),
            "endTime": at(120),
            "class": "LeaseGone",
        }
    ]
    return {
        ("ht", "flights"): {
            "conditions": [
                ready,
                condition("Stalled", "False", "NotStalled"),
                proof,
                condition("ServicesHealthy", "True", "Healthy"),
            ],
            "timeline": {
                "pendingCount": 2,
                "lastCommitTime": at(140),
                "lastInstant": instant(200),
                "pending": [
                    {"instant": instant(100), "action": "deltacommit", "state": "INFLIGHT", "owner": f"{space}.live-4"},
                    {"instant": instant(60), "action": "clean", "state": "REQUESTED"},
                ],
                "commits": [
                    commit(space, "backfill", 1400, 1200, 3000),
                    commit(space, "live", 850, 780, 900),
                    commit(space, "live", 750, 690, 1200),
                    commit(space, "backfill", 700, 480, 56_432),
                    commit(space, "encrypt", 540, 420, 880),
                    commit(space, "live", 460, 390, 700),
                    commit(space, "", 380, 330, 4000, "replacecommit"),
                    commit(space, "live", 320, 260, 640),
                    commit(space, "live", 200, 140, 610),
                ],
            },
            "lock": {"owner": "i", "attempt": f"{space}.encrypt-1", "since": at(130)},
            "settling": [
                {
                    "incarnation": "i",
                    "attempt": f"{space}.encrypt-1",
                    "pod": "encrypt-1",
                    "phase": "Terminating",
                    "reason": "LeaseGone",
                    "since": at(118),
                    "waitingFor": "the kubelet of node-3 to say that pod encrypt-1 has ended",
                }
            ],
            "services": {
                "clean": {"outcome": "Completed", "lastTime": at(700), "message": "3 files", "commitsUntilNext": 2},
                "clustering": {"outcome": "Completed", "lastTime": at(330), "lastInstant": instant(380)},
                "compaction": {"outcome": "Failed", "lastTime": at(1000), "message": "no executor", "failures": 1},
            },
            "savepoints": [
                {"name": "before-backfill", "outcome": "Completed", "time": at(1550), "instant": instant(1600)}
            ],
        },
        ("hw", "live"): {
            "state": "Running",
            "mode": "Streaming",
            "attempts": live,
            "attempt": 4,
            "records": 170_618,
            "conflicts": 1,
            "lastCommit": {"time": at(140), "instant": instant(200)},
            "conditions": [condition("Ready", "True", "Running")],
            "recentConflicts": [
                {
                    "instant": instant(385),
                    "retriedAs": instant(320),
                    "with": instant(380),
                    "time": at(345),
                    "fileGroups": ["month=2/1e35db0a"],
                }
            ],
        },
        ("hw", "backfill"): {
            "state": "Running",
            "mode": "Once",
            "attempts": backfill,
            "attempt": 2,
            "records": 59_432,
            "conditions": [condition("Ready", "True", "Running")],
            "lastCommit": {"time": at(480), "instant": instant(700)},
        },
        ("hw", "encrypt"): {
            "state": "Waiting",
            "mode": "Once",
            "attempts": encrypt,
            "attempt": 1,
            "records": 880,
            "conditions": [condition("Ready", "False", "Waiting", "it waits for the death of attempt 1 to be proven")],
            "queue": {"position": 1, "since": at(110), "blockedBy": "attempt 1 is not settled"},
        },
    }


def prepare(cluster: Cluster, space: str) -> str:
    """Objects as the operator would leave them; returns a token that may view them."""
    many = [table(space, f"t{n:03}", path=f"s3a://lake/t{n:03}") for n in range(MANY)]
    cluster.apply(table(space), *many, *(writer(space, name) for name in ("backfill", "encrypt", "live")))
    for (kind, name), status in statuses(space).items():
        told = json.dumps({"status": {"observedGeneration": 1, **status}})
        cluster.kubectl("patch", kind, name, "-n", space, "--subresource=status", "--type=merge", "--patch", told)
    cluster.kubectl("create", "serviceaccount", "viewer", "-n", space)
    cluster.kubectl(
        "create", "rolebinding", "viewer", "--clusterrole=view", f"--serviceaccount={space}:viewer", "-n", space
    )
    return cluster.kubectl("create", "token", "viewer", "-n", space).strip()


ALIGNED = """(() => {
  const svg = document.querySelector('svg.timeline');
  const ticks = [...svg.querySelectorAll('.tick')].map((one) => +one.getAttribute('x1'));
  const times = [...svg.querySelectorAll('text.time')]
    .map((one) => ({ at: +one.getAttribute('x'), box: one.getBBox() }));
  const lanes = [...svg.querySelectorAll('.ground')].map((one) => one.getBBox());
  const bars = [...svg.querySelectorAll('.bar-of')].map((one) => ({
    box: one.querySelector('rect, path').getBBox(),
    lane: lanes[+one.dataset.n.split('.')[0]],
  }));
  return {
    ticks: ticks.length,
    timesAtTicks: times.every((one, n) => one.at === ticks[n]),
    timesApart: times.every((one, n) => n === 0 || times[n - 1].box.x + times[n - 1].box.width < one.box.x),
    names: [...document.querySelectorAll('tbody td:first-child a')].every((one) => one.getClientRects().length === 1),
    lanesTouch: lanes.every((one, n) => n === 0 || Math.abs(lanes[n - 1].y + lanes[n - 1].height - one.y) < 0.01),
    barsInside: bars.every(({ box, lane }) => box.y >= lane.y && box.y + box.height <= lane.y + lane.height + 1),
    bars: bars.length,
    wide: document.documentElement.scrollWidth <= window.innerWidth,
  };
})()"""


FITS = (
    "Math.abs(document.querySelector('svg.timeline').clientWidth - document.querySelector('.picture').clientWidth) < 3"
)
EMPTIED = (
    "(() => { const f = document.getElementById('filter'); f.value = ''; f.dispatchEvent(new Event('input')); })()"
)


async def signed_in(page: Page, url: str, token: str, space: str) -> None:
    await page.do("Page.navigate", url=url)
    await page.until("document.activeElement?.id === 'token'")
    await page.type("no.such.token")
    await page.key("Enter")
    await page.until("/does not know this token/.test(document.body?.innerText)")
    await page.type(token)
    await page.key("Enter")
    await page.until(
        "/cannot list resource/.test(document.body.innerText) && document.activeElement?.id === 'namespaces'"
    )
    await page.type("Team-A")
    await page.key("Enter")
    await page.until(
        "/must be a DNS label/.test(document.body.innerText) && document.activeElement?.id === 'namespaces'"
    )
    await page.value("document.getElementById('namespaces').value = ''")
    await page.type(space)
    await page.key("Enter")
    await page.until(
        f"document.querySelectorAll('tbody tr').length === 50 && /{MANY + 1} tables/.test(document.body.innerText)"
    )
    assert await page.value("sessionStorage.length") == 0
    assert await page.value("Object.values(localStorage).join()") == space


async def look(url: str, token: str, space: str, cluster: Cluster) -> None:
    async with browser.browser() as page:
        await page.size(1440, 900)
        await signed_in(page, url, token, space)
        first = await page.value("document.querySelector('tbody tr').innerText")
        assert "flights" in first, "what needs a look comes first"
        await page.picture(PICTURES / "tables-1440.png")
        await page.key("/")
        await page.type("t007")
        await page.until("document.querySelectorAll('tbody tr').length === 1")
        await page.value(EMPTIED)
        await page.key("ArrowDown")
        await page.until("document.activeElement?.textContent === 'flights'")
        await page.key("Enter")
        await page.until("document.querySelectorAll('svg.timeline .bar-of').length > 15")
        await page.until("document.getElementById('live').textContent === 'live'")
        await table_page(page, cluster, space)
        await page.value("location.hash = location.hash.replace('tables', 'writers').replace('flights', 'backfill')")
        await page.until("/NodeLost/.test(document.body.innerText)")
        for width, dark in ((1440, False), (390, True)):
            await page.size(width, 900, dark=dark)
            await page.picture(PICTURES / f"writer-{width}{'-dark' if dark else ''}.png")
            assert await page.value("document.documentElement.scrollWidth <= window.innerWidth")
        await page.value("location.hash = '#/'")
        await page.until("document.querySelectorAll('tbody tr').length === 50")
        await page.picture(PICTURES / "tables-390-dark.png")
        assert await page.value("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.asked
        assert [one for one in page.asked if not one.startswith((url, "about:"))] == [], "nobody else is asked"
        assert [one for one in page.problems if "401" not in one and "403" not in one] == []
        await page.value("document.getElementById('out').click()")
        await page.until("document.activeElement?.id === 'token' && sessionStorage.length === 0")


async def table_page(page: Page, cluster: Cluster, space: str) -> None:
    for width, height, dark in ((1440, 900, False), (1440, 900, True), (390, 844, False), (390, 844, True)):
        await page.size(width, height, dark=dark)
        await page.until(FITS + f" && window.innerWidth === {width}")
        seen = await page.value(ALIGNED)
        assert seen["ticks"] >= 2, seen
        assert seen["bars"] > 15, seen
        assert all(
            seen[what] for what in ("timesAtTicks", "timesApart", "lanesTouch", "barsInside", "wide", "names")
        ), seen
        await page.picture(PICTURES / f"table-{width}{'-dark' if dark else ''}.png")
    await page.size(1440, 900)
    label = "document.querySelector('svg.timeline').getAttribute('aria-label')"
    whole = await page.value(label)
    await page.value("document.querySelector('svg.timeline').focus()")
    for key in ("+", "+", "ArrowLeft"):
        await page.key(key)
    assert await page.value(label) != whole
    await page.picture(PICTURES / "table-1440-zoomed.png")
    await page.key(".")
    await page.until("/savepoint before-backfill/.test(document.getElementById('bar').textContent)")
    await page.key("0")
    told = json.dumps({"status": {"lock": None, "settling": []}})
    await asyncio.to_thread(
        cluster.kubectl, "patch", "ht", "flights", "-n", space, "--subresource=status", "--type=merge", "--patch", told
    )
    await page.until("document.querySelectorAll('.k-held').length > 0 && !document.querySelector('.k-held.open')")


@pytest.mark.skipif(not browser.PROGRAM, reason="no Chromium: hack/setup/deps all")
def test_the_page_is_used(light_cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    token = prepare(light_cluster, namespace)
    config = light_cluster.get_config()
    with console(config["server"], config["ca"], tmp_path / "log") as found:
        wait_until(lambda: _may(found, namespace, token))
        asyncio.run(look(f"{found.url}/", token, namespace, light_cluster))
    assert token not in (tmp_path / "log").read_text()


def _may(found: Console, namespace: str, token: str) -> bool:
    return found.get(f"/api/v1/tables?namespace={namespace}", token)[0] == 200
