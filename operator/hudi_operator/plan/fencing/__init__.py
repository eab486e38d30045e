"""Which incarnations are suspects, and how their death is proven (I1, I2, I6).

It also decides when their lock, evidence and records may be deleted.

`suspects` fences, `sightings` records live incarnations, `settling` moves a fenced incarnation from
phase to phase, `evidence` decides about finalizers of drivers and executors, `collection` deletes
old records. Only `settling` deletes a lock. Uses only core: it does not know gates or requests, so
fencing continues whatever the table's spec is.
"""
