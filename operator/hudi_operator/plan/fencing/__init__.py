"""Decisions about suspects and the proofs of their death (I1, I2, I6).

It also decides when their lock, evidence and records may be deleted.

`suspects` fences, `sightings` records live incarnations, `settling` moves a fenced incarnation from
phase to phase, `revocation` gives and revokes storage credentials of attempts, `evidence` decides
about finalizers of drivers and executors, `held_config_maps` about ConfigMaps with which executors
are compared, `collection` deletes old records. `absence` says when a wide list of pods is needed.
Only `settling` deletes a lock. Of the planners it uses only core: it does not know gates or
requests, so fencing continues whatever the table's spec is.
"""
