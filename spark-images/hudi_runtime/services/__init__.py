"""The table services: compaction, clustering, expiry of partitions, cleaning, archival.

`triggers.py` decides when, `services.py` runs them, with `rewriting.py` (compaction and clustering)
and `expiry.py`; `service_actions.py` has the calls of Hudi.

`partition_backoff.py` lets clusterings leave out partitions where one has lost, `holds.py` says
which files stay for readers. `tasks.py` is the common interface of all tasks of an agent at one
table, with the single slot for long work. May import `settle` and the packages below; never `read`
or `writer`. Invariants: a service's instant has one executor (I12, F22); Hudi never selects
instants to roll back by heartbeat (F2); archival keeps the instants that conflict checks and sweeps
still need (I5, I9). A service never fails a writer.
"""
