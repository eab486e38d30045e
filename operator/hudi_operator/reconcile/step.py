"""What a sub-planner returns: actions, how soon to look again, and what it has to say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hudi_operator.reconcile.actions import Action

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

    @classmethod
    def of(cls, *actions: Action, said: str = "", requeue: float = IDLE_SECONDS) -> Step:
        """A step from single actions and one phrase."""
        return cls(actions, (said,) if said else (), requeue)


def together(steps: Iterable[Step]) -> Step:
    """Several steps as one, in order."""
    actions: list[Action] = []
    said: list[str] = []
    late: list[Action] = []
    requeue = IDLE_SECONDS
    for step in steps:
        actions.extend(step.actions)
        late.extend(step.late)
        said.extend(step.said)
        requeue = min(requeue, step.requeue)
    return Step(tuple(actions), tuple(said), requeue, late=tuple(late))
