"""Requests of people to the table's agent, and their outcomes.

Savepoints, restores, bootstrap, the metadata table, the commit callback, the catalog.

Each module puts a request for the agent once the caller allows it, and shows the agent's record in
status; the agent executes it. Uses core only. Whether the gate is closed or the table was adopted
is an argument: a request never opens or closes the gate (I7, I9).
"""
