"""The driver of one attempt: `python -m hudi_runtime.writer`. Batches become commits, one after the other; `attempt.py` is its frame.

May use `read` and what is below; never `settle`, `services`, `agent` or `callback`: a driver cannot roll back, sweep or clean. Invariants: what
`save()` returns is no evidence, the timeline is (I4); what is given up is given up only when every task has ended (F4); waits are fairness
only, safety does not depend on them.
"""
