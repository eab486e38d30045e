"""Tests of an attempt: batches, schema, fairness, leaving."""
