"""Tests of the page of guarantees: each claim names a test that exists."""
