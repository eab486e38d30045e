"""Tests of how the demo reads the protocol's keys."""
