import json
from dataclasses import replace
from typing import Any

import pytest

from hudi_contract.outcomes import FailureClass
from hudi_contract.reports import TerminationMessage
from hudi_operator.model import classify
from hudi_operator.model.facts import ContainerFacts, NodeFacts, PodFacts

READY = NodeFacts("n1", "u", "b", ready=True, out_of_service=False)
LOST = NodeFacts("n1", "u", "b", ready=False, out_of_service=False)


def pod(
    code: int | None,
    *,
    phase: str = "Failed",
    reason: str | None = None,
    deleting: bool = False,
    waiting: str = "",
    ended: str = "",
    **word: Any,
) -> PodFacts:
    message = json.dumps(word) if word else ""
    container = ContainerFacts(
        "driver", started=code is not None, terminated=code is not None, exit_code=code, reason=reason, message=message
    )
    return PodFacts(
        "ns",
        "p",
        "u",
        {},
        phase,
        "n1",
        deleting=deleting,
        finalizers=(),
        containers=(container,),
        waiting=waiting,
        reason=ended,
    )


@pytest.mark.parametrize(
    ("facts", "node", "expected"),
    [
        (pod(0, phase="Succeeded"), READY, "Succeeded"),
        (pod(0, phase="Succeeded", outcome="Succeeded"), READY, "Succeeded"),
        (pod(10), READY, "UserError"),
        (pod(11), READY, "Infrastructure"),
        (pod(10, **{"class": "SchemaMismatch"}), READY, "SchemaMismatch"),
        (pod(13), READY, "WriteConflict"),
        (pod(14), READY, "LockTimeout"),
        (pod(15), READY, "Fenced"),
        (pod(16), READY, "HeartbeatLost"),
        (pod(1), READY, "Infrastructure"),
        (pod(137), READY, "Infrastructure"),
        (pod(137, reason="OOMKilled"), READY, "OutOfMemory"),
        (pod(143, deleting=True), READY, "Eviction"),
        (pod(137, reason="ContainerStatusUnknown"), READY, "NodeLost"),
        (pod(None), READY, "Eviction"),
        # the kubelet has ended the pod: killed, or left by itself when asked to stop
        (pod(137, ended="DeadlineExceeded"), READY, "DeadlineExceeded"),
        (pod(143, ended="Evicted"), READY, "Eviction"),
        (pod(11, ended="DeadlineExceeded", outcome="Failed", **{"class": "Infrastructure"}), READY, "DeadlineExceeded"),
        (pod(13, ended="DeadlineExceeded", outcome="Failed", **{"class": "WriteConflict"}), READY, "WriteConflict"),
        (pod(0, phase="Succeeded", ended="DeadlineExceeded", outcome="Succeeded"), READY, "Succeeded"),
        (pod(None, phase="Running"), LOST, "NodeLost"),
        (pod(None, phase="Running"), None, "NodeLost"),
        # the runtime's word wins over the code
        (pod(1, outcome="Failed", **{"class": "StorageUnreachable"}), READY, "StorageUnreachable"),
        (pod(1, outcome="Failed", **{"class": "OptionNotAllowed"}), READY, "OptionNotAllowed"),
        (pod(10, outcome="Failed", **{"class": "Nonsense"}), READY, "UserError"),
        # a success that the code contradicts is none
        (pod(137, outcome="Succeeded"), READY, "Infrastructure"),
        (None, None, "NodeLost"),
    ],
)
def test_classes(facts: PodFacts | None, node: NodeFacts | None, expected: str) -> None:
    assert classify.classify(facts, node=node).kind == expected


@pytest.mark.parametrize(
    ("facts", "fenced", "expected"),
    [
        pytest.param(
            pod(11, deleting=True, outcome="Failed", message="asked to stop", **{"class": "Infrastructure"}),
            "",
            "Eviction",
            id="it abandoned its work and left",
        ),
        pytest.param(pod(11, deleting=True), "PodTerminated", "Eviction", id="and an executor was lost"),
        pytest.param(pod(11, deleting=True), "LeaseGone", "HeartbeatLost", id="it was fenced, and then deleted"),
        pytest.param(pod(11, deleting=True), "PodGone", "Infrastructure", id="for another reason"),
        pytest.param(pod(11), "", "Infrastructure", id="nobody has deleted it"),
        pytest.param(pod(10, deleting=True), "", "UserError", id="an error of its own"),
    ],
)
def test_a_driver_whose_pod_was_deleted_was_evicted(facts: PodFacts, fenced: str, expected: str) -> None:
    """F557: by a drain, a preemption or a queue of the cluster, which all delete the pod."""
    assert classify.classify(facts, node=READY, fenced_reason=fenced).kind == expected


@pytest.mark.parametrize(
    "other",
    [
        ContainerFacts("proxy", True, True, 1, message='{"outcome": "Succeeded"}'),
        ContainerFacts("agent", True, True, 137),
    ],
)
def test_a_container_beside_the_drivers_has_no_say(other: ContainerFacts) -> None:
    """F45: neither its exit code nor its message."""
    facts = replace(pod(13), labels={"hudioperator.io/role": "driver"})
    found = classify.classify(replace(facts, containers=(other, *facts.containers)), node=READY)
    assert (found.kind, found.exit_code) == ("WriteConflict", 13)


@pytest.mark.parametrize("message", [" ", "\n", "\x1c", "\u2028 \n"])
def test_a_blank_message_is_none(message: str) -> None:
    """F462: it kept the end of its attempt from being recorded."""
    found = classify.classify(pod(11, outcome="Failed", message=message), node=READY)
    assert (found.kind, found.message) == ("Infrastructure", "container driver ended with exit code 11 (no reason)")
    assert classify.classify(pod(None, phase="Failed", waiting=message)).message == ""


def test_a_message_that_is_nested_too_deeply_is_a_text() -> None:
    """F462: as much as the kubelet keeps of it."""
    facts = pod(11)
    container = replace(facts.containers[0], message="[" * 4096)
    found = classify.classify(replace(facts, containers=(container,)), node=READY)
    assert found.kind == "Infrastructure"
    assert found.message.startswith("container driver ended with exit code 11 (no reason); its log ends with: [[[")


def test_what_came_before_the_driver_tells_when_it_never_started() -> None:
    setup = ContainerFacts("setup", started=True, terminated=True, exit_code=2, message="no route", kind="init")
    never = ContainerFacts("driver", started=False, terminated=False)
    facts = replace(pod(None), labels={"hudioperator.io/role": "driver"}, containers=(never, setup))
    said = "container setup ended with exit code 2 (no reason); its log ends with: no route"
    assert classify.classify(facts, node=READY).message == said


@pytest.mark.parametrize("kind", ["init", "sidecar", "container", "ephemeral"])
@pytest.mark.parametrize("message", ["", '{"outcome": "Succeeded"}'])
@pytest.mark.parametrize("ended", ["Evicted", ""])
def test_nobody_but_the_driver_tells_of_a_success(kind: str, message: str, ended: str) -> None:
    """F243: what ran before or beside it ended well, and the driver never started."""
    setup = ContainerFacts("setup", started=True, terminated=True, exit_code=0, message=message, kind=kind)
    never = ContainerFacts("driver", started=False, terminated=False)
    bare = replace(pod(None, ended=ended), labels={"hudioperator.io/role": "driver"})
    for found in ((setup, never), (never, setup), (setup,)):
        outcome = classify.classify(replace(bare, containers=found), node=READY)
        assert (outcome.kind, outcome.exit_code, outcome.retried) == ("Eviction", None, True)


@pytest.mark.parametrize("code", [1, 10, 13, 15])
def test_an_exit_code_of_another_container_is_no_word_of_the_runtime(code: int) -> None:
    """Code 10 of an init container would be an error of the user that is not repeated."""
    setup = ContainerFacts("setup", started=True, terminated=True, exit_code=code, kind="init")
    never = ContainerFacts("driver", started=False, terminated=False)
    facts = replace(pod(None), labels={"hudioperator.io/role": "driver"}, containers=(setup, never))
    outcome = classify.classify(facts, node=READY)
    assert (outcome.kind, outcome.retried) == ("Infrastructure", True)


@pytest.mark.parametrize(("kind", "retried"), [(10, False), (11, True), (13, True), (15, True), (0, False)])
def test_what_is_retried(kind: int, retried: bool) -> None:
    assert classify.classify(pod(kind)).retried is retried


def test_stopping_makes_a_failure_cancelled_but_not_a_success() -> None:
    assert classify.classify(pod(143, deleting=True), stopping=True).kind == "Cancelled"
    assert classify.classify(pod(0, phase="Succeeded"), stopping=True).kind == "Succeeded"
    assert classify.classify(None, stopping=True).kind == "Cancelled"


def test_the_operators_own_reason_explains_a_kill() -> None:
    assert classify.classify(pod(137), fenced_reason="LeaseGone").kind == "HeartbeatLost"
    assert classify.classify(pod(137), fenced_reason="HeldTooLong").kind == "Fenced"
    assert classify.classify(pod(137), fenced_reason="PodTerminated").kind == "Infrastructure"


def test_a_killed_process_is_told_of_by_the_last_words_of_its_log() -> None:
    """The kubelet cuts the beginning of what it keeps of a log, within a line."""
    log = (
        "dress.getAllByName(InetAddress.java:1385)\n\tat a.b.C$D.<init>(C.java:7)\nCaused by: x.Y: no route\n"
        "\tat a.b.C.go(C.java:8)\n\t... 17 more\n\n"
    )
    main = ContainerFacts("driver", started=True, terminated=True, exit_code=137, reason="Error", message=log)
    facts = replace(pod(137), containers=(main,))
    said = "container driver ended with exit code 137 (Error)"
    assert classify.classify(facts).message == f"{said}; its log ends with: Caused by: x.Y: no route"
    stack = replace(main, message="xt.Y(Z.java)\n\tat a.b.C.go(C.java:8)\n")
    assert classify.classify(replace(facts, containers=(stack,))).message == said


def test_message_is_one_bounded_line() -> None:
    outcome = classify.classify(pod(10, outcome="Failed", message="first\nsecond", **{"class": "UserError"}))
    assert outcome.message == "first"
    assert classify.classify(pod(137)).message == "container driver ended with exit code 137 (no reason)"
    assert classify.classify(pod(None, waiting="ErrImagePull: no such image")).message == "ErrImagePull: no such image"
    assert (
        len(classify.classify(pod(10, message="x" * 5000, **{"class": "UserError"})).message) == classify.MESSAGE_LIMIT
    )


def test_termination_reports_that_are_none() -> None:
    assert classify.termination_report("") is None
    assert classify.termination_report("[1]") is None
    assert classify.termination_report("killed") is None


def test_no_containers() -> None:
    bare = PodFacts("ns", "p", "u", {}, "Failed", "n1", deleting=False, finalizers=(), containers=())
    assert classify.classify(bare).kind == "Eviction"


@pytest.mark.parametrize("kind", [FailureClass.BAD_DATA, FailureClass.VALIDATION_FAILED])
def test_bad_data_is_not_tried_again(kind: FailureClass) -> None:
    """The same rows are refused again (F41)."""
    assert not classify.Outcome(kind, 10, "column p of record id='1' is 'a//b'", TerminationMessage()).retried


@pytest.mark.parametrize(
    ("facts", "fenced", "expected"),
    [
        pytest.param(pod(11, outcome="Failed", message="Job aborted", **{"class": "Infrastructure"}), "", "OutOfMemory",
                     id="its tasks were lost too often"),
        pytest.param(pod(11), "", "OutOfMemory", id="Spark ended it"),
        pytest.param(pod(10, outcome="Failed", **{"class": "UserError"}), "", "UserError", id="it knows better"),
        pytest.param(pod(11, outcome="Failed", **{"class": "StorageUnreachable"}), "", "StorageUnreachable",
                     id="it knows better, with the same code"),
        pytest.param(pod(137), "", "Infrastructure", id="it was killed"),
        pytest.param(pod(11), "LeaseGone", "HeartbeatLost", id="it was fenced"),
        pytest.param(pod(11, deleting=True), "", "Eviction", id="it was evicted"),
    ],
)  # fmt: skip
def test_executors_that_lacked_memory_end_their_attempt_if_its_driver_knows_no_better(
    facts: PodFacts, fenced: str, expected: str
) -> None:
    found = classify.classify(facts, node=READY, fenced_reason=fenced, lost="load-1-exec-2")
    assert found.kind == expected
    by_executor = expected == "OutOfMemory"
    assert found.out_of_memory == ("load-1-exec-2" if by_executor else "")
    assert found.message.startswith("executor load-1-exec-2 ended for lack of memory; ") == by_executor


def test_a_driver_that_lacked_memory_itself_says_so() -> None:
    found = classify.classify(pod(137, reason="OOMKilled"), node=READY, lost="load-1-exec-2")
    assert (found.kind, found.out_of_memory) == ("OutOfMemory", "driver")


@pytest.mark.parametrize(
    ("code", "reason", "lacked"),
    [
        (137, "OOMKilled", True),
        (3, "Error", True),
        (52, "Error", True),
        (137, "Error", False),
        (1, "Error", False),
        (0, "Completed", False),
        (None, None, False),
    ],
)
def test_how_an_executor_ends_for_lack_of_memory(code: int | None, reason: str | None, lacked: bool) -> None:
    """Its container's, or its heap's."""
    ended = ContainerFacts("executor", started=True, terminated=code is not None, exit_code=code, reason=reason)
    assert classify.lacked_memory(ended) is lacked
    assert not classify.lacked_memory(None)
