"""The process of a pod.

Classification and reports of failures, etcd, the Java session, Spark's start and end, SIGTERM.

Imports none of the other packages. Invariants: an unknown outcome stays unknown (`OutcomeUnknown`),
and no secret leaves the process in a message, a log or a report. The Java side enforces all safety
of the session (I1, I2).
"""
