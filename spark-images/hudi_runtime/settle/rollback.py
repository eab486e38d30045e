"""The check of the timeline and the rollback are one function.

Nothing else calls `client.rollback`. A clustering withdraws its own plan in
`services/rewriting.py`.

Hudi's `rollback(t)` removes a *completed*, acknowledged commit without an error (measured, F18). So
the check of a fresh timeline and the call belong together.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

from hudi_contract.words import Outcome
from hudi_runtime.process.errors import OutcomeUnknown
from hudi_runtime.settle.agent_table import AgentTable
from hudi_runtime.settle.sweep import archived_as_completed, remove_heartbeat
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.service_kinds import SERVICE_ACTIONS

#: The agent's client never chooses instants by heartbeat (F2). Set on the built config: the
# builder would turn it into LAZY under OCC.
NEVER_KEY = "hoodie.clean.failed.writes.policy"
RESTORE = "restore"


class Step(enum.Enum):
    """The step that the timeline requires."""

    KEEP = "keep"
    NOTHING = "nothing"
    ROLL_BACK = "roll back"
    EXECUTE = "execute again"
    UNSUPPORTED = "unsupported"


class NotYet(Exception):
    """An instant belongs to another incarnation that is not proven dead: wait."""


def decide(instant: str, timeline: tl.Timeline, victims: Mapping[str, str]) -> tuple[Step, str]:
    """The step for an instant of a settled incarnation, and the victim of the rollback.

    The victim is empty when there is none.

    `victims` maps the victim of each pending rollback to that rollback. A pending clean or
    compaction is executed again, and so is the rollback of a compaction to its plan: then the
    victim is the service's instant. A restore is executed again, too, with its rollbacks.
    """
    found = timeline.get(instant)
    if found is not None and not found.pending:
        return Step.KEEP, ""
    restoring = next((i.requested for i in timeline.pending if i.action == RESTORE), "")
    if found is not None and restoring:  # a restore begins with nothing pending: every pending instant is a part of it
        return Step.EXECUTE, restoring
    if found is not None and found.action == "rollback":
        victim = next((victim for victim, rollback in victims.items() if rollback == instant), "")
        planned = timeline.get(victim)
        if planned is not None and planned.action in SERVICE_ACTIONS:
            return (Step.EXECUTE, victim) if planned.pending else (Step.UNSUPPORTED, "")
        return (Step.ROLL_BACK, victim) if victim else (Step.UNSUPPORTED, "")
    if found is not None and found.action in SERVICE_ACTIONS:
        return Step.EXECUTE, instant
    if found is not None:
        return (Step.ROLL_BACK, instant) if found.action in tl.WRITE_ACTIONS else (Step.UNSUPPORTED, "")
    return (Step.ROLL_BACK, instant) if instant in victims else (Step.NOTHING, "")


def look_and_roll_back(
    table: AgentTable, instant: str, *, name: str, options: Mapping[str, str], claim: Callable[[str], None]
) -> tuple[Outcome, str]:
    """Read a fresh timeline and roll back exactly that instant if it is pending (I4, I7).

    Returns outcome and victim.

    `claim` makes this incarnation the only executor of an instant, or raises NotYet. A service
    instant is only claimed here, and executed in parallel with settling (NotYet until then),
    because that may take long. The outcome comes from a fresh timeline, never from Hudi's return
    value. Raises OutcomeUnknown when the timeline is ambiguous or does not show the end; nothing is
    deleted then.
    """
    timeline = table.timeline()
    victims = table.pending_rollbacks(timeline)
    step, victim = decide(instant, timeline, victims)
    if step is Step.KEEP:
        return Outcome.COMPLETED, ""
    if step is Step.NOTHING:
        archived = archived_as_completed(table, instant, earliest=timeline.earliest)
        return (Outcome.COMPLETED, "") if archived else (Outcome.GONE, instant)
    if step is Step.UNSUPPORTED:
        found = timeline.get(instant)
        raise OutcomeUnknown(
            f"instant {instant}: pending {found.action if found else '?'} is not executed by this agent"
        )
    if step is Step.EXECUTE:
        for service in sorted({instant, victim} | ({victims[victim]} if victim in victims else set())):
            claim(service)
        raise NotYet(f"instant {victim} is claimed, and waits for its execution by this agent")
    claim(instant)
    touched = {instant, victim} | ({victims[victim]} if victim in victims else set())
    for other in sorted(touched - {instant}):
        if timeline.get(other) is not None:
            claim(other)
    for heartbeat in sorted(touched):
        remove_heartbeat(table, heartbeat)
    _roll_back(table, victim, name=name, options=options)
    _verify(table, victim)
    return (Outcome.ROLLED_BACK if victim == instant else Outcome.REEXECUTED), victim


def _roll_back(table: AgentTable, victim: str, *, name: str, options: Mapping[str, str]) -> None:
    config = table.write_config(name, options)
    config.setValue(NEVER_KEY, "NEVER")
    if not config.getFailedWritesCleanPolicy().isNever():
        raise OutcomeUnknown("the client's failed-writes policy is not NEVER: nothing is rolled back")
    with table.client(config) as client:
        # The claims above may have taken a while: check again, directly before the only call.
        found = table.timeline().get(victim)
        if found is not None and (not found.pending or found.action not in tl.WRITE_ACTIONS):
            raise OutcomeUnknown(f"instant {victim} is no longer a pending write: nothing is rolled back")
        client.rollback(victim)


def _verify(table: AgentTable, victim: str) -> None:
    timeline = table.timeline()
    if timeline.get(victim) is not None:
        raise OutcomeUnknown(f"instant {victim} is still on the timeline after its rollback")
    rollback = table.pending_rollbacks(timeline).get(victim)
    if rollback is not None:
        raise OutcomeUnknown(f"rollback {rollback} of instant {victim} is still pending")
