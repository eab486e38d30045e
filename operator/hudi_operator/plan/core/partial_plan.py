"""The result of a sub-planner: actions, the time until the next look, and a summary."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_operator.plan.core.actions import Action

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class PartialPlan:
    """Part of a plan.

    ``summary`` are parts of the sentence, most important first.

    ``late`` actions create something and come after every status: they may be refused for reasons
    that a planner cannot see (quota, admission), and must not prevent anything else in that case.
    """

    actions: tuple[Action, ...] = ()
    late: tuple[Action, ...] = field(default=(), kw_only=True)
    summary: tuple[str, ...] = ()
    requeue: float = field(default=LONGEST_PAUSE_SECONDS)
    failed: tuple[str, ...] = field(default=(), kw_only=True)
    """Parts with a defect, which planned nothing."""

    @classmethod
    def of(cls, *actions: Action, summary: str = "", requeue: float = LONGEST_PAUSE_SECONDS) -> PartialPlan:
        """A step from single actions and one phrase."""
        return cls(actions, (summary,) if summary else (), requeue)


def together(steps: Iterable[PartialPlan]) -> PartialPlan:
    """Several steps as one, in order."""
    actions: list[Action] = []
    summary: list[str] = []
    late: list[Action] = []
    failed: list[str] = []
    requeue = LONGEST_PAUSE_SECONDS
    for step in steps:
        actions.extend(step.actions)
        late.extend(step.late)
        summary.extend(step.summary)
        failed.extend(step.failed)
        requeue = min(requeue, step.requeue)
    return PartialPlan(tuple(actions), tuple(summary), requeue, late=tuple(late), failed=tuple(failed))


def guarded(what: str, plan: Callable[[], PartialPlan]) -> PartialPlan:
    """A part of a plan.

    A part with a defect is reported and does nothing, so that the other parts are
    still executed (F46).
    """
    try:
        return plan()
    except Exception as error:
        LOG.exception("%s cannot be planned", what)
        return PartialPlan(failed=(f"{what} cannot be planned: {type(error).__name__}: {error}"[:500],))
