"""Tests of timeline, storage and partitions of a table, without Spark."""
