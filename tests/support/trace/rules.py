"""Requirements of each logged step on the state before it, beyond the compares of its transaction,
and its changes of the state.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.support.model.transactions import TRANSACTIONS
from tests.support.trace.events import Event, short
from tests.support.trace.state import BROKEN, COMPARES, PHASES, Record, TableState

TIME = re.compile(r"\d{17}")
OPERATOR_STEPS = frozenset(
    {
        "gate-put",
        "admit",
        "delete-admit",
        "assign",
        "request",
        "fence",
        "adopt",
        "unlock",
        "settled",
        "collect",
        "delete-report",
        "see",
        "end-trial",
    }
)
# Transactions in the log that docs/design/contracts.md does not list: without effect on the state,
# or an addition of one part.
WITHOUT_EFFECT = frozenset(
    {"assign", "request", "delete-report", "see", "enqueue", "leave", "keepalive", "acquire-resolve"}
)
GATE = {
    "": {"closed"},
    "closed": {"closed", "open", "frozen"},
    "open": {"open", "closed", "frozen"},
    "frozen": {"frozen", "closed"},
}
OUTCOMES = ("Completed", "RolledBack", "Gone", "Reexecuted")
ADVANCE = {
    "Fenced": {"Terminating"},
    "Terminating": {"Draining"},
    "Draining": {"Unlocked"},
    "Unlocked": {"RollingBack", "Terminating"},
    "RollingBack": {"Swept", "Terminating"},
    "Swept": {"RollingBack", "Terminating"},
    "Settled": set(),
}


def step(s: TableState, e: Event) -> str:
    """Replay one event that etcd executed (or refused).

    Returns what is wrong with it, empty when the protocol allows it.
    """
    if e.action not in TRANSACTIONS and e.action not in _EXTRA:
        return "the protocol has no such step"
    if (e.role == "operator") != (e.action in OPERATOR_STEPS) and e.action != "settle-update":
        return f"it is not a step for the role {e.role}"
    if not e.ok:
        return _refused(s, e)
    if e.role != "operator" and e.action not in ("register", "release") and e.actor not in s.writers and not s.no_jvms:
        return "its actor is not registered"
    compares = (
        ("version(fence/<inc>) = 0", "version(writer/<inc>) > 0")
        if _is_update(s, e)
        else TRANSACTIONS.get(e.action, ())
    )
    for text in compares:
        if COMPARES[text](s, e) is False:
            return f"it was executed although {BROKEN[text]}{'; ' + s.holder() if 'lock' in text else ''}"
    wrong = _DEMANDS[e.action](s, e) if e.action in _DEMANDS else ""
    if not wrong and e.action in _EFFECTS:
        _EFFECTS[e.action](s, e)
    return wrong


def _is_update(s: TableState, e: Event) -> bool:
    """A second put of the registration, when the Spark application id is known."""
    return e.action == "register" and not e.attempt


def _refused(s: TableState, e: Event) -> str:
    """A refusal must have a reason: some compare that does not hold, or one that the log
    does not show.
    """
    if e.rev == 0 or e.action in ("acquire-resolve", "claim", "claim-unrecorded", "drained", "done"):
        return ""
    compares = () if s.no_operator or s.no_jvms else TRANSACTIONS.get(e.action, ())
    if compares and not _is_update(s, e) and all(COMPARES[text](s, e) for text in compares):
        return "etcd refused it although every compare of the transaction held"
    return ""


# ---------------------------------------------------------------- demands beyond the compares
def _register(s: TableState, e: Event) -> str:
    if e.attempt and (e.actor in s.writers or e.actor in s.gone):
        return "an incarnation registers once in its life"
    return ""


def _acquire(s: TableState, e: Event) -> str:
    if not s.gate and not s.no_operator:
        return "nobody may acquire while the table has no gate"
    if s.gate == "frozen":
        return "nobody may acquire while the gate is frozen"
    if e.token != e.rev:
        return f"its token {e.token} is not the revision that created the lock"
    if e.token <= s.last_token:
        return f"its token {e.token} is not larger than the earlier token {s.last_token} (I10)"
    return ""


def _record(s: TableState, e: Event) -> str:
    if not TIME.fullmatch(e.instant):
        return f"{e.instant or 'nothing'} is not an instant time"
    if e.instant <= s.clock:
        return f"the instant {e.instant} is not past the clock {s.clock} (I10)"
    return ""


def _record_savepoint(s: TableState, e: Event) -> str:
    if e.role != "agent":
        return "a savepoint is the agent's"
    if s.gate != "closed" and not s.no_operator:
        return f"a savepoint is begun while the gate is {s.gate or 'absent'}: only behind the closed one"
    return (
        ""
        if not s.clock or e.instant <= s.clock
        else f"the savepoint of {e.instant}, which the clock {s.clock} has not reached: no commit bears that time"
    )


def _publish(s: TableState, e: Event) -> str:
    record = s.instants[e.instant]
    if not TIME.fullmatch(e.detail):
        return f"{e.detail or 'nothing'} is not a completion time"
    if e.detail <= e.instant:
        return f"the completion time {e.detail} is not past the requested time {e.instant} (I10)"
    if e.detail < s.clock or (e.detail == s.clock and record.promised != e.detail):
        return f"the completion time {e.detail} is not past the clock {s.clock} (I10)"
    return ""


def _release(s: TableState, e: Event) -> str:
    for t in _listed(e):
        record = s.instants.get(t)
        if record is None or e.actor not in (record.owner, record.claimed):
            return f"it removes the record of {t}, which is not its own (I7)"
        if not record.promised:
            return f"it calls {t} completed, which never got leave to publish (I3)"
        if record.token != s.token:
            return f"it calls {t} completed, which got leave to publish under another token (I3)"
    if s.unresolved.get(e.actor):
        return f"it releases while the publication of {', '.join(sorted(s.unresolved[e.actor]))} is unknown (I1)"
    return ""


def _abandon(s: TableState, e: Event) -> str:
    record = s.instants[e.instant]
    if record.promised and s.owner == e.actor and record.token == s.token:
        return f"it gives up {e.instant}, whose completed file may be on its way under the lock that it holds (I3)"
    return ""


def _listed(e: Event) -> list[str]:
    return [t for t in e.detail.split(",") if t]


def _claim(s: TableState, e: Event) -> str:
    if e.actor in s.fences:
        return "a fenced incarnation claims (I2)"
    record = s.instants.get(e.instant)
    if record is None:
        named = s.no_operator or any(phase == "RollingBack" for phase in s.settles.values())
        return (
            ""
            if named
            else "it claims an instant without record, and nobody is being settled: the instant is foreign (I7)"
        )
    for holder in ({record.claimed} - {""}) | (set() if record.state == "Abandoned" else {record.owner}):
        # An incarnation with something Pending has not left (F70)
        if holder != e.actor and not (s.proven(holder) and (s.no_operator or holder in s.settles)):
            return f"it takes the instant from {short(holder)}, which is not settled (I12)"
    return ""


def _claim_unrecorded(s: TableState, e: Event) -> str:
    if e.actor in s.fences:
        return "a fenced incarnation claims (I2)"
    if not s.proven(e.subject):
        return f"it claims an instant of {short(e.subject)}, which is not settled (I7)"
    named = s.no_operator or e.subject in s.settles or e.subject in s.given_up.values()
    return (
        ""
        if named
        else (
            f"it claims an instant without record for {short(e.subject)}, which is not being settled: the instant "
            "is foreign (I7)"
        )
    )


def _clean_exit(s: TableState, e: Event) -> str:
    if s.owner == e.actor:
        return "it leaves while it holds the lock (I1)"
    pending = [
        t
        for t, r in sorted(s.instants.items())
        if r.executor == e.actor and r.state == "Pending" and r.owner == e.actor
    ]
    if pending:
        return f"it leaves while its instant {pending[0]} is Pending"
    return ""


def _fence(s: TableState, e: Event) -> str:
    inc = e.subject
    if not s.no_jvms and inc not in s.writers and inc not in s.gone and inc != s.owner and not s.left_by(inc):
        return "it fences an incarnation that neither writer/*, lock, instant/* nor queue/* can name"
    return ""


def _adopt(s: TableState, e: Event) -> str:
    if s.gate != "closed":
        return f"instants are adopted while the gate is {s.gate or 'absent'}: only behind the closed one (I7)"
    recorded = [t for t in _listed(e) if t in s.holders]
    return f"it adopts {recorded[0]}, which an incarnation has recorded (I7)" if recorded else ""


def _settle_update(s: TableState, e: Event) -> str:
    inc, new = e.subject, e.detail
    old = s.settles.get(inc)
    if s.no_operator and old in (None, "Settled"):
        old = s.settles[inc] = "RollingBack"
        if s.owner == inc:
            s.owner = ""
    if old is None:
        return "there is no settle record: the incarnation was not fenced"
    unsafe = s.lease_only and new == "Unlocked" and old in ("Fenced", "Terminating")
    if new not in PHASES or (new != old and new not in ADVANCE[old] and not unsafe):
        return f"the phase cannot go from {old} to {new or 'nothing'} (I6)"
    if old == "Settled":
        return "the incarnation is settled already"
    agent = e.role != "operator"
    if agent and old != "RollingBack":
        return f"the agent may change the record in the phase RollingBack only, not in {old} (I7)"
    if not agent and new == "Swept" and old != "Swept" and not s.no_jvms:
        return "only the agent says that everything is swept"
    # There it ends with its lease, which nobody logs
    if new in ("Unlocked", "RollingBack", "Swept") and s.owner == inc and not s.lease_only:
        return f"the phase {new} while this incarnation still owns the lock (I1)"
    return _outcome(s, e, inc) if e.outcome else ""


def _outcome(s: TableState, e: Event, inc: str) -> str:
    """The agent writes what became of an instant; it must have seen what it claims."""
    if e.outcome not in OUTCOMES:
        return f"{e.outcome} is no outcome"
    holders = s.holders.get(e.instant)
    if holders is None and s.no_jvms:
        return ""
    if (holders is None or inc not in holders) and e.instant not in s.handed_over:
        return f"it writes an outcome of {e.instant}, which is not recorded for that incarnation (I7)"
    if e.outcome == "Completed" and e.instant not in s.leave:
        return f"{e.instant} is called completed, which never got leave to publish (I3)"
    if (inc, e.instant) in s.outcomes:
        return f"{e.instant} has the outcome {s.outcomes[inc, e.instant]} already (I3)"
    return ""


def _unlock(s: TableState, e: Event) -> str:
    phase = s.settles.get(e.subject, "no settle record")
    return (
        ""
        if phase == "Draining" or s.lease_only
        else f"the lock is deleted in the phase {phase}, before proof and drain (I1)"
    )


def _settled(s: TableState, e: Event) -> str:
    inc, phase = e.subject, s.settles.get(e.subject, "no settle record")
    if phase not in ("Swept", "Unlocked") and not (s.no_jvms and phase == "RollingBack"):
        return f"it is called Settled in the phase {phase} (I6)"
    if s.owner == inc:
        return "it is called Settled while it owns the lock (I1)"
    left = s.left_by(inc)
    without = (
        left
        if phase == "Unlocked"
        else [t for t in left if s.outcomes_logged and (inc, t) not in s.outcomes and s.instants[t].owner == inc]
    )
    if without:
        return f"the record of {without[0]} is removed without an outcome (I4)"
    other = [
        t
        for t in left
        if s.instants[t].executor not in (inc, "")
        and not s.proven(s.instants[t].executor)
        and not s.instants[t].promised
        and s.roles.get(s.instants[t].executor) != "agent"
    ]
    return (
        f"it removes the record of {other[0]}, which {short(s.instants[other[0]].executor)} has claimed (I12)"
        if other
        else ""
    )


def _collect(s: TableState, e: Event) -> str:
    phase = s.settles.get(e.subject, "no settle record")
    if phase != "Settled" and not s.no_operator:
        return f"record and fence are collected in the phase {phase}: a fence stands until it is settled (I2)"
    left = s.left_by(e.subject)
    return f"record and fence are collected while {left[0]} names that incarnation (I7)" if left else ""


def _drain(s: TableState, e: Event) -> str:
    if s.owner != e.actor or s.token != e.token:
        return f"it waits for a publication without holding the lock; {s.holder()}"
    strange = [t for t in _listed(e) if t not in s.instants or s.instants[t].executor != e.actor]
    return f"it waits for the publication of {strange[0]}, which is not its own" if strange else ""


def _gate(s: TableState, e: Event) -> str:
    return (
        "" if s.no_jvms or e.detail in GATE[s.gate] else f"the gate cannot go from {s.gate or 'absent'} to {e.detail}"
    )


def _admit(s: TableState, e: Event) -> str:
    return "" if e.key.removeprefix("admit/") else "it names no attempt"


def _end_trial(s: TableState, e: Event) -> str:
    return "the keys of a table with a gate are deleted as those of a trial (I1)" if s.gate or s.owner else ""


def _done(s: TableState, e: Event) -> str:
    if e.ok and e.detail.startswith("abandoned"):
        record = s.instants.get(e.instant)
        if record is not None and record.state != "Abandoned":
            return f"the agent forgets {e.instant} as Abandoned, which its owner never gave up (I7)"
        if record is None:
            return f"the agent settles {e.instant}, which has no record (I7)"
    return ""


_DEMANDS: dict[str, Callable[[TableState, Event], str]] = {
    "register": _register,
    "acquire": _acquire,
    "record-instant": _record,
    "record-savepoint": _record_savepoint,
    "publish": _publish,
    "release": _release,
    "abandon": _abandon,
    "claim": _claim,
    "claim-unrecorded": _claim_unrecorded,
    "clean-exit": _clean_exit,
    "fence": _fence,
    "adopt": _adopt,
    "settle-update": _settle_update,
    "unlock": _unlock,
    "settled": _settled,
    "collect": _collect,
    "drain": _drain,
    "done": _done,
    "gate-put": _gate,
    "admit": _admit,
    "end-trial": _end_trial,
}
_EXTRA = frozenset({"assign", "request", "delete-report", "see", "end-trial", "leave", "drain", "drained"})


# ---------------------------------------------------------------- effects
def _do_register(s: TableState, e: Event) -> None:
    s.writers[e.actor] = e.attempt or s.writers.get(e.actor, "")
    s.roles[e.actor] = e.role


def _do_acquire(s: TableState, e: Event) -> None:
    s.owner, s.token, s.last_token = e.actor, e.token, e.token


def _do_record(s: TableState, e: Event) -> None:
    s.instants[e.instant] = Record(e.actor)
    s.hold(e.instant, e.actor)
    s.clock = e.instant


def _do_record_savepoint(s: TableState, e: Event) -> None:
    s.instants[e.instant] = Record(e.actor)
    s.hold(e.instant, e.actor)


def _do_publish(s: TableState, e: Event) -> None:
    record = s.instants[e.instant]
    record.promised, record.token = e.detail, s.token
    s.leave |= {e.instant}
    s.clock = e.detail


def _do_release(s: TableState, e: Event) -> None:
    for t in _listed(e):
        s.instants.pop(t, None)
    s.owner, s.token = "", 0


def _do_abandon(s: TableState, e: Event) -> None:
    s.instants[e.instant].state = "Abandoned"


def _do_claim(s: TableState, e: Event) -> None:
    if s.no_operator and e.instant not in s.holders:
        s.handed_over.add(e.instant)
    s.instants.setdefault(e.instant, Record("" if s.no_operator else e.actor)).claimed = e.actor
    s.hold(e.instant, e.actor)


def _do_claim_unrecorded(s: TableState, e: Event) -> None:
    s.instants[e.instant] = Record(e.subject, state="Abandoned", claimed=e.actor)
    s.hold(e.instant, e.subject)
    s.hold(e.instant, e.actor)


def _do_clean_exit(s: TableState, e: Event) -> None:
    s.writers.pop(e.actor, None)
    s.gone.add(e.actor)


def _do_fence(s: TableState, e: Event) -> None:
    s.fences.add(e.subject)
    s.settles[e.subject] = "Fenced"
    s.admits.discard(e.attempt or s.writers.get(e.subject, ""))


def _do_adopt(s: TableState, e: Event) -> None:
    _do_fence(s, e)
    for t in _listed(e):
        s.instants[t] = Record(e.subject)
        s.hold(t, e.subject)


def _do_settle_update(s: TableState, e: Event) -> None:
    s.settles[e.subject] = e.detail
    if e.outcome:
        s.outcomes[e.subject, e.instant] = e.outcome


def _do_unlock(s: TableState, e: Event) -> None:
    s.owner, s.token = "", 0


def _do_settled(s: TableState, e: Event) -> None:
    if e.detail == "instants":
        return
    for t in [t for t, r in s.instants.items() if r.owner == e.subject]:
        del s.instants[t]
    s.settles[e.subject] = "Settled"
    s.writers.pop(e.subject, None)
    s.gone.add(e.subject)


def _do_collect(s: TableState, e: Event) -> None:
    s.settles.pop(e.subject, None)
    s.fences.discard(e.subject)


def _do_gate(s: TableState, e: Event) -> None:
    s.gate = e.detail


def _do_drain(s: TableState, e: Event) -> None:
    s.unresolved[e.actor] = set(_listed(e))


def _do_drained(s: TableState, e: Event) -> None:
    s.unresolved.get(e.actor, set()).discard(e.instant)


def _do_done(s: TableState, e: Event) -> None:
    if e.detail.startswith("abandoned"):
        record = s.instants.pop(e.instant, None)
        if record is not None:
            s.given_up[e.instant] = record.owner


_EFFECTS: dict[str, Callable[[TableState, Event], None]] = {
    "register": _do_register,
    "acquire": _do_acquire,
    "record-instant": _do_record,
    "record-savepoint": _do_record_savepoint,
    "publish": _do_publish,
    "release": _do_release,
    "abandon": _do_abandon,
    "claim": _do_claim,
    "claim-unrecorded": _do_claim_unrecorded,
    "clean-exit": _do_clean_exit,
    "fence": _do_fence,
    "adopt": _do_adopt,
    "settle-update": _do_settle_update,
    "unlock": _do_unlock,
    "settled": _do_settled,
    "collect": _do_collect,
    "gate-put": _do_gate,
    "drain": _do_drain,
    "drained": _do_drained,
    "done": _do_done,
    "admit": lambda s, e: s.admits.add(e.key.removeprefix("admit/")),
    "delete-admit": lambda s, e: s.admits.discard(e.key.removeprefix("admit/")),
    "end-trial": lambda s, e: s.admits.clear(),
}
