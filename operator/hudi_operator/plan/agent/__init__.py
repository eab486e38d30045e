"""The table's agent: its assignment, its pod of the current generation, the pods of older generations, and the schedules of table services.

Uses requests and core; does not know the gate or single writers. Keeps I1 and I12: an agent's pod is evidence for every table that it
serves, so it loses its finalizer only when none of them needs it, and a generation's number is used once.
"""
