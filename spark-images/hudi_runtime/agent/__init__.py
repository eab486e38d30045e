"""The agent of any number of tables: `python -m hudi_runtime.agent`. `agent.py` is the process, `assignment.py` one table of it.

`preparation.py` makes the table ready, `tasks.py` serves it: each task has one interface (`services/tasks.py`) and works with one `AgentContext`.
What it does by itself: look at the table and report (facts, read_cost, bucket). What the operator asks for: create or adopt a table
(creation, adoption, store_probe), bootstrap (with dataset), savepoints, restores, the metadata table. What it runs: `settle`, `services`, `callback`.
May use all of these and what is below; never `read` or `writer`: an agent never ingests, and runs no user code but a merger. Invariants: nothing is begun
where this incarnation is fenced (I2, F48); instants without a record are reported and never touched (I7); times only grow (I10).
"""
