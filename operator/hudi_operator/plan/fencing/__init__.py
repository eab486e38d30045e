"""Who is suspect, how its death is proven, and when its lock, its evidence and its records may go (I1, I2, I6).

`suspects` fences, `sightings` notes who was seen alive, `settling` moves a fenced incarnation from phase to phase, `evidence` decides about finalizers
of drivers and executors, `collection` forgets old records. Only `settling` deletes a lock. Uses core alone: it knows no gate and no request, so
fencing goes on whatever the table's spec is like.
"""
