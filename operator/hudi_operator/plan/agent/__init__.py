"""The table's agent: its assignment, its pods and its table services.

Pods are the one of the current generation and those of older ones; services have schedules.

Uses requests and core; does not know the gate or single writers. Keeps I1 and I12: an agent's pod
is evidence for every table that it serves, so it loses its finalizer only when none of them needs
it, and a generation's number is used once.
"""
