"""The driver of one attempt: `python -m hudi_runtime.writer`.

It commits batches one after the other; `attempt.py` is the entry, `run.py` the loop of a writer
with a source, `application.py` a program of the user, and `commit.py` one commit.

Before a run there is `predecessor.py`, before a write `gate.py` and `fairness.py`. `schema.py` and
`validations.py` check a batch, `duplicates.py` and `lookup_partitions.py` look for its keys,
`deletes.py` and `overwrite.py` are operations with special rules. May import `read` and the
packages below; never `settle`, `services`, `agent`, `callback` or `catalog`: a driver cannot roll
back, sweep or clean. Invariants: the timeline decides about an outcome, not the result of `save()`
(I4); an instant is abandoned only when all of its tasks have ended (F4); waits are for fairness
only, safety does not depend on them.
"""
