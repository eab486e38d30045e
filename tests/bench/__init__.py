"""Measurements: load on the lock (`make bench-lock`) and starved heartbeats (`make bench-starvation`), without Spark; commits beside a backfill (`make bench-priority`)."""
