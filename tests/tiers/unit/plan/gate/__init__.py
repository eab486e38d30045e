"""Tests of when a table is open for writers: adoption, gate, versions of the protocol."""
