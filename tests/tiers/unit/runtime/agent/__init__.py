"""Tests of an agent's tasks: adoption, bootstrap, savepoints, restores, metadata table,
the store's properties.
"""
