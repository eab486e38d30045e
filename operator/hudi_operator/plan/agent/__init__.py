"""The table's agent: its assignment, its pods and its table services.

`agents` assigns the table and starts generations, `agent_pods` ends pods that are superseded or
unused, `table_services` requests services by schedule or for a person.

Uses requests and core; does not know the gate or single writers. Keeps I1 and I12: an agent's pod
is evidence for every table that it serves, so it loses its finalizer only when none of them needs
it, and a generation's number is used once.
"""
