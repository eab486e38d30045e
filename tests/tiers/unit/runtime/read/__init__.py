"""Tests of what a writer reads: positions, progress, snapshots, deletions."""
