"""Measurements of the lock, without Spark: load (`make bench-lock`) and starved heartbeats (`make bench-starvation`)."""
