"""The Python that runs inside Spark pods.

The driver of one attempt (`writer`), the agent of a table (`agent`), and the audit.

    process      the process itself: failures, etcd, the Java session, Spark, SIGTERM, reports
    job          the operator's orders: job.json, Hudi's options, how versions of a record merge
    table        the Hudi table: its files, its timeline, the calls into Hudi's Java classes
    read         a writer's input: sources, positions, progress, and the context that user code gets
      writer     the driver of one attempt: batches become commits
      api        the public interface for user code; the only package whose names are stable
    settle       finishes what dead writers and abandoned instants have left: look, roll back, sweep
      services   compaction, clustering, expiry, cleaning, archival: when they are due, and
                 how they run
        agent    the agent of any number of tables; adoption, bootstrap,
                 savepoints, restores, reports
    callback     sends a table's commits to a receiver; run by the agent
    catalog      keeps a table's entry in a catalog; run by the agent
    audit        checks whether a table holds what it should; reads only

Each package imports only from the packages above it in its own tower: `read`, `writer` and `api` do
not import `settle`, `services`, `agent`, `callback` and `catalog`, and these do not import those
(import-linter). So no code that a driver runs can roll back, sweep, clean or archive. Below all of
them is `hudi_contract`, which the operator shares.

This package does not enforce safety. Lock, fence and publication checks live in the Java session
(docs/design/protocol.md). This package runs sources, reads the timeline, which is authoritative,
classifies failures, and - in the agent - rolls back exactly the instants of settled incarnations.
"""
