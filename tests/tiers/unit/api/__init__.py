"""Tests of how a spec is read: defaults, and what is wrong with it in words."""
