"""Tests of table services: triggers, plans, expiry, partitions that are left out."""
