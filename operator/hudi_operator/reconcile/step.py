"""What a sub-planner returns: actions, how soon to look again, and what it has to say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hudi_operator.reconcile.actions import Action

LOG = logging.getLogger(__name__)

IDLE_SECONDS = 15.0
"""Look again at the latest, although nothing is expected to happen."""


@dataclass(frozen=True)
class Step:
    """Part of a plan. ``said`` are parts of the sentence, most important first.

    ``late`` actions make something new and come after every status: they may be refused for reasons that a planner cannot see (quota,
    admission), and must then keep nothing else from being done.
    """

    actions: tuple[Action, ...] = ()
    late: tuple[Action, ...] = field(default=(), kw_only=True)
    said: tuple[str, ...] = ()
    requeue: float = field(default=IDLE_SECONDS)
    failed: tuple[str, ...] = field(default=(), kw_only=True)
    """Parts that have a defect and planned nothing."""

    @classmethod
    def of(cls, *actions: Action, said: str = "", requeue: float = IDLE_SECONDS) -> Step:
        """A step from single actions and one phrase."""
        return cls(actions, (said,) if said else (), requeue)


def together(steps: Iterable[Step]) -> Step:
    """Several steps as one, in order."""
    actions: list[Action] = []
    said: list[str] = []
    late: list[Action] = []
    failed: list[str] = []
    requeue = IDLE_SECONDS
    for step in steps:
        actions.extend(step.actions)
        late.extend(step.late)
        said.extend(step.said)
        failed.extend(step.failed)
        requeue = min(requeue, step.requeue)
    return Step(tuple(actions), tuple(said), requeue, late=tuple(late), failed=tuple(failed))


def guarded(what: str, plan: Callable[[], Step]) -> Step:
    """A part of a plan; when it has a defect, one that says so and does nothing, so that the other parts are carried out all the same (F46)."""
    try:
        return plan()
    except Exception as error:
        LOG.exception("%s cannot be planned", what)
        return Step(failed=(f"{what} cannot be planned: {type(error).__name__}: {error}"[:500],))
