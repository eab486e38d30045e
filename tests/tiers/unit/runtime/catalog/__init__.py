"""Tests of catalogs: when they are synchronized, and at which addresses."""
