"""The checker accepts every run that the protocol allows, rejects what it forbids with a sentence,
and notices nearly every change of a log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import seeds
from tests.support.model import configurations as on
from tests.support.model.rules import Configuration
from tests.support.trace.conform import assert_conform, check, main
from tests.support.trace.emit import walk
from tests.support.trace.events import Event, read, read_files
from tests.support.trace.mutations import equivalent, mutations

WALKS = (200, pytest.param(5000, marks=pytest.mark.extra))
"""Random walks of each configuration in each run."""
WALKED = (on.COMMIT, on.BOTH, on.STREAMING, on.ATTEMPTS, on.TWINS, on.AGENTS)
T = "0123456789abcdef0123456789abcdef"
W, V, A = "w" * 8, "v" * 8, "a" * 8
RECORDED = Path(__file__).with_name("traces") / "recorded.log"
TOKEN = 10  # what `held` acquires
T1, T2, T3, T4 = (f"2026010100000{n}000" for n in range(1, 5))


class Log:
    """A log written by hand: every write takes the next revision."""

    def __init__(self) -> None:
        self.rev = 1
        self.events: list[Event] = []

    def add(self, actor: str, action: str, *, ok: bool = True, write: bool = True, **more: Any) -> Log:
        self.rev += ok and write
        role = {"operator": "operator", A: "agent"}.get(actor, "writer")
        token = {"token": self.rev} if action == "acquire" and ok else {}
        self.events.append(
            Event(
                T,
                actor,
                role,
                action,
                self.rev if ok else int(str(more.pop("rev", self.rev))),
                ok,
                where=f"{actor}.log:{len(self.events)}",
                **{**token, **more},
            )
        )
        return self

    def said(self, **options: Any) -> str:
        """The first rejection; empty: conform."""
        return "".join(v.rejections[0] for v in check(self.events, **options) if v.rejections)


def begun() -> Log:
    """A table with an open gate and three registered incarnations."""
    log = (
        Log()
        .add("operator", "gate-put", key="gate", detail="closed")
        .add("operator", "gate-put", key="gate", detail="open")
    )
    for inc in (W, V, A):
        log.add("operator", "admit", key=f"admit/ns.{inc}").add(inc, "register", attempt=f"ns.{inc}")
    return log


def held(inc: str = W) -> Log:
    return begun().add(inc, "acquire", nonce="n1")


def recorded() -> Log:
    log = held()
    return log.add(W, "record-instant", instant=T1, token=log.rev, detail="commit")


def fenced() -> Log:
    """W has left an instant behind, without the lock, and is fenced."""
    log = recorded()
    token = log.rev - 1
    return log.add(W, "release", token=token).add("operator", "fence", key=f"fence/{W}", detail="LeaseGone")


def phase(log: Log, *phases: str) -> Log:
    for name in phases:
        log.add("operator", "settle-update", key=f"settle/{W}", detail=name)
    return log


# ---------------------------------------------------------------- runs of the model
@pytest.mark.parametrize("walks", WALKS)
@pytest.mark.parametrize("configuration", WALKED, ids=lambda c: c.name)
def test_runs_of_the_protocol_conform(
    configuration: Configuration, walks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of random walks, each run's own.

    A walk that takes too long, or is of the model alone, is none.
    """
    first = seeds.drawn()
    with capsys.disabled():
        print(f"\n{walks} walks of {configuration.name} from {seeds.VARIABLE}={first} on", flush=True)
    runs = {seed: run for seed in range(first, first + walks) if (run := walk(configuration, seed))}
    assert len(runs) >= walks * 0.8
    assert {seed: found for seed, run in runs.items() if (found := rejections(run))} == {}


def rejections(run: list[Event]) -> list[str]:
    return [str(one) for verdict in check(run, complete=True) for one in verdict.rejections]


@pytest.mark.parametrize(
    ("configuration", "seed"),
    [
        # Its owner is fenced when the instant is rolled back on its word, and not done with.
        (on.STREAMING, 801710015),
    ],
)
def test_walks_that_were_rejected_once(configuration: Configuration, seed: int) -> None:
    run = walk(configuration, seed)
    assert run is not None
    assert rejections(run) == []


def test_a_recorded_run_conforms() -> None:
    """A run on a real cluster: two writers, conflicts, a killed driver, instants given up.

    One table's lines of all logs.
    """
    assert assert_conform([RECORDED], complete=True) > 200


def test_nearly_every_mutation_is_rejected_and_the_rest_explained(capsys: pytest.CaptureFixture[str]) -> None:
    synthetic = [walk(configuration, seed) or [] for configuration in WALKED for seed in range(3)]
    for name, traces in (("synthetic traces", synthetic), ("a recorded trace", [read_files([RECORDED])])):
        total, rejected, passed, unexplained = 0, 0, Counter[str](), []
        for m in (m for trace in traces for m in mutations(trace)):
            total += 1
            if any(v.rejections for v in check(m.events, complete=True)):
                rejected += 1
            elif equivalent(m):
                passed[f"{m.kind} {m.what}: {equivalent(m)}"] += 1
            else:
                unexplained.append(f"{m.kind} {m.what}: {m.first}")
        with capsys.disabled():
            print(
                "\n"
                f"{name}: {total} mutations, {rejected} rejected ({rejected / total:.1%}); the others say nothing "
                "wrong:"
            )
            for text, count in passed.most_common():
                print(f"  {count:4} {text}")
        assert total > 1000
        assert rejected / total >= 0.95
        assert unexplained == []


# ---------------------------------------------------------------- what must be rejected, and why
def test_a_plain_commit_conforms() -> None:
    log = recorded()
    token = log.rev - 1
    log.add(W, "release", token=token).add(W, "acquire", nonce="n2")
    token = log.rev
    log.add(W, "publish", instant=T1, token=token, detail=T2).add(W, "release", token=token, detail=T1).add(
        W, "clean-exit"
    ).add(V, "clean-exit")
    log.add("operator", "delete-admit", key=f"admit/ns.{W}").add("operator", "delete-admit", key=f"admit/ns.{V}")
    assert log.said(complete=True) == ""


def test_settling_conforms() -> None:
    log = phase(fenced(), "Terminating", "Draining", "Unlocked", "RollingBack")
    log.add(A, "settle-update", key=f"settle/{W}", detail="RollingBack", instant=T1, outcome="Gone")
    log.add(A, "settle-update", key=f"settle/{W}", detail="Swept").add("operator", "settled", key=f"settle/{W}").add(
        V, "clean-exit"
    )
    log.add("operator", "delete-admit", key=f"admit/ns.{V}")
    assert log.said(complete=True) == ""
    log.add("operator", "collect", key=f"settle/{W}")
    assert log.said(complete=True) == ""
    assert "not registered" in log.add(W, "acquire").said(), "without a fence nothing else lets it in"


def test_a_fence_says_whose_admission_it_has_withdrawn() -> None:
    """An incarnation that has left in order may still be fenced for an instant that it gave up."""
    log = recorded().add(W, "abandon", instant=T1).add(W, "release", token=TOKEN).add(W, "clean-exit")
    log.add("operator", "fence", key=f"fence/{W}", attempt=f"ns.{W}")
    phase(log, "Terminating", "Draining", "Unlocked", "RollingBack")
    log.add(A, "settle-update", key=f"settle/{W}", detail="RollingBack", instant=T1, outcome="RolledBack")
    log.add(A, "settle-update", key=f"settle/{W}", detail="Swept").add("operator", "settled", key=f"settle/{W}").add(
        V, "clean-exit"
    )
    log.add("operator", "delete-admit", key=f"admit/ns.{V}")
    assert log.said(complete=True) == ""


REJECTED: dict[str, tuple[Callable[[], Log], str]] = {
    "acquire while the lock is held": (lambda: held().add(V, "acquire"), "the lock was held (I1); wwwwwwww holds it"),
    "acquire after the fence": (lambda: fenced().add(W, "acquire"), "fenced before (I2)"),
    "acquire without a gate": (
        lambda: Log().add("operator", "admit", key="admit/x").add(W, "register", attempt="x").add(W, "acquire"),
        "no gate",
    ),
    "acquire while the gate is frozen": (
        lambda: begun().add("operator", "gate-put", key="gate", detail="frozen").add(W, "acquire"),
        "frozen",
    ),
    "register without admission": (lambda: Log().add(W, "register", attempt="ns.w"), "not admitted"),
    "register twice": (lambda: begun().add(W, "register", attempt=f"ns.{W}"), "registers once"),
    "record without the lock": (
        lambda: begun().add(W, "record-instant", instant=T1, token=3),
        "not held by it under this token",
    ),
    "record not past the clock": (
        lambda: recorded().add(W, "record-instant", instant=T1[:-1] + "0", token=TOKEN),
        "recorded before",
    ),
    "record an earlier time": (
        lambda: recorded().add(W, "record-instant", instant="20250101000000000", token=TOKEN),
        "not past the clock",
    ),
    "publish without the lock": (
        lambda: fenced().add(W, "publish", instant=T1, token=TOKEN, detail=T2),
        "not held by it under this token",
    ),
    "publish without a record": (
        lambda: (log := held()).add(W, "publish", instant=T1, token=log.rev, detail=T2),
        "not its own and Pending (I7)",
    ),
    "publish an Abandoned instant": (
        lambda: recorded().add(W, "abandon", instant=T1).add(W, "publish", instant=T1, token=TOKEN, detail=T2),
        "not its own and Pending (I7)",
    ),
    "abandon an instant on the wire": (
        lambda: recorded().add(W, "publish", instant=T1, token=TOKEN, detail=T2).add(W, "abandon", instant=T1),
        "may be on its way under the lock that it holds (I3)",
    ),
    "publish in the past": (
        lambda: recorded().add(W, "publish", instant=T1, token=TOKEN, detail="20250101000000000"),
        "(I10)",
    ),
    "release by another": (
        lambda: (log := held()).add(V, "release", token=log.rev),
        "not held by it under this token (I1)",
    ),
    "release of an unpublished instant": (
        lambda: recorded().add(W, "release", token=TOKEN, detail=T1),
        "never got leave to publish",
    ),
    "release with an unknown publication": (
        lambda: (
            recorded()
            .add(W, "publish", instant=T1, token=TOKEN, detail=T2)
            .add(W, "drain", token=TOKEN, detail=T1, write=False)
            .add(W, "release", token=TOKEN)
        ),
        "is unknown (I1)",
    ),
    "unlock before the drain": (
        lambda: phase(held().add("operator", "fence", key=f"fence/{W}"), "Terminating").add(
            "operator", "unlock", detail=W, token=TOKEN
        ),
        "in the phase Terminating, before proof and drain (I1)",
    ),
    "unlock without a fence": (lambda: held().add("operator", "unlock", detail=W, token=TOKEN), "never fenced (I1)"),
    "no proof": (lambda: phase(fenced(), "Draining"), "cannot go from Fenced to Draining"),
    "no drain": (lambda: phase(fenced(), "Terminating", "Unlocked"), "cannot go from Terminating to Unlocked"),
    "unlocked while it owns": (
        lambda: phase(held().add("operator", "fence", key=f"fence/{W}"), "Terminating", "Draining", "Unlocked"),
        "still owns the lock",
    ),
    "rollback before RollingBack": (
        lambda: phase(fenced(), "Terminating").add(A, "settle-update", key=f"settle/{W}", detail="Terminating"),
        "in the phase RollingBack only, not in Terminating (I7)",
    ),
    "claim of a living owner's instant": (
        lambda: recorded().add(A, "claim", instant=T1, write=False),
        "not settled (I12)",
    ),
    "forgetting an instant that was not given up": (
        lambda: recorded().add(A, "done", instant=T1, detail="abandoned RolledBack", write=False),
        "(I7)",
    ),
    "claim of an unrecorded instant of nobody": (
        lambda: recorded().add(A, "claim-unrecorded", instant=T2, key="settle/stranger"),
        "not being settled: the instant is foreign (I7)",
    ),
    "claim of an unrecorded instant of a living writer": (
        lambda: recorded().add(A, "claim-unrecorded", instant=T2, key=f"settle/{W}"),
        "not settled (I7)",
    ),
    "an outcome of somebody else's instant": (
        lambda: phase(fenced(), "Terminating", "Draining", "Unlocked", "RollingBack").add(
            A, "settle-update", key=f"settle/{W}", detail="RollingBack", instant=T2, outcome="Gone"
        ),
        "not recorded for that incarnation (I7)",
    ),
    "an outcome that changes": (
        lambda: (
            phase(fenced(), "Terminating", "Draining", "Unlocked", "RollingBack")
            .add(A, "settle-update", key=f"settle/{W}", detail="RollingBack", instant=T1, outcome="RolledBack")
            .add(A, "settle-update", key=f"settle/{W}", detail="RollingBack", instant=T1, outcome="Gone")
        ),
        "has the outcome RolledBack already (I3)",
    ),
    "settled without an outcome": (
        lambda: (
            phase(fenced(), "Terminating", "Draining", "Unlocked", "RollingBack")
            .add(A, "settle-update", key=f"settle/{W}", detail="Swept")
            .add("operator", "settled", key=f"settle/{W}")
        ),
        "removed without an outcome (I4)",
    ),
    "settled at once": (
        lambda: phase(fenced(), "Terminating").add("operator", "settled", key=f"settle/{W}"),
        "Settled in the phase Terminating",
    ),
    "collected while it is settled": (
        lambda: phase(fenced(), "Terminating", "Draining", "Unlocked", "RollingBack").add(
            "operator", "collect", key=f"settle/{W}"
        ),
        "executed although this incarnation is registered",
    ),
    "collected although it was never fenced": (
        lambda: begun().add(W, "clean-exit").add("operator", "collect", key=f"settle/{W}"),
        "in the phase no settle record: a fence stands until it is settled (I2)",
    ),
    "collected twice": (
        lambda: _settled().add("operator", "collect", key=f"settle/{W}").add("operator", "collect", key=f"settle/{W}"),
        "no settle record",
    ),
    "completed without leave": (
        lambda: phase(fenced(), "Terminating", "Draining", "Unlocked", "RollingBack").add(
            A, "settle-update", key=f"settle/{W}", detail="RollingBack", instant=T1, outcome="Completed"
        ),
        "never got leave to publish (I3)",
    ),
    "exit with the lock": (lambda: held().add(W, "clean-exit"), "while it holds the lock (I1)"),
    "exit with a pending instant": (
        lambda: recorded().add(W, "release", token=TOKEN).add(W, "clean-exit"),
        "is Pending",
    ),
    "refused without a reason": (
        lambda: begun().add(W, "clean-exit", ok=False),
        "every compare of the transaction held",
    ),
    "two writes at one revision": (
        lambda: (log := begun()).add(W, "enqueue") and _same_revision(log),
        "at one revision",
    ),
    "the fence of a stranger": (lambda: begun().add("operator", "fence", key="fence/nobody"), "can name"),
    "an unknown step": (lambda: begun().add(W, "steal"), "no such step"),
}


def _settled() -> Log:
    log = phase(fenced(), "Terminating", "Draining", "Unlocked", "RollingBack")
    log.add(A, "settle-update", key=f"settle/{W}", detail="RollingBack", instant=T1, outcome="Gone")
    return log.add(A, "settle-update", key=f"settle/{W}", detail="Swept").add("operator", "settled", key=f"settle/{W}")


def _same_revision(log: Log) -> Log:
    log.events.append(replace(log.events[-1], actor=V))
    return log


@pytest.mark.parametrize("name", REJECTED)
def test_a_forbidden_step_is_rejected_with_a_sentence(name: str) -> None:
    build, words = REJECTED[name]
    assert words in build().said()


def test_what_was_given_up_comes_back_when_its_owner_is_settled() -> None:
    """Its record goes with the rollback on its owner's word.

    The last look claims the instant again and records an outcome.
    """
    log = recorded().add(W, "release", token=TOKEN).add(W, "abandon", instant=T1)
    log.add(A, "claim", instant=T1).add(A, "done", instant=T1, detail="abandoned RolledBack", write=False)
    log = phase(
        log.add("operator", "fence", key=f"fence/{W}", detail="LeaseGone"),
        "Terminating",
        "Draining",
        "Unlocked",
        "RollingBack",
    )
    log.add(A, "claim-unrecorded", instant=T1, key=f"settle/{W}")
    log.add(A, "settle-update", key=f"settle/{W}", detail="RollingBack", instant=T1, outcome="RolledBack")
    log.add(A, "settle-update", key=f"settle/{W}", detail="Swept").add("operator", "settled", key=f"settle/{W}")
    assert log.said() == ""


def adopting(state: str = "closed") -> Log:
    """A former writer's instant, handed over behind the gate."""
    log = begun().add("operator", "gate-put", key="gate", detail=state)
    return log.add("operator", "adopt", key="settle/former", detail=f"{T1},{T2}")


def test_the_instants_of_former_writers_are_adopted_and_settled() -> None:
    phases = ("Terminating", "Draining", "Unlocked", "RollingBack")
    log = adopting()
    for name in phases:
        log.add("operator", "settle-update", key="settle/former", detail=name)
    for instant in (T1, T2):
        log.add(A, "claim", instant=instant)
        log.add(A, "settle-update", key="settle/former", detail="RollingBack", instant=instant, outcome="RolledBack")
    log.add(A, "settle-update", key="settle/former", detail="Swept").add("operator", "settled", key="settle/former")
    assert log.add("operator", "gate-put", key="gate", detail="open").said() == ""


def test_what_may_not_be_adopted() -> None:
    assert "only behind the closed one (I7)" in adopting("open").said()
    assert (
        "which an incarnation has recorded (I7)"
        in recorded()
        .add("operator", "gate-put", key="gate", detail="closed")
        .add("operator", "adopt", key="settle/former", detail=T1)
        .said()
    )
    assert "not settled (I12)" in adopting().add(A, "claim", instant=T1).said()
    assert "has a settle record" in adopting().add("operator", "adopt", key="settle/former", detail=T3).said()
    assert "not a step for the role" in begun().add(A, "adopt", key="settle/former", detail=T1).said()


def savepoint(state: str = "closed", actor: str = A) -> Log:
    """A commit is published, and its agent begins a savepoint of it."""
    log = recorded()
    token = log.rev - 1
    log.add(W, "publish", instant=T1, token=token, detail=T2).add(W, "release", token=token, detail=T1)
    log.add("operator", "gate-put", key="gate", detail=state).add(actor, "acquire")
    return log.add(actor, "record-savepoint", instant=T1, token=log.rev)


def test_a_savepoint_bears_the_time_of_a_commit_that_is_completed() -> None:
    log = savepoint()
    token = log.rev - 1
    assert (
        log.add(A, "publish", instant=T1, token=token, detail=T3).add(A, "release", token=token, detail=T1).said() == ""
    )
    assert "only behind the closed one" in savepoint("open").said()
    assert "a savepoint is the agent's" in savepoint(actor=V).said()
    assert "not past the clock" in savepoint().add(A, "publish", instant=T1, token=token, detail=T2).said()


def test_a_run_that_is_not_over_is_rejected_only_when_it_should_be() -> None:
    assert held().said() == ""
    assert "still holds the lock" in held().said(complete=True)
    assert "not settled" in fenced().said(complete=True)


def of_parts(log: Log) -> str:
    """What is said of a run that has ended, when the log of the operator is not there."""
    log.events = [event for event in log.events if event.role != "operator"]
    return log.said(complete=True, missing=["operator"])


def test_without_the_log_of_the_operator_the_sweep_is_the_end() -> None:
    def rolling_back() -> Log:
        return phase(fenced(), "Terminating", "Draining", "Unlocked", "RollingBack").add(V, "clean-exit")

    def rolled_back() -> Log:
        return rolling_back().add(
            A, "settle-update", key=f"settle/{W}", detail="RollingBack", instant=T1, outcome="RolledBack"
        )

    def swept(log: Log) -> Log:
        return log.add(A, "settle-update", key=f"settle/{W}", detail="Swept")

    assert of_parts(swept(rolled_back())) == ""
    assert "its phase is RollingBack" in of_parts(rolled_back())
    assert f"the record of {T1} is left" in of_parts(swept(rolling_back())), "nobody has said what became of it"
    assert "is still registered" in of_parts(recorded().add(W, "release", token=TOKEN).add(V, "clean-exit")), (
        "it was killed, and nobody has fenced it"
    )
    assert "still holds the lock" in of_parts(held().add(V, "clean-exit"))


# ---------------------------------------------------------------- lost answers
def test_an_acquire_without_an_answer_that_is_resolved_to_mine() -> None:
    log = begun()
    token = log.rev + 1
    log.add(W, "acquire", ok=False, rev=0, detail="UNKNOWN deadline", nonce="n1")
    log.rev = token
    log.add(W, "acquire-resolve", write=False, nonce="n1").add(W, "record-instant", instant=T1, token=token).add(
        W, "release", token=token
    )
    assert log.said() == ""


def test_an_acquire_without_an_answer_may_be_executed_after_its_owner_died() -> None:
    log = begun().add(W, "acquire", ok=False, rev=0, detail="UNKNOWN deadline", nonce="n1")
    log.rev += 1
    token = log.rev
    phase(log.add("operator", "fence", key=f"fence/{W}"), "Terminating", "Draining")
    assert log.add("operator", "unlock", key="lock", detail=W, token=token).said() == ""


def test_a_release_without_an_answer_was_executed_or_not() -> None:
    log = recorded()
    token = log.rev - 1
    log.add(W, "publish", instant=T1, token=token, detail=T2).add(
        W, "release", ok=False, rev=0, detail="no answer: deadline"
    )
    executed, not_executed = Log(), Log()
    for other in (executed, not_executed):
        other.rev, other.events = log.rev, list(log.events)
    executed.rev += 1
    executed.add(W, "release", ok=False, token=token, detail=T1).add(V, "acquire").add(
        V, "release", token=executed.rev
    ).add(W, "clean-exit")
    assert executed.said() == ""
    not_executed.add(W, "release", token=token, detail=T1).add(V, "acquire")
    assert not_executed.said() == ""


def test_a_record_without_an_answer_is_found_by_the_repetition() -> None:
    log = held()
    token = log.rev
    log.add(W, "record-instant", ok=False, rev=0, detail="no answer: deadline")
    log.rev += 1
    log.add(W, "record-instant", ok=False, instant=T1, token=token, detail="commit").add(
        W, "publish", instant=T1, token=token, detail=T2
    )
    assert log.said() == ""


def killed_while_rolling_back() -> Log:
    """Another agent settles what W left, for the agent A was killed: it holds the lock, and logs
    nothing more.
    """
    log = phase(fenced(), "Terminating", "Draining", "Unlocked", "RollingBack").add(
        "operator", "admit", key="admit/ns.b"
    )
    log.add(A, "claim", instant=T1).add(A, "acquire", nonce="n2")
    return log


def settled_by_another(log: Log, instant: str) -> Log:
    """What another agent says that became of the killed one's instant."""
    b = "b" * 8
    log.add("operator", "fence", key=f"fence/{A}", detail="PodTerminated")
    for name in ("Terminating", "Draining"):
        log.add("operator", "settle-update", key=f"settle/{A}", detail=name)
    token = next(e.token for e in reversed(log.events) if e.action == "acquire")
    log.add("operator", "unlock", key="lock", detail=A, token=token)
    for name in ("Unlocked", "RollingBack"):
        log.add("operator", "settle-update", key=f"settle/{A}", detail=name)
    log.events += [
        replace(log.events[-1], actor=b, role="agent", action=action, rev=log.rev + n, **more)
        for n, (action, more) in enumerate(
            [
                ("register", {"key": "", "detail": "", "attempt": "ns.b"}),
                ("settle-update", {"instant": instant, "outcome": "RolledBack"}),
            ],
            start=1,
        )
    ]
    log.rev += 2
    return log


def test_a_process_that_is_killed_says_nothing_of_its_last_step() -> None:
    """One step of each: what it had recorded when it was killed, not what it did before."""
    assert settled_by_another(killed_while_rolling_back(), T3).said() == ""
    twice = settled_by_another(killed_while_rolling_back(), T3)
    event = replace(twice.events[-1], rev=twice.rev + 1, instant=T4)
    twice.events.append(event)
    assert f"outcome of {T3}, which is not recorded for that incarnation (I7)" in twice.said()


def test_the_last_step_of_a_process_that_nobody_fenced_is_in_its_log() -> None:
    log = settled_by_another(killed_while_rolling_back(), T3)
    log.events = [e for e in log.events if e.key != f"fence/{A}"]
    assert log.said()


def test_a_step_before_the_last_line_of_a_killed_process_is_in_its_log() -> None:
    """It went on to release the lock, so it had logged what it recorded."""
    log = killed_while_rolling_back()
    settled = settled_by_another(log.add(A, "release", token=log.rev), T3)
    settled.events = [e for e in settled.events if e.action != "unlock"]
    assert f"outcome of {T3}, which is not recorded for that incarnation (I7)" in settled.said()


def test_an_acquire_of_a_killed_process_is_told_by_who_removes_its_lock() -> None:
    log = begun()
    log.rev += 1
    token = log.rev
    phase(log.add("operator", "fence", key=f"fence/{W}", detail="PodTerminated"), "Terminating", "Draining")
    assert log.add("operator", "unlock", key="lock", detail=W, token=token).said() == ""


def test_a_release_of_a_killed_process_is_told_by_the_next_owner() -> None:
    log = held()
    log.rev += 1
    log.add(V, "acquire", nonce="n3").add(V, "release", token=log.rev)
    assert "the lock was held" in log.said()
    log.add("operator", "fence", key=f"fence/{W}", detail="PodTerminated")
    assert log.said() == ""


def test_only_the_operator_asks_for_a_service() -> None:
    assert begun().add("operator", "request", key="request/service-clean", detail="2026-11-22T03:00:00Z").said() == ""
    assert begun().add(W, "request", key="request/service-clean").said()


def test_the_last_request_without_an_answer_may_have_ended_the_run() -> None:
    log = begun().add(W, "clean-exit").add(V, "clean-exit").add("operator", "delete-admit", key=f"admit/ns.{W}")
    assert f"ns.{V} is still admitted" in log.said(complete=True)
    log.add("operator", "delete-admit", key=f"admit/ns.{V}", ok=False, rev=0, detail="unknown")
    assert log.said(complete=True) == ""


def test_a_settle_update_of_unknown_outcome_of_the_operator() -> None:
    log = phase(fenced(), "Terminating")
    log.add("operator", "settle-update", ok=False, rev=0, key=f"settle/{W}", detail="unknown")
    log.rev += 1
    assert phase(log, "Unlocked").said() == ""


def test_the_operators_log_alone() -> None:
    log = Log().add("operator", "fence", key="fence/x", detail="PodTerminated")
    for name in ("Terminating", "Draining"):
        log.add("operator", "settle-update", key="settle/x", detail=name)
    log.add("operator", "unlock", key="lock", detail="x", token=7)
    assert "can name" in log.said()
    assert log.said(missing=["jvms"]) == ""
    assert "before proof" in Log().add("operator", "fence", key="fence/x").add(
        "operator", "unlock", key="lock", detail="x", token=7
    ).said(missing=["jvms"])


def test_the_agents_log_alone_tells_that_the_lock_was_taken_from_the_dead() -> None:
    log = recorded()
    log.events = [event for event in log.events if event.role != "operator"]
    settled = log.add(A, "settle-update", key=f"settle/{W}", detail="RollingBack")
    assert settled.said(missing=["operator"]) == ""
    with_operator = recorded().add(A, "settle-update", key=f"settle/{W}", detail="RollingBack")
    assert "no settle record" in with_operator.said()


def test_a_trial_leaves_nothing_and_is_of_no_table() -> None:
    """F617: who ends it deletes whole ranges, so never those of a table."""
    trial = (
        Log()
        .add("operator", "assign", key="agents/hudi-agent-x")
        .add("operator", "admit", key="admit/ns.hudi-agent-x-1")
    )
    assert "is still admitted" in trial.said(complete=True)
    assert trial.add("operator", "end-trial", key="trial").said(complete=True) == ""
    assert "of a table with a gate are deleted" in held().add("operator", "end-trial", key="trial").said()


# ---------------------------------------------------------------- files
def test_lines_are_found_anywhere_and_written_back(tmp_path: Path) -> None:
    events = begun().events
    path = tmp_path / "all.log"
    path.write_text("".join(f"2026-01-01 INFO [x] {e.line()} trailing\nnoise\n" for e in events) + "PROTOCOL {cut")
    with path.open() as lines:
        assert [replace(e, where="") for e in read(lines, "all.log")] == [replace(e, where="") for e in events]
    assert main([str(path)]) == 0


def test_the_command_line_fails_for_a_rejection_an_unreadable_line_and_for_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, broken, empty = tmp_path / "bad.log", tmp_path / "broken.log", tmp_path / "empty.log"
    bad.write_text("".join(e.line() + "\n" for e in held().add(V, "acquire").events))
    broken.write_text('PROTOCOL {"v":1,\n')
    empty.write_text("nothing\n")
    assert main([str(bad)]) == 1
    assert (
        "REJECTED bad.log:10: acquire by vvvvvvvv (revision 11): it was executed although the lock was held (I1)"
        in capsys.readouterr().out
    )
    assert main([str(broken)]) == 1
    assert main([str(empty)]) == 2
    with pytest.raises(AssertionError, match="the lock was held"):
        assert_conform([bad])
    with pytest.raises(AssertionError, match="no protocol line"):
        assert_conform([empty])
