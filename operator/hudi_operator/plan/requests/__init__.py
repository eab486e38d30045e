"""What people ask of the table's agent, and what became of it: savepoints, restores, bootstrap, the metadata table, the commit callback.

Each module puts a request where the agent sees it once others allow it, and shows the agent's record in status; the agent carries it out. Uses core
alone. Whether the gate is closed or the table was adopted comes as an argument: a request never opens or closes the gate (I7, I9).
"""
