"""What a writer reads: files, other Hudi tables, Kafka, SQL, functions; how far it has come; and its own table's rows.

May use `table`, `job` and `process`; never `settle`, `services`, `agent` or `callback`. Invariant I9: progress travels with the commit and only
a completed commit is believed; a position that was lost is an error, never an empty read. What a batch is made from is remembered, so that
the commit can be compared with what completed since.
"""
