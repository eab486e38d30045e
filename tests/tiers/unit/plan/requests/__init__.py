"""Tests of what a table is asked for: savepoints, restores, bootstrap,
metadata table, callbacks.
"""
