"""The Hudi table: its storage, its timeline, and the few calls into Hudi's Java classes.

It also knows the values that its columns can hold.

May import `job` and `process`. This package makes no decisions, and does not roll back, archive or
restore: that is in `settle/agent_table.py`, which a driver cannot import. Invariants: a file counts
as missing only after a definite answer (I11), and an ambiguous timeline is an error, never
a guess (I4).
"""
