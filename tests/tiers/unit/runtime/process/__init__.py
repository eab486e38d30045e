"""Tests of how a process of the runtime starts, stops and says how it ended."""
