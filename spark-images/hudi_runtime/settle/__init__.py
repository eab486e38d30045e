"""Settling: finish the pending instants of incarnations that are proven dead.

Instants that their owner has abandoned are finished, too.

`settle.py` is the order of it, `rollback.py` looks and rolls back, `sweep.py` deletes late files.
May import `table`, `job` and `process`; never `read` or `writer`. The only package that calls
`client.rollback` and deletes files of instants. Invariants: look and roll back are one step, on a
fresh timeline (I4); only instants that a record names are touched (I7), by one executor (I12); the
next agent continues the work of an agent that dies at any point (I6); late files are deleted when
no more can arrive (I5). `agent_table.py` has the operations on a table beyond reading it, for the
whole tower; `agent_session.py` those of a session beyond a driver's.
"""
