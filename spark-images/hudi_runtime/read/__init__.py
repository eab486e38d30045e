"""A writer's input: files, other Hudi tables, Kafka, databases, SQL, functions; its progress.

And the rows of its own table.

`sources` makes batches of each kind of input, with `files`, `incremental`, `deletions`, `kafka` and
`jdbc`. `kafka_values` decodes the values of records, with schemas of a `registry`; `bad_records`
are those that a commit leaves out. `positions`, `kafka_positions` and `jdbc_positions` say where a
reader is. `update` and `reads` are about rows of the own table, `remove_duplicates` and
`delete_partition` operations that have no other input. `progress`, with its `manifests`, is stored
in the commit; `context` is what user code gets.

May import `table`, `job` and `process`; never `settle`, `services`, `agent`, `callback` or
`catalog`. Invariant I9: progress is stored in the commit, and only a completed commit counts. A
lost position is an error, never an empty read. The base of a batch is recorded, so that its commit
can be compared with the commits that completed since.
"""
