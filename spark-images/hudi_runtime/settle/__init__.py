"""Settling: the pending instants of incarnations that are proven dead, or were given up by their owner, come to their end.

May use `table`, `job` and `process`; never `read` or `writer`. The only package that names `client.rollback` and deletes files of instants.
Invariants: look and roll back are one step, on a fresh timeline (I4); only instants that a record names are touched (I7), by one executor
(I12); an agent that dies anywhere is continued by the next one (I6); late files go when nothing can be late any more (I5). `agent_table.py` is
what the whole tower has of a table beyond reading it, `agent_session.py` what it has of its session beyond a driver's.
"""
