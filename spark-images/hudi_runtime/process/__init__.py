"""The process of a pod.

Classification and reports of failures (`errors`, `diagnosis`, `result`), etcd (`etcd`), the Java
session (`session`), Spark's start and end (`spark`, `class_archive`, `jvm_names`), what user code
brings along (`dependencies`), SIGTERM (`stopping`), and which addresses may be reached on a user's
word (`addresses`).

Imports none of the other packages of the runtime. Invariants: an unknown outcome stays unknown
(`OutcomeUnknown`), and no secret leaves the process in a message, a log or a report. The Java side
enforces all safety of the session (I1, I2).
"""
