"""What the operator has asked for, parsed once: the attempt (job.json), the table's fields, Hudi's options, how versions of a record merge.

May use `process`. Pure but for reading job.json, and for asking the JVM whether a merger's class is there. Invariant: what belongs to the
operator among Hudi's options is refused here once more, whatever an older operator has let through (F2).
"""
