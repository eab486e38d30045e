"""Keeps a catalog of tables as the table is (docs/use/catalogs.md). Run by the agent.

`catalog.py` decides when to synchronize, and reports. `hive.py` calls Hudi's tool for a Hive
Metastore, after `probe.py` has asked whether one answers; `glue.py` brings what Hudi's classes say
of the table (`description.py`) to AWS Glue, unless Glue cannot hold it (`held.py`). Both use
`options.py`, and end in an `outcome.py` when nothing was synchronized. When the HudiTable is
deleted and wants it, its entries are dropped, and nobody else's. May import `table` and the
packages below; never a tower. Invariants: no other task of the agent waits for a catalog; each try
ends in time; nothing is sent to a forbidden address.
"""
