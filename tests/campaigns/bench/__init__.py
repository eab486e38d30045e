"""Measurements of the lock, without Spark: load (`make bench-lock`) and starved heartbeats
(`make bench-starvation`).

With Spark: an important writer's commits beside a backfill (`make bench-priority`).
"""
