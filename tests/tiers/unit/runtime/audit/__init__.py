"""Tests of the audit: each damage is found by its check."""
