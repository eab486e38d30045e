"""The agent of any number of tables: `python -m hudi_runtime.agent`.

`agent.py` is the process, `assignment.py` one table of it, `trial.py` a path that it only tries to
reach (F617); `trouble.py` is what both say of a failure.

`preparation.py` makes the table ready, `tasks.py` serves it: each task has one interface
(`services/tasks.py`) and works with one `AgentContext`, which has the table's keys (context, keys).
Without a request it inspects the table and reports (reports, facts, read_cost, bucket). On the
operator's request it creates or adopts a table (creation, adoption, stored_rows,
store_probe), bootstraps it
(bootstrap, with dataset), takes savepoints (savepoints, savepoint_files), holds files of a commit
for readers (holds), restores (restores), and changes the metadata table (metadata_table,
metadata_in_force). It runs `settle`, `services`, `callback` and `catalog`. It may import all of
these and the packages below; never `read` or `writer`: an agent never ingests, and runs no user
code except a merger. Invariants: nothing is begun where this incarnation is fenced (I2, F48);
instants without a record are reported and never touched (I7); times only grow (I10).
"""
