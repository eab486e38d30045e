"""Keeps a catalog of tables as the table is (docs/use/catalogs.md). Run by the agent.

`catalog.py` decides when to synchronize, and reports; `hive.py` calls Hudi's tool for a Hive
Metastore. May import `table` and `process`; never a tower. Invariants: no other task of the agent
waits for a catalog; each try ends in time; nothing is sent to a forbidden address.
"""
