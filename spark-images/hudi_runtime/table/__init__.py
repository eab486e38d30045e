"""The Hudi table: its storage, its timeline, and the few calls into Hudi's Java classes.

`storage` and its `listings` are the files, `timeline` and `service_kinds` the timeline, `hudi` has
the calls. `values` knows what its columns can hold, `partitions` those that a writer has declared.

May import `job` and `process`. This package makes no decisions, and does not roll back, archive or
restore: that is in `settle/agent_table.py`, which a driver cannot import. Invariants: a file counts
as missing only after a definite answer (I11), and an ambiguous timeline is an error, never a guess
(I4).
"""
