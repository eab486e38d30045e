"""F301: whom the operator asks about executors, how often, and what it says of the answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.control import executor_questions
from hudi_operator.control.executor import Executor
from hudi_operator.control.executor_questions import ExecutorQuestions
from hudi_operator.control.timers import Timers
from hudi_operator.manifests import configmaps
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import ExecutorAnswer, Nodes, Observed
from hudi_operator.model.objects import Objects
from hudi_operator.model.ports import Fatal, OutcomeUnknown, Refused
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.writers import executors_missing

JsonDict = dict[str, Any]
KEY = ("ns", "t")
QUOTA = Refused("create Pod ns/x (dry run): exceeded quota: few (403)", reason="QuotaExceeded")


def config_map(**executors: Any) -> JsonDict:
    def meta(name: str) -> JsonDict:
        return {"namespace": "ns", "name": name, "uid": f"{name}-0123456", "generation": 1}

    source = {"files": {"format": "csv", "paths": ["s3a://in/"]}}
    spec = {"tableRef": {"name": "t"}, "source": source, "executors": {"instances": 2, **executors}}
    return configmaps.attempt_config(
        TableSpec.from_object(
            {"kind": "HudiTable", "metadata": meta("t"), "spec": {"path": "s3a://lake/t", "recordKeyFields": ["id"]}}
        ),
        WriterSpec.from_object({"kind": "HudiWriter", "metadata": meta("load"), "spec": spec}),
        1,
        OperatorConfig(),
        run=1,
    )


class Cluster:
    """Has the ConfigMaps of all drivers, and says the same of each pod."""

    def __init__(self, error: Exception | None = QUOTA) -> None:
        self.error, self.asked = error, list[JsonDict]()
        self.found: JsonDict | None = config_map()

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        assert (kind, namespace) == ("ConfigMap", "ns")
        return self.found

    async def would_create(self, manifest: JsonDict) -> None:
        self.asked.append(manifest)
        if self.error is not None:
            raise self.error


class Asking:
    """Questions on a clock of the test's."""

    def __init__(self, error: Exception | None = QUOTA) -> None:
        self.now, self.cluster = 0.0, Cluster(error)
        self.questions = ExecutorQuestions(self.cluster, lambda: self.now)  # type: ignore[arg-type]

    def ask(self, driver: str = "load-1") -> bool:
        return asyncio.run(self.questions.ask(KEY, question(driver)))

    @property
    def answer(self) -> ExecutorAnswer:
        return self.questions.facts(KEY)["ns.load-1"]


def question(driver: str) -> act.AskExecutors:
    return act.AskExecutors(naming.attempt_id("ns", driver), "ns", driver, f"uid-of-{driver}")


def observed(*timers: str) -> Observed:
    table = {"metadata": {"namespace": "ns", "name": "t", "uid": "u"}}
    return Observed(Objects(table, ()), pods=(), nodes=Nodes(), etcd=None, timers=dict.fromkeys(timers, 1.0))


def test_the_answer_is_the_api_servers() -> None:
    asking = Asking()
    assert asking.ask()
    assert asking.answer == ExecutorAnswer("QuotaExceeded", "create Pod ns/x (dry run): exceeded quota: few (403)")
    assert asking.answer.seconds == 30
    (pod,) = asking.cluster.asked
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "uid-of-load-1"
    asking.now, asking.cluster.error = 30.0, None
    assert asking.ask()
    assert asking.answer == ExecutorAnswer()


def test_one_attempt_is_asked_about_with_back_off() -> None:
    asking, times = Asking(), []
    for second in range(1600):
        asking.now = float(second)
        if asking.ask():
            times.append(second)
    assert times == [0, 30, 90, 210, 450, 930, 1410]


def test_a_thousand_attempts_are_asked_about_one_after_the_other() -> None:
    """A quota that is full refuses the executors of many writers at once."""
    asking, times = Asking(), list[float]()

    async def look() -> None:
        for number in range(1000):
            if await asking.questions.ask(KEY, question(f"load-{number}")):
                times.append(asking.now)

    for eighth in range(32):
        asking.now = eighth / 8
        asyncio.run(look())
    assert len(times) == 4 / executor_questions.PAUSE_SECONDS
    assert len(times) == len(set(times)) == len(asking.cluster.asked)


@pytest.mark.parametrize(
    ("error", "found", "message"),
    [
        (OutcomeUnknown("no answer"), None, "no answer"),
        (Fatal("webhook does not support dry run"), None, "webhook does not support dry run"),
        (None, "gone", "ConfigMap load-1 is gone"),
        (None, {"metadata": {"labels": {}}, "data": {}}, "ConfigMap load-1 is gone"),
        (
            None,
            {"metadata": {"labels": naming.MANAGED}, "data": {"executor-template.yaml": "{"}},
            "ConfigMap ns/load-1",
        ),
    ],
)
def test_what_cannot_be_asked_is_no_refusal(error: Exception | None, found: Any, message: str) -> None:
    """And no failure: the plan goes on, and it is asked again later."""
    asking = Asking(error)
    if found is not None:
        asking.cluster.found = None if found == "gone" else found
    assert asking.ask()
    assert asking.answer.reason == ""
    assert asking.answer.message.startswith(message)
    assert not asking.ask(), "with the same back-off"


def test_no_secret_of_the_pod_and_no_long_text_is_shown() -> None:
    beside = {
        "name": "beside",
        "image": "x:1",
        "env": [{"name": "API_TOKEN", "value": "hunter22"}, {"name": "MODE", "value": "verbose"}],
    }
    said = "webhook denied\n  {API_TOKEN: hunter22, MODE: verbose, at: /etc/hudi/s3}\n" + "x" * 5000
    asking = Asking(Refused(said, reason="AdmissionWebhook"))
    asking.cluster.found = config_map(podTemplate={"spec": {"containers": [beside]}})
    assert asking.ask()
    assert asking.answer.message.startswith(
        "webhook denied {API_TOKEN: <redacted>, MODE: verbose, at: /etc/hudi/s3} xx"
    )
    assert len(asking.answer.message) == executor_questions.MESSAGE_LIMIT


def test_who_misses_nothing_any_more_is_forgotten_when_it_might_be_asked_again() -> None:
    asking = Asking()
    assert asking.ask()
    asking.now = 29.0
    asking.questions.keep(KEY, observed())
    assert not asking.ask(), "executors that come and go are no reason to ask more often"
    asking.now = 31.0
    asking.questions.keep(KEY, observed(executors_missing.timer("ns.load-1")))
    assert asking.questions.facts(KEY)
    asking.questions.keep(KEY, observed())
    assert asking.questions.facts(KEY) == {}
    assert asking.ask()
    asking.questions.keep(KEY, replace(observed(), objects=Objects(None, ())))
    assert asking.questions.facts(KEY) == {}, "nobody looks at the table any more"


def test_an_answer_is_news_and_keeps_nothing_else_from_being_done() -> None:
    asking = Asking(OutcomeUnknown("no answer"))
    timers = Timers()
    executor = Executor(
        kubernetes=asking.cluster,  # type: ignore[arg-type]
        etcd=asking.cluster,  # type: ignore[arg-type]
        timers=timers,
        check_leader=lambda: None,
        questions=asking.questions,
    )
    seen = observed()
    plan = act.Plan("x", (question("load-1"), act.StartTimer("t")))
    done = asyncio.run(executor.perform(KEY, seen, plan))
    assert done == [question("load-1")]
    assert "t" in timers.ages(KEY)
    assert executor.has_news(KEY, seen)
    assert not executor.has_news(KEY, replace(seen, executor_answers=asking.questions.facts(KEY)))
