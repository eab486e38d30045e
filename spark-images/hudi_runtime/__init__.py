"""The Python that runs inside Spark pods: the driver of one attempt (`writer`), the agent of a table (`agent`), and the audit.

    process      the process itself: failures, etcd, the Java session, Spark, SIGTERM, what is reported
    job          what the operator has asked for: job.json, Hudi's options, how versions of a record merge
    table        the Hudi table: its files, its timeline, the calls into Hudi's Java classes
    read         a writer's input: sources, positions, progress, what user code is given
      writer     the driver of one attempt: batches become commits
      api        what user code imports; the only package whose names stay
    settle       the end of what dead or yielding writers have left: look, roll back, sweep
      services   compaction, clustering, expiry, cleaning, archival: when they are due, and how they run
        agent    the agent of any number of tables; adoption, bootstrap, savepoints, restores, reports
    callback     tells a receiver of a table's commits; run by the agent
    audit        does a table hold what it should? reads only

Each package imports only from those above it in its own tower: `read`, `writer` and `api` know nothing of `settle`, `services`, `agent` and
`callback`, and the other way round (import-linter). So nothing that a driver runs can roll back, sweep, clean or archive.

Safety is not decided here. Lock, fence and publication checks live in the Java session (docs/design/protocol.md); this package runs sources,
asks the timeline for the truth, classifies failures, and - in the agent - rolls back exactly the instants of settled incarnations.
"""
