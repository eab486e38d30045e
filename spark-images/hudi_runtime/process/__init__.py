"""The process of a pod: how failures are classified and reported, etcd, the Java session, Spark's start and end, SIGTERM.

Uses nothing of the other packages. Invariants: an unknown outcome stays unknown (`OutcomeUnknown`), and no secret leaves the process in a
message, a log or a report. All safety of the session itself is on the Java side (I1, I2).
"""
