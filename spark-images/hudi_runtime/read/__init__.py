"""A writer's input: files, other Hudi tables, Kafka, SQL, functions; its progress.

And the rows of its own table.

May import `table`, `job` and `process`; never `settle`, `services`, `agent` or `callback`.
Invariant I9: progress is stored in the commit, and only a completed commit counts. A lost position
is an error, never an empty read. The base of a batch is recorded, so that its commit can be
compared with the commits that completed since.
"""
