"""What one broker remembers of the cluster is no loss before it was looked at again (F633)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract import job as contract
from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import KafkaSource
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError
from hudi_runtime.read import kafka
from hudi_runtime.read import kafka_positions as kp
from hudi_runtime.read.kafka import Brokers, Look

FLIGHTS = kp.Seen("id-1", (0, 0), (5, 5))
READ = kp.Position({"flights": kp.Topic("id-1", (3, 3))})
THERE, GONE, NEVER = Look({"flights": FLIGHTS}), Look({}, gone=("flights",)), Look({}, never=("flights",))
OTHER = Look({"flights": kp.Seen("id-0", (0, 0), (5, 5))})
FEWER = Look({"flights": kp.Seen("id-1", (0,), (5,))})


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between looks."""
    pauses: list[float] = []
    monkeypatch.setattr(kafka.time, "sleep", pauses.append)
    return pauses


def certain(looks: list[Look], stored: kp.Position | None = READ) -> Look:
    """The result of these looks; the last one stays."""
    brokers: Any = SimpleNamespace(look=lambda _: looks.pop(0) if len(looks) > 1 else looks[0])
    return kafka._certain(brokers, stored)


@pytest.mark.parametrize("first", [GONE, OTHER, FEWER])
def test_a_broker_that_has_just_started_ends_nothing(paused: list[float], first: Look) -> None:
    assert certain([first, first, THERE]) == THERE
    assert paused == [kafka.LOOK_SECONDS] * 2
    assert certain([NEVER, THERE], None) == THERE


@pytest.mark.parametrize("last", [GONE, OTHER, FEWER])
def test_what_every_look_tells_is_so(paused: list[float], last: Look) -> None:
    assert certain([last]) == last
    assert sum(paused) >= 30
    with pytest.raises(UserCodeError, match="topic flights does not exist"):
        certain([NEVER], None)


def test_records_that_were_removed_are_told_at_once(paused: list[float]) -> None:
    """By the leader of the partition, which knows."""
    removed = Look({"flights": kp.Seen("id-1", (4, 0), (5, 5))})
    assert certain([removed]) == removed
    assert paused == []


@pytest.mark.usefixtures("paused")
def test_what_may_not_be_told_is_no_loss() -> None:
    refused = frozenset({"flights"})
    with pytest.raises(RuntimeFailure, match="not authorized to describe it") as failed:
        certain([Look({}, gone=("flights",), refused=refused)])
    assert failed.value.failure is FailureClass.INFRASTRUCTURE
    with pytest.raises(UserCodeError, match="does not exist, or may not be read"):
        certain([Look({}, never=("flights",), refused=refused)], None)


class Failed(Exception):
    """An error of the client, with its causes."""

    def __init__(self, *types: str) -> None:
        super().__init__(types)
        self.causes = [SimpleNamespace(type=f"org.apache.kafka.common.errors.{name}", message="told") for name in types]


def brokers(monkeypatch: pytest.MonkeyPatch, listed: set[str], describe: Callable[[str], None], **source: Any) -> Any:
    """Brokers of which one lists these topics, and `describe` raises what another one tells."""
    monkeypatch.setattr(kafka, "java_causes", lambda error: getattr(error, "causes", []))
    said = {
        "bootstrapServers": ["k:9092"],
        "startFrom": "Earliest",
        "ifPositionLost": "Fail",
        "value": {"format": "Binary"},
        **source,
    }
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jvm=None))
    made = Brokers(spark, KafkaSource.of(contract.Kafka.from_json(said)))

    class Names(list[str]):
        add = list.append

    made._jvm = SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(ArrayList=Names)))
    answer = SimpleNamespace(names=lambda: SimpleNamespace(get=lambda: listed))

    def described(names: list[str]) -> Any:
        return SimpleNamespace(allTopicNames=lambda: SimpleNamespace(get=lambda: describe(names[0])))

    made._admin = SimpleNamespace(listTopics=lambda: answer, describeTopics=described)
    monkeypatch.setattr(made, "_seen", lambda names: dict.fromkeys(names, FLIGHTS))
    return made


@pytest.mark.parametrize(
    ("error", "look"),
    [
        (None, THERE),
        (Failed("UnknownTopicOrPartitionException"), GONE),
        (Failed("ExecutionException", "UnknownTopicOrPartitionException"), GONE),
        (Failed("InvalidTopicException"), GONE),
        (Failed("TopicAuthorizationException"), Look({}, gone=("flights",), refused=frozenset({"flights"}))),
    ],
)
@pytest.mark.parametrize("source", [{"topics": ["flights"]}, {"topicPattern": "fl.*"}])
def test_a_list_that_leaves_a_topic_out_says_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, look: Look, source: dict[str, Any]
) -> None:
    def describe(name: str) -> None:
        assert name == "flights"
        if error is not None:
            raise error

    assert brokers(monkeypatch, set(), describe, **source).look(READ) == look
    if error is None or "topics" not in source:
        return
    never = Look({}, never=look.gone, refused=look.refused)
    assert brokers(monkeypatch, set(), describe, **source).look(None) == never


def test_no_answer_is_a_failure_of_the_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(_: str) -> None:
        raise Failed("TimeoutException")

    with pytest.raises(RuntimeFailure, match="no answer about the topics") as failed:
        brokers(monkeypatch, set(), describe, topics=["flights"]).look(READ)
    assert failed.value.failure is FailureClass.INFRASTRUCTURE
