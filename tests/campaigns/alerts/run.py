"""Runs acts, and keeps what came of each alert."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.campaigns.alerts import rules, runbook
from tests.campaigns.alerts.acts import HEALTHY, Act
from tests.campaigns.alerts.fault import Fault, Made
from tests.campaigns.alerts.stage import Again, Stage
from tests.support import ROOT
from tests.support.evidence import RAW
from tests.support.evidence.replaced import with_earlier
from tests.support.harness.servers import wait_for

JsonDict = dict[str, Any]
STORE = RAW / "alerts"
OK, FAILED = "ok", "failed"
TESTED = ("operator", "gateway", "charts", "crds", "docs/operate/runbooks", "tests/campaigns/alerts")
"""What a result depends on."""
NOT_TESTED = (":!tests/campaigns/alerts/page.py", ":!charts/hudi-operator/README.md")


def commit() -> str:
    """The last commit that changed what is tested; `+` behind it when files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words, "--", *TESTED, *NOT_TESTED], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()

    return git("log", "-1", "--abbrev=10", "--format=%h") + ("+" if git("status", "--porcelain") else "")


def path(alert: str) -> Path:
    """File with the result of an alert."""
    return STORE / f"{alert}.json"


def load(alert: str) -> JsonDict | None:
    """Its result, of whatever commit; None: there is none."""
    return dict(json.loads(path(alert).read_text())) if path(alert).exists() else None


def keep(result: JsonDict) -> None:
    """Store a result."""
    STORE.mkdir(parents=True, exist_ok=True)
    made = with_earlier(result, load(result["alert"]))
    path(result["alert"]).write_text(json.dumps(made, indent=1) + "\n")


@dataclass
class Tried:
    """An alert of the act that runs."""

    fault: Fault
    result: JsonDict
    wrong: list[str]
    made: Made | None = None
    since: int = 0
    """Number of notifications before the fault."""
    began: float = 0.0
    again: Again | None = None

    @property
    def labels(self) -> dict[str, str]:
        assert self.made is not None
        return {"alertname": self.fault.alert, **self.made.labels}


def play(act: Act, stage: Stage, wanted: Collection[str]) -> Iterator[JsonDict]:
    """Results of the wanted alerts of an act, as they are known."""
    with ExitStack() as open_:
        act.begin(stage, open_)
        names = {fault.alert for fault in act.faults}
        wait_for(
            "no alert of what was before",
            lambda: not any(stage.alerts.last({"alertname": name}) == "firing" for name in names),
            seconds=60,
        )
        quiet = stage.alerts.count
        tried = [_begun(fault, stage) for fault in act.faults if fault.alert in wanted]
        for step in (_fires, _follow, _repair, _ends):
            for one in tried:
                if one.made is not None:
                    _noted(one, step, stage)
        disturbed = [a for a in stage.alerts.told({"table": HEALTHY}, since=quiet) if a["status"] == "firing"]
        for one in tried:
            if one.again is not None:
                one.again.__exit__()
            one.wrong += [f"{alert['labels']['alertname']} of the healthy table" for alert in disturbed]
            yield {**one.result, "verdict": FAILED if one.wrong else OK, "wrong": one.wrong}


def _noted(one: Tried, step: Callable[[Tried, Stage], None], stage: Stage) -> None:
    try:
        step(one, stage)
    except Exception as error:
        one.wrong.append(_clean(f"{step.__name__.strip('_')}: {type(error).__name__}: {error}", stage))


def _clean(text: str, stage: Stage) -> str:
    """Text for a file that is committed."""
    return text.replace(str(stage.directory), "DIRECTORY")[:500]


def _begun(fault: Fault, stage: Stage) -> Tried:
    rule = rules.every()[fault.alert]
    result: JsonDict = {
        "alert": fault.alert,
        "severity": rule["labels"]["severity"],
        "commit": commit(),
        "at": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()),
        "fault": fault.done,
        "repaired": fault.repaired,
        "shortened": rules.changes(rule),
    }
    one = Tried(fault, result, [], since=stage.alerts.count)
    try:
        one.made = fault.make(stage)
    except Exception as error:
        one.wrong.append(_clean(f"the fault was not made: {type(error).__name__}: {error}", stage))
        return one
    one.began = time.time()
    if stage.alerts.last(one.labels, until=one.since) == "firing":
        one.wrong.append("it fired before the fault")
    if one.made.again is not None:
        one.again = Again(one.made.again, every=one.made.every)
        one.again.__enter__()
    print(f"{fault.alert}: {fault.done}", flush=True)
    return one


def _at(time_: str) -> float:
    """Unix time of an alert's time, whose fraction may have nine digits."""
    whole, _, rest = time_.partition(".")
    fraction = rest.rstrip("Z").partition("+")[0]
    return datetime.fromisoformat(whole.rstrip("Z") + "+00:00").timestamp() + float(f"0.{fraction or 0}")


def _fires(one: Tried, stage: Stage) -> None:
    assert one.made is not None

    def fired() -> JsonDict | None:
        told = stage.alerts.told(one.labels, since=one.since)
        return next((alert for alert in told if alert["status"] == "firing"), None)

    left = one.made.seconds - (time.time() - one.began)
    alert = wait_for(f"{one.labels} fires", fired, seconds=max(left, 5))
    one.result |= {
        "firedAfter": round(max(0.0, _at(alert["startsAt"]) - one.began), 1),
        "labels": alert["labels"],
        "says": alert["annotations"]["description"],
    }
    page = alert["annotations"]["runbook_url"]
    if not (ROOT / page).is_file():
        one.wrong.append(f"there is no {page}")


def _follow(one: Tried, stage: Stage) -> None:
    assert one.made is not None
    done, wrong = runbook.followed(
        one.fault.alert,
        one.made.words,
        one.made.shows,
        kubeconfig=stage.cluster.kubeconfig,
        etcd_metrics=stage.small_etcd_metrics,
    )
    one.result |= {"commands": done, "shows": list(one.made.shows)}
    one.wrong += [_clean(text, stage) for text in wrong]


def _repair(one: Tried, stage: Stage) -> None:
    assert one.made is not None
    if one.again is not None:
        one.again.__exit__()
        if one.again.problem is not None:
            print(f"{one.fault.alert}: again: {one.again.problem}", flush=True)
        one.again = None
    one.made.repair()
    one.result["repairedAt"] = time.time()


def _ends(one: Tried, stage: Stage) -> None:
    assert one.made is not None
    repaired = one.result.pop("repairedAt", time.time())
    ended = f"{one.labels} ends"
    wait_for(ended, lambda: stage.alerts.last(one.labels) == "resolved", seconds=one.made.lasts)
    last = stage.alerts.told(one.labels)[-1]
    one.result["endedAfter"] = round(max(0.0, _at(last["endsAt"]) - repaired), 1)
