"""The Hudi table as it is: its storage, its timeline, what its columns can hold, and the few calls into Hudi's Java classes.

May use `job` and `process`. Nothing here decides what is to be done, and nothing here rolls back, archives or restores: that is
`settle/agent_table.py`, out of a driver's reach. Invariants: only a definite answer says that something is missing (I11),
and an ambiguous timeline is an error, never a guess (I4).
"""
