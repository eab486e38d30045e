"""The driver of one attempt: `python -m hudi_runtime.writer`.

It commits batches one after the other; `attempt.py` is the entry.

May import `read` and the packages below; never `settle`, `services`, `agent` or `callback`: a
driver cannot roll back, sweep or clean. Invariants: the timeline decides about an outcome, not the
result of `save()` (I4); an instant is abandoned only when all of its tasks have ended (F4); waits
are for fairness only, safety does not depend on them.
"""
