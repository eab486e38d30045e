"""Pure planners (observed, desired, now) -> actions, and the executor of those actions."""
