"""Tests of how a job is read."""
