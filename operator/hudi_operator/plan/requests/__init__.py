"""Requests of people to the table's agent, and their outcomes.

`savepoints`, `restores`, `bootstrap`, `metadata_table` and `holds` put a request for the agent once
the caller allows it, and show the agent's record in status; the agent executes it. The agent sends
the commits of `callbacks` and keeps the entries of `catalogs` without a request: these two show its
report, and `catalogs` decides how long the deletion of a HudiTable waits for it. Of the planners it
uses core alone. Whether the gate is closed or the table was adopted is an argument: a request never
opens or closes the gate (I7, I9).
"""
