"""The table services: compaction, clustering, expiry of partitions, cleaning, archival. `triggers.py` says when, `services.py` runs them.

`tasks.py` is what all tasks of an agent at one table have in common, with the one place for long work.
May use `settle` and what is below; never `read` or `writer`. Invariants: a service's instant has one executor (I12, F22); Hudi never chooses by
heartbeat what to roll back (F2); archival keeps what conflict checks and sweeps still need (I5, I9). A service never makes a writer fail.
"""
