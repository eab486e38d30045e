"""The operator's orders, parsed once.

The attempt and the table's fields (`job.py`, job.json), Hudi's options (`options.py`), how versions
of a record merge (`merging.py`).

May import `process`, and no other package of the runtime. Pure except for reading job.json, and for
asking the JVM whether a merger's class exists. Invariant: Hudi options that belong to the operator
are refused here again, because an older operator may have accepted them (F2).
"""
