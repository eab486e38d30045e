"""The operator's orders, parsed once.

The attempt (job.json), the table's fields, Hudi's options, how versions of a record merge.

May import `process`. Pure except for reading job.json, and for asking the JVM whether a merger's
class exists. Invariant: Hudi options that belong to the operator are refused here again, because an
older operator may have accepted them (F2).
"""
